"""A transcript of model messages -> the tool calls in it, or every problem with its place.

Messages are in the chat-completions form or in Anthropic's, one JSON object a line, or together in
one JSON array, or in an object under ``messages``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

import attrs

__all__ = ["Call", "TranscriptError", "TranscriptProblem", "parse_transcript"]

_A_MESSAGE = 'a message such as {"role": "assistant", "content": "..."}'
_A_CALL = '{"function": {"name": "...", "arguments": "{...}"}}'
_A_BLOCK = '{"type": "tool_use", "name": "...", "input": {...}}'
_JSON_WORDS = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


@attrs.frozen
class Call:
    """One tool call that a model made.

    Attributes:
        name: The tool's name.
        arguments: JSON text as the provider hands it over, or the object itself.
    """

    name: str
    arguments: str | Mapping[str, Any] | None


@attrs.frozen
class TranscriptProblem:
    """One thing that is wrong with a transcript.

    Attributes:
        message: What is wrong, and what is expected.
        line: The line where it is, from 1; None when lines do not tell.
        number: The number of the message where it is, from 1, in a transcript that is one document.
    """

    message: str
    line: int | None = None
    number: int | None = None

    def __str__(self) -> str:
        if self.line is not None:
            return f"line {self.line}: {self.message}"
        return self.message if self.number is None else f"message {self.number}: {self.message}"


class TranscriptError(ValueError):
    """A transcript cannot be read; none of its calls should be carried out.

    Attributes:
        problems: Everything that is wrong, in the order of the text.
    """

    def __init__(self, problems: Iterable[TranscriptProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class _WrongError(Exception):
    """What is wrong with one message."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def parse_transcript(data: bytes) -> tuple[Call, ...]:
    """The tool calls of the assistant's messages, in order.

    Args:
        data: The transcript in UTF-8.

    Raises:
        TranscriptError: It is no text, holds no message, or holds something else than messages.
    """
    text = _decode(data)
    try:
        document = _load(text)
    except _WrongError as wrong:
        if _is_one_document(text):
            raise TranscriptError([TranscriptProblem(wrong.message, wrong.line)]) from None
        lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
        return _collect(((TranscriptProblem("", line=number), line) for number, line in lines), _load)
    if isinstance(document, dict) and "role" not in document and isinstance(document.get("messages"), list):
        document = document["messages"]
    messages = document if isinstance(document, list) else [document]
    if not messages:
        _fail(f"holds no message; expected {_A_MESSAGE}")
    numbered = enumerate(messages, start=1)
    return _collect(((TranscriptProblem("", number=number), message) for number, message in numbered))


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        raise TranscriptError([TranscriptProblem(f"not UTF-8: {byte}; save it as UTF-8", line)]) from None
    if not text.strip():
        _fail(f"empty; expected one JSON message a line, {_A_MESSAGE}")
    return text


def _is_one_document(text: str) -> bool:
    """Whether text that is no JSON was meant as one document, not as one message a line."""
    return text.lstrip().startswith("[") or text.lstrip().split("\n", 1)[0].strip() == "{"


def _load(text: str) -> object:
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}"
        raise _WrongError(f"not JSON at {place}: {error.msg}; expected {_A_MESSAGE}", error.lineno) from None
    except (ValueError, RecursionError):
        raise _WrongError(f"not JSON: nested too deep, or a number too long; expected {_A_MESSAGE}") from None
    return value


def _collect(
    items: Iterable[tuple[TranscriptProblem, Any]], read: Callable[[Any], object] = lambda value: value
) -> tuple[Call, ...]:
    calls: list[Call] = []
    problems: list[TranscriptProblem] = []
    for place, item in items:
        try:
            calls.extend(_calls(read(item)))
        except _WrongError as wrong:
            problems.append(attrs.evolve(place, message=wrong.message))
    if problems:
        raise TranscriptError(problems)
    return tuple(calls)


def _calls(message: object) -> Iterator[Call]:
    if not isinstance(message, dict):
        _wrong(f"no message but {_word(message)}; expected {_A_MESSAGE}")
    role = message.get("role")
    if not isinstance(role, str):
        _wrong(f'no message: it has no "role"; expected {_A_MESSAGE}')
    if role != "assistant":
        return
    content = message.get("content")
    if content is not None and not isinstance(content, (str, list)):
        _wrong(f"content: expected a string, an array of blocks or null, got {_word(content)}")
    for index, block in enumerate(content if isinstance(content, list) else ()):
        yield from _block(block, f"content[{index}]")
    tool_calls = message.get("tool_calls")
    if tool_calls is not None and not isinstance(tool_calls, list):
        _wrong(f"tool_calls: expected an array of {_A_CALL}, got {_word(tool_calls)}")
    for index, call in enumerate(tool_calls or ()):
        yield _tool_call(call, f"tool_calls[{index}]")
    if message.get("function_call") is not None:
        yield _function(message["function_call"], "function_call")


def _block(block: object, path: str) -> Iterator[Call]:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        _wrong(f'{path}: expected a block with a "type", such as {_A_BLOCK}')
    if block["type"] != "tool_use":
        return
    arguments = block.get("input")
    if not isinstance(arguments, dict):
        _wrong(f"{path}.input: expected an object, got {_word(arguments)}")
    yield Call(_name(block, path), arguments)


def _tool_call(call: object, path: str) -> Call:
    if not isinstance(call, dict):
        _wrong(f"{path}: expected {_A_CALL}, got {_word(call)}")
    kind = call.get("type", "function")
    if isinstance(kind, str) and kind != "function":
        return Call(_name({"name": kind}, path), None)  # a provider's own kind: none of the planning tools
    return _function(call.get("function"), f"{path}.function")


def _function(function: object, path: str) -> Call:
    if not isinstance(function, dict):
        _wrong(f'{path}: expected {{"name": "...", "arguments": "{{...}}"}}, got {_word(function)}')
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, (str, dict)):
        _wrong(f"{path}.arguments: expected JSON text, got {_word(arguments)}")
    return Call(_name(function, path), arguments)


def _name(holder: Mapping[str, Any], path: str) -> str:
    name = holder.get("name")
    if not isinstance(name, str) or not name:
        shown = "an empty one" if name == "" else _word(name)
        _wrong(f"{path}.name: expected the tool's name, got {shown}")
    return name


def _word(value: object) -> str:
    return "nothing" if value is None else _JSON_WORDS[type(value)]


def _wrong(message: str) -> NoReturn:
    raise _WrongError(message)


def _fail(message: str) -> NoReturn:
    raise TranscriptError([TranscriptProblem(message)])

"""One message of a transcript -> the tool calls in it, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import attrs

__all__ = ["A_MESSAGE", "Call", "MalformedError", "calls_of"]

A_MESSAGE = 'a message such as {"role": "assistant", "content": "..."}'
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


class MalformedError(Exception):
    """What is wrong with one message, or with the text that should hold it.

    Attributes:
        message: What is wrong, and what is expected.
        line: The line within that text, from 1.
    """

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def calls_of(message: object) -> Iterator[Call]:
    """The tool calls of a message in the chat-completions form or in Anthropic's.

    Raises:
        MalformedError: It is no message, or its calls are not in one of these forms.
    """
    if not isinstance(message, dict):
        _wrong(f"no message but {_word(message)}; expected {A_MESSAGE}")
    role = message.get("role")
    if not isinstance(role, str):
        _wrong(f'no message: it has no "role"; expected {A_MESSAGE}')
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
    raise MalformedError(message)

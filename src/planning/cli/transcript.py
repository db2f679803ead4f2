"""A transcript of model messages -> the tool calls in it, or every problem with its place.

Messages are in the chat-completions form or in Anthropic's, one JSON object a line, or together in
one JSON array, or in an object under ``messages``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import attrs

from planning.cli.messages import A_MESSAGE, Call, MalformedError, calls_of

__all__ = ["TranscriptError", "TranscriptProblem", "parse_transcript"]

_A_TRANSCRIPT = "one JSON message a line, or one JSON array of messages"


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
    except MalformedError as wrong:
        if _is_one_document(text):
            problem = TranscriptProblem(f"{wrong.message}; expected {_A_TRANSCRIPT}", wrong.line)
            raise TranscriptError([problem]) from None
        lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
        return _collect(((TranscriptProblem("", line=number), line) for number, line in lines), _load_line)
    if isinstance(document, dict) and "role" not in document and isinstance(document.get("messages"), list):
        document = document["messages"]
    messages = document if isinstance(document, list) else [document]
    if not messages:
        _fail(f"holds no message; expected {A_MESSAGE}")
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
        _fail(f"empty; expected {_A_TRANSCRIPT}")
    return text


def _is_one_document(text: str) -> bool:
    """Whether text that is no JSON was meant as one document, not as one message a line."""
    return text.lstrip().startswith("[") or text.lstrip().split("\n", 1)[0].strip() == "{"


def _load(text: str) -> object:
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise MalformedError(f"not JSON at column {error.colno}: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError):
        raise MalformedError("nested too deep, or a number of too many digits") from None
    return value


def _load_line(line: str) -> object:
    try:
        return _load(line)
    except MalformedError as wrong:
        raise MalformedError(f"{wrong.message}; expected {A_MESSAGE}") from None


def _collect(
    items: Iterable[tuple[TranscriptProblem, Any]], read: Callable[[Any], object] = lambda value: value
) -> tuple[Call, ...]:
    calls: list[Call] = []
    problems: list[TranscriptProblem] = []
    for place, item in items:
        try:
            calls.extend(calls_of(read(item)))
        except MalformedError as wrong:
            problems.append(attrs.evolve(place, message=wrong.message))
    if problems:
        raise TranscriptError(problems)
    return tuple(calls)


def _fail(message: str) -> NoReturn:
    raise TranscriptError([TranscriptProblem(message)])

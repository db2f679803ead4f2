"""Answers of a server of the chat-completions protocol: read as they arrive, and their text."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from typing import Any, Final

import attrs

from planning.errors import ToolError, cut, printable

__all__ = ["LARGEST", "NO_KEY", "Answer", "Answers", "is_timeout", "retry_after", "text_of", "words_of"]

NO_KEY: Final = "none"  # the client requires a key; a server without keys ignores it
LARGEST: Final = 8_000_000  # bytes of an answer
_LARGEST_ERROR: Final = 100_000  # bytes of an error that are read for its message
_PACKED: Final = frozenset({"gzip", "deflate"})
_LONGEST_WORDS: Final = 300


@attrs.frozen
class Answer:
    """An answer of the server.

    Attributes:
        status: Its HTTP status.
        headers: Its headers.
        text: Its body.
    """

    status: int
    headers: Mapping[str, str]
    text: bytes

    @property
    def error(self) -> object:
        """The error in it: the protocol's object, or else the beginning of its text."""
        try:
            said: object = json.loads(self.text) if len(self.text) <= _LARGEST_ERROR else None
        except (ValueError, RecursionError):
            said = self.text[:_LARGEST_ERROR].decode(errors="replace")
        return said.get("error", said) if isinstance(said, Mapping) else said


class Answers:
    """Reads answers as they arrive, up to a bound: the client would read and unpack any error in full.

    Attributes:
        last: The answer to the last request; None until it is complete.
        has_begun: Whether the server has begun to answer it.
        is_too_long: Whether the answer exceeds the largest size.
    """

    def __init__(self) -> None:
        self.last: Answer | None = None
        self.has_begun = self.is_too_long = False

    async def begin(self, _request: object) -> None:
        """Forget the answer to an earlier attempt."""
        self.last, self.has_begun, self.is_too_long = None, False, False

    async def read(self, response: Any) -> None:
        """Read an answer to its end, or to the largest size."""
        self.has_begun = True
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > LARGEST:
                break
        text = _unpacked(bytes(body)) if response.headers.get("content-encoding") in _PACKED else bytes(body)
        self.is_too_long = len(text) > LARGEST
        if not self.is_too_long:
            self.last = Answer(response.status_code, response.headers, text)


def _unpacked(body: bytes) -> bytes:
    """The unpacked body, up to the largest size: some servers compress it although that was not accepted."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, LARGEST + 1)
    except zlib.error:
        return body


def text_of(body: bytes, server: str, key: str) -> str:
    """The text in the server's answer.

    Raises:
        ToolError: There is no text.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise ToolError(f"{server} does not answer in the chat-completions form; check the base_url")
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        words = words_of(answer, key)
        raise ToolError(
            f"{server} gave no answer; ask again, or another model{f': {words}' if words else ''}"
        )
    return _text(choice, message, server)


def _text(choice: Mapping[str, Any], message: Mapping[str, Any], server: str) -> str:
    content = message.get("content")
    if isinstance(content, list):  # parts, as some servers send them
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    reason = choice.get("finish_reason")
    if reason == "length":
        raise ToolError(f"{server} cut the answer off at its limit; allow it longer answers, or ask for less")
    refusal = message.get("refusal")
    if reason == "content_filter" or refusal:
        words = _one_line(refusal) if isinstance(refusal, str) else ""
        raise ToolError(f"the model refused to answer; ask in other words{f': {words}' if words else ''}")
    if not isinstance(content, str) or not content.strip():
        raise ToolError(f"{server} gave an answer without text; ask again, or another model")
    return content


def words_of(body: object, key: str) -> str:
    """The message of an error on one line, without the key."""
    found = body.get("error", body) if isinstance(body, Mapping) else body
    found = found.get("message") if isinstance(found, Mapping) else found
    if not isinstance(found, str) or found.lstrip().startswith("<"):  # a page for a browser
        return ""
    return _one_line(found if key == NO_KEY else found.replace(key, "***"))


def is_timeout(error: BaseException | None) -> bool:
    """Whether an error was caused by a timeout: the libraries wrap it in their own types."""
    while error is not None:
        if isinstance(error, TimeoutError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _one_line(text: str) -> str:
    return cut(printable(" ".join(text.split())), _LONGEST_WORDS)


def retry_after(headers: Mapping[str, str]) -> float:
    """The seconds after which a server takes another request; 0 where it does not say."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:  # a date, or nothing
        return 0.0
    return seconds if 0 < seconds < math.inf else 0.0

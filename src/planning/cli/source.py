"""What a command reads: a file or standard input, up to a limit, and why one cannot be read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

from planning.cli.messages import Call
from planning.cli.printable import printable
from planning.cli.transcript import TranscriptError, parse_transcript

__all__ = ["NoSourceError", "SourceError", "UnreadableError", "read_bytes", "read_calls"]

MOST_BYTES = 32_000_000
"""The bytes of the longest document that is read: 8,000,000 characters of 4 bytes each."""
_MOST_OF_TRANSCRIPT = 100_000_000
_MEGABYTE = 1_000_000
_MOST_PROBLEMS = 10


class SourceError(Exception):
    """A source cannot be used; the text says what is wrong with it."""


class UnreadableError(SourceError):
    """The bytes of a source cannot be read, or are too many."""


class NoSourceError(Exception):
    """No source was given, and none is piped in."""


def read_calls(transcript: str | None) -> tuple[Call, ...]:
    """The tool calls of a transcript.

    Args:
        transcript: A path; ``-`` for standard input; None for standard input unless a person is
            typing there.

    Raises:
        UnreadableError: It cannot be read.
        SourceError: It is not a transcript.
        NoSourceError: There is nothing to read from.
    """
    try:
        return parse_transcript(read_bytes(transcript, most=_MOST_OF_TRANSCRIPT))
    except TranscriptError as error:
        problems = [f"  {problem}" for problem in error.problems[:_MOST_PROBLEMS]]
        if len(error.problems) > _MOST_PROBLEMS:
            problems.append(f"  and {len(error.problems) - _MOST_PROBLEMS} more")
        lines = [f"{_name(transcript)} is no transcript, nothing was replayed:", *problems]
        raise SourceError("\n".join(lines)) from None


def read_bytes(path: str | None, *, most: int = MOST_BYTES) -> bytes:
    """The bytes of a file or of standard input.

    Args:
        path: A path; ``-`` for standard input; None for standard input unless a person is typing
            there.
        most: How many bytes are read; a device such as ``/dev/zero`` never ends.

    Raises:
        UnreadableError: They cannot be read, or are more.
        NoSourceError: There is nothing to read from.
    """
    try:
        if path is not None and path != "-":
            with Path(path).open("rb") as file:
                given = _read(file, most + 1)
        elif sys.stdin is None or (path is None and sys.stdin.isatty()):
            raise NoSourceError
        else:
            given = _read(sys.stdin.buffer, most + 1)
    except OSError as error:
        raise UnreadableError(f"{_name(path)} cannot be read: {error.strerror}") from None
    if len(given) > most:
        raise UnreadableError(f"{_name(path)} is larger than {most // _MEGABYTE} MB, and is not read")
    return given


def _read(file: BinaryIO, most: int) -> bytes:
    """The bytes of a file, up to a number; that many are not asked for at once, which would reserve them."""
    chunks = list[bytes]()
    while most and (chunk := file.read(min(most, _MEGABYTE))):
        chunks.append(chunk)
        most -= len(chunk)
    return b"".join(chunks)


def _name(path: str | None) -> str:
    return "standard input" if path in (None, "-") else f"'{printable(str(path))}'"

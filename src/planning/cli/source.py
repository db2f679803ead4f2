"""Where what a command reads comes from, and the words for whoever gave something that cannot be read."""

from __future__ import annotations

import sys
from pathlib import Path

from planning.cli.messages import Call
from planning.cli.printable import printable
from planning.cli.transcript import TranscriptError, parse_transcript

__all__ = ["NoSourceError", "SourceError", "read_bytes", "read_calls"]

_MOST_PROBLEMS = 10


class SourceError(Exception):
    """A source cannot be read; the text says what is wrong with it."""


class NoSourceError(Exception):
    """No source was given, and none is piped in."""


def read_calls(transcript: str | None) -> tuple[Call, ...]:
    """The tool calls of a transcript.

    Args:
        transcript: A path; ``-`` for standard input; None for standard input unless a person is
            typing there.

    Raises:
        SourceError: It cannot be read, or is no transcript.
        NoSourceError: There is nothing to read from.
    """
    try:
        return parse_transcript(read_bytes(transcript))
    except TranscriptError as error:
        problems = [f"  {problem}" for problem in error.problems[:_MOST_PROBLEMS]]
        if len(error.problems) > _MOST_PROBLEMS:
            problems.append(f"  and {len(error.problems) - _MOST_PROBLEMS} more")
        lines = [f"{_name(transcript)} is no transcript, nothing was replayed:", *problems]
        raise SourceError("\n".join(lines)) from None


def read_bytes(path: str | None) -> bytes:
    """The bytes of a file or of standard input.

    Args:
        path: A path; ``-`` for standard input; None for standard input unless a person is typing
            there.

    Raises:
        SourceError: They cannot be read.
        NoSourceError: There is nothing to read from.
    """
    try:
        if path is not None and path != "-":
            return Path(path).read_bytes()
        if sys.stdin is None or (path is None and sys.stdin.isatty()):
            raise NoSourceError
        return sys.stdin.buffer.read()
    except OSError as error:
        raise SourceError(f"{_name(path)} cannot be read: {error.strerror}") from None


def _name(path: str | None) -> str:
    return "standard input" if path in (None, "-") else f"'{printable(str(path))}'"

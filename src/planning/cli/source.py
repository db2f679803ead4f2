"""Where a transcript comes from, and the words for whoever gave one that cannot be read."""

from __future__ import annotations

import sys
from pathlib import Path

from planning.cli.messages import Call
from planning.cli.printable import printable
from planning.cli.transcript import TranscriptError, parse_transcript

__all__ = ["NoSourceError", "SourceError", "read_calls"]

_MOST_PROBLEMS = 10


class SourceError(Exception):
    """A transcript cannot be read; the text says what is wrong with it."""


class NoSourceError(Exception):
    """No transcript was given, and none is piped in."""


def read_calls(transcript: str | None) -> tuple[Call, ...]:
    """The tool calls of a transcript.

    Args:
        transcript: A path; ``-`` for standard input; None for standard input unless a person is
            typing there.

    Raises:
        SourceError: It cannot be read, or is no transcript.
        NoSourceError: There is nothing to read from.
    """
    name = "standard input" if transcript in (None, "-") else f"'{printable(str(transcript))}'"
    try:
        return parse_transcript(_read(transcript))
    except TranscriptError as error:
        problems = [f"  {problem}" for problem in error.problems[:_MOST_PROBLEMS]]
        if len(error.problems) > _MOST_PROBLEMS:
            problems.append(f"  and {len(error.problems) - _MOST_PROBLEMS} more")
        message = "\n".join([f"{name} is no transcript, nothing was replayed:", *problems])
        raise SourceError(message) from None
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {error.strerror}") from None


def _read(transcript: str | None) -> bytes:
    if transcript not in (None, "-"):
        return Path(str(transcript)).read_bytes()
    if sys.stdin is None or (transcript is None and sys.stdin.isatty()):
        raise NoSourceError
    return sys.stdin.buffer.read()

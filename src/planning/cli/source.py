"""What a command reads: a file or standard input, up to a limit, and why one cannot be read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from planning.cli.messages import Call
from planning.cli.printable import printable
from planning.cli.transcript import TranscriptError, parse_transcript

if TYPE_CHECKING:
    from planning.workflow.capabilities import Capabilities

__all__ = [
    "Finished",
    "NoSourceError",
    "PlanFile",
    "SourceError",
    "UnreadableError",
    "nothing_done",
    "read_bytes",
    "read_calls",
    "read_capabilities",
    "read_plan",
]

PlanFile = Annotated[
    str | None, typer.Argument(metavar="PLAN", help="A file, or - for standard input.", show_default=False)
]
Finished = Annotated[
    bool,
    typer.Option(
        "--finished",
        help="The model ended the text by itself, as the provider's finish reason says: brackets that"
        " are missing at its end were forgotten, and the text was not cut.",
    ),
]
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


def read_plan(plan: str | None) -> bytes:
    """The bytes of the plan that a command was given.

    Raises:
        typer.Exit: It cannot be read, and the reason is printed.
        typer.BadParameter: There is none.
    """
    try:
        return read_bytes(plan)
    except SourceError as error:
        raise nothing_done(error) from None
    except NoSourceError:
        raise typer.BadParameter("give a file, or pipe one in", param_hint="'PLAN'") from None


def read_capabilities(**options: Sequence[str] | None) -> Capabilities | None:
    """What the options of a command name; see ``capabilities_of``.

    Raises:
        typer.Exit: An option names nothing that can be used, and the reason is printed.
    """
    from planning.cli.capabilities import CapabilitiesError, capabilities_of

    try:
        return capabilities_of(**options)
    except CapabilitiesError as error:
        raise nothing_done(error) from None


def nothing_done(error: Exception) -> typer.Exit:
    """Print why a command cannot begin.

    Returns:
        What to raise: exit code 2.
    """
    typer.echo(f"planning: {error}", err=True)
    return typer.Exit(2)


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

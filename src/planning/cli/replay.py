"""``planning replay``: the planning calls of a transcript, carried out and shown."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planning.cli.kinds import refuse_other
from planning.cli.source import name_of, read_bytes
from planning.cli.terminal import as_json, can_redraw
from planning.cli.usage import Refused

if TYPE_CHECKING:
    from planning.cli.progress import Progress
    from planning.cli.terminal import Line
    from planning.cli.transcript import Call

_DELAY: Final = 0.15  # seconds after each change in a terminal
MOST_BYTES: Final = 100_000_000
"""The bytes of the largest transcript that is read."""
PREFIX: Final = "planning_"
"""What the names of the planning tools begin with."""


def replay(
    transcript: Annotated[
        str | None, typer.Argument(metavar="TRANSCRIPT", help="A file, or - for standard input.")
    ] = None,
    *,
    as_json_: Annotated[
        bool, typer.Option("--json", help="Print the final plan as JSON, nothing else.")
    ] = False,
) -> None:
    """Replay a transcript: show the plan as it changes.

    A transcript holds model messages in JSON: one a line, or all in one array, or in an object under
    "messages". Messages may be in the form of chat completions, of OpenAI's Responses, of Anthropic or of
    LangChain. Calls to other tools are skipped and counted.
    """
    calls = calls_in(read_bytes(transcript, "TRANSCRIPT", most=MOST_BYTES), transcript)
    from planning.cli.faces import face_of
    from planning.cli.progress import Progress

    progress, seen = Progress(), Counter[str]()
    with face_of(sys.stdout, progress, is_json=as_json_) as face:
        for kind, lines in replayed(calls, progress):
            seen[kind] += 1
            face.show(lines)
            if lines and not as_json_ and can_redraw(sys.stdout):
                time.sleep(_DELAY)
        tally = ", ".join(f"{seen[kind]} {kind}" for kind in ("carried out", "refused", "to other tools"))
        face.end((), [("", ""), (f"Calls: {tally}.", "")], is_whole=True)
    if as_json_:
        typer.echo(as_json(None if progress.plan is None else asdict(progress.plan)))


def replayed(calls: Iterable[Call], progress: Progress) -> Iterator[tuple[str, list[Line]]]:
    """Carry out calls one by one, each when it is asked for: how it ended, and its lines.

    Args:
        calls: The calls of a transcript.
        progress: What shows the plan.
    """
    from planning.plan.model import Plan
    from planning.prompt import PlanningToolsSection
    from planning.tools import Toolbox
    from session import Session, select_latest

    section = PlanningToolsSection(session=Session())
    toolbox = Toolbox(section.tools())
    for call in calls:
        if not call.name.startswith(PREFIX):
            yield "to other tools", []
            continue
        result = toolbox.call(call.name, call.arguments)
        plan = select_latest(section.session, Plan)
        if not result.success or plan is None:
            yield "refused", [progress.refuse(call.name, result.error or result.message)]
        elif isinstance(result.value, Plan):
            yield "carried out", [(f"Plan read: {plan.status}, {progress.tally()}.", "")]
        else:
            yield "carried out", progress.take_plan(plan)


def calls_in(data: bytes, transcript: str | None) -> tuple[Call, ...]:
    """The tool calls in the bytes of a transcript.

    Raises:
        Refused: It is not one.
    """
    from planning.cli.transcript import TranscriptError, parse_transcript

    try:
        return parse_transcript(data)
    except TranscriptError as error:
        refuse_other(data, transcript, "a transcript", "transcript")
        raise Refused(f"{name_of(transcript)} is not a transcript: {error}") from None

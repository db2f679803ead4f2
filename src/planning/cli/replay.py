"""``planning replay``: the planning calls of a transcript, carried out and shown."""

from __future__ import annotations

import sys
import time
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

__all__ = ["MOST_BYTES", "PREFIX", "calls_in", "replay", "replayed"]

_TERMINAL_DELAY: Final = 0.15
_LONGEST_DELAY: Final = 60.0
MOST_BYTES: Final = 100_000_000
"""The bytes of the largest transcript that is read."""
_MOST_PROBLEMS: Final = 10
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
    delay: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=_LONGEST_DELAY,
            metavar="SECONDS",
            help=f"Wait after each change; without it {_TERMINAL_DELAY} in a terminal, 0 elsewhere.",
        ),
    ] = None,
) -> None:
    """Replay a transcript: show the plan as it changes.

    A transcript holds model messages in JSON: one a line, or all in one array, or in an object under
    "messages". Messages may be in the form of chat completions, of OpenAI's Responses, of Anthropic or of
    LangChain. Calls to other tools are skipped and counted.
    """
    calls = calls_in(read_bytes(transcript, "TRANSCRIPT", most=MOST_BYTES), transcript)
    from planning.cli.faces import face_of
    from planning.cli.progress import Progress

    progress = Progress()
    seconds = delay if delay is not None else _TERMINAL_DELAY if can_redraw(sys.stdout) else 0.0
    with face_of(sys.stdout, progress, is_json=as_json_) as face:
        for lines in replayed(calls, progress):
            face.show(lines)
            time.sleep(0.0 if as_json_ else seconds)
        face.end((), [("", ""), (progress.calls(), "")], is_whole=True)
    if as_json_:
        typer.echo(as_json(None if progress.plan is None else asdict(progress.plan)))


def replayed(calls: Iterable[Call], progress: Progress) -> Iterator[list[Line]]:
    """Carry out calls one by one, each when its lines are asked for.

    Args:
        calls: The calls of a transcript.
        progress: What shows the plan.
    """
    from planning.model import Plan
    from planning.prompt import PlanningToolsSection
    from planning.tools import Toolbox
    from session import Session, select_latest

    section = PlanningToolsSection(session=Session())
    toolbox = Toolbox(section.tools())
    for call in calls:
        if not call.name.startswith(PREFIX):
            progress.other_calls += 1
            continue
        result = toolbox.call(call.name, call.arguments)
        plan = select_latest(section.session, Plan)
        if not result.success or plan is None:
            yield [progress.refuse(call.name, result.error or result.message)]
            continue
        progress.carried_out += 1
        is_read = isinstance(result.value, Plan)
        read = [(f"Plan read: {plan.status}, {progress.tally()}.", "")]
        yield read if is_read else progress.take_plan(plan)


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
        problems = [f"  {line}" for line in error.problems[:_MOST_PROBLEMS]]
        if len(error.problems) > _MOST_PROBLEMS:
            problems.append(f"  and {len(error.problems) - _MOST_PROBLEMS} more")
        head = f"{name_of(transcript)} is not a transcript; nothing was replayed:"
        raise Refused("\n".join([head, *problems])) from None

"""``planning replay``: the planning calls of a transcript, made again and shown."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Annotated, Final

import typer

from planning.cli.faces import face_of
from planning.cli.opening import MOST_BYTES, calls_in, replayed
from planning.cli.progress import Progress
from planning.cli.source import read_bytes
from planning.cli.terminal import Line, as_json, can_redraw
from planning.cli.transcript import Call
from planning.cli.usage import examples
from planning.plan.model import Plan
from session import Session, select_latest

REPLAY_HELP: Final = examples("replay examples/triage.jsonl", "replay --json - < transcript.jsonl")

_DELAY: Final = 0.15  # seconds after each change in a terminal


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
    calls = calls_in(read_bytes(transcript, "TRANSCRIPT", limit=MOST_BYTES), transcript)
    progress, seen = Progress(), Counter[str]()
    with face_of(sys.stdout, progress, is_json=as_json_) as face:
        for kind, lines in replay_lines(calls, progress):
            seen[kind] += 1
            face.show(lines)
            if lines and not as_json_ and can_redraw(sys.stdout):
                time.sleep(_DELAY)
        tally = ", ".join(f"{seen[kind]} {kind}" for kind in ("accepted", "refused", "to other tools"))
        face.end((), [("", ""), (f"Calls: {tally}.", "")], is_whole=True)
    if as_json_:
        typer.echo(as_json(None if progress.plan is None else asdict(progress.plan)))


def replay_lines(calls: Iterable[Call], progress: Progress) -> Iterator[tuple[str, list[Line]]]:
    """Make calls one by one, each when it is asked for: how it ended, and its lines."""
    session = Session()
    for call, result in replayed(calls, session):
        plan = select_latest(session, Plan)
        if result is None:
            yield "to other tools", []
        elif not result.success or plan is None:
            yield "refused", [progress.refuse(call.name, result.error or result.message)]
        elif isinstance(result.value, Plan):
            yield "accepted", [(f"Plan read: {plan.status}, {progress.tally()}.", "")]
        else:
            yield "accepted", progress.take_plan(plan)

"""``planning show``: a plan, and the run that it mirrors, out of what other commands print or save."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planning.cli.source import name_of, read_bytes
from planning.cli.terminal import as_json
from planning.cli.usage import EXIT_CODES, Refused

if TYPE_CHECKING:
    from planning.model import Plan
    from planning.workflow.model import Workflow
    from planning.workflow.run.result import WorkflowResult
    from session import Session

__all__ = ["SHOW_HELP", "show"]

SHOW_HELP: Final = f"""\b
Examples:
  planning run plan.json --tools my_app:tools --save run.json
  planning show run.json
  planning replay --json transcript.jsonl | planning show

\b
What it reads:
  A snapshot of a session: what 'planning run' saves, or what
  Session.snapshot().to_json() returns in a program. Or one plan, as
  'planning replay --json' prints it.

{EXIT_CODES}"""
_PLAN_KEYS: Final = {"objective", "status", "steps"}
_NOT_THAT: Final = "expected a snapshot, or the plan that 'planning replay --json' prints"


def show(
    source: Annotated[
        str | None,
        typer.Argument(metavar="SNAPSHOT", help="A file, or - for standard input.", show_default=False),
    ] = None,
    *,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the whole output of every step of a run.")
    ] = False,
    as_json_: Annotated[
        bool, typer.Option("--json", help="Print the plan and the run as JSON, nothing else.")
    ] = False,
) -> None:
    """Show a saved session: its plan, or its run with the answer.

    The plan of a session with a run is shown only where it differs: it mirrors the run otherwise.
    """
    session = _session_of(source)
    from planning.cli.keep import past_result
    from planning.model import Plan
    from planning.workflow.run.records import WorkflowRun

    plan, run = session.select_latest(Plan), session.select_latest(WorkflowRun)
    result = None if run is None else past_result(session, run)
    if as_json_:
        shown = {"plan": plan and asdict(plan), "run": result and result.to_dict()}
        typer.echo(as_json(shown))
        return
    if result is None or (plan is not None and not _mirrors(plan, result.workflow)):
        _show_plan(plan)
    if result is not None:
        _show_run(result, is_verbose=verbose)


def _mirrors(plan: Plan, workflow: Workflow) -> bool:
    """Whether a plan has the steps of a workflow; a description that ASCII cannot spell is any title."""
    from planning.text import TITLE, fitted

    pairs = zip(plan.steps, workflow.steps, strict=False)
    return len(plan.steps) == len(workflow.steps) and all(
        fitted(step.description, TITLE) in {"", shown.title} for shown, step in pairs
    )


def _show_plan(plan: Plan | None) -> None:
    from planning.cli.faces import face_of
    from planning.cli.progress import Progress

    progress = Progress()
    if plan is not None:
        progress.take(plan)
    with face_of(sys.stdout, progress, is_json=False) as face:
        face.end((), (), is_whole=True)


def _show_run(result: WorkflowResult, *, is_verbose: bool) -> None:
    from planning.cli.faces import face_of
    from planning.cli.progress import Progress
    from planning.cli.running import report_lines
    from planning.workflow.run.records import StepRecord, WorkflowRun, states_of

    workflow, run = result.workflow, result.session.select_all(WorkflowRun)[-1]
    progress = Progress.of_run(workflow)
    records = states_of(run.run_id, result.session.select_all(StepRecord)).values()
    changes = [change for record in records for change in progress.take(record)]
    with face_of(sys.stdout, progress, is_json=False) as face:
        face.show(changes)
        is_stopped = run.status not in {"completed", "failed"}
        lines = report_lines(workflow, progress, result, is_verbose=is_verbose, is_stopped=is_stopped)
        face.end(*lines, is_whole=False)


def _session_of(source: str | None) -> Session:
    """A session with the plan and the run in a file.

    Raises:
        Refused: The file holds neither.
    """
    from planning.cli.keep import MOST_BYTES, TYPES, snapshot_of
    from planning.model import Plan
    from session import Session, Snapshot
    from session.codec import type_name

    data = read_bytes(source, "SNAPSHOT", most=MOST_BYTES)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        at = (
            f" at line {error.lineno}, column {error.colno}"
            if isinstance(error, json.JSONDecodeError)
            else ""
        )
        raise Refused(f"{name_of(source)} is not JSON{at}; {_NOT_THAT}") from None
    if document is None:
        return Session()
    if isinstance(document, dict) and document.keys() == _PLAN_KEYS:
        empty = Session().snapshot().to_json()
        document = {**json.loads(empty), "slices": {type_name(Plan): [document]}}
    elif not (isinstance(document, dict) and isinstance(document.get("slices"), dict)):
        raise Refused(f"{name_of(source)} holds neither a snapshot nor a plan; {_NOT_THAT}")
    known = {type_name(kind) for kind in TYPES}  # a program's own slices cannot be read here
    slices = {name: rows for name, rows in document["slices"].items() if name in known}
    snapshot: Snapshot = snapshot_of(json.dumps({**document, "slices": slices}), source)
    session = Session()
    session.rollback(snapshot)
    return session

"""``planning show``: a plan, and the run that it mirrors, out of what other commands print or save."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import attrs
import typer

from planning.cli.kinds import SQLITE, refuse_other
from planning.cli.source import name_of, read_bytes
from planning.cli.terminal import HEADING, as_json
from planning.cli.usage import EXIT_CODES, Refused, bad_option

if TYPE_CHECKING:
    from planning.model import Plan
    from planning.workflow.model import Workflow
    from planning.workflow.run.records import WorkflowRun
    from planning.workflow.run.result import WorkflowResult
    from session import Session
    from session.selectors import Selectable

__all__ = ["SHOW_HELP", "show"]

SHOW_HELP: Final = f"""\b
Examples:
  planning show plans.db nightly
  planning show plans.db nightly --at 3
  planning show plan.snapshot.json
  planning replay --json transcript.jsonl | planning show

\b
What it reads:
  A store and the name of a session in it. Or a snapshot of a session:
  what 'planning run' saves, or what Session.snapshot().to_json()
  returns in a program. Or what these print with --json: 'planning
  show', 'planning replay' (a plan) and 'planning run' (a result).

{EXIT_CODES}"""


def show(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="A store; or a file with one session, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="The id of a session in the store.", show_default=False),
    ] = None,
    *,
    at: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="VERSION", help="A version of it; the newest if omitted.", show_default=False
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the whole output of every step of a run.")
    ] = False,
    as_json_: Annotated[
        bool, typer.Option("--json", help="Print the plan and the run as JSON, nothing else.")
    ] = False,
) -> None:
    """Show a session: its plan, or its run with the answer.

    The plan of a session with a run is shown only where it differs: it mirrors the run otherwise.
    """
    if name is None:
        if at is not None:
            raise bad_option("--at", "it is a version of a session in a store; name the session")
        session = _session_of(source)
        _show(_Shown(session, session), is_verbose=verbose, is_json=as_json_)
        return
    from planning.cli.stores import known_session, opened_store
    from planning.view.stores import open_session

    with opened_store(source or "-") as store, store.reading():
        session = open_session(store, known_session(store, name))
        newest = session.version
        version = newest if at is None else at
        head = f"{session.session_id}, version {version} of {newest}"
        _show(_Shown(session, session.at(version), head, version), is_verbose=verbose, is_json=as_json_)


@attrs.frozen
class _Shown:
    """What is shown.

    Attributes:
        session: The session.
        source: The slices: those of the session, or of a version of it.
        head: What it is called; empty for a file.
        version: The version; None for a file.
    """

    session: Session
    source: Selectable
    head: str = ""
    version: int | None = None


def _show(shown: _Shown, *, is_verbose: bool, is_json: bool) -> None:
    from planning.cli.keep import past_result
    from planning.model import Plan
    from planning.workflow.run.records import WorkflowRun

    plan, run = shown.source.select_latest(Plan), shown.source.select_latest(WorkflowRun)
    result = None if run is None else past_result(shown.source, run, shown.session)
    if is_json:
        where = {"session_id": str(shown.session.session_id), "version": shown.version} if shown.head else {}
        both = {"plan": plan and asdict(plan), "run": result and result.to_dict()}
        typer.echo(as_json({**where, **both}))
        return
    if result is None or (plan is not None and not _mirrors(plan, result.workflow)):
        _show_plan(plan, shown.head)
    elif shown.head:
        typer.echo(shown.head)
    if result is not None and run is not None:
        _show_run(result, run, shown.source, is_verbose=is_verbose)


def _mirrors(plan: Plan, workflow: Workflow) -> bool:
    """Whether a plan has the steps of a workflow; a description that ASCII cannot spell is any title."""
    from planning.text import TITLE, fitted

    pairs = zip(plan.steps, workflow.steps, strict=False)
    return len(plan.steps) == len(workflow.steps) and all(
        fitted(step.description, TITLE) in {"", shown.title} for shown, step in pairs
    )


def _show_plan(plan: Plan | None, head: str) -> None:
    from planning.cli.faces import face_of
    from planning.cli.progress import Progress

    progress = Progress()
    if plan is not None:
        progress.take(plan)
    with face_of(sys.stdout, progress, is_json=False) as face:
        face.end([(head, HEADING)] if head else (), (), is_whole=True)


def _show_run(result: WorkflowResult, run: WorkflowRun, source: Selectable, *, is_verbose: bool) -> None:
    from planning.cli.faces import face_of
    from planning.cli.progress import Progress
    from planning.cli.running import report_lines
    from planning.workflow.run.records import StepRecord, states_of

    workflow = result.workflow
    progress = Progress.of_run(workflow)
    records = states_of(run.run_id, source.select_all(StepRecord)).values()
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
    from planning.cli.keep import MOST_BYTES, session_of

    data = read_bytes(source, "SOURCE", most=MOST_BYTES)
    if data.startswith(SQLITE):
        raise Refused(
            f"{name_of(source)} is a SQLite file; if it is a store, name a session in it:"
            f" 'planning sessions' lists them"
        )
    refuse_other(data, source, "a snapshot or a plan", "snapshot", "plan", "shown", "result")
    return session_of(data, source)

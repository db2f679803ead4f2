"""``planning show``: the plan of a session, and the run that it mirrors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planning.cli.source import AsJson, OneSession, name_of
from planning.cli.terminal import HEADING, as_json
from planning.cli.usage import Refused, bad_option

if TYPE_CHECKING:
    from planning.facts import PlanFacts
    from planning.model import Plan
    from planning.workflow.run.records import WorkflowRun
    from planning.workflow.run.result import WorkflowResult
    from session import Session
    from session.selectors import Selectable

__all__ = ["SHOW_HELP", "show"]

SHOW_HELP: Final = """\b
Examples:
  planning show .planning/runs.db plan
  planning show plans.db nightly --at 3
  planning show transcript.jsonl

\b
What it reads:
  A store, as 'planning run' keeps one, and the name of a session in it.
  Or a snapshot of a session, the JSON of Session.snapshot().to_json().
  Or a transcript, as 'planning replay' reads it.
"""


def show(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE", help="A store; or a file with one session, or - for standard input."
        ),
    ] = None,
    name: OneSession = None,
    *,
    at: Annotated[
        int | None,
        typer.Option(min=0, metavar="VERSION", help="A version of it; the newest if omitted."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the whole output of every step of a run.")
    ] = False,
    as_json_: AsJson = False,
) -> None:
    """Show a session: its plan, or its run with the answer.

    The plan of a session with a run is shown only where it differs: it mirrors the run otherwise.
    """
    from planning.cli.kinds import is_store
    from planning.cli.loading import loaded

    if name is None and not (source and is_store(source)):
        if at is not None:
            raise bad_option("--at", "it is a version of a session in a store; name the session")
        session, document = loaded(source)
        if document.kind == "workflow":
            raise Refused(f"{name_of(source)} is a workflow that did not run; 'planning graph' draws it")
        _show(session, session, None, is_verbose=verbose, is_json=as_json_)
        return
    from planning.cli.stores import opened_session

    with opened_session(source or "-", name, is_read=True) as session:
        version = session.version if at is None else at
        _show(session, session.at(version), version, is_verbose=verbose, is_json=as_json_)


def _show(
    session: Session, source: Selectable, version: int | None, *, is_verbose: bool, is_json: bool
) -> None:
    """Show the slices of a session, or of a version of it; of a file, the version is None."""
    from planning.cli.runs import past_result
    from planning.facts import PlanFacts
    from planning.model import Plan
    from planning.view.facts import NO_FACTS
    from planning.view.names import named_facts, named_plan
    from planning.view.timeline import plan_fields_of
    from planning.workflow.run.mirror import own_ids
    from planning.workflow.run.records import WorkflowRun

    plan, run = source.select_latest(Plan), source.select_latest(WorkflowRun)
    facts = source.select_latest(PlanFacts) or NO_FACTS
    result = None if run is None else past_result(source, run, session)
    if is_json:
        where = {} if version is None else {"session_id": str(session.session_id), "version": version}
        both = {"plan": plan and plan_fields_of(plan, facts), "run": result and result.to_dict()}
        typer.echo(as_json({**where, **both}))
        return
    head = "" if version is None else f"{session.session_id}, version {version} of {session.version}"
    if result is None or run is None:
        _show_plan(plan, facts, head)
        return
    if plan is not None and len(plan.steps) != len(result.workflow.steps):  # it has more than the run
        names = own_ids(plan, run)
        _show_plan(named_plan(plan, names), named_facts(facts, names), head)
    elif head:
        typer.echo(head)
    _show_run(result, run, source, is_verbose=is_verbose)


def _show_plan(plan: Plan | None, facts: PlanFacts, head: str) -> None:
    from planning.cli.faces import face_of
    from planning.cli.progress import Progress

    progress = Progress()
    progress.take_plan(plan, facts)
    with face_of(sys.stdout, progress) as face:
        face.end([(head, HEADING)] if head else (), (), is_whole=True)


def _show_run(result: WorkflowResult, run: WorkflowRun, source: Selectable, *, is_verbose: bool) -> None:
    from planning.cli.faces import face_of
    from planning.cli.progress import Progress
    from planning.cli.running import report_lines
    from planning.workflow.run.records import StepRecord, states_of

    progress = Progress.of_run(result.workflow)
    records = states_of(run.run_id, source.select_all(StepRecord))
    shown = [records[step.step_id] for step in progress.steps if step.step_id in records]
    changes = [line for record in shown for line in progress.take_record(record)]
    with face_of(sys.stdout, progress) as face:
        face.show(changes)
        is_stopped = run.status not in {"completed", "failed"}
        lines = report_lines(result.workflow, progress, result, is_verbose=is_verbose, is_stopped=is_stopped)
        face.end(*lines)

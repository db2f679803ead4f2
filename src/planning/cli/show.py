"""``planning show``: the plan of a session, and the run that it mirrors."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from attrs import evolve

from planning.cli.session_names import OneSession
from planning.cli.source import AsJson, name_of
from planning.cli.terminal import HEADING, as_json
from planning.cli.usage import Refused, bad_option

if TYPE_CHECKING:
    from planning.cli.times import StepTime
    from planning.observe.health import Health
    from planning.observe.timeline import Moment
    from planning.plan.facts import PlanFacts
    from planning.plan.model import Plan
    from planning.workflow.run.records import WorkflowRun
    from planning.workflow.run.steps import WorkflowResult
    from session import PastState, Session
    from session.selectors import Selectable

SHOW_HELP: Final = """\b
Examples:
  planning show .planning/runs.db report
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
    reminder: Annotated[
        bool, typer.Option("--reminder", help="Print the plan alone, as a model reads it; no times.")
    ] = False,
    as_json_: AsJson = False,
) -> None:
    """Show a session: its plan, or its run with the answer.

    The plan of a session with a run is shown only where it differs: it mirrors the run otherwise. Each step
    has the time when it got into its state, in UTC, and how long it was in progress.
    """
    from planning.cli.kinds import is_store
    from planning.cli.loading import loaded

    if name is None and not (source and is_store(source)):
        if at is not None:
            raise bad_option("--at", "it is a version of a session in a store; name the session")
        session, document = loaded(source)
        if document.kind == "workflow":
            raise Refused(f"{name_of(source)} is a workflow that did not run; 'planning graph' draws it")
        if reminder:
            _remind(session)
            return
        _show(session, session, None, {}, is_verbose=verbose, is_json=as_json_)
        return
    from planning.cli.stores import opened_session

    with opened_session(source or "-", name, is_read=True) as session:
        past = session.at(session.version if at is None else at)
        if reminder:
            _remind(past)
            return
        made = _history(source or "-", str(session.session_id), past.version)
        _show(session, past, *made, is_verbose=verbose, is_json=as_json_)


def _remind(source: Selectable) -> None:
    from planning.plan.facts import PlanFacts
    from planning.plan.model import Plan
    from planning.plan.render import plan_text

    plan = source.select_latest(Plan)
    if plan is not None and plan.status == "active":
        typer.echo(plan_text(plan, source.select_latest(PlanFacts)))


def _history(store: str, session: str, version: int) -> tuple[datetime | None, dict[str, StepTime]]:
    """When a version was made, and the times of its plan's steps; of the last 10,000 changes, if sound."""
    from planning.cli.history import timeline_of
    from planning.cli.times import of_plan
    from planning.view.document import MOST_CHANGES
    from session.stores import StoreError

    made: datetime | None = None

    def changes() -> Iterator[Moment]:
        nonlocal made
        with suppress(StoreError):
            for moment in takewhile(lambda each: each.change.version <= version, timeline.new()):
                made = moment.change.at if moment.change.version == version else None
                yield moment

    with timeline_of(store, session, max(0, version - MOST_CHANGES)) as timeline:
        times = of_plan(changes())
    return made, times


def _show(
    session: Session,
    source: Session | PastState,
    at: datetime | None,
    taken: Mapping[str, StepTime],
    *,
    is_verbose: bool,
    is_json: bool,
) -> None:
    """Show the slices of a session, or of a version of one in a store, which was made at a time."""
    from planning.cli.runs import past_result
    from planning.observe.fact_words import NO_FACTS
    from planning.observe.health import health_of_run
    from planning.observe.names import named_facts, named_plan
    from planning.observe.timeline import plan_fields_of
    from planning.plan.facts import PlanFacts
    from planning.plan.model import Plan
    from planning.workflow.run.mirror import own_ids
    from planning.workflow.run.records import WorkflowRun

    plan, run = source.select_latest(Plan), source.select_latest(WorkflowRun)
    facts = source.select_latest(PlanFacts) or NO_FACTS
    result = None if run is None else past_result(source, run, session)
    version = None if source is session else source.version
    health = None
    if run is not None and run.status not in {"completed", "failed"}:
        health = health_of_run(source, run, datetime.now(UTC), changed_at=at)
        if version is not None and version < session.version:
            health = evolve(health, state="working")  # as it was then
    if is_json:
        where = {} if version is None else {"session_id": str(session.session_id), "version": version}
        ran = result and {**result.to_dict(), **({} if health is None else {"status": health.state})}
        both = {"plan": plan and plan_fields_of(plan, facts), "run": ran}
        said = {} if version is None else {"at": at and at.isoformat(), "times": _fields(taken)}
        typer.echo(as_json({**where, **said, **both}))
        return
    head = "" if version is None else f"{session.session_id}, version {version} of {session.version}"
    head += "" if at is None else f", {at:%Y-%m-%d %H:%M:%S}"
    if result is None or run is None:
        _show_plan(plan, facts, taken, head)
        return
    if plan is not None and len(plan.steps) != len(result.workflow.steps):  # the run does not say it all
        names = own_ids(plan, run)
        times = {names.get(step_id, step_id): time for step_id, time in taken.items()}
        _show_plan(named_plan(plan, names), named_facts(facts, names), times, head)
    elif head:
        typer.echo(head)
    _show_run(result, run, source, health, is_verbose=is_verbose)


def _fields(taken: Mapping[str, StepTime]) -> dict[str, Any]:
    return {name: {"at": time.at.isoformat(), "seconds": time.seconds} for name, time in taken.items()}


def _show_plan(plan: Plan | None, facts: PlanFacts, taken: Mapping[str, StepTime], head: str) -> None:
    from planning.cli.faces import face_of
    from planning.cli.progress import Progress

    progress = Progress()
    progress.take_plan(plan, facts)
    progress.take_times(taken)
    with face_of(sys.stdout, progress) as face:
        face.end([(head, HEADING)] if head else (), (), is_whole=True)


def _show_run(
    result: WorkflowResult, run: WorkflowRun, source: Selectable, health: Health | None, *, is_verbose: bool
) -> None:
    from planning.cli import times
    from planning.cli.faces import face_of
    from planning.cli.progress import Progress
    from planning.cli.running import report_lines
    from planning.workflow.run.records import StepRecord, states_of

    progress = Progress.of_run(result.workflow)
    changes = [each for each in source.select_all(StepRecord) if each.run_id == run.run_id]
    taken = times.of_run(changes)
    progress.take_times(taken)
    progress.lasted = times.lasted(run, taken)
    records = states_of(run.run_id, source.select_all(StepRecord))
    shown = [records[step.step_id] for step in progress.steps if step.step_id in records]
    lines = [line for record in shown for line in progress.take_record(record)]
    with face_of(sys.stdout, progress) as face:
        face.show(lines + (progress.stop() if health is not None and health.state == "stopped" else []))
        report = report_lines(result.workflow, progress, result, is_verbose=is_verbose, health=health)
        face.end(*report)

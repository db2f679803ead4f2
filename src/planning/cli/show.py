"""``planning show``: the plan of a session, and the run that it mirrors."""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import UTC, datetime
from itertools import takewhile
from typing import Annotated, Final

import typer
from attrs import evolve

from planning.cli.arguments import AnySource, AsJson, OneSession
from planning.cli.faces import face_of
from planning.cli.opening import Opened, is_store, opened
from planning.cli.progress import Progress
from planning.cli.running import past_result, report_lines
from planning.cli.source import name_of
from planning.cli.terminal import HEADING, as_json
from planning.cli.usage import DEFAULT_STORE, Refused, bad_option
from planning.observe.fact_words import NO_FACTS
from planning.observe.health import Health, health_of_run, is_over
from planning.observe.names import named_facts, named_plan
from planning.observe.steps import PlanSteps, RunSteps, Step
from planning.observe.timeline import plan_fields_of
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan
from planning.plan.render import plan_text
from planning.view.document import MOST_CHANGES
from planning.workflow.run.mirror import own_ids
from planning.workflow.run.steps import WorkflowResult
from session import Session, SessionView
from session.selectors import Selectable
from session.stores import StoreError

SHOW_HELP: Final = """\b
Examples:
  planning show report
  planning show --last
  planning show plans.db nightly --at 3
  planning show transcript.jsonl

\b
What it reads:
  A store, as 'planning run' keeps one, and the name of a session in it.
  Or a snapshot of a session, the JSON of Session.snapshot().to_json().
  Or a transcript, as 'planning replay' reads it.
"""


def show(
    source: AnySource = None,
    name: OneSession = None,
    *,
    at: Annotated[
        int | None, typer.Option(min=0, metavar="VERSION", help="A version of it; the newest if omitted.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the whole output of every step of a run.")
    ] = False,
    reminder: Annotated[
        bool, typer.Option("--reminder", help="Print only the plan, as a model reads it; no times.")
    ] = False,
    as_json_: AsJson = False,
) -> None:
    """Show a session: its plan, or its run with the answer.

    The plan of a session with a run is shown only where it differs: it mirrors the run otherwise. Each step
    has the time when it got into its state, in UTC, and how long it was in progress.
    """
    if at is not None and name is None and not is_store(source or DEFAULT_STORE):
        raise bad_option("--at", "it is a version of a session in a store; name the session")
    with opened(source, name, "snapshot", "workflow", "transcript") as given:
        if given.kind == "workflow":
            raise Refused(f"{name_of(source)} is a workflow that did not run; 'planning graph' draws it")
        session = given.session
        past = session.at(session.version if at is None else at) if given.kind == "store" else session
        if reminder:
            _remind(past)
        else:
            _show(given, session, past, is_verbose=verbose, is_json=as_json_)


def _remind(source: Selectable) -> None:
    plan = source.select_latest(Plan)
    if plan is not None and plan.status == "active":
        typer.echo(plan_text(plan, source.select_latest(PlanFacts)))


def _history(given: Opened, version: int) -> tuple[datetime | None, list[Step]]:
    """When a version was made, and its plan's steps with their times; from the last 10,000 changes."""
    made, fold = None, PlanSteps()
    with given.history(max(0, version - MOST_CHANGES)) as changes, suppress(StoreError):
        for moment in takewhile(lambda each: each.change.version <= version, changes.new()):
            made = moment.change.at if moment.change.version == version else None
            if moment.plan is not None:
                fold.take(moment.change.at, moment.plan, moment.facts)
    return made, fold.steps


def _show(
    given: Opened, session: Session, source: Session | SessionView, *, is_verbose: bool, is_json: bool
) -> None:
    """Show the slices of a session, or of a version of one in a store."""
    plan, steps = source.select_latest(Plan), RunSteps.of(source)
    facts, run = source.select_latest(PlanFacts) or NO_FACTS, None if steps is None else steps.run
    version = None if source is session else source.version
    at, timed = (None, []) if version is None else _history(given, version)
    health = (
        None
        if steps is None
        else _health_of(steps, source, at, is_past=version not in {None, session.version})
    )
    result = None if run is None else past_result(source, run, session)
    if is_json:
        where = {} if version is None else {"session_id": str(session.session_id), "version": version}
        is_open = health is not None and health.state not in {"finished", "failed"}
        ran = result and {**result.to_dict(), **({"status": health.state} if health and is_open else {})}
        times = {
            step.step_id: {"at": step.at.isoformat(), "seconds": step.seconds()} for step in timed if step.at
        }
        said = {} if version is None else {"at": at and at.isoformat(), "times": times}
        both = {"plan": plan and plan_fields_of(plan, facts), "run": ran}
        typer.echo(as_json({**where, **said, **both}))
        return
    head = "" if version is None else f"{session.session_id}, version {version} of {session.version}"
    head += "" if at is None else f", {at:%Y-%m-%d %H:%M:%S}"
    if result is None or steps is None or health is None:
        _show_plan(plan, facts, timed, head)
        return
    if plan is not None and len(plan.steps) != len(result.workflow.steps):  # the run does not say it all
        names = own_ids(plan, run)
        timed = [evolve(step, step_id=names.get(step.step_id, step.step_id)) for step in timed]
        _show_plan(named_plan(plan, names), named_facts(facts, names), timed, head)
    elif head:
        typer.echo(head)
    _show_run(result, steps, health, is_verbose=is_verbose)


def _health_of(steps: RunSteps, source: Selectable, at: datetime | None, *, is_past: bool) -> Health:
    """The state of a run, also at an earlier version: then it continued after it."""
    health = health_of_run(source, steps, datetime.now(UTC), changed_at=at)
    if is_past and health.state == "stopped":
        return evolve(health, state="working")
    if is_over(health):
        steps.stop(at)
    return health


def _show_plan(plan: Plan | None, facts: PlanFacts, timed: list[Step], head: str) -> None:
    progress = Progress(has_dates=True)
    progress.take_plan(plan, facts, timed)
    with face_of(sys.stdout, progress) as face:
        face.end([(head, HEADING)] if head else (), (), is_whole=True)


def _show_run(result: WorkflowResult, steps: RunSteps, health: Health, *, is_verbose: bool) -> None:
    progress = Progress(steps, has_dates=True)
    progress.spent = health.elapsed(datetime.now(UTC)) if health.state in {"finished", "failed"} else None
    with face_of(sys.stdout, progress) as face:
        face.show([progress.line_of(step) for step in progress.steps if step.record is not None])
        face.end(*report_lines(result.workflow, progress, result, is_verbose=is_verbose, health=health))

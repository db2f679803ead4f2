"""The state of each step of a session: the fold over the records of a run, and over the changes of a plan.

A terminal, a page and a picture draw what this finds; none of them decides by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import attrs

from planning.plan.facts import PlanFacts
from planning.plan.model import Plan
from planning.plan.render import remarks_of
from planning.suite.events import PlanChanged
from planning.workflow.drawing import State, state_of
from planning.workflow.failures import StepFailure
from planning.workflow.model import Workflow, WorkflowStep
from planning.workflow.run.records import StepRecord, WorkflowRun
from session.selectors import Selectable

OVER: Final[tuple[State, ...]] = ("completed", "skipped", "failed", "blocked")
"""The states of steps that nothing more happens to."""


@attrs.frozen
class Span:
    """A time in which a step was in progress."""

    began: datetime
    ended: datetime | None  # None while it runs
    state: State  # at its end
    attempt: int = 1  # from 1; 0 for a step that calls nothing
    waits: bool = False  # whether the tool is not called yet


@attrs.frozen(kw_only=True)
class Step:
    """A step of a run or of a plan."""

    step_id: str
    title: str
    state: State = "pending"
    is_done: bool = False
    details: str | None = None
    notes: tuple[str, ...] = ()
    remark: str = ""  # what a policy shows of it, in a plan
    at: datetime | None = None  # when it got into its state
    spans: tuple[Span, ...] = ()
    record: StepRecord | None = None  # its newest; None in a plan

    @property
    def attempt(self) -> int:
        """The number of the attempt, from 1; 0 if nothing was called."""
        return max(
            (span.attempt for span in self.spans), default=0 if self.record is None else self.record.attempt
        )

    @property
    def error(self) -> StepFailure | None:
        """Why it failed."""
        return None if self.record is None else self.record.error

    @property
    def reason(self) -> str | None:
        """Why it failed: the cause in the tool's words, else what the model reads."""
        error = self.error
        return None if error is None else error.cause or error.message

    def seconds(self, now: datetime | None = None) -> float | None:
        """The time in progress, in all attempts; None if it was not, or is and now is not given."""
        spans = [span for span in self.spans if span.attempt]
        if not spans or (now is None and spans[-1].ended is None):
            return None
        took = sum(((span.ended or now or span.began) - span.began for span in spans), timedelta())
        return max(0.0, took.total_seconds())


class RunSteps:
    """The steps of a run, record by record."""

    def __init__(self, workflow: Workflow, run: WorkflowRun | None = None) -> None:
        """Begin before the first record."""
        self.run, self.workflow = run, workflow
        self.steps = {step.step_id: _of_document(step) for step in workflow.steps}

    @classmethod
    def of(cls, source: Selectable, run: WorkflowRun | None = None) -> RunSteps | None:
        """The steps of a run of a session, by default the newest; None without a run."""
        run = run or source.select_latest(WorkflowRun)
        if run is None:
            return None
        found = cls(run.workflow, run)
        for record in source.select_all(StepRecord):
            found.take(record)
        return found

    @property
    def run_id(self) -> str | None:
        """The run."""
        return None if self.run is None else self.run.run_id

    def take(self, record: StepRecord) -> Step | None:
        """Take over a record; returns the step as it is now, None for a record of another run."""
        step = self.steps.get(record.step_id)
        if step is None or (self.run is not None and record.run_id != self.run.run_id):
            return None
        at, state = time_of(record.at), state_of_record(record)
        spans = step.spans if at is None else _after(step.spans, record, state, at)
        self.steps[record.step_id] = step = attrs.evolve(
            step,
            state=state,
            is_done=record.status == "completed",
            at=_since(spans) if state == "in_progress" and spans else at,
            spans=spans,
            record=record,
        )
        return step

    def stop(self, at: datetime | None = None) -> list[Step]:
        """Note that nothing works on the run: returns the steps in progress, which were cut short."""
        cut = [_cut(step, at) for step in self.in_state("in_progress")]
        self.steps.update((step.step_id, step) for step in cut)
        return cut

    @property
    def states(self) -> dict[str, State]:
        """The states of the steps."""
        return {step_id: step.state for step_id, step in self.steps.items()}

    def in_state(self, *states: State) -> list[Step]:
        """The steps that are in one of these states."""
        return [step for step in self.steps.values() if step.state in states]

    @property
    def failure(self) -> Step | None:
        """The step that failed last; one whose failure the workflow does not tolerate goes first."""
        fatal = {step.step_id for step in self.workflow.steps if step.on_failure == "fail"}
        failed = [step for step in self.steps.values() if step.error is not None]
        return max(
            failed, key=lambda each: (each.step_id in fatal, each.record and each.record.at), default=None
        )


def answer_steps(workflow: Workflow) -> list[str]:
    """The steps whose outputs are the answer: those that no other step depends on."""
    needed = {other for step in workflow.steps for other in step.depends_on}
    return [step.step_id for step in workflow.steps if step.step_id not in needed]


def _of_document(step: WorkflowStep) -> Step:
    state = state_of(step)
    return Step(step_id=step.step_id, title=step.description, state=state, is_done=step.status == "completed")


def state_of_record(record: StepRecord) -> State:
    """The state that a step has after a record."""
    if record.skipped:
        return "skipped"
    if record.status == "pending":
        return "stopped" if record.after is None else "blocked"
    return record.status


def _after(spans: tuple[Span, ...], record: StepRecord, state: State, at: datetime) -> tuple[Span, ...]:
    """The spans of a step after a record."""
    *before, last = spans or (None,)
    is_open = last is not None and last.ended is None
    if record.status != "in_progress":
        if last is not None and is_open:
            return (*before, attrs.evolve(last, ended=at, state=state))
        is_end = record.status in {"completed", "failed"}
        return (*spans, Span(at, at, state, record.attempt)) if is_end else spans
    begun = Span(at, None, state, record.attempt, waits=not record.called)
    if last is None or not is_open:
        return (*spans, begun)
    if last.waits and last.attempt == record.attempt:  # the tool is called now
        return (*before, attrs.evolve(last, waits=begun.waits))
    if record.attempt > last.attempt:
        return (*before, attrs.evolve(last, ended=at, state="failed"), begun)
    return (*before, attrs.evolve(last, ended=last.began, state="stopped"), begun)  # its process was killed


def _since(spans: Sequence[Span]) -> datetime:
    """When the attempt in progress began, or the first of those that follow each other without a pause."""
    first = spans[-1]
    for span in reversed(spans[:-1]):
        if span.state != "failed" or span.ended != first.began:
            break
        first = span
    return first.began


def _cut(step: Step, at: datetime | None) -> Step:
    *before, last = step.spans or (None,)
    if last is None:
        return attrs.evolve(step, state="stopped")
    ended = max(last.began, at or last.began)
    return attrs.evolve(
        step, state="stopped", spans=(*before, attrs.evolve(last, ended=ended, state="stopped"))
    )


class PlanSteps:
    """The steps of a plan, change by change.

    Attributes:
        steps: The steps of the plan after the last change; pending ones have no times.
    """

    def __init__(self) -> None:
        """Begin before the first change."""
        self.steps: list[Step] = []

    def take(self, at: datetime, changed: PlanChanged, facts: PlanFacts) -> None:
        """Take over a change of the plan."""
        diff, plan = changed.diff, changed.after
        known = {step.step_id: step for step in self.steps}
        moved = {each.step_id for each in diff.marked} | {each.step.step_id for each in diff.added}
        self.steps = [] if plan is None else plan_steps(plan, facts)
        for index, step in enumerate(self.steps):
            old = known.get(step.step_id)
            if step.state == "pending":
                continue
            if step.step_id in moved:
                spans = () if old is None else old.spans
                if spans and spans[-1].ended is None:
                    spans = (*spans[:-1], attrs.evolve(spans[-1], ended=at, state=step.state))
                if step.state == "in_progress":
                    spans = (*spans, Span(at, None, step.state))
                self.steps[index] = attrs.evolve(step, at=at, spans=spans)
            elif old is not None:
                self.steps[index] = attrs.evolve(step, at=old.at, spans=old.spans)


def plan_steps(plan: Plan, facts: PlanFacts, known: Iterable[Step] = ()) -> list[Step]:
    """The steps of a plan."""
    remarks, times = remarks_of(plan, facts), {step.step_id: step for step in known}
    steps = []
    for step in plan.steps:
        timed = times.get(step.step_id)
        steps.append(
            Step(
                step_id=step.step_id,
                title=step.title,
                state="completed" if step.status == "done" else step.status,
                is_done=step.status == "done",
                details=step.details,
                notes=step.notes,
                remark=remarks.get(step.step_id, "").removeprefix(", "),
                at=None if timed is None else timed.at,
                spans=() if timed is None else timed.spans,
            )
        )
    return steps


def time_of(text: str | None) -> datetime | None:
    """A time of a run in UTC; None if there is none, or a file has something else in its place."""
    try:
        found = None if text is None else datetime.fromisoformat(text)
        return None if found is None or found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None

"""A plan or a run in words: each change as lines, and how far it is. Every face draws this one model.

How a step is doing is found by ``planning.observe.steps``; here it is only put in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from types import MappingProxyType
from typing import Final

from rich.cells import cell_len

from planning.cli.terminal import MARKS, TROUBLE, Line, brief, count, readable, seconds_text
from planning.errors import printable
from planning.observe.fact_words import NO_FACTS, approval_words
from planning.observe.steps import OVER, RunSteps, Step, plan_steps
from planning.observe.text import one_line
from planning.plan.diff import diff_plans
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan
from planning.workflow.drawing import State
from planning.workflow.run.records import StepRecord

WORDS: Final = MappingProxyType[State, str]({
    "pending": "pending", "in_progress": "running", "completed": "done", "skipped": "skipped",
    "failed": "failed", "blocked": "blocked", "stopped": "stopped",
})  # fmt: skip
"""The states of steps as a person reads them."""
_BAD: Final = ("failed", "blocked", "stopped")
_CUT_SHORT: Final = "stopped before it was done"
_WIDEST_ID: Final = 24
_STATE: Final = 8  # characters of "retrying"


class Progress:
    """The steps of a plan or of a run, and how far they are."""

    def __init__(
        self,
        run: RunSteps | None = None,
        now: Callable[[], datetime] | None = None,
        *,
        title: str = "",
        began: datetime | None = None,
        has_dates: bool = False,
    ) -> None:
        """Start with the steps of a run that began at a time, by default now; or with nothing."""
        self.run, self.now, self.has_dates = run, now, has_dates  # without a clock, times mean nothing
        self.title = title if run is None else run.workflow.goal
        self.plan: Plan | None = None
        self.facts = NO_FACTS
        self.refused = 0
        self.spent: float | None = None
        self._began = began or (now and now())
        self._steps: list[Step] = []
        self._last: str | None = None
        widths = (cell_len(one_line(step_id)) for step_id in (() if run is None else run.steps))
        self._width = min(_WIDEST_ID, max(widths, default=0))

    @property
    def steps(self) -> list[Step]:
        """The steps, in their order."""
        return self._steps if self.run is None else list(self.run.steps.values())

    @property
    def over(self) -> int:
        """The number of steps that need nothing more; of a plan, those that are done."""
        states = OVER if self.plan is None else ("completed",)
        return sum(step.state in states for step in self.steps)

    @property
    def at_hand(self) -> int:
        """The index of the first step that is in progress, else of the one that changed last."""
        steps = self.steps
        running = (place for place, step in enumerate(steps) if step.state == "in_progress")
        last = (place for place, step in enumerate(steps) if step.step_id == self._last)
        return next(running, next(last, 0))

    def done(self) -> str:
        """The number of steps that are done."""
        steps = self.steps
        return f"{sum(step.is_done for step in steps)} of {len(steps)} done"

    def tally(self) -> str:
        """The progress of the steps, in words."""
        counts, parts = Counter(step.state for step in self.steps if not step.is_done), [self.done()]
        others: tuple[State, ...] = ("in_progress", "failed", "blocked", "stopped", "skipped")
        parts += [f"{counts[state]} {WORDS[state]}" for state in others if counts[state]]
        return ", ".join(parts)

    def lasted(self) -> str:
        """The time that a run has lasted, behind a comma; empty where that is not known."""
        spent = self.spent
        if spent is None and self.now is not None and self._began is not None:
            spent = (self.now() - self._began).total_seconds()
        return "" if spent is None else f", in {seconds_text(spent)}"

    def seconds(self, step: Step) -> float | None:
        """The time that a step was in progress, until now for one that is."""
        return step.seconds(self.now() if self.now is not None and step.state == "in_progress" else None)

    def when(self, step: Step) -> str:
        """When a step got into its state, in UTC; empty where that is not known or not asked for."""
        return f"{step.at:%Y-%m-%d %H:%M:%S}" if self.has_dates and step.at is not None else ""

    # Plans

    def take_plan(
        self, plan: Plan | None, facts: PlanFacts = NO_FACTS, times: Iterable[Step] = ()
    ) -> list[Line]:
        """Show a plan, or that there is none any more; says what differs from the one before."""
        differs = diff_plans(self.plan, plan)
        before = {} if self.plan is None else {step.step_id: step for step in self.plan.steps}
        steps = () if plan is None else plan.steps
        self.plan, self.facts, self.title = plan, facts, "" if plan is None else plan.objective
        changed = (step.step_id for step in steps if before.get(step.step_id) is not step)
        self._last = next(changed, self._last)
        self._steps = [] if plan is None else plan_steps(plan, facts, times)
        is_back = any((each.before, each.after) == ("in_progress", "pending") for each in differs.marked)
        added = [(f"  {each.step.step_id}  {each.step.title}", "") for each in differs.added]
        return [(readable(str(differs)), TROUBLE if is_back else ""), *added]

    def whole_plan(self) -> Iterator[str]:
        """The plan as lines: the objective, then a line a step with its details and notes below it."""
        if self.plan is None:
            yield "no plan"
            return
        done, total = self.plan.progress
        yield f"{self.title} ({self.plan.status}, {done} of {total} done)"
        for step, shown in zip(self.plan.steps, self._steps, strict=True):
            seconds = self.seconds(shown)
            took = "" if seconds is None else f"took {seconds_text(seconds)}"
            said = ", ".join(filter(None, (step.status, shown.remark, self.when(shown), took)))
            yield f"{step.step_id} {said}: {step.title}"
            yield from (f"  {line}" for line in (step.details or "").splitlines())
            for note in step.notes:
                yield from f"  - {note}".replace("\n", "\n    ").split("\n")
        if approval := approval_words(self.facts):
            yield approval

    def refuse(self, name: str, reason: str) -> Line:
        """Count a planning call that was refused, and say why."""
        self.refused += 1
        first, *problems = reason.split("\n")
        more = " | ".join(problem.removeprefix("- ") for problem in problems)
        return f"Refused {printable(name)}: {first} {more}".rstrip(), TROUBLE

    # Runs

    def stopping(self) -> str | None:
        """A line for a run that is about to stop; None if no step runs."""
        running = [] if self.run is None else self.run.in_state("in_progress")
        steps = count(len(running), "running step")
        return f"stopping: waiting for {steps}; press Ctrl-C again to stop at once" if running else None

    def take_record(self, record: StepRecord) -> list[Line]:
        """Note what happened to a step of a run."""
        before = None if self.run is None else self.run.steps.get(record.step_id)
        step = None if self.run is None else self.run.take(record)
        if before is None or step is None or (step.state, step.attempt) == (before.state, before.attempt):
            return []
        self._last = step.step_id
        return [self.line_of(step, is_retry=step.state == "in_progress" and record.attempt > 1)]

    def stop(self) -> list[Line]:
        """Note that nothing works on the run: what still counts as running was cut short."""
        cut = [] if self.run is None else self.run.stop(self.now and self.now())
        return [self.line_of(step) for step in cut]

    def line_of(self, step: Step, *, is_retry: bool = False) -> Line:
        """A step on one line: its id, its state, how long it took, and why."""
        step_id, seconds = one_line(step.step_id), self.seconds(step)
        parts = [step_id + " " * (self._width - cell_len(step_id))]
        parts += [f"{'retrying' if is_retry else WORDS[step.state]:<{_STATE}}", self.when(step)]
        if seconds is not None and step.state != "in_progress":
            parts.append(seconds_text(seconds))
        style = MARKS[step.state][2] if step.state in _BAD else ""
        text = one_line(note_of(step) or step.title)
        return "  ".join([*filter(None, parts), text]).rstrip(), style


def note_of(step: Step) -> str:
    """The text beside a step: its last note in a plan; in a run its failure, or the outcome."""
    record = step.record
    if record is None:
        return _CUT_SHORT if step.state == "stopped" else "".join(step.notes[-1:])
    if step.state == "in_progress":
        return f"attempt {record.attempt}" if record.attempt > 1 else ""
    if record.error is not None:
        return step.reason or ""
    if record.after is not None:
        return f"step {record.after} failed"
    if step.state == "skipped":
        return "its done_check is true"
    if step.state == "stopped":
        return _CUT_SHORT
    if record.is_withheld:
        return "its output is private"
    return brief(record.output) if record.called else ""

"""How far a plan or a run is: events in, state out. Every view draws this one model.

Each method that takes an event returns the lines that say what changed: a view that prints lines prints
them, and one that redraws shows ``steps`` again. Nothing here reads or writes anything but its own state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import attrs

from planning.cli.terminal import MARKS, TROUBLE, Line, brief, count, seconds_text
from planning.diff import diff_plans
from planning.errors import one_line
from planning.model import Plan, PlanStep, StepStatus
from planning.workflow.model import Workflow
from planning.workflow.run.records import StepRecord

__all__ = ["Progress", "State", "Step"]

State = Literal["pending", "running", "done", "skipped", "failed", "blocked", "stopped"]

_OF_STATUS: Final = MappingProxyType[StepStatus, State]({
    "pending": "pending", "in_progress": "running", "done": "done", "blocked": "blocked",
})  # fmt: skip
_OVER: Final = ("done", "skipped", "failed", "blocked")
_BAD: Final = ("failed", "blocked", "stopped")
_CUT_SHORT: Final = "stopped before it was done"
_WIDEST_ID: Final = 24
_STATE: Final = 8  # characters of "retrying"


@attrs.define
class Step:
    """One step as a view shows it.

    Attributes:
        step_id: Its id.
        title: What it is for.
        state: How far it is.
        details: More about it.
        notes: What happened, oldest first.
        attempt: Which attempt it is, from 1; 0 where nothing is called.
        began: When it began, in seconds of the clock; None before, and where times mean nothing.
        seconds: How long it took; None until it is over, and where it was done before.
        shown: The step of the plan that this shows; None for one of a run.
    """

    step_id: str
    title: str
    state: State = "pending"
    details: str | None = None
    notes: tuple[str, ...] = ()
    attempt: int = 0
    began: float | None = None
    seconds: float | None = None
    shown: PlanStep | None = None

    @property
    def is_over(self) -> bool:
        """Whether it needs nothing more."""
        return self.state in _OVER

    def elapsed(self, now: float) -> float | None:
        """How long it runs or ran; None where that is not known."""
        return now - self.began if self.state == "running" and self.began is not None else self.seconds


class Progress:
    """The steps of a plan or of a run, and how far they are.

    Attributes:
        title: What the steps are for.
        plan: The latest plan; None for a run, and before there is one.
        steps: In their order.
        last: The index of the step that changed last.
        carried_out: How many planning calls changed or read the plan.
        refused: How many were refused.
        other_calls: How many calls went to other tools.
        before: How many steps of a run were done before it began.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """Start with nothing.

        Args:
            clock: The time in seconds; None where times mean nothing, as in a replay.
        """
        self._clock = clock
        self._began = self.now()
        self.title = ""
        self.plan: Plan | None = None
        self.steps: list[Step] = []
        self._places: dict[str, int] = {}
        self._width = 0
        self.last = 0
        self.counts: Counter[State] = Counter()
        self.carried_out = self.refused = self.other_calls = self.before = 0

    @classmethod
    def of_run(
        cls,
        workflow: Workflow,
        clock: Callable[[], float] | None = None,
        records: Mapping[str, StepRecord] = MappingProxyType({}),
    ) -> Progress:
        """The steps of a workflow that is going to run.

        Args:
            workflow: What is run.
            clock: The time in seconds.
            records: By step id, what an earlier part of the run recorded.
        """
        progress = cls(clock)
        progress.title = workflow.goal
        progress._set([Step(step.step_id, step.description) for step in workflow.steps])
        for record in records.values():
            if record.status == "completed":
                progress.take_record(record)
        for step in progress.steps:
            if step.is_over:
                step.notes = ("done before",)
        progress.before = progress.over
        progress.last = next((place for place, step in enumerate(progress.steps) if not step.is_over), 0)
        return progress

    def now(self) -> float:
        """The time, in seconds of the clock."""
        return 0.0 if self._clock is None else self._clock()

    @property
    def time_text(self) -> str:
        """How long it has lasted, behind a comma; empty where times mean nothing."""
        return "" if self._clock is None else f", in {seconds_text(self._clock() - self._began)}"

    @property
    def over(self) -> int:
        """How many steps need nothing more; of a plan, those that are done."""
        return self.counts["done"] if self.plan is not None else sum(self.counts[state] for state in _OVER)

    @property
    def running(self) -> list[int]:
        """The indexes of the steps that run."""
        if not self.counts["running"]:
            return []
        return [place for place, step in enumerate(self.steps) if step.state == "running"]

    def tally(self) -> str:
        """How far the steps are, in words."""
        parts = [f"{self.counts['done']} of {len(self.steps)} done"]
        others: tuple[State, ...] = ("running", "failed", "blocked", "stopped", "skipped")
        parts += [f"{self.counts[state]} {state}" for state in others if self.counts[state]]
        return ", ".join(parts)

    def stopping(self) -> str:
        """What to say when a run is about to stop."""
        steps = count(len(self.running), "running step")
        return f"stopping: waiting for {steps}; press Ctrl-C again to stop at once"

    def calls(self) -> str:
        """How many planning calls there were, in words."""
        number = self.carried_out + self.refused
        if not number and not self.other_calls:
            return "No calls."
        text = f"{count(number, 'planning call')}: {self.carried_out} carried out, {self.refused} refused."
        if self.other_calls:
            text += f" {count(self.other_calls, 'call')} to other tools skipped."
        return text

    # Plans

    def take_plan(self, plan: Plan | None) -> list[Line]:
        """Show a plan, or that there is none any more; says what differs from the one before."""
        differs = diff_plans(self.plan, plan)
        self.plan, self.title = plan, "" if plan is None else plan.objective
        steps = () if plan is None else plan.steps
        changed = [place for place, step in enumerate(steps) if self._shown(step.step_id) is not step]
        self._set([self._step(step) for step in steps])
        self.last = min(changed[0] if changed else self.last, max(0, len(steps) - 1))
        is_back = any((each.before, each.after) == ("in_progress", "pending") for each in differs.marked)
        added = [(f"  {each.step.step_id}  {each.step.title}", "") for each in differs.added]
        return [(str(differs), TROUBLE if is_back else ""), *added]

    def refuse(self, name: str, reason: str) -> Line:
        """Count a planning call that was refused.

        Args:
            name: The tool that was called.
            reason: Why, and what to send instead.
        """
        self.refused += 1
        first, *problems = reason.split("\n")
        more = " | ".join(problem.removeprefix("- ") for problem in problems)
        return f"Refused {name}: {first} {more}".rstrip(), TROUBLE

    def _shown(self, step_id: str) -> PlanStep | None:
        return self.steps[self._places[step_id]].shown if step_id in self._places else None

    def _step(self, step: PlanStep) -> Step:
        """A step of a plan as views show it; one that goes on keeps the time when it began."""
        before = self.steps[self._places[step.step_id]] if step.step_id in self._places else None
        if before is not None and before.shown is step:
            return before
        state = _OF_STATUS[step.status]
        made = Step(step.step_id, step.title, state, step.details, step.notes, shown=step)
        if before is not None and before.state == state:
            made.began, made.seconds = before.began, before.seconds
        else:
            self._time(made, None if before is None else before.began)
        return made

    def _time(self, step: Step, began: float | None) -> None:
        """Note that a step begins now, or that one ends that began then."""
        if self._clock is None:
            return
        if step.state == "running":
            step.began = self._clock() if began is None else began
        elif began is not None:
            step.began, step.seconds = began, self._clock() - began

    def _set(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self._places = {step.step_id: place for place, step in enumerate(steps)}
        self.counts = Counter(step.state for step in steps)
        self._width = min(_WIDEST_ID, max((len(step.step_id) for step in steps), default=0))

    # Runs

    def take_record(self, record: StepRecord) -> list[Line]:
        """Note what happened to a step of a run."""
        place = self._places.get(record.step_id)
        if place is None:
            return []
        step, state = self.steps[place], _state_of(record)
        if state == step.state and record.attempt <= step.attempt:
            return []
        is_retry = state == "running" and record.attempt > 1
        self._move(place, state, record.attempt, _note_of(record, state))
        return [self._moved(step, "retrying" if is_retry else state)]

    def stop(self) -> list[Line]:
        """Note that the run is over: what still counts as running was cut short."""
        places = self.running
        for place in places:
            self._move(place, "stopped", 0, _CUT_SHORT)
        return [self._moved(self.steps[place], "stopped") for place in places]

    def _move(self, place: int, state: State, attempt: int, note: str) -> None:
        step = self.steps[place]
        self.counts[step.state] -= 1
        self.counts[state] += 1
        step.state, step.notes = state, (note,) if note else ()
        step.attempt = max(step.attempt, attempt)
        self._time(step, step.began)
        self.last = place

    def _moved(self, step: Step, what: str) -> Line:
        """What happened to a step, on one line: its id, its state, how long it took, and why."""
        parts = [f"{one_line(step.step_id):<{self._width}}", f"{what:<{_STATE}}"]
        if step.seconds is not None:
            parts.append(seconds_text(step.seconds))
        text = "".join(step.notes) or step.title
        style = MARKS[step.state][2] if step.state in _BAD else ""
        return "  ".join([*parts, one_line(text)]).rstrip(), style


def _state_of(record: StepRecord) -> State:
    match record.status:
        case "in_progress":
            return "running"
        case "completed":
            return "skipped" if record.skipped else "done"
        case "failed":
            return "failed"
        case _:
            if record.after is None:
                return "stopped"
            return "skipped" if record.skipped else "blocked"


def _note_of(record: StepRecord, state: State) -> str:
    """What to say beside a step of a run."""
    if state == "running":
        return f"attempt {record.attempt}" if record.attempt > 1 else ""
    if record.error is not None:
        return record.error.message
    if record.after is not None:
        return f"step {record.after} failed"
    if state == "skipped":
        return "its done_check is true"
    if state == "stopped":
        return _CUT_SHORT
    if record.is_withheld:
        return "its output is private"
    return brief(record.output) if record.called else ""

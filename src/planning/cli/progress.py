"""How far a plan or a run is: events in, state out. Every view draws this one model.

``take`` is given what happened and returns the changes, a line each: a view that prints lines prints them,
a view that redraws shows ``steps`` again. Nothing here reads or writes anything but its own state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import Final, Literal

import attrs

from planning.cli.terminal import brief, count, seconds_text
from planning.model import Plan, PlanStep, StepStatus
from planning.workflow.model import Workflow
from planning.workflow.run.records import StepRecord

__all__ = ["Called", "Change", "Event", "OtherCall", "Progress", "Refusal", "State", "Step", "Stopped"]

State = Literal["pending", "running", "done", "skipped", "failed", "blocked", "stopped"]

_OF_STATUS: Final = MappingProxyType[StepStatus, State]({
    "pending": "pending", "in_progress": "running", "done": "done", "blocked": "blocked",
})  # fmt: skip
_OVER: Final = ("done", "skipped", "failed", "blocked")
_CUT_SHORT: Final = "stopped before it was done"


@attrs.frozen
class Called:
    """A planning call that was carried out.

    Attributes:
        plan: The plan after it.
        is_new: Whether the call set up a new plan.
        is_read: Whether the call only read the plan.
    """

    plan: Plan
    is_new: bool = False
    is_read: bool = False


@attrs.frozen
class Refusal:
    """A planning call that was refused.

    Attributes:
        name: The tool that was called.
        reason: Why, and what to send instead.
    """

    name: str
    reason: str


@attrs.frozen
class OtherCall:
    """A call to a tool that is not a planning tool."""


@attrs.frozen
class Stopped:
    """A run that is over: what still counts as running was cut short."""


Event = Plan | None | Called | Refusal | OtherCall | StepRecord | Stopped


@attrs.frozen
class Change:
    """One thing that changed, as a line tells it.

    Attributes:
        subject: The id of a step, ``plan`` or ``refused``.
        what: What changed: a status, or the name of a field.
        text: The new value, or a reason.
        state: The state that gives the line its colour.
        seconds: How long the step took; None where that is not known.
        is_aside: Whether a view that redraws prints it above the steps: they do not show it.
    """

    subject: str
    what: str
    text: str
    state: State | None = None
    seconds: float | None = None
    is_aside: bool = False


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
    """

    step_id: str
    title: str
    state: State = "pending"
    details: str | None = None
    notes: tuple[str, ...] = ()
    attempt: int = 0
    began: float | None = None
    seconds: float | None = None

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
        lock: Held while the state changes: a view that draws from another thread holds it too.
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
        self._by_id: dict[str, Step] = {}
        self._places: dict[str, int] = {}
        self.last = 0
        self.counts: Counter[State] = Counter()
        self.carried_out = self.refused = self.other_calls = self.before = 0
        self.lock = Lock()

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
                progress.take(record)
        for step in progress.steps:
            if step.is_over:
                step.notes = ("done before",)
        progress.before = progress.over
        waiting = (place for place, step in enumerate(progress.steps) if not step.is_over)
        progress.last = next(waiting, 0)
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

    def take(self, event: Event) -> tuple[Change, ...]:
        """Note what happened; None means that there is no plan any more.

        Returns:
            What changed, a line each; empty where there is nothing to say.
        """
        with self.lock:
            match event:
                case Plan():
                    return tuple(self._take_plan(event, is_new=False))
                case None:
                    gone = Change("plan", "removed", self.title)
                    self.plan, self.title = None, ""
                    self._set([])
                    return (gone,)
                case Called():
                    return tuple(self._take_call(event))
                case Refusal():
                    self.refused += 1
                    return (Change("refused", event.name, event.reason, "failed", is_aside=True),)
                case OtherCall():
                    self.other_calls += 1
                    return ()
                case StepRecord():
                    return tuple(self._take_record(event))
                case Stopped():
                    return tuple(self._stop())

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
        """How many planning calls there were, in words; empty where there were no calls at all."""
        number = self.carried_out + self.refused
        text = f"{count(number, 'planning call')}: {self.carried_out} carried out, {self.refused} refused."
        if self.other_calls:
            text += f" {count(self.other_calls, 'call')} to other tools skipped."
        return text if number or self.other_calls else ""

    # Plans

    def _take_call(self, call: Called) -> Iterator[Change]:
        self.carried_out += 1
        if call.is_read:
            done = sum(step.status == "done" for step in call.plan.steps)
            yield Change("plan", "read", f"{call.plan.status}, {done} of {len(call.plan.steps)} done")
            return
        changes = list(self._take_plan(call.plan, is_new=call.is_new))
        yield from changes or [Change("plan", "unchanged", call.plan.objective)]

    def _take_plan(self, plan: Plan, *, is_new: bool) -> Iterator[Change]:
        before, self.plan, self.title = self.plan, plan, plan.objective
        if plan is before:
            return
        old = {} if before is None or is_new else {step.step_id: step for step in before.steps}
        if before is None or is_new:
            yield Change("plan", f"set, {count(len(plan.steps), 'step')}", plan.objective)
        self._rebuild(plan, old)
        places = [place for place, step in enumerate(plan.steps) if old.get(step.step_id) is not step]
        self.last = min(places[0] if places else self.last, max(0, len(plan.steps) - 1))
        for place in places:
            yield from _step_changes(old.get(plan.steps[place].step_id), plan.steps[place])
        if plan.status != "abandoned":
            kept = {step.step_id for step in plan.steps}
            gone = (step for step in old.values() if step.step_id not in kept)
            yield from (Change(step.step_id, "removed", step.title) for step in gone)
        if before is not None and not is_new and before.status != plan.status:
            yield Change("plan", f"{before.status} -> {plan.status}", plan.objective)

    def _rebuild(self, plan: Plan, old: Mapping[str, PlanStep]) -> None:
        """The steps of a plan as views show them; one that goes on keeps the time when it began."""
        known = self._by_id
        steps = []
        for step in plan.steps:
            before = known.get(step.step_id) if step.step_id in old else None
            if before is not None and old[step.step_id] is step:
                steps.append(before)
                continue
            state = _OF_STATUS[step.status]
            goes_on = before is not None and before.state == state
            began = before.began if before is not None and goes_on else self._time()
            steps.append(Step(step.step_id, step.title, state, step.details, step.notes, began=began))
        self._set(steps)

    def _time(self) -> float | None:
        return None if self._clock is None else self._clock()

    def _set(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self._by_id = {step.step_id: step for step in steps}
        self._places = {step.step_id: place for place, step in enumerate(steps)}
        self.counts = Counter(step.state for step in steps)

    # Runs

    def _take_record(self, record: StepRecord) -> Iterator[Change]:
        step = self._by_id.get(record.step_id)
        state = _state_of(record)
        if step is None or (state == step.state and record.attempt <= step.attempt):
            return
        is_retry = state == "running" and record.attempt > 1
        self._move(step, state, record.attempt, _note_of(record, state))
        yield _moved(step, "retrying" if is_retry else state)

    def _stop(self) -> Iterator[Change]:
        for place in self.running:
            self._move(self.steps[place], "stopped", 0, _CUT_SHORT)
            yield _moved(self.steps[place], "stopped")

    def _move(self, step: Step, state: State, attempt: int, note: str) -> None:
        self.counts[step.state] -= 1
        self.counts[state] += 1
        if state == "running":
            step.began = self._time() if step.began is None else step.began
        else:
            step.seconds = None if step.began is None else self.now() - step.began
        step.state, step.notes = state, (note,) if note else ()
        step.attempt = max(step.attempt, attempt)
        self.last = self._places[step.step_id]


def _moved(step: Step, what: str) -> Change:
    return Change(step.step_id, what, "".join(step.notes) or step.title, step.state, step.seconds)


def _step_changes(before: PlanStep | None, after: PlanStep) -> Iterator[Change]:
    """What is different in one step of a plan."""
    step_id, state = after.step_id, _OF_STATUS[after.status]
    if before is None:
        what = "new" if after.status == "pending" else f"new, {after.status}"
        yield Change(step_id, what, after.title, state)
    else:
        if before.title != after.title:
            yield Change(step_id, "title", after.title)
        if before.details != after.details:
            yield Change(step_id, "details", after.details or "")
        if before.status != after.status:
            yield Change(step_id, f"{before.status} -> {after.status}", after.title, state)
    is_back = before is not None and (before.status, after.status) == ("in_progress", "pending")
    for note in after.notes[0 if before is None else len(before.notes) :]:
        yield Change(step_id, "note", note, is_aside=is_back)


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

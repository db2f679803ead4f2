"""How far a plan or a run is: events in, state out. Every face draws this one model.

Each method that takes an event returns the lines that say what changed: a face that prints lines prints
them, and one that redraws shows ``steps`` again. Nothing here reads or writes anything but its own state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import attrs
from rich.cells import cell_len

from planning.cli.terminal import MARKS, TROUBLE, Line, brief, count, seconds_text
from planning.cli.times import StepTime
from planning.errors import printable
from planning.observe.fact_words import NO_FACTS, approval_words
from planning.observe.text import one_line
from planning.plan.diff import diff_plans
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan, PlanStep, StepStatus
from planning.plan.render import remarks_of
from planning.workflow.model import Workflow
from planning.workflow.run.records import StepRecord

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
    """One step as a face shows it.

    Attributes:
        step_id: Its id.
        title: What it is for.
        state: How far it is.
        details: More about it.
        notes: What happened, oldest first.
        remark: What a policy knows of it: that it is verified, or waits.
        attempt: Which attempt it is, from 1; 0 where nothing is called.
        began: When it began, in seconds of the clock; None before, and for a step of a plan.
        seconds: How long it took; None until it is over, and where it was done before.
        when: When it got into its state, in UTC; empty where that is not known or not asked for.
    """

    step_id: str
    title: str
    state: State = "pending"
    details: str | None = None
    notes: tuple[str, ...] = ()
    remark: str = ""
    attempt: int = 0
    began: float | None = None
    seconds: float | None = None
    when: str = ""

    def elapsed(self, now: float) -> float | None:
        """How long it runs or ran; None where that is not known."""
        return now - self.began if self.state == "running" and self.began is not None else self.seconds


class Progress:
    """The steps of a plan or of a run, and how far they are.

    Attributes:
        title: What the steps are for.
        plan: The latest plan; None for a run, and before there is one.
        facts: What a policy knows of it.
        steps: In their order.
        last: The index of the step that changed last.
        refused: How many planning calls were refused.
        now: The time in seconds.
        is_timed: Whether times mean something.
        lasted: How long a run took that is shown later; None where it is shown while it runs.
    """

    def __init__(self, title: str = "", clock: Callable[[], float] | None = None) -> None:
        """Start with nothing.

        Args:
            title: What the steps are for.
            clock: The time in seconds; None where times mean nothing, as in a replay.
        """
        self.title = title
        self.now = clock or (lambda: 0.0)
        self.is_timed = clock is not None
        self._began = self.now()
        self.plan: Plan | None = None
        self.facts = NO_FACTS
        self.steps: list[Step] = []
        self._places: dict[str, int] = {}
        self._width = 0
        self.last = 0
        self.refused = 0
        self.lasted: float | None = None

    @classmethod
    def of_run(
        cls,
        workflow: Workflow,
        clock: Callable[[], float] | None = None,
        records: Iterable[StepRecord] = (),
    ) -> Progress:
        """The steps of a workflow that is going to run.

        Args:
            workflow: What is run.
            clock: The time in seconds.
            records: What an earlier part of the run recorded.
        """
        progress = cls(workflow.goal, clock)
        progress._set([Step(step.step_id, step.description) for step in workflow.steps])
        for record in records:
            if record.status == "completed":
                progress.take_record(record)
        return progress

    @property
    def counts(self) -> Counter[State]:
        """How many steps there are in each state."""
        return Counter(step.state for step in self.steps)

    @property
    def over(self) -> int:
        """How many steps need nothing more; of a plan, those that are done."""
        states = _OVER if self.plan is None else ("done",)
        return sum(step.state in states for step in self.steps)

    @property
    def running(self) -> list[int]:
        """The indexes of the steps that run."""
        return [place for place, step in enumerate(self.steps) if step.state == "running"]

    def tally(self) -> str:
        """How far the steps are, in words."""
        counts = self.counts
        parts = [f"{counts['done']} of {len(self.steps)} done"]
        others: tuple[State, ...] = ("running", "failed", "blocked", "stopped", "skipped")
        parts += [f"{counts[state]} {state}" for state in others if counts[state]]
        return ", ".join(parts)

    def spent(self) -> str:
        """How long a run has lasted, behind a comma; empty where times mean nothing."""
        lasted = self.now() - self._began if self.is_timed else self.lasted
        return "" if lasted is None else f", in {seconds_text(lasted)}"

    def stopping(self) -> str:
        """What to say when a run is about to stop."""
        steps = count(len(self.running), "running step")
        return f"stopping: waiting for {steps}; press Ctrl-C again to stop at once"

    def take_times(self, times: Mapping[str, StepTime]) -> None:
        """Show when steps got into their states, and how long they took.

        Args:
            times: The times, by the ids of steps.
        """
        for step in self.steps:
            if (time := times.get(step.step_id)) is not None:
                step.when, step.seconds = f"{time.at:%Y-%m-%d %H:%M:%S}", time.seconds

    # Plans

    def take_plan(self, plan: Plan | None, facts: PlanFacts = NO_FACTS) -> list[Line]:
        """Show a plan, or that there is none any more; says what differs from the one before.

        Args:
            plan: The plan.
            facts: What a policy knows of it.
        """
        differs = diff_plans(self.plan, plan)
        before = {} if self.plan is None else {step.step_id: step for step in self.plan.steps}
        steps = () if plan is None else plan.steps
        self.plan, self.facts, self.title = plan, facts, "" if plan is None else plan.objective
        changed = (place for place, step in enumerate(steps) if before.get(step.step_id) is not step)
        self.last = next(changed, min(self.last, max(0, len(steps) - 1)))
        remarks = {} if plan is None else remarks_of(plan, facts)
        self._set([_step_of(step, remarks.get(step.step_id, "")) for step in steps])
        is_back = any((each.before, each.after) == ("in_progress", "pending") for each in differs.marked)
        added = [(f"  {each.step.step_id}  {each.step.title}", "") for each in differs.added]
        return [(str(differs), TROUBLE if is_back else ""), *added]

    def whole_plan(self) -> Iterator[str]:
        """The plan as lines: the objective, then a line a step with its details and notes below it."""
        if self.plan is None:
            yield "no plan"
            return
        done, total = self.plan.progress
        yield f"{self.title} ({self.plan.status}, {done} of {total} done)"
        for step, shown in zip(self.plan.steps, self.steps, strict=True):
            took = "" if shown.seconds is None else f"took {seconds_text(shown.seconds)}"
            said = ", ".join(filter(None, (step.status, shown.remark, shown.when, took)))
            yield f"{step.step_id} {said}: {step.title}"
            yield from (f"  {line}" for line in (step.details or "").splitlines())
            for note in step.notes:
                yield from f"  - {note}".replace("\n", "\n    ").split("\n")
        if approval := approval_words(self.facts):
            yield approval

    def refuse(self, name: str, reason: str) -> Line:
        """Count a planning call that was refused.

        Args:
            name: The tool that was called.
            reason: Why, and what to send instead.
        """
        self.refused += 1
        first, *problems = reason.split("\n")
        more = " | ".join(problem.removeprefix("- ") for problem in problems)
        return f"Refused {printable(name)}: {first} {more}".rstrip(), TROUBLE

    def _set(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self._places = {step.step_id: place for place, step in enumerate(steps)}
        widths = (cell_len(one_line(step.step_id)) for step in steps)
        self._width = min(_WIDEST_ID, max(widths, default=0))

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
        step.attempt = max(step.attempt, record.attempt)
        self._move(place, state, _note_of(record, state))
        return [self._moved(step, "retrying" if is_retry else state)]

    def stop(self) -> list[Line]:
        """Note that the run is over: what still counts as running was cut short."""
        places = self.running
        for place in places:
            self._move(place, "stopped", _CUT_SHORT)
        return [self._moved(self.steps[place], "stopped") for place in places]

    def _move(self, place: int, state: State, note: str) -> None:
        step = self.steps[place]
        step.state, step.notes = state, (note,) if note else ()
        if self.is_timed and state == "running":
            step.began = self.now() if step.began is None else step.began
        elif step.began is not None:
            step.seconds = self.now() - step.began
        self.last = place

    def _moved(self, step: Step, what: str) -> Line:
        """What happened to a step, on one line: its id, its state, how long it took, and why."""
        step_id = one_line(step.step_id)
        parts = [step_id + " " * (self._width - cell_len(step_id)), f"{what:<{_STATE}}"]
        parts += [step.when] if step.when else []
        if step.seconds is not None:
            parts.append(seconds_text(step.seconds))
        text = "".join(step.notes) or step.title
        style = MARKS[step.state][2] if step.state in _BAD else ""
        return "  ".join([*parts, one_line(text)]).rstrip(), style


def _step_of(step: PlanStep, remark: str) -> Step:
    state = _OF_STATUS[step.status]
    return Step(step.step_id, step.title, state, step.details, step.notes, remark.removeprefix(", "))


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

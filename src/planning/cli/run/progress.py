"""How far a run is, step by step, as its views show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from types import MappingProxyType
from typing import Final, Literal

import attrs

from planning.model import Plan
from planning.text import DETAILS, fitted
from planning.workflow.model import Workflow
from planning.workflow.run.mirror import id_in_plan
from planning.workflow.run.records import StepRecord

__all__ = ["Progress", "StepView", "StepViewState"]

StepViewState = Literal["waiting", "running", "done", "skipped", "failed", "blocked", "stopped"]

_OVER: Final = frozenset({"done", "skipped", "failed", "blocked"})


@attrs.define
class StepView:
    """One step as a view shows it.

    Attributes:
        step_id: Its id.
        description: What it is for.
        place: Its index in the workflow.
        state: How far it is; ``blocked`` where a step failed that it depends on.
        attempt: Which attempt it is, from 1; 0 where nothing is called.
        began: When its first attempt began, in seconds of the clock; None before.
        seconds: How long it took, once it is over; None where it was done before, or took no call.
        note: What came of it.
    """

    step_id: str
    description: str
    place: int
    state: StepViewState = "waiting"
    attempt: int = 0
    began: float | None = None
    seconds: float | None = None
    note: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it needs nothing more."""
        return self.state in _OVER

    def elapsed(self, now: float) -> float | None:
        """How long it runs or ran; None where there is nothing to say."""
        return now - self.began if self.state == "running" and self.began is not None else self.seconds


class Progress:
    """The steps of a run, kept up to date by the session's events.

    Attributes:
        goal: What the steps are for.
        steps: In the order of the document.
        widest_id: How many characters the longest id has.
        began: When the run began, in seconds of the clock.
        counts: How many there are in each state.
        running: The places of the steps that run.
        last: The place of the step that changed last.
        before: How many steps were done before the run began.
        lock: Held while anything here changes: a view that draws from another thread holds it too.
    """

    def __init__(
        self,
        workflow: Workflow,
        clock: Callable[[], float],
        done: Mapping[str, StepRecord] = MappingProxyType({}),
    ) -> None:
        """Begin.

        Args:
            workflow: What is run.
            clock: The time in seconds.
            done: By id, the records of an earlier part of the run.
        """
        self._clock = clock
        self.goal = workflow.goal
        self.began = clock()
        self.steps = [
            StepView(step.step_id, step.description, place) for place, step in enumerate(workflow.steps)
        ]
        self.widest_id = max((len(view.step_id) for view in self.steps), default=0)
        self._by_id = {view.step_id: view for view in self.steps}
        for view in self.steps:
            record = done.get(view.step_id)
            if record is not None and record.status == "completed":
                view.state, view.note = "skipped" if record.skipped else "done", "done before"
        self.counts: Counter[str] = Counter(view.state for view in self.steps)
        self.before = self.counts["done"] + self.counts["skipped"]
        self.running: set[int] = set()
        self.last = next((view.place for view in self.steps if view.state == "waiting"), 0)
        self.lock = Lock()

    @property
    def seconds(self) -> float:
        """How long the run has lasted."""
        return self._clock() - self.began

    @property
    def over(self) -> int:
        """How many steps need nothing more."""
        return sum(self.counts[state] for state in _OVER)

    def now(self) -> float:
        """The time, in seconds of the clock."""
        return self._clock()

    def take(self, record: StepRecord, plan: Plan | None) -> StepView | None:
        """Note that a step changed.

        Args:
            record: What it is now.
            plan: The session's plan, which knows in short what came of a step.

        Returns:
            The step; None where a view would show nothing else than before.
        """
        view = self._by_id.get(record.step_id)
        if view is None:
            return None
        state = _state_of(record)
        if (state, record.attempt) == (view.state, view.attempt) and state == "running":
            return None
        if state == view.state and view.note == "done before":
            return None
        with self.lock:
            self._change(view, state, record, _note_of(view, state, record, plan))
        return view

    def _change(self, view: StepView, state: StepViewState, record: StepRecord, note: str) -> None:
        now = self._clock()
        self.counts[view.state] -= 1
        self.counts[state] += 1
        if state == "running":
            self.running.add(view.place)
            if view.began is None:
                view.began = now
        else:
            self.running.discard(view.place)
            view.seconds = None if view.began is None else now - view.began
        view.state, view.note = state, note
        view.attempt = max(view.attempt, record.attempt)
        self.last = view.place

    def stopped(self) -> Iterable[StepView]:
        """Note that the run is over: what still counts as running was cut short."""
        with self.lock:
            cut = [self.steps[place] for place in sorted(self.running)]
            for view in cut:
                self._change(view, "stopped", _NOTHING, "stopped before it was done")
        return cut

    def tally(self) -> str:
        """How far the run is, in words."""
        counts = self.counts
        told = [f"{counts['done']} of {len(self.steps)} done"]
        others = ("running", "failed", "blocked", "stopped", "skipped")
        told += [f"{counts[state]} {state}" for state in others if counts[state]]
        return ", ".join(told)


_NOTHING: Final = StepRecord(run_id="", step_id="", status="pending", at="")


def _state_of(record: StepRecord) -> StepViewState:
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


def _note_of(view: StepView, state: StepViewState, record: StepRecord, plan: Plan | None) -> str:
    """What to say beside a step."""
    if state == "running":
        return f"attempt {record.attempt}" if record.attempt > 1 else ""
    if record.error is not None:
        return record.error.message
    if record.after is not None:
        return f"step {record.after} failed"
    if state == "skipped":
        return "its done_check is true"
    if state == "stopped":
        return "stopped before it was done"
    step = plan.steps[view.place] if plan is not None and view.place < len(plan.steps) else None
    if step is None or not step.notes:
        return ""
    # Somebody may have put another plan in the place of the one that mirrors the run.
    whose = fitted(f"step {id_in_plan(view.step_id, step.step_id)}", DETAILS)
    return step.notes[-1] if (step.details or "").startswith(whose) else ""

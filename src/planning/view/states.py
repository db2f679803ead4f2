"""A session's health and its workflow run as the page has them: its graph, and what happened to each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

import attrs

from planning.observe.deltas import Fields, list_delta
from planning.observe.health import Health
from planning.observe.text import as_text, shortened
from planning.view.graph import graph_of
from planning.workflow.drawing import State, state_of
from planning.workflow.model import Workflow
from planning.workflow.run.records import RunChanged, StepChanged, StepRecord, WorkflowRun
from session import Change
from session.history import Restored
from session.selectors import Selectable

_NEW: State = "pending"
_LONGEST: Final = 2_000  # characters of an output
_LONGEST_ANSWER: Final = 20_000  # the same of a step that no other step depends on
_LONGEST_ERROR: Final = 1_000


Records = dict[str, list[Fields]]
"""By step, its changes as the page has them, in order."""


@attrs.define
class RunStates:
    """The newest run of a session; without a workflow where there is none.

    Attributes:
        run_id: The run.
        workflow: What it runs.
        records: The changes of its steps; a step without any is pending.
    """

    run_id: str | None = None
    workflow: Workflow | None = None
    records: Records = attrs.field(factory=dict)
    _needed: frozenset[str] = attrs.field(init=False, default=frozenset())

    def __attrs_post_init__(self) -> None:
        steps = () if self.workflow is None else self.workflow.steps
        self._needed = frozenset(other for step in steps for other in step.depends_on)

    @classmethod
    def of(cls, source: Selectable) -> RunStates:
        """The newest run in a session, or in a version of one.

        Raises:
            StoreError: It cannot be read.
        """
        run = source.select_latest(WorkflowRun)
        if run is None:
            return cls()
        now = cls(run.run_id, run.workflow)
        for record in source.select_all(StepRecord):
            now._add(record)
        return now

    @classmethod
    def of_document(cls, workflow: Workflow) -> RunStates:
        """A workflow by itself, with the states that its document has."""
        states = {step.step_id: state_of(step) for step in workflow.steps}
        return cls("", workflow, {name: [{"state": each}] for name, each in states.items() if each != _NEW})

    @property
    def states(self) -> dict[str, State]:
        """The states of the steps."""
        return {name: _state(records) for name, records in self.records.items()}

    def take(self, change: Change, then: Callable[[], Selectable]) -> Fields:
        """Take over a change; returns what of the ``graph``, the ``states`` and the ``records`` differs.

        Args:
            change: The change.
            then: Returns the slices after it.

        Raises:
            StoreError: They cannot be read.
        """
        graph = Fields()
        before = Records()  # of the steps that change
        for event in change.events:
            if isinstance(event, Restored):
                before = {**self.records, **before}
                graph |= self._become(RunStates.of(then()))
            elif isinstance(event, RunChanged):
                is_same = event.run.run_id == self.run_id
                graph |= self._become(
                    RunStates(event.run.run_id, event.run.workflow, self.records if is_same else {})
                )
            elif isinstance(event, StepChanged):
                name = event.record.step_id
                before.setdefault(name, self.records.get(name, [])[:])
                self._add(event.record)
        if graph:  # all is told anew
            before = {name: [] for name in self.records}
        states, records = Fields(), Fields()
        for name, were in before.items():
            are = self.records.get(name, [])
            if (delta := list_delta(were, are)) is not None:
                records[name] = delta
                if _state(were) != (now := _state(are)):
                    states[name] = now
        found = {**graph, "states": states, "records": records}
        return {name: value for name, value in found.items() if value or name == "graph"}

    def graph(self) -> Fields | int:
        """The graph; 0 where there is no run."""
        return 0 if self.workflow is None else graph_of(self.workflow)

    def _become(self, other: RunStates) -> Fields:
        """Be another run; returns its graph, where that is another one."""
        is_other = (self.run_id, self.workflow) != (other.run_id, other.workflow)
        self.run_id, self.workflow, self.records = other.run_id, other.workflow, other.records
        self._needed = other._needed
        return {"graph": self.graph()} if is_other else {}

    def _add(self, record: StepRecord) -> None:
        if record.run_id == self.run_id:
            self.records.setdefault(record.step_id, []).append(self._fields_of(record))

    def _fields_of(self, record: StepRecord) -> Fields:
        """A change of a step as the page has it, without what is empty."""
        most = _LONGEST if record.step_id in self._needed else _LONGEST_ANSWER
        error = record.error
        fields: Fields = {
            "state": "skipped" if record.skipped else record.status,
            "at": _seconds(record.at),
            "attempt": record.attempt,
            "waits": record.status == "in_progress" and not record.called,
            "output": shortened(as_text(record.output), most),
            "private": record.is_withheld,
            "error": None if error is None else shortened(error.message, _LONGEST_ERROR),
            "code": None if error is None else error.code,
            "cause": None if error is None else shortened(error.cause or "", _LONGEST_ERROR),
            "after": record.after,
        }
        return {name: value for name, value in fields.items() if value}


def _state(records: Sequence[Fields]) -> State:
    state: State = records[-1]["state"] if records else _NEW
    return state


def _seconds(at: str) -> float | None:
    try:
        return round(datetime.fromisoformat(at).timestamp(), 3)
    except ValueError:
        return None


def health_fields(health: Health | None) -> Fields:
    """How a session is doing, as the page has it; without what is empty, and empty where nothing is known."""
    if health is None:
        return {}
    fields: Fields = {
        "state": health.state,
        "objective": health.objective,
        "done": health.done,
        "total": health.total,
        "step": health.step,
        "title": health.title,
        "others": health.others or None,
        "error": health.error,
        "began": None if health.began_at is None else round(health.began_at.timestamp(), 3),
        "changed": None if health.changed_at is None else round(health.changed_at.timestamp(), 3),
    }
    return {name: value for name, value in fields.items() if value not in {None, ""}}

"""The workflow run of a session as the page has it: its graph, and what happened to each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Final

import attrs

from planning.view.deltas import Fields, list_delta
from planning.view.graph import graph_of
from planning.view.text import as_text, shortened
from planning.workflow.drawing import State, state_of
from planning.workflow.model import Workflow
from planning.workflow.run.records import RunChanged, StepChanged, StepRecord, WorkflowRun
from session import Change
from session.history import Restored
from session.selectors import Selectable

__all__ = ["RunStates"]

_NEW: State = "pending"
_LONGEST: Final = 2_000  # characters of an output
_LONGEST_ANSWER: Final = 20_000  # the same of a step that no other step depends on
_LONGEST_ERROR: Final = 1_000


@attrs.frozen(slots=False)
class RunStates:
    """The newest run of a session; without a workflow where there is none.

    Attributes:
        run_id: The run.
        workflow: What it runs.
        records: By step, its changes as the page has them; a step without any is pending.
    """

    run_id: str | None = None
    workflow: Workflow | None = None
    records: Mapping[str, tuple[Fields, ...]] = attrs.field(factory=dict)

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
        records = dict[str, tuple[Fields, ...]]()
        for record in source.select_all(StepRecord):
            if record.run_id == run.run_id:
                records[record.step_id] = (*records.get(record.step_id, ()), now._fields_of(record))
        return cls(run.run_id, run.workflow, records)

    @classmethod
    def of_document(cls, workflow: Workflow) -> RunStates:
        """A workflow by itself, with the states that its document has."""
        states = {step.step_id: state_of(step) for step in workflow.steps}
        return cls("", workflow, {name: ({"state": each},) for name, each in states.items() if each != _NEW})

    @cached_property
    def states(self) -> dict[str, State]:
        """The states of the steps."""
        return {name: _state(records) for name, records in self.records.items()}

    def after(self, change: Change, then: Callable[[], Selectable]) -> RunStates:
        """The run after a change.

        Args:
            change: The change.
            then: Returns the slices after it.

        Raises:
            StoreError: They cannot be read.
        """
        now = self
        for event in change.events:
            if isinstance(event, Restored):
                now = RunStates.of(then())
            elif isinstance(event, RunChanged):
                records = now.records if event.run.run_id == now.run_id else {}
                now = RunStates(event.run.run_id, event.run.workflow, records)
            elif isinstance(event, StepChanged) and event.record.run_id == now.run_id:
                name = event.record.step_id
                records = {
                    **now.records,
                    name: (*now.records.get(name, ()), now._fields_of(event.record)),
                }
                now = RunStates(now.run_id, now.workflow, records)
        return now

    def fields(self, before: RunStates) -> Fields:
        """What of the ``graph``, the ``states`` and the ``records`` differs from before."""
        found, states, records = Fields(), Fields(), Fields()
        if (self.run_id, self.workflow) != (before.run_id, before.workflow):
            found["graph"], before = self.graph(), RunStates()
        for name in {**before.records, **self.records}:
            were, are = before.records.get(name, ()), self.records.get(name, ())
            if were is not are and (delta := list_delta(were, are)) is not None:
                records[name] = delta
                if _state(were) != (now := _state(are)):
                    states[name] = now
        more = {"states": states, "records": records}
        return {**found, **{name: value for name, value in more.items() if value}}

    def graph(self) -> Fields | int:
        """The graph; 0 where there is no run."""
        return 0 if self.workflow is None else graph_of(self.workflow)

    @cached_property
    def _needed(self) -> frozenset[str]:
        """The steps that others depend on."""
        steps = () if self.workflow is None else self.workflow.steps
        return frozenset(other for step in steps for other in step.depends_on)

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

"""A session's health and its workflow run as the page has them: its graph, and how far each step is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from planning.health import Health
from planning.view.deltas import Fields
from planning.view.graph import graph_of
from planning.workflow.drawing import State
from planning.workflow.model import Workflow
from planning.workflow.run.records import RunChanged, StepChanged, StepRecord, WorkflowRun, states_of
from session import Change
from session.history import Restored
from session.selectors import Selectable

__all__ = ["RunStates", "health_fields"]

_NEW: State = "pending"


@attrs.frozen
class RunStates:
    """The newest run of a session; without a workflow where there is none.

    Attributes:
        run_id: The run.
        workflow: What it runs.
        states: The states of its steps; a step without one is pending.
    """

    run_id: str | None = None
    workflow: Workflow | None = None
    states: Mapping[str, State] = attrs.field(factory=dict)

    @classmethod
    def of(cls, source: Selectable) -> RunStates:
        """The newest run in a session, or in a version of one.

        Raises:
            StoreError: It cannot be read.
        """
        run = source.select_latest(WorkflowRun)
        if run is None:
            return cls()
        records = states_of(run.run_id, source.select_all(StepRecord))
        return cls(run.run_id, run.workflow, {name: _state(record) for name, record in records.items()})

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
                states = now.states if event.run.run_id == now.run_id else {}
                now = RunStates(event.run.run_id, event.run.workflow, states)
            elif isinstance(event, StepChanged) and event.record.run_id == now.run_id:
                states = {**now.states, event.record.step_id: _state(event.record)}
                now = RunStates(now.run_id, now.workflow, states)
        return now

    def fields(self, before: RunStates | None = None) -> Fields:
        """The ``graph`` and the ``states``, or what of them differs from before; without what is empty."""
        old = {} if before is None else before.states
        if before is None or (self.run_id, self.workflow) != (before.run_id, before.workflow):
            graph = {} if before is None and self.workflow is None else {"graph": self.graph()}
            old = {}
        else:
            graph = {}
        names = {**old, **self.states}
        states = {
            name: self.states.get(name, _NEW)
            for name in names
            if self.states.get(name, _NEW) != old.get(name, _NEW)
        }
        return {**graph, **({"states": states} if states else {})}

    def graph(self) -> Fields | int:
        """The graph; 0 where there is no run."""
        return 0 if self.workflow is None else graph_of(self.workflow)


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


def _state(record: StepRecord) -> State:
    return "skipped" if record.skipped else record.status

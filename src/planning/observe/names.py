"""One name for a step: the workflow's own id, wherever a plan shows a workflow run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import attrs

from planning.plan.diff import PlanDiff
from planning.plan.facts import PlanFacts, Proof
from planning.plan.model import Plan
from planning.suite.events import PlanChanged
from planning.workflow.run.mirror import own_ids
from planning.workflow.run.records import RunChanged, WorkflowRun
from session import Change
from session.history import Restored
from session.selectors import Selectable

Names = Mapping[str, str]
"""The workflow's ids of the steps of a plan, by their ids in the plan; other steps have no second name."""


def names_in(source: Selectable) -> Names:
    """The names of the steps of a session's plan, or of a version's."""
    return own_ids(source.select_latest(Plan), source.select_latest(WorkflowRun))


@attrs.define
class Naming:
    """The names of the steps of a plan, change by change."""

    _plan: Plan | None = None
    _run: WorkflowRun | None = None
    names: Names = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.names = own_ids(self._plan, self._run)

    def take(self, change: Change, moved: PlanChanged | None, then: Callable[[], Selectable]) -> Names:
        """The names after a change."""
        is_other = False
        if moved is not None:
            self._plan, is_other = moved.after, bool(replace(moved.diff, marked=(), noted=()))
        for event in change.events:
            if isinstance(event, RunChanged):
                self._run, is_other = event.run, True
            elif isinstance(event, Restored):
                self._run, is_other = then().select_latest(WorkflowRun), True
        if is_other:
            self.names = own_ids(self._plan, self._run)
        return self.names


def named_plan(plan: Plan, names: Names) -> Plan:
    """A plan whose steps have their names as ids, for people to read."""
    steps = (replace(step, step_id=names.get(step.step_id, step.step_id)) for step in plan.steps)
    return replace(plan, steps=tuple(steps)) if names else plan


def named_diff(diff: PlanDiff, names: Names) -> PlanDiff:
    """The differences between two plans, with the names of their steps."""
    if not names:
        return diff

    def named(changes: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(replace(each, step_id=names.get(each.step_id, each.step_id)) for each in changes)

    steps = named(tuple(each.step for each in diff.added))
    return replace(
        diff,
        added=tuple(replace(each, step=step) for each, step in zip(diff.added, steps, strict=True)),
        removed=tuple(names.get(step_id, step_id) for step_id in diff.removed),
        moved=named(diff.moved),
        retitled=named(diff.retitled),
        detailed=named(diff.detailed),
        marked=named(diff.marked),
        noted=named(diff.noted),
    )


def named_facts(facts: PlanFacts, names: Names) -> PlanFacts:
    """The facts of a policy about a plan, with the names of its steps."""
    if not names:
        return facts
    depends_on: dict[str, tuple[str, ...]] = {
        names.get(step_id, step_id): tuple(names.get(each, each) for each in needed)
        for step_id, needed in facts.depends_on.items()
    }
    proofs: dict[str, Proof] = {names.get(step_id, step_id): each for step_id, each in facts.proofs.items()}
    waiting = tuple(names.get(step_id, step_id) for step_id in facts.waiting)
    return replace(facts, depends_on=depends_on, proofs=proofs, waiting=waiting)

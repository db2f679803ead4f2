"""A plan as the page has it, and what a change made of it: only what differs, so that a run stays small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planning.model import Plan, PlanStep

__all__ = ["Fields", "applied", "delta_of", "plan_fields"]

Fields = dict[str, Any]
"""An object of the page's data."""


def plan_fields(plan: Plan) -> Fields:
    """A plan as plain dictionaries and lists; a step has no fields that are empty."""
    steps = [{"id": step.step_id, **_step_fields(step)} for step in plan.steps]
    return {"objective": plan.objective, "status": plan.status, "steps": steps}


def delta_of(before: Plan | None, after: Plan | None) -> Fields | int | None:
    """What makes the second plan of the first: 0 where there is none after it, None where nothing differs.

    A list is written as how many of its first entries stay, and the entries that follow them.
    """
    if after is None:
        return None if before is None else 0
    old = Plan("", "abandoned") if before is None else before
    delta: Fields = {}
    for name in ("objective", "status"):
        if before is None or getattr(old, name) != getattr(after, name):
            delta[name] = getattr(after, name)
    known = {step.step_id: step for step in old.steps}
    steps = {step.step_id: _step_delta(known.get(step.step_id), step) for step in after.steps}
    steps = {step_id: fields for step_id, fields in steps.items() if fields}
    if steps:
        delta["steps"] = steps
    order = _list_delta([step.step_id for step in old.steps], [step.step_id for step in after.steps])
    if before is None or order is not None:
        delta["order"] = order or [0]
    return delta or None


def applied(plan: Fields | None, delta: Fields | int | None) -> Fields | None:
    """The plan after a change, as ``plan_fields`` has it: what the page does with each delta."""
    if delta is None:
        return plan
    if isinstance(delta, int):
        return None
    plan = plan or {"steps": []}
    steps = {step["id"]: step for step in plan["steps"]}
    for step_id, changed in delta.get("steps", {}).items():
        step = {"id": step_id, **steps.get(step_id, {}), **changed}
        if "notes" in changed:
            step["notes"] = _applied_list(steps.get(step_id, {}).get("notes", []), changed["notes"])
        steps[step_id] = {name: value for name, value in step.items() if value not in (None, [])}
    ids = [step["id"] for step in plan["steps"]]
    if "order" in delta:
        ids = _applied_list(ids, delta["order"])
    return {
        "objective": delta.get("objective", plan.get("objective")),
        "status": delta.get("status", plan.get("status")),
        "steps": [steps[step_id] for step_id in ids],
    }


def _step_fields(step: PlanStep) -> Fields:
    fields: Fields = {"title": step.title, "status": step.status}
    if step.details is not None:
        fields["details"] = step.details
    if step.notes:
        fields["notes"] = list(step.notes)
    return fields


def _step_delta(before: PlanStep | None, after: PlanStep) -> Fields:
    if before is after:
        return {}
    old = {} if before is None else _step_fields(before)
    new = _step_fields(after)
    delta = {name: new.get(name) for name in {**old, **new} if old.get(name) != new.get(name)}
    if "notes" in delta:
        delta["notes"] = _list_delta(old.get("notes", []), new.get("notes", []))
    return delta


def _list_delta(before: Sequence[str], after: Sequence[str]) -> list[Any] | None:
    """How many entries stay at the beginning, and what follows them; None where nothing differs."""
    if before == after:
        return None
    kept = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        kept += 1
    return [kept, *after[kept:]]


def _applied_list(before: Sequence[str], delta: Sequence[Any]) -> list[str]:
    return [*before[: delta[0]], *delta[1:]]

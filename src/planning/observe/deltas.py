"""A plan as the page has it, and what a change made of it: only what differs, so that a run stays small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planning.observe.fact_words import NO_FACTS, plan_facts, step_facts
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan, PlanStep

Fields = dict[str, Any]
"""An object of the page's data."""


def plan_fields(plan: Plan, facts: PlanFacts = NO_FACTS) -> Fields:
    """A plan as plain dictionaries and lists, with the facts of a policy; nothing in it is empty."""
    steps = [{"id": step.step_id, **_step_fields(step, facts)} for step in plan.steps]
    return {"objective": plan.objective, "status": plan.status, **plan_facts(facts), "steps": steps}


def delta_of(
    before: Plan | None, after: Plan | None, known: PlanFacts = NO_FACTS, facts: PlanFacts = NO_FACTS
) -> Fields | int | None:
    """The difference that makes the second plan of the first: 0 if there is none after it, None if equal.

    A list is written as how many of its first entries stay, and the entries that follow them.
    """
    if before is after and known is facts:
        return None
    if after is None:
        return None if before is None else 0
    old = () if before is None else before.steps
    delta: Fields = {}
    for name in ("objective", "status"):
        if before is None or getattr(before, name) != getattr(after, name):
            delta[name] = getattr(after, name)
    said, says = ({} if before is None else plan_facts(known)), plan_facts(facts)
    delta |= {name: says.get(name) for name in {**said, **says} if said.get(name) != says.get(name)}
    if all(getattr(known, name) is getattr(facts, name) for name in ("proofs", "depends_on", "waiting")):
        known = facts  # of the steps it knows the same
    olds = {step.step_id: step for step in old}
    steps = {step.step_id: _step_delta(olds.get(step.step_id), step, known, facts) for step in after.steps}
    steps = {step_id: fields for step_id, fields in steps.items() if fields}
    if steps:
        delta["steps"] = steps
    order = list_delta([step.step_id for step in old], [step.step_id for step in after.steps])
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
            step["notes"] = applied_list(steps.get(step_id, {}).get("notes", []), changed["notes"])
        steps[step_id] = {name: value for name, value in step.items() if value not in (None, [])}
    ids = [step["id"] for step in plan["steps"]]
    if "order" in delta:
        ids = applied_list(ids, delta["order"])
    kept = {name: value for name, value in {**plan, **delta}.items() if name != "order" and value is not None}
    return {**kept, "steps": [steps[step_id] for step_id in ids]}


def _step_fields(step: PlanStep, facts: PlanFacts) -> Fields:
    fields: Fields = {"title": step.title, "status": step.status}
    if step.details is not None:
        fields["details"] = step.details
    if step.notes:
        fields["notes"] = list(step.notes)
    return fields | step_facts(step.step_id, facts)


def _step_delta(before: PlanStep | None, after: PlanStep, known: PlanFacts, facts: PlanFacts) -> Fields:
    if before is after and (
        known is facts or step_facts(after.step_id, known) == step_facts(after.step_id, facts)
    ):
        return {}
    old = {} if before is None else _step_fields(before, known)
    new = _step_fields(after, facts)
    delta = {name: new.get(name) for name in {**old, **new} if old.get(name) != new.get(name)}
    if "notes" in delta:
        delta["notes"] = list_delta(old.get("notes", []), new.get("notes", []))
    return delta


def list_delta(before: Sequence[Any], after: Sequence[Any]) -> list[Any] | None:
    """The number of entries that stay at the beginning, and what follows them; None if nothing differs."""
    if before == after:
        return None
    kept = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        kept += 1
    return [kept, *after[kept:]]


def applied_list(before: Sequence[Any], delta: Sequence[Any]) -> list[Any]:
    """The list after a change, as ``list_delta`` has it."""
    return [*before[: delta[0]], *delta[1:]]

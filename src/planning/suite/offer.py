"""The definition of a planning tool for one request: only what the plan takes now (``offer="possible"``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from planning.plan.commands import Command, SetupPlan
from planning.plan.model import Plan
from planning.plan.reducers import allows
from planning.policy.gates import irreplaceable
from planning.policy.policy import PlanPolicy

_STEP: Final = "step_id"
_MOST_IDS: Final = 250
"""The longest list of ids in a schema. OpenAI's strict mode limits the characters of a longer enum."""


def possible_schema(
    schema: dict[str, Any], command: type[Command], plan: Plan | None, policy: PlanPolicy
) -> dict[str, Any] | None:
    """The schema of a planning tool with the plan's step ids as an enum; None for a call that is refused.

    Args:
        schema: The tool's own schema, which is changed.
        command: The command whose rules the tool keeps.
        plan: The plan now.
        policy: The policy; only ``replace`` refuses a whole tool.
    """
    if not allows(plan, command):
        return None
    if command is SetupPlan and irreplaceable(policy, plan):
        return None
    if _STEP not in schema["properties"]:
        return schema
    ids = [step.step_id for step in plan.steps] if plan is not None else []
    if not ids:
        return None
    if len(ids) <= _MOST_IDS:
        _name_ids(schema, ids)
    return schema


def _name_ids(schema: dict[str, Any], ids: Sequence[str]) -> None:
    """Give each ``step_id`` within a schema the ids that it can be; keep the examples that are among them."""
    properties = schema["properties"]
    for name, about in properties.items():
        if name == _STEP:
            properties[name] = {"type": "string", "description": about["description"], "enum": list(ids)}
        elif about.get("items", {}).get("properties"):
            _name_ids(about["items"], ids)
    examples = [each for each in schema.pop("examples", ()) if each[_STEP] in ids]
    if examples:
        schema["examples"] = examples

"""Steps as the checks see them, made from objects of the three forms, and what the checks say of them."""

from __future__ import annotations

from typing import Any

from planning.workflow.capabilities import Capabilities
from planning.workflow.checks.steps import check_steps
from planning.workflow.drafts import Draft
from planning.workflow.findings import Found


def text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None


def draft(index: int, fields: dict[str, Any]) -> Draft:
    """A step of version 1 or 2 as its fields are, right or wrong."""
    inputs, outputs, depends = fields.get("inputs", {}), fields.get("outputs"), fields.get("depends_on", [])
    is_agent = "agent" in fields
    return Draft(
        index,
        ("steps", index),
        fields,
        text_of(fields.get("step_id")),
        "agent" if is_agent else text_of(fields.get("type")),
        text_of(fields.get("agent" if is_agent else "name")),
        "agent" if is_agent else "name",
        inputs if isinstance(inputs, dict) else None,
        "inputs",
        outputs if isinstance(outputs, list) else None,
        [text_of(each) for each in depends] if isinstance(depends, list) else [],
        "depends_on",
    )


def older(index: int, fields: dict[str, Any]) -> Draft:
    """A step of the older form: whole numbers as ids."""
    kind = next((kind for kind in ("tool", "agent") if kind in fields), "tool")
    depends = [str(each) for each in fields.get("dependencies", [])]
    return Draft(
        index,
        ("steps", index),
        fields,
        str(fields["step_id"]),
        kind if kind in fields else None,
        fields.get(kind),
        kind,
        fields.get("parameters", {}),
        "parameters",
        None,
        depends,
        "dependencies",
    )


def step(step_id: object, *depends_on: object, **fields: Any) -> dict[str, Any]:
    """A step that calls the tool ``search``."""
    return {"step_id": step_id, "type": "tool", "name": "search", "depends_on": list(depends_on)} | fields


def found(*steps: dict[str, Any], capabilities: Capabilities | None = None) -> list[Found]:
    """What the checks find, in the order of the steps."""
    drafts = [draft(index, fields) for index, fields in enumerate(steps)]
    findings = check_steps(drafts, capabilities)
    return sorted(
        findings, key=lambda each: (each.step_index, list(map(str, each.path)), each.within or (0, 0))
    )


def told(*steps: dict[str, Any], capabilities: Capabilities | None = None) -> list[tuple[Any, ...]]:
    """The code, the message and the hint of each finding, and the path below its step."""
    return [
        (each.code, each.message, each.hint, each.path[2:])
        for each in found(*steps, capabilities=capabilities)
    ]

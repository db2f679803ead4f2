"""Reads a document's value into a workflow in the plainest way, to compare the reader with."""

from __future__ import annotations

from typing import Any

from planning.workflow import Workflow, WorkflowStep

__all__ = ["workflow_by_hand"]


def workflow_by_hand(value: Any) -> Workflow:
    """The workflow that a valid document means, whatever its shape."""
    if isinstance(value, dict):
        value = {name: each for name, each in value.items() if each is not None}
        for name in ("plan", "workflow"):
            if name in value:
                return workflow_by_hand(value[name])
        if "steps" not in value:
            return workflow_by_hand([value])
        kept = ("goal", "status", "created_at", "completed_at", "owner", "can_modify")
        steps = tuple(map(_step, value["steps"]))
        return Workflow(**{key: value[key] for key in kept if key in value}, steps=steps)
    return Workflow(steps=tuple(map(_step, value)))


def _step(fields: dict[str, Any]) -> WorkflowStep:
    """One step of any of the three forms."""
    said = {name: each for name, each in fields.items() if each is not None}
    said["step_id"] = str(said["step_id"])
    tool = said.pop("tool", None)
    if tool is not None:
        said |= {"type": "tool", "name": tool}
    if "parameters" in said:
        said["inputs"] = said.pop("parameters")
    said["depends_on"] = tuple(map(str, said.pop("dependencies", said.get("depends_on", ()))))
    for name in ("outputs", "output_path"):
        if said.get(name) is not None:
            said[name] = tuple(said[name])
    return WorkflowStep(**said)

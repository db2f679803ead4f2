"""The callables of steps: tools, handlers and agents, each as a Tool."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from inspect import Parameter
from typing import Any

import attrs

from planning.errors import show, suggestion
from planning.tools.context import ToolContext
from planning.tools.errors import ErrorKind
from planning.tools.parameters.signature import is_of_type, read_signature
from planning.tools.tool import Tool, ToolSpec
from planning.workflow.capabilities import Capabilities, called_by_steps
from planning.workflow.failures import StepFailed
from planning.workflow.model import Workflow, WorkflowStep
from session.events import SessionId
from session.json_form import json_form


def without_arguments(
    workflow: Workflow, is_private: Callable[[WorkflowStep], bool], session_id: SessionId
) -> Workflow:
    """A workflow as a store may have it: a fingerprint in place of the inputs of steps with private data.

    The fingerprint shows that a step was changed. It says nothing of the inputs to a reader who cannot guess
    them.
    """

    def fingerprint(step: WorkflowStep) -> str:
        text = json.dumps([str(session_id), step.step_id, json_form(step.inputs)], sort_keys=True)
        return blake2b(text.encode(), digest_size=16).hexdigest()

    steps = [
        replace(step, inputs={"withheld": fingerprint(step)}) if step.inputs and is_private(step) else step
        for step in workflow.steps
    ]
    return replace(workflow, steps=tuple(steps))


def kept_private(tool: Tool) -> Tool:
    """A tool that is given private data of other steps: what it makes of them is not stored either.

    Raises:
        StepFailed: It keeps what it is given in the session.
    """
    if tool.publishes != "call":
        raise StepFailed(
            f"{tool.name} keeps its inputs in the session, and these are private, which the session's store "
            "must not have; give it other inputs",
            ErrorKind.PARAMETER,
        )
    return attrs.evolve(tool, returns_private_data=True)


_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


@attrs.frozen
class Callables:
    """Finds what a step calls, and makes a Tool of it once."""

    _capabilities: Capabilities
    _found: dict[tuple[str, str, float | None], Tool] = attrs.field(factory=dict)

    def find(self, step: WorkflowStep) -> Tool | None:
        """The tool that a step calls; None for a thinking step.

        Raises:
            StepFailed: It does not exist, or only its name is known.
        """
        kind, name = ("agent", step.agent) if step.agent is not None else (step.type, step.name)
        if kind is None or name is None:
            return None
        key = (kind, name, step.timeout)
        tool = self._found.get(key)
        if tool is None:
            tool = self._tool(kind, name)
            if step.timeout is not None:
                tool = attrs.evolve(tool, timeout=step.timeout)
            self._found[key] = tool
        return tool

    def _tool(self, kind: str, name: str) -> Tool:
        known: Mapping[str, Any] = getattr(self._capabilities, f"{kind}s") or {}
        what = known.get(name)
        if name not in known:
            hint = suggestion(name, known, f"{kind}s")
            raise StepFailed(f"no {kind} is named {show(name)}; {hint}", ErrorKind.UNKNOWN_TOOL)
        if what is None:
            message = f"only the name of {kind} {show(name)} is known; give Capabilities the {kind} itself"
            raise StepFailed(message, ErrorKind.UNKNOWN_TOOL)
        return what if isinstance(what, Tool) else called_by_steps(name, what)


def key_of(step: WorkflowStep, tool: Tool | None) -> str | None:
    """The key under which a step's output is stored; None where it is not stored."""
    if step.expected_key is not None or tool is None or not isinstance(tool.parameters, ToolSpec):
        return step.expected_key
    return tool.parameters.output_key or None


def task_of(step: WorkflowStep, tool: Tool) -> dict[str, Any]:
    """The inputs of a step that has none: for an agent, the step's description as its one parameter."""
    if step.agent is None or tool.parameters is not None:
        return {}
    parameters = read_signature(tool.function).parameters.values()
    required = [
        each.name
        for each in parameters
        if each.default is each.empty
        and each.kind in _NAMED
        and not is_of_type(tool.function, each.name, ToolContext)
    ]
    return {required[0]: step.description} if len(required) == 1 else {}

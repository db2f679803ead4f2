"""What a store must not get of a run: the arguments and results of tools with private data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b

import attrs

from planning.tools.errors import ErrorKind
from planning.tools.result import plain
from planning.tools.tool import Tool
from planning.workflow.failures import StepFailed
from planning.workflow.model import Workflow, WorkflowStep
from session.events import SessionId


def without_arguments(
    workflow: Workflow, is_private: Callable[[WorkflowStep], bool], session_id: SessionId
) -> Workflow:
    """A workflow as a store may have it: a fingerprint in place of the inputs of steps with private data.

    The fingerprint shows that a step was changed. It says nothing of the inputs to a reader who cannot guess
    them.

    Args:
        workflow: The workflow.
        is_private: Whether a step's tool has private data.
        session_id: The session: fingerprints in two sessions differ.
    """

    def fingerprint(step: WorkflowStep) -> str:
        text = json.dumps([str(session_id), step.step_id, plain(step.inputs)], sort_keys=True)
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

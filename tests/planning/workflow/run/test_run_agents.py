"""Agents without inputs: their task is what the step is for."""

from __future__ import annotations

from typing import Any

import pytest

from planning.tools import ToolContext
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow


def asked(agent: Any, **inputs: Any) -> Any:
    step = WorkflowStep(step_id="a", description="Find it ${out}", agent="researcher", inputs=inputs)
    result = run_workflow(Workflow(steps=(step,)), Capabilities(agents={"researcher": agent}))
    return result.outputs.get("a", result.errors.get("a"))


def with_context(task: str, context: ToolContext, *, tone: str = "calm") -> str:
    return f"{task} {tone} {context.values['step_id']}"


@pytest.mark.parametrize(
    ("agent", "given"),
    [
        (lambda task: task, "Find it ${out}"),
        (with_context, "Find it ${out} calm a"),
        (lambda **more: more, {}),
        (lambda task="nothing": task, "nothing"),
        (lambda inputs: inputs, {}),
    ],
)
def test_an_agent_without_inputs_is_given_its_task(agent: Any, given: Any) -> None:
    assert asked(agent) == given


def test_an_agent_with_inputs_is_given_those() -> None:
    assert asked(lambda task: task, task="Another") == "Another"

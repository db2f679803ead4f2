"""The workflow: the content of a plan document in any format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

StepType = Literal["tool", "handler"]
WorkflowStatus = Literal["pending", "in_progress", "completed", "failed"]
OnFailure = Literal["fail", "skip_dependents", "continue"]


@dataclass(slots=True, frozen=True, kw_only=True)
class WorkflowStep:
    """One step: what is called, with which inputs, after which other steps.

    A step names a tool or a handler, or an agent, or nothing: then it is a thinking step, whose
    description is all there is.

    Attributes:
        step_id: Its id, unique in the workflow.
        description: What it is for.
        type: Whether ``name`` is a tool's or a handler's; None for an agent's or a thinking step.
        name: The tool or handler that is called.
        agent: The agent that is called.
        inputs: What it is called with; strings in it may refer to other steps' outputs.
        outputs: The fields that its output is expected to have; None where the step does not declare them.
        depends_on: The ids of the steps that must be done before.
        expected_key: The key in the memory under which its output is kept.
        output_path: The path to the value within its output that is kept.
        done_check: A condition on the memory; when it is true, the step is skipped.
        timeout: The seconds after which an attempt times out; None for the timeout of the tool or the run.
        retries: How often it is tried again after a failure that may pass by itself.
        on_failure: What its failure means: ``fail``, the workflow fails and what depends on the step does
            not run; ``skip_dependents``, what depends on it is skipped; ``continue``, what depends on it
            runs without its output. With the last two the workflow may complete nevertheless.
        status: Its status.
        completed_at: When it was completed, as ISO 8601.
        skipped: Whether it was skipped.
    """

    step_id: str
    description: str
    type: StepType | None = None
    name: str | None = None
    agent: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    outputs: tuple[str, ...] | None = None
    depends_on: tuple[str, ...] = ()
    expected_key: str | None = None
    output_path: tuple[str, ...] | None = None
    done_check: str | None = None
    timeout: float | None = None
    retries: int = 0
    on_failure: OnFailure = "fail"
    status: WorkflowStatus = "pending"
    completed_at: str | None = None
    skipped: bool = False


@dataclass(slots=True, frozen=True, kw_only=True)
class Workflow:
    """Steps that call tools, handlers and agents, with their dependencies, and what they are for.

    Attributes:
        goal: What the steps are for; empty where the document has none.
        steps: In the order of the document.
        status: Its status.
        created_at: When it was made, as ISO 8601.
        completed_at: When it was completed.
        owner: Who made it.
        can_modify: Whether its steps may be edited.
    """

    goal: str = ""
    steps: tuple[WorkflowStep, ...] = ()
    status: WorkflowStatus = "pending"
    created_at: str | None = None
    completed_at: str | None = None
    owner: str = "agent"
    can_modify: bool = True

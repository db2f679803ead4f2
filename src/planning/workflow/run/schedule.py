"""The graph of a workflow that can be run: its steps are possible, and in no cycle."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from planning.errors import show, unknown_option
from planning.graph import Graph, written
from planning.tools.contract import check_timeout
from planning.workflow.failures import WorkflowError
from planning.workflow.model import OnFailure, StepType, Workflow, WorkflowStep

_ON_FAILURE = get_args(OnFailure)
_TYPES = get_args(StepType)


def schedule_of(workflow: Workflow) -> Graph[str]:
    """The steps, to be handed out when those that they depend on are done.

    Raises:
        WorkflowError: Two steps have the same id, a step depends on one that does not exist, steps depend
            on each other in a cycle, or a step is impossible.
    """
    for step in workflow.steps:
        _check_step(step)
    ids = [step.step_id for step in workflow.steps]
    known = set(ids)
    if len(known) < len(ids):
        twice = next(step_id for step_id, count in Counter(ids).items() if count > 1)
        raise WorkflowError(f"two steps have the id {show(twice)}; give each its own id")
    for step in workflow.steps:
        for other in step.depends_on:
            if other not in known:
                raise WorkflowError(
                    f"step {show(step.step_id)} depends on {show(other)}, which does not exist; add that "
                    "step, or remove the dependency"
                )
    graph = Graph({step.step_id: step.depends_on for step in workflow.steps})
    if graph.cycle:
        shown = written([show(step_id)[1:-1] for step_id in graph.cycle])
        raise WorkflowError(f"the steps depend on each other in a cycle: {shown}; remove one dependency")
    return graph


def _check_step(step: WorkflowStep) -> None:
    """Refuse mistakes that a workflow in Python code can hold and a document cannot."""
    if step.type is not None and step.type not in _TYPES:
        problem = unknown_option(step.type, _TYPES)
    elif (step.type is None) is not (step.name is None):
        problem = "type and name belong together: give both, or neither"
    elif step.name is not None and step.agent is not None:
        problem = f"it names the {step.type} {show(step.name)} and the agent {show(step.agent)}; keep one"
    elif step.inputs and step.name is None and step.agent is None:
        problem = "it has inputs and calls nothing; name its tool, handler or agent, or remove the inputs"
    elif step.on_failure not in _ON_FAILURE:
        problem = unknown_option(step.on_failure, _ON_FAILURE)
    elif type(step.retries) is not int or step.retries < 0:
        problem = f"retries must be a whole number of at least 0, got {step.retries!r}"
    elif step.timeout is not None:
        try:
            check_timeout(step.timeout)
        except ValueError as error:
            problem = str(error)
        else:
            return
    else:
        return
    raise WorkflowError(f"step {show(step.step_id)}: {problem}")

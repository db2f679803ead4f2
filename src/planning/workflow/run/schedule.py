"""The order of steps: which are ready, and which are blocked by a failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import get_args

from planning.errors import show, unknown_option
from planning.tools.contract import check_timeout
from planning.workflow.failures import WorkflowError
from planning.workflow.model import OnFailure, StepType, Workflow, WorkflowStep

_LISTED = 8
_ON_FAILURE = get_args(OnFailure)
_TYPES = get_args(StepType)


class Schedule:
    """Hands out the steps whose dependencies are done, in the order of the document."""

    def __init__(self, workflow: Workflow) -> None:
        """Take the steps.

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
        self._dependents: dict[str, list[str]] = {}
        self._waits = {step.step_id: len(step.depends_on) for step in workflow.steps}  # for so many steps
        for step in workflow.steps:
            for other in step.depends_on:
                if other not in known:
                    raise WorkflowError(
                        f"step {show(step.step_id)} depends on {show(other)}, which does not exist; add that "
                        "step, or remove the dependency"
                    )
                self._dependents.setdefault(other, []).append(step.step_id)
        self._found = [step_id for step_id, count in self._waits.items() if not count]
        self._out: set[str] = set()
        if self._dependents:
            _check_order(workflow)

    def ready(self) -> list[str]:
        """The steps that have become ready since the last time."""
        found, self._found = self._found, []
        self._out.update(found)
        return found

    def done(self, step_id: str) -> None:
        """A step is done, or what depends on it runs without it.

        Raises:
            KeyError: It was not ready yet, or is done.
        """
        self._out.remove(step_id)
        for other in self._dependents.get(step_id, ()):
            self._waits[other] -= 1
            if not self._waits[other]:
                self._found.append(other)

    def behind(self, step_id: str) -> Iterable[str]:
        """All steps that depend on one, also through others, each once and nearest first."""
        found = dict.fromkeys(self._dependents.get(step_id, ()))
        todo = list(found)
        for each in todo:
            for other in self._dependents.get(each, ()):
                if other not in found:
                    found[other] = None
                    todo.append(other)
        return todo


def _check_order(workflow: Workflow) -> None:
    """Refuse steps that depend on each other in a cycle."""
    try:
        TopologicalSorter({step.step_id: step.depends_on for step in workflow.steps}).prepare()
    except CycleError as error:
        raise WorkflowError(
            f"the steps depend on each other in a cycle: {_spell(error.args[1][::-1])}; remove one dependency"
        ) from None


def _spell(cycle: Sequence[str]) -> str:
    """A cycle of steps as text; of a long one only its ends."""
    names = [show(step_id)[1:-1] for step_id in cycle]
    if len(names) > _LISTED:
        names = [*names[: _LISTED - 2], f"... ({len(names) - _LISTED} more)", *names[-2:]]
    return " -> ".join(names)


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

"""The values of a run: its memory and the outputs of its steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from planning.tools.tool import Tool
from planning.workflow.failures import StepFailed
from planning.workflow.model import WorkflowStep
from planning.workflow.run.callables import Callables, key_of
from planning.workflow.run.memory import MemoryItem, memory_of
from planning.workflow.values import MOST_BYTES, MOST_KEPT, Copier, keep, off_loop
from session import Session

__all__ = ["Known"]


class Known:
    """The values of a run.

    Attributes:
        memory: The newest value under each key, as of the last ``recall`` or ``store``.
        outputs: The output of each completed step, by its id.
        parts: For steps that did not run here and whose output is known only in part: the path within the
            output, and the value there.
        private: The steps whose outputs no message may show.
    """

    def __init__(self, session: Session, callables: Callables) -> None:
        """Start without values.

        Args:
            session: Where the memory is.
            callables: Finds the tools of steps.
        """
        self.memory: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}
        self.parts: dict[str, tuple[tuple[str, ...], Any]] = {}
        self.private: set[str] = set()
        self._session = session
        self._callables = callables
        self._recalled = 0
        self._stored = 0
        self._kept = 0
        self._uncounted: list[Any] = []

    async def take(self, output: Any, name: str) -> Any:
        """A copy of an output that nothing can change later; it counts as kept.

        Raises:
            StepFailed: The output or all that the run keeps is too large, or JSON cannot hold the output.
        """
        while self._uncounted:
            self._kept += await off_loop(partial(_size, self._uncounted.pop()))
        kept, size = await off_loop(partial(keep, output, name))
        if self._kept + size > MOST_KEPT:
            raise StepFailed(
                f"with the output of {name} the run would keep more than {MOST_KEPT // 1_000_000} MB; let "
                f"{name} store its data and return where it is",
                "too_large",
            )
        self._kept += size
        return kept

    def count(self, values: Iterable[Any]) -> None:
        """Count values that the session holds already as kept."""
        self._uncounted += values

    def store(self, key: str, value: Any) -> None:
        """Note a value that is about to be stored in the memory."""
        self.memory[key] = value
        self._stored += 1

    def recall(self) -> None:
        """Read what the run or other code has stored in the memory since the last time.

        Call it when every change is written.
        """
        items = self._session.select_all(MemoryItem)
        if len(items) < self._recalled + self._stored:  # rolled back
            self.memory.clear()
            self._recalled = 0
        self.memory.update(memory_of(items[self._recalled :]))
        self._recalled, self._stored = len(items), 0

    def keep(self, step: WorkflowStep, output: Any) -> None:
        """Keep the output of a step that does not run now."""
        self.count([output])
        self.outputs[step.step_id] = output
        if self.is_private(step):
            self.private.add(step.step_id)

    def remember(self, step: WorkflowStep, memory: Mapping[str, Any]) -> None:
        """Keep what a memory holds of the output of a step that does not run now."""
        key = key_of(step, self.tool_of(step))
        if key is None or key not in memory:
            return
        if step.output_path:
            self.count([memory[key]])
            self.parts[step.step_id] = (step.output_path, memory[key])
            if self.is_private(step):
                self.private.add(step.step_id)
        else:
            self.keep(step, memory[key])

    def remember_all(self, done: Mapping[str, tuple[WorkflowStep, str]]) -> None:
        """Keep what the memory held of the outputs of completed steps when they were completed.

        Args:
            done: By step id, the step and the time of its record. Another step may have stored another
                value under the same key since.
        """
        memory: dict[str, Any] = {}
        for item in self._session.select_all(MemoryItem):
            memory.update(memory_of([item]))
            step, at = done.get(item.step_id or "", (None, ""))
            if step is not None and item.created_at <= at:
                self.remember(step, memory)

    def is_private(self, step: WorkflowStep) -> bool:
        """Whether a step's tool has private data."""
        tool = self.tool_of(step)
        return tool is not None and tool.returns_private_data

    def tool_of(self, step: WorkflowStep) -> Tool | None:
        """The tool that a step calls; None where it calls nothing, or the tool does not exist."""
        try:
            return self._callables.find(step)
        except StepFailed:
            return None


def _size(value: Any, most: int) -> int:
    """How many bytes a kept value takes; the maximum where it cannot be measured."""
    copier = Copier("", "", most=most)
    try:
        copier.copy(value)
    except StepFailed:
        if most < MOST_BYTES:
            raise
        return most
    return copier.spent

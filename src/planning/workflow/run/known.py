"""What a run knows: the memory, and what its steps gave."""

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
    """What a run knows.

    Attributes:
        memory: The newest value under each key, as of the last look.
        outputs: What each step gave that is done, by its id.
        parts: Of steps that did not run here, whose output is known only in part: the path within the
            output, and the value there.
        private: The steps of whose outputs nothing is told.
    """

    def __init__(self, session: Session, callables: Callables) -> None:
        """Know nothing yet."""
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
        """A copy of an output that nothing can change later, which counts as kept.

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
        """Let what the session holds already count as kept."""
        self._uncounted += values

    def store(self, key: str, value: Any) -> None:
        """Take what is being stored in the memory."""
        self.memory[key] = value
        self._stored += 1

    def recall(self) -> None:
        """Look at what was stored in the memory since the last time, by whomever; nothing waits to be."""
        items = self._session.select_all(MemoryItem)
        if len(items) < self._recalled + self._stored:  # rolled back
            self.memory.clear()
            self._recalled = 0
        self.memory.update(memory_of(items[self._recalled :]))
        self._recalled, self._stored = len(items), 0

    def keep(self, step: WorkflowStep, output: Any) -> None:
        """Keep what a step gave that is not run now."""
        self.count([output])
        self.outputs[step.step_id] = output
        if self.is_private(step):
            self.private.add(step.step_id)

    def remember(self, step: WorkflowStep, memory: Mapping[str, Any]) -> None:
        """Keep of a step that is not run what a memory has of its output: no more than was stored."""
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
        """Keep of steps that were done before what the memory held of them at that time.

        Args:
            done: By step id, the step and the time of its record. Another step may have stored something
                else under its key since.
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
        """What a step calls; None where that is nothing, or does not exist."""
        try:
            return self._callables.find(step)
        except StepFailed:
            return None


def _size(value: Any, most: int) -> int:
    """How many bytes a value takes that was kept before; the most where it cannot be found out."""
    copier = Copier("", "", most=most)
    try:
        copier.copy(value)
    except StepFailed:
        if most < MOST_BYTES:
            raise
        return most
    return copier.spent

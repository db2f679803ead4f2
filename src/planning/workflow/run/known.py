"""The values of a run: its memory and the outputs of its steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import attrs

from planning.tools.tool import Tool
from planning.workflow.failures import StepFailed
from planning.workflow.model import WorkflowStep
from planning.workflow.run.callables import Callables, key_of
from planning.workflow.run.memory import MemoryItem, take_item
from planning.workflow.values import MOST_KEPT, keep, off_loop


@attrs.define
class Known:
    """The values of a run, which so far keeps so many bytes.

    Attributes:
        callables: Finds the tools of steps.
        memory: The newest value under each key, as of the last ``recall`` or ``store``.
        outputs: The output of each completed step, by its id.
        parts: For steps that did not run here and whose output is known only in part: the path within the
            output, and the value there.
        private: The steps whose outputs no message may show, and no store may keep.
        private_keys: The keys of the memory whose values no store may keep.
    """

    callables: Callables
    _kept: int
    memory: dict[str, Any] = attrs.field(factory=dict)
    outputs: dict[str, Any] = attrs.field(factory=dict)
    parts: dict[str, tuple[tuple[str, ...], Any]] = attrs.field(factory=dict)
    private: set[str] = attrs.field(factory=set)
    private_keys: set[str] = attrs.field(factory=set)
    _recalled: int = 0
    _withheld: dict[str, tuple[str, Any]] = attrs.field(factory=dict)

    async def take(self, output: Any, name: str) -> Any:
        """A copy of an output that nothing can change later; it counts as kept.

        Raises:
            StepFailed: The output or all that the run keeps is too large, or JSON cannot hold the output.
        """
        kept, size = await off_loop(keep, output, name)
        if self._kept + size > MOST_KEPT:
            raise StepFailed(
                f"with the output of {name} the run would keep more than {MOST_KEPT // 1_000_000} MB; let "
                f"{name} store its data and return where it is",
                "too_large",
            )
        self._kept += size
        return kept

    def store(self, item: MemoryItem, value: Any) -> None:
        """Note a value that is about to be stored in the memory, or withheld from it."""
        if item.type == "step_withheld":
            self._withheld[item.key or ""] = item.created_at, value
        self._take(item)

    def recall(self, items: tuple[MemoryItem, ...], waiting: Iterable[MemoryItem | None] = ()) -> None:
        """Take over what the run or other code has stored in the memory since the last time.

        Args:
            items: All that the session's memory has.
            waiting: What the run has noted and not written yet.
        """
        if len(items) < self._recalled:  # rolled back
            self.memory.clear()
            self._recalled = 0
        for item in (*items[self._recalled :], *waiting):
            if item is not None:
                self._take(item)
        self._recalled = len(items)

    def _take(self, item: MemoryItem) -> None:
        take_item(self.memory, item)
        if item.key is None or item.type == "step_skipped":
            return
        self.private_keys.discard(item.key)
        at, value = self._withheld.get(item.key, ("", None))
        if item.type == "step_withheld" and item.created_at == at:  # this process has its value
            self.memory[item.key] = value
            self.private_keys.add(item.key)

    def keep(self, step: WorkflowStep, output: Any) -> None:
        """Keep the output of a step that does not run now; it counts as kept."""
        with suppress(StepFailed):  # it was kept before
            self._kept += keep(output, step.step_id)[1]
        self.outputs[step.step_id] = output
        if self.is_private(step):
            self.private.add(step.step_id)

    def remember(self, step: WorkflowStep, memory: Mapping[str, Any]) -> None:
        """Keep what a memory holds of the output of a step that does not run now."""
        key = key_of(step, self.tool_of(step))
        if key is None or key not in memory:
            return
        if step.output_path:
            self.parts[step.step_id] = (step.output_path, memory[key])
            if self.is_private(step):
                self.private.add(step.step_id)
        else:
            self.keep(step, memory[key])

    def remember_all(self, done: Mapping[str, tuple[WorkflowStep, str]], items: Iterable[MemoryItem]) -> None:
        """Keep what the memory held of the outputs of completed steps at the times of their records.

        Another step may have stored another value under the same key since.
        """
        memory: dict[str, Any] = {}
        for item in items:
            take_item(memory, item)
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
            return self.callables.find(step)
        except StepFailed:
            return None

"""The values of a run: its memory and the outputs of its steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from planning.tools.tool import Tool
from planning.workflow.failures import StepFailed
from planning.workflow.model import WorkflowStep
from planning.workflow.run.callables import Callables, key_of
from planning.workflow.run.memory import MemoryItem, PrivateValue, take_item
from planning.workflow.values import MOST_BYTES, MOST_KEPT, Meter, keep, off_loop
from session import Session

__all__ = ["Known"]


class Known:
    """The values of a run.

    Attributes:
        callables: Finds the tools of steps.
        memory: The newest value under each key, as of the last ``recall`` or ``store``.
        outputs: The output of each completed step, by its id.
        parts: For steps that did not run here and whose output is known only in part: the path within the
            output, and the value there.
        private: The steps whose outputs no message may show, and no store may keep.
        private_keys: The keys of the memory whose values no store may keep.
    """

    def __init__(self, session: Session, callables: Callables) -> None:
        """Start without values."""
        self.memory: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}
        self.parts: dict[str, tuple[tuple[str, ...], Any]] = {}
        self.private: set[str] = set()
        self.private_keys: set[str] = set()
        self._session = session
        self.callables = callables
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

    def store(self, key: str, value: Any, *, is_withheld: bool = False) -> None:
        """Note a value that is about to be stored in the memory."""
        self._note(key, value, is_withheld=is_withheld)
        self._stored += 1

    def recall(self, items: tuple[MemoryItem, ...], waiting: Sequence[MemoryItem] = ()) -> None:
        """Take over what the run or other code has stored in the memory since the last time.

        Args:
            items: All that the session's memory has.
            waiting: What the run has noted and not written yet.
        """
        unwritten = [
            (item.key, self.memory[item.key], item.type == "step_withheld")
            for item in waiting
            if item.key is not None and item.type != "step_skipped"
        ]
        if len(items) < self._recalled + self._stored - len(unwritten):  # rolled back
            self.memory.clear()
            self.private_keys.clear()
            self._recalled = 0
        for item in items[self._recalled :]:
            self._take_over(item)
        for key, value, is_withheld in unwritten:
            self._note(key, value, is_withheld=is_withheld)
        self._recalled, self._stored = len(items), len(unwritten)

    def _take_over(self, item: MemoryItem) -> None:
        private = self._private_value(item)
        if private is not None:
            self._note(private.key, private.value, is_withheld=True)
            return
        take_item(self.memory, item)
        if item.type != "step_skipped":
            self.private_keys.discard(item.key or "")

    def _private_value(self, item: MemoryItem) -> PrivateValue | None:
        """The value of an entry that is withheld, where this process has it."""
        kept = self._session.select_all(PrivateValue) if item.type == "step_withheld" else ()
        return next(
            (each for each in kept if (each.key, each.created_at) == (item.key, item.created_at)), None
        )

    def _note(self, key: str, value: Any, *, is_withheld: bool) -> None:
        self.memory[key] = value
        if is_withheld:
            self.private_keys.add(key)
        else:
            self.private_keys.discard(key)

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
        """Keep what the memory held of the outputs of completed steps at the times of their records.

        Another step may have stored another value under the same key since.
        """
        memory: dict[str, Any] = {}
        for item in self._session.select_all(MemoryItem):
            take_item(memory, item)
            private = self._private_value(item)
            if private is not None:
                memory[private.key] = private.value
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


def _size(value: Any, most: int) -> int:
    """How many bytes a kept value takes; the maximum where it cannot be measured."""
    meter = Meter("", "", most)
    try:
        meter.copy(value)
    except StepFailed:
        if most < MOST_BYTES:
            raise
        return most
    return meter.spent

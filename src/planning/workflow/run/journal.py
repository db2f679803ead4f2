"""The journal: changes of steps on their way into the session, those of one moment in one transaction.

A transaction and a copy of the plan for each change of each step would be most of what a short step
costs. So changes wait for each other, until the event loop gets its turn or a millisecond has passed,
whichever comes first; whatever must be seen before it goes on has them written at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

from planning.model import StepStatus
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.mirror import RunMirror, StepMark
from planning.workflow.run.records import StepChanged, StepRecord, now
from session import Session
from session.events import SessionEvent

__all__ = ["Change", "Journal"]

_LONGEST = 0.001
"""How many seconds a change waits at most while steps go on."""


class Change(NamedTuple):
    """A change of a step.

    Attributes:
        record: What the step is now.
        mark: Its status in the plan; None where that stays.
        note: What to say of it there.
        item: What it stores in the memory.
    """

    record: StepRecord
    mark: StepStatus | None
    note: str | None = None
    item: MemoryItem | None = None


_Waiting = Change | Callable[[], Change] | SessionEvent


_heard_by_nobody: Callable[[BaseException], None] = lambda _error: None  # noqa: E731 - the run is over: it has its own


class Journal:
    """Writes changes into the session.

    Attributes:
        turns: How often it was written: who sees that go up lets the event loop have its turn.
        failed: Told why it could not be written in its turn: the run cannot go on.
    """

    def __init__(self, session: Session, mirror: RunMirror) -> None:
        """Begin one, for a run in the running event loop."""
        self.turns = 0
        self.failed: Callable[[BaseException], object] = _heard_by_nobody
        self._session = session
        self._mirror = mirror
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Waiting | None] = []
        self._begun: dict[str, int] = {}
        self._since = 0.0
        self._now = ""

    def now(self) -> str:
        """The time, as ISO 8601 in UTC; of changes that are written together the same."""
        if not self._waiting:
            self._now = now()
        return self._now

    def tell(self, event: SessionEvent) -> None:
        """Publish an event behind the changes that wait."""
        self._add(event)

    def begin(self, step_id: str, change: Callable[[], Change]) -> None:
        """A step begins.

        Args:
            step_id: Which.
            change: Makes the change: it is left out when the step ends before anybody could have seen it.
        """
        self._add(change)
        if self._waiting:
            self._begun[step_id] = len(self._waiting) - 1

    def change(self, change: Change) -> None:
        """Take a change."""
        begun = self._begun.pop(change.record.step_id, None)
        if begun is not None:
            self._waiting[begun] = None
        self._add(change)

    def write(self) -> None:
        """Write what waits, as one transaction."""
        waiting = self._waiting
        if not waiting:
            return
        self._waiting = []
        self._begun.clear()
        self.turns += 1
        session_id = self._session.session_id
        marks = list[StepMark]()
        with self._session.transaction() as transaction:
            for each in waiting:
                if each is None:
                    continue
                if not isinstance(each, SessionEvent):
                    record, mark, note, item = each if isinstance(each, Change) else each()
                    transaction.publish(StepChanged(record, session_id=session_id))
                    if item is not None:
                        transaction.dispatch(item)
                    if mark is not None:
                        marks.append((record.step_id, mark, note))
                else:
                    transaction.publish(each)
            self._mirror.mark(transaction, marks)

    def _add(self, each: _Waiting) -> None:
        if not self._waiting:
            self._since = perf_counter()
            self._loop.call_soon(self._turn)
        self._waiting.append(each)
        if perf_counter() - self._since > _LONGEST:
            self.write()

    def _turn(self) -> None:
        try:
            self.write()
        except BaseException as error:  # noqa: BLE001 - the run raises it; the loop would only log it
            self.failed(error)

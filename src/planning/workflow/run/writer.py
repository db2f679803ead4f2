"""Writes the changes of a run into its session: in order, and those of one moment as one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from planning.workflow.failures import WorkflowError
from planning.workflow.run.memory import MemoryItem, PrivateValue
from planning.workflow.run.mirror import RunMirror, StepMark
from planning.workflow.run.private import storable
from planning.workflow.run.records import WorkflowRun
from session import Session
from session.events import SessionEvent

__all__ = ["Waiting", "Writer", "to_the_end"]

T = TypeVar("T")

_TAKEN = (
    "another caller has resumed this run, or the session was rewound to before it began; it stopped here, "
    "and the session has what it did until then"
)


Recall = Callable[[tuple[MemoryItem, ...], Sequence[MemoryItem]], None]


class Waiting(NamedTuple):
    """A change that is not written yet.

    Attributes:
        event: What is published.
        item: What the memory gets.
        private: The value of that, where the session's store must not have it.
        mark: What the plan shows.
    """

    event: SessionEvent
    item: MemoryItem | None = None
    private: PrivateValue | None = None
    mark: StepMark | None = None


class Writer:
    """Writes the changes of one run.

    In memory they are written at once. In a stored session that is done off the event loop, one transaction
    after the other, each with all that waits when it begins; nothing cuts it short.
    """

    def __init__(self, session: Session, mirror: RunMirror, run: WorkflowRun) -> None:
        """Begin with nothing to write; the run's record has its token until another caller resumes it."""
        self._session = session
        self._mirror = mirror
        self._run = run
        self.is_stored = session.store is not None
        self._waiting: list[Waiting] = []
        self._batch: list[Waiting] = []  # what is being written
        self._writing: asyncio.Task[None] | None = None
        self._written = 0

    def add(self, change: Waiting) -> None:
        """Let a change wait to be written."""
        self._waiting.append(change)

    def tell(self, event: SessionEvent) -> None:
        """Publish an event behind the changes that wait."""
        self.add(Waiting(storable(event) if self.is_stored else event))

    def discard(self) -> None:
        """Forget what waits: the session refused it."""
        self._written += len(self._waiting)
        self._waiting = []

    def put(self) -> None:
        """Write what waits, here and now. When the session refuses it, it still waits."""
        if self._waiting:
            self._put(self._waiting)
            self._waiting = []

    async def write(self) -> None:
        """Wait until all changes made so far are written. When the session refuses them, they still wait."""
        if not self.is_stored:
            self.put()
            return
        made = self._written + len(self._batch) + len(self._waiting)
        while self._written < made:
            await asyncio.shield(self._flush())

    async def written(self) -> None:
        """The same, together with what other steps change in the same turn of the event loop."""
        waiting = self._waiting
        await asyncio.sleep(0)
        if self.is_stored or waiting is self._waiting:  # else another step has written it
            await self.write()

    async def recall(self, take: Recall) -> None:
        """Write what waits, and give ``take`` all entries of the memory, and those that wait by then."""
        await self.write()
        while self._writing is not None and not self._writing.done():
            await asyncio.shield(self._writing)
        waiting = [change.item for change in self._waiting if change.item is not None]
        take(self._session.select_all(MemoryItem), waiting)

    def _flush(self) -> asyncio.Task[None]:
        """The task that writes; a new one where nothing is being written."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write_waiting())
            self._writing.add_done_callback(_forget_error)
        return self._writing

    async def _write_waiting(self) -> None:
        self._batch, self._waiting = self._waiting, []
        try:
            await self._session.off_loop(partial(self._put, self._batch))
        except BaseException:
            self._waiting = [*self._batch, *self._waiting]
            raise
        else:
            self._written += len(self._batch)
        finally:
            self._batch = []

    def _put(self, changes: list[Waiting]) -> None:
        with self._session.transaction() as transaction:
            self.require_token()
            for event, item, private, _ in changes:
                transaction.publish(event)
                if item is not None:
                    transaction.dispatch(item)
                if private is not None:
                    transaction.dispatch(private)
            self._mirror.mark(transaction, [each.mark for each in changes if each.mark is not None])

    def require_token(self) -> None:
        """Refuse to write into a run that another caller has resumed; within an open transaction.

        Raises:
            WorkflowError: One has, or the session was rewound to before this one began.
        """
        run = self._run
        if all(
            (each.run_id, each.token) != (run.run_id, run.token)
            for each in self._session.select_all(WorkflowRun)
        ):
            raise WorkflowError(_TAKEN)


def _forget_error(task: asyncio.Task[None]) -> None:
    """Let asyncio know that the error of a write is known: those who wait for it raise it."""
    if not task.cancelled():
        task.exception()


async def to_the_end(session: Session, work: Coroutine[Any, Any, T]) -> T:
    """Wait for what is written in a store, which nothing may cut short.

    Raises:
        CancelledError: This task was cancelled meanwhile; the work is done.
    """
    if session.store is None:
        return await work
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()
        raise cancelled
    return task.result()

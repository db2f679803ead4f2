"""Writes the changes of a run into its session: in order, and those of one moment in one transaction."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Generator
from functools import partial
from typing import Any, TypeVar

import attrs

from planning.workflow.failures import WorkflowError
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.mirror import RunMirror, StepMark
from planning.workflow.run.records import WorkflowRun
from session import Session, ToolInvoked
from session.events import SessionEvent
from session.json_form import json_form

T = TypeVar("T")

_TAKEN = (
    "another caller has resumed this run, or the session was rewound to before it began; this caller "
    "stopped, and the session has its changes until then"
)


Waiting = tuple[SessionEvent, MemoryItem | None, StepMark | None]
"""A change that is not written yet: what is published, what the memory gets, and what the plan shows."""


class Writer:
    """Writes the changes of one run.

    In memory they are written at once. In a stored session that is done off the event loop, one transaction
    after the other, each with all that waits when it begins; nothing cuts it short.

    Attributes:
        is_stored: Whether the session has a store.
        waiting: The changes that are not written yet.
    """

    def __init__(self, session: Session, mirror: RunMirror, run: WorkflowRun) -> None:
        self._session = session
        self._mirror = mirror
        self._run = run
        self.is_stored = session.store is not None
        self.waiting: list[Waiting] = []
        self._storing: asyncio.Future[None] | None = None
        self._refusal: BaseException | None = None

    def tell(self, event: SessionEvent) -> None:
        """Publish an event behind the changes that wait."""
        if self.is_stored and isinstance(event, ToolInvoked):  # a store refuses values without a form in JSON
            event = attrs.evolve(event, params=json_form(event.params))
        self.waiting.append((event, None, None))

    def discard(self) -> None:
        """Forget what waits: the session refused it."""
        self.waiting = []
        self._refusal = None

    def put(self) -> None:
        """Write what waits, here and now. When the session refuses it, it still waits."""
        if self.waiting:
            self._put(self.waiting)
            self.waiting = []

    async def write(self) -> None:
        """Wait until all changes made so far are written. A store that refused some is not asked again."""
        if self.is_stored:
            await self._write(self.waiting)
        else:
            self.put()

    @types.coroutine
    def written(self) -> Generator[Any, Any, None]:
        """The same, together with what other steps change in the same turn of the event loop."""
        waiting = self.waiting
        yield  # as asyncio.sleep(0) does, and each step waits here
        if self.is_stored:
            yield from self._write(waiting).__await__()
        elif waiting is self.waiting:
            self.put()

    async def _write(self, waiting: list[Waiting]) -> None:
        """Wait until changes are in the store; where another list waits now, another step does that."""
        # A lock that an exception reaches between two lines may stay locked.
        while self._storing is not None and not self._storing.done():
            await asyncio.wait([self._storing])
        if self._refusal is not None:
            raise self._refusal
        if waiting and waiting is self.waiting:
            self._storing = asyncio.ensure_future(self._store())
            await to_the_end(self._session, self._storing)

    async def _store(self) -> None:
        changes, self.waiting = self.waiting, []
        try:
            await self._session.run_in_worker(partial(self._put, changes))
        except BaseException as error:
            self._refusal = error
            raise

    def _put(self, changes: list[Waiting]) -> None:
        with self._session.transaction() as transaction:
            self.require_token()
            for event, item, _ in changes:
                transaction.publish(event)
                if item is not None:
                    transaction.dispatch(item)
            self._mirror.mark(transaction, [mark for _, _, mark in changes if mark is not None])

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


async def to_the_end(session: Session, work: Awaitable[T]) -> T:
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

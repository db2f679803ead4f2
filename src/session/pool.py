"""One bounded pool of threads, for the work of all stored sessions of a process.

Each session has a lane, whose work is done in order. Lanes with work take turns, a piece each.
"""

from __future__ import annotations

import _thread
import asyncio
import os
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from contextvars import Context, copy_context
from math import inf
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

import attrs

from session.errors import StoreError
from session.locks import ProcessLock

T = TypeVar("T")

_AT_WORK = max(2, min(4, os.cpu_count() or 2))
"""The most threads that work at a time. More of them hold up the event loop, and do no more a second."""
_MOST = 32
"""The most threads, with those that are held up: as many as asyncio's own pool has at most."""
_HELD_UP = 0.05
"""The seconds after which a thread counts as held up, as by a lock: then another works in its place."""
_IDLE = 10.0
"""The seconds after which a thread without work ends."""


@attrs.define(eq=False)
class _Work:
    """A call that a thread makes."""

    loop: asyncio.AbstractEventLoop
    context: Context
    function: Callable[[], Any]
    state: str = "waiting"  # then "dropped", or "begun" and "over"; all but the last under the guard
    result: Any = None
    error: BaseException | None = None
    waiter: asyncio.Future[None] | None = None

    def make(self) -> None:
        """Make the call; in a thread of the pool."""
        try:
            self.result = self.context.run(self.function)
        except BaseException as error:  # noqa: BLE001 - it is raised where the function was called
            self.error = error
        with suppress(RuntimeError):  # the loop is closed: no task waits
            self.loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self.state = "over"
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def ended(self) -> None:
        """Wait until the call is over."""
        while self.state != "over":
            self.waiter = self.loop.create_future()
            await self.waiter


class Pool(ProcessLock):
    """Threads that do the work of lanes. A forked child has none of them, and starts its own."""

    __slots__ = ("_began", "_guard", "_lanes", "_ready")

    def __init__(self) -> None:
        super().__init__()
        self.forget_other_threads()

    def forget_other_threads(self) -> None:
        """In a forked child nothing of this is at work."""
        self._guard = Lock()
        self._began: dict[object, float] = {}  # by thread: when its piece of work began; infinite without one
        self._lanes: dict[Hashable, deque[_Work]] = {}
        self._ready = SimpleQueue[Hashable]()  # the lanes with work that no thread does

    async def run(self, lane: Hashable, function: Callable[[], T]) -> T:
        """Call a function in a lane, with the caller's context variables.

        A call whose task is cancelled is not made if it has not begun. One that has begun is waited for,
        however often it is cancelled: when the cancelling arrives, it is over, and what it changed is there.

        Raises:
            StoreError: No thread can be started; the function is not called.
            Exception: Whatever the function raises.
        """
        work = _Work(asyncio.get_running_loop(), copy_context(), function)
        try:
            self._submit(lane, work)
            relief = self._relieve_later(work)
            try:
                await work.ended()
            except asyncio.CancelledError:
                if not self._drop(work):
                    await _whatever_comes(work)
                raise
            finally:
                relief.cancel()
        finally:
            self._drop(work)
        if work.error is not None:
            raise work.error
        result: T = work.result
        return result

    def _drop(self, work: _Work) -> bool:
        """Leave work undone, if it has not begun; returns whether it has not."""
        with self._guard:
            if work.state == "waiting":
                work.state = "dropped"
            return work.state == "dropped"

    def _relieve_later(self, work: _Work) -> asyncio.TimerHandle:
        return work.loop.call_later(_HELD_UP, self._relieve, work)

    def _relieve(self, work: _Work) -> None:
        """Start a thread if those at work are held up; again and again, until the work has begun."""
        if work.state == "waiting":
            with suppress(StoreError):  # it is tried again
                self._start()
            self._relieve_later(work)

    def _submit(self, lane: Hashable, work: _Work) -> None:
        with self._guard:
            known = self._lanes.get(lane)
            if known is None:
                self._lanes[lane] = deque([work])
                self._ready.put(lane)
            else:
                known.append(work)
        self._start()

    def _start(self) -> None:
        """Start a thread if there is work for one more."""
        with self._guard:
            if self._ready.empty() or not self._may_start():
                return
            me = object()
            self._began[me] = inf
        try:
            _thread.start_new_thread(self._serve, (me, self._ready))
        except RuntimeError as error:
            del self._began[me]
            if not self._began:
                reason = f"no thread can be started for the store ({error}): try again later"
                raise StoreError(reason) from None

    def _may_start(self) -> bool:
        threads = len(self._began)
        return threads < _AT_WORK or (threads < _MOST and threads - self._count_held_up() < _AT_WORK)

    def _count_held_up(self) -> int:
        """The number of threads that are held up in their work."""
        limit = monotonic() - _HELD_UP
        return sum(began < limit for began in tuple(self._began.values()))

    def _serve(self, me: object, ready: SimpleQueue[Hashable]) -> None:
        """Do work until there has been none for a while, or others do it all."""
        while True:
            with suppress(Empty):
                self._work(me, ready.get(timeout=_IDLE))
                if len(self._began) <= _AT_WORK or len(self._began) - self._count_held_up() <= _AT_WORK:
                    continue
            with self._guard:
                del self._began[me]
                if ready.empty() or not self._may_start():
                    return
                self._began[me] = inf

    def _work(self, me: object, lane: Hashable) -> None:
        """Do the first piece of work of a lane."""
        with self._guard:
            work = self._lanes[lane].popleft()
            is_wanted = work.state == "waiting"
            if is_wanted:
                work.state = "begun"
        if is_wanted:
            self._began[me] = monotonic()
            work.make()
        self._began[me] = inf
        with self._guard:
            if self._lanes[lane]:
                self._ready.put(lane)
            else:
                del self._lanes[lane]


async def _whatever_comes(work: _Work) -> None:
    """Wait until a call is over, however often the task is cancelled meanwhile."""
    while work.state != "over":
        with suppress(asyncio.CancelledError):
            await work.ended()


POOL = Pool()

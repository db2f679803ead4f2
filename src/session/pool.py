"""One bounded pool of threads, for the work of all stored sessions of a process.

Each session has a lane, whose work is done in order. Lanes with work take turns, a piece each.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from contextvars import Context, copy_context
from math import inf
from queue import Empty, SimpleQueue
from threading import Thread, current_thread
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
_IDLE: float = 10.0
"""The seconds after which a thread without work ends."""


@attrs.define(eq=False)
class _Work:
    """A call that a thread makes."""

    loop: asyncio.AbstractEventLoop
    context: Context
    function: Callable[[], Any]
    state: str = "waiting"  # then "dropped", or "begun", "made" and "over"
    thread: Thread | None = None
    result: Any = None
    error: BaseException | None = None
    waiter: asyncio.Future[None] | None = None
    timer: asyncio.TimerHandle | None = None

    def make(self) -> None:
        """Make the call; in a thread of the pool."""
        try:
            self.result = self.context.run(self.function)
        except BaseException as error:  # noqa: BLE001 - it is raised where the function was called
            self.error = error
        self.state = "made"
        with suppress(RuntimeError):  # the loop is closed: no task waits
            self.loop.call_soon_threadsafe(self.end)

    def end(self) -> None:
        """Let the task continue; in the thread of its loop."""
        self.state = "over"
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def ended(self) -> None:
        """Wait until the call is over."""
        while self.state != "over":
            self.waiter = self.loop.create_future()
            await self.waiter


@attrs.define(eq=False)
class _Lane:
    """Work in order, and the thread that does the first piece of it."""

    work: deque[_Work]
    thread: Thread | None = None


class Pool(ProcessLock):
    """Threads that do the work of lanes. A forked child has none of them, and starts its own.

    An exception may come between any two bytecodes, as without memory. So nothing is handed on: a lane stays
    in its place until its work is done, and is free when the thread that did it has ended.
    """

    __slots__ = ("_began", "_lanes", "_wake")

    def __init__(self) -> None:
        super().__init__()
        self.forget_other_threads()

    def forget_other_threads(self) -> None:
        """In a forked child nothing of this is at work."""
        self._began: dict[Thread, float] = {}  # when its piece of work began; infinite without one
        self._lanes = OrderedDict[Hashable, _Lane]()  # those with work; whose turn was longest ago is first
        self._wake = SimpleQueue[None]()  # as many as there are lanes with work that no thread does

    async def run(self, lane: Hashable, function: Callable[[], T]) -> T:
        """Call a function in a lane, with the caller's context variables.

        A call whose task is cancelled is not made if it has not begun. One that has begun is waited for,
        however often it is cancelled: when the cancelling arrives, it is over, and what it changed is there.

        Raises:
            StoreError: No thread can be started, and the function is not called; or the thread has ended, as
                without memory, and it is not known how far the function came.
            Exception: Whatever the function raises.
        """
        work = _Work(asyncio.get_running_loop(), copy_context(), function)
        try:
            self._submit(lane, work)
            self._look_later(work)
            try:
                await work.ended()
            except asyncio.CancelledError:
                if not self._drop(work):
                    await _whatever_comes(work)
                raise
        finally:
            self._drop(work)
            if work.timer is not None:
                work.timer.cancel()
        if work.error is not None:
            raise work.error
        result: T = work.result
        return result

    def _drop(self, work: _Work) -> bool:
        """Leave work undone, if it has not begun; returns whether it has not."""
        if work.state == "waiting":
            with self.lock:  # a thread may begin it
                if work.state == "waiting":
                    work.state = "dropped"
        return work.state == "dropped"

    def _look_later(self, work: _Work) -> None:
        work.timer = work.loop.call_later(_HELD_UP, self._look, work)

    def _look(self, work: _Work) -> None:
        """See again and again that work is done: by one more thread, if those at work are held up."""
        is_at_work = _is_at_work(work.thread)  # first: a thread that has ended changes the state no more
        if work.state in {"made", "over"}:  # its end was cut short
            work.end()
        elif work.state == "begun" and not is_at_work:
            reason = "the thread that did this has ended, as without memory: look whether it was done"
            work.error = StoreError(reason, outcome="unknown")
            work.end()
        elif work.state != "dropped":
            self._look_later(work)
            if work.state == "waiting":
                if self._wake.empty():  # a thread has ended that was woken
                    self._wake.put(None)
                with suppress(StoreError):  # it is tried again
                    self._start()

    def _submit(self, name: Hashable, work: _Work) -> None:
        with self.lock:
            lane = self._lanes.get(name)
            if lane is None:
                self._lanes[name] = _Lane(deque([work]))
                self._wake.put(None)
            else:
                lane.work.append(work)
        self._start()

    def _start(self) -> None:
        """Start a thread if there is work for one more."""
        with self.lock:
            if self._wake.empty() or not self._may_start():
                return
            thread = Thread(target=self._serve, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                if not self._began:
                    reason = f"no thread can be started for the store ({error}): try again later"
                    raise StoreError(reason) from None
            else:
                self._began.setdefault(thread, inf)

    def _may_start(self) -> bool:
        for thread in tuple(self._began):
            if not thread.is_alive():
                del self._began[thread]
        threads = len(self._began)
        return threads < _AT_WORK or (threads < _MOST and threads - self._count_held_up() < _AT_WORK)

    def _count_held_up(self) -> int:
        """The number of threads that are held up in their work."""
        limit = monotonic() - _HELD_UP
        return sum(began < limit for began in tuple(self._began.values()))

    def _serve(self) -> None:
        """Do work until there has been none for a while, or others do it all."""
        me = current_thread()
        while True:
            with suppress(Empty):
                self._wake.get(timeout=_IDLE)
                self._work(me)
                if len(self._began) - self._count_held_up() <= _AT_WORK:
                    continue
            with self.lock:
                self._began.pop(me, None)
                if self._wake.empty() or not self._may_start():
                    return
                self._began[me] = inf

    def _work(self, me: Thread) -> None:
        """Do the first piece of work of the lane whose turn it is."""
        with self.lock:
            waiting = (each for each in self._lanes.items() if not _is_at_work(each[1].thread))
            name, lane = next(waiting, (None, None))
            if lane is None:
                return
            lane.thread = me
            self._lanes.move_to_end(name)
            work = lane.work[0]
            is_wanted = work.state == "waiting"
            if is_wanted:
                work.thread = me
                work.state = "begun"
        if is_wanted:
            self._began[me] = monotonic()
            work.make()
        self._began[me] = inf
        with self.lock:
            lane.thread = None
            if len(lane.work) > 1:
                lane.work.popleft()
                self._wake.put(None)
            elif self._lanes.get(name) is lane:  # not in a child that was forked meanwhile
                del self._lanes[name]


def _is_at_work(thread: Thread | None) -> bool:
    return thread is not None and thread.is_alive()


async def _whatever_comes(work: _Work) -> None:
    """Wait until a call is over, however often the task is cancelled meanwhile."""
    while work.state != "over":
        with suppress(asyncio.CancelledError):
            await work.ended()


POOL = Pool()

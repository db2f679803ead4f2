"""One bounded pool of threads, for the work of all stored sessions of a process.

Each session has a lane: its work is done one piece after the other, in order. Lanes with work take turns, a piece
each. A thread that waits for a lock does not count, so that others go on meanwhile.
"""

from __future__ import annotations

import _thread
import asyncio
import os
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue
from threading import get_ident
from typing import Any, TypeVar

from session.errors import StoreError
from session.locks import ProcessLock

T = TypeVar("T")
_Work = tuple[Future[Any], Context, Callable[[], Any]]

_AT_WORK = min(32, (os.cpu_count() or 1) + 4)
"""How many threads work at a time: as many as asyncio's own pool has."""
_MOST = 32
"""How many there may be, with those that wait for a lock."""
_IDLE = 10.0
"""The seconds after which a thread without work ends."""


class Pool(ProcessLock):
    """Threads that do the work of lanes. A forked child has none of them, and starts its own."""

    __slots__ = ("_alive", "_lanes", "_ready", "_waiting")

    def __init__(self) -> None:
        super().__init__()
        self.forget_other_threads()

    def forget_other_threads(self) -> None:
        """In a forked child nothing of this is at work."""
        self._alive: set[int] = set()
        self._waiting = 0
        self._lanes: dict[Hashable, deque[_Work]] = {}
        self._ready = SimpleQueue[Hashable]()

    async def run(self, lane: Hashable, function: Callable[[], T]) -> T:
        """Call a function in a lane, with the caller's context variables.

        A call whose task is cancelled is not made if it has not begun; one that has begun is waited for, so that
        it is over, made or refused, when the cancelling arrives.

        Raises:
            StoreError: No thread can be started; the function is not called.
            Exception: Whatever the function raises.
        """
        future = Future[T]()
        try:
            self._submit(lane, (future, copy_context(), function))
            waited = asyncio.wrap_future(future)
            try:
                return await asyncio.shield(waited)
            except asyncio.CancelledError:
                if not future.cancel():
                    with suppress(Exception):
                        await waited
                raise
        finally:
            future.cancel()

    def _submit(self, lane: Hashable, work: _Work) -> None:
        with self.lock:
            known = self._lanes.get(lane)
            if known is None:
                self._lanes[lane] = deque([work])
                self._ready.put(lane)
            else:
                known.append(work)
        try:
            self._start()
        except RuntimeError as error:
            if not self._alive:
                raise StoreError(f"no thread can be started for the store ({error}): try again later") from None

    def _start(self) -> None:
        """Start a thread if there is work for one more."""
        if not self._ready.empty() and self._may_start():
            _thread.start_new_thread(self._serve, (self._ready,))

    def _may_start(self) -> bool:
        return len(self._alive) < min(_MOST, _AT_WORK + self._waiting)

    def _serve(self, ready: SimpleQueue[Hashable]) -> None:
        """Do work until there has been none for a while, or there are too many threads."""
        with self.lock:
            if not self._may_start():
                return
            self._alive.add(get_ident())
        while True:
            try:
                self._work(ready.get(timeout=_IDLE))
            except Empty:
                pass
            else:
                if len(self._alive) <= _AT_WORK + self._waiting:
                    continue
            with self.lock:
                self._alive.discard(get_ident())
                if ready.empty() or not self._may_start():
                    return
                self._alive.add(get_ident())

    def _work(self, lane: Hashable) -> None:
        """Do the first piece of work of a lane."""
        with self.lock:
            future, context, function = self._lanes[lane].popleft()
        if future.set_running_or_notify_cancel():
            try:
                value = context.run(function)
            except BaseException as error:  # noqa: BLE001 - it is raised where the function was called
                future.set_exception(error)
            else:
                future.set_result(value)
        del future, context, function
        with self.lock:
            if self._lanes[lane]:
                self._ready.put(lane)
            else:
                del self._lanes[lane]

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let another thread work while this one waits for a lock."""
        if get_ident() not in self._alive:
            yield
            return
        with self.lock:
            self._waiting += 1
        try:
            with suppress(RuntimeError):
                self._start()
            yield
        finally:
            with self.lock:
                self._waiting -= 1


POOL = Pool()

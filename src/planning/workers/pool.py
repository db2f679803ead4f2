"""A pool of worker processes of one kind."""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Final, TypeVar

from planning.workers.program import Program
from planning.workers.worker import Unheard, Worker, WorkerBusy, WorkerDied, WorkerLate

__all__ = ["Pool"]

T = TypeVar("T")

_LOOK: Final = 0.05
"""Seconds between two looks for a free worker."""


class Pool:
    """Worker processes that are started when they are needed, and stay for the next request.

    Any thread may ask them. A forked process gets workers of its own, and leaves those of its parent alone.
    The processes end with the pool, and with this program however that ends.
    """

    def __init__(self, program: Program, most: int) -> None:
        """Start nothing yet.

        Args:
            program: What the processes run.
            most: How many may be at work at the same time.
        """
        self._program = program
        self._most = most
        self._crew = _Crew(program, most)

    def ask(self, exchange: Callable[[Worker], T], until: float | None = None) -> tuple[T, float]:
        """Have an exchange with a worker that is free.

        A worker whose exchange raises is ended, and another one takes its place when there is more to do. The
        exchange is repeated with another where the worker had gone before it heard anything.

        Args:
            exchange: Sends a request and receives its answer.
            until: By when a worker must be free and ready, in seconds of ``monotonic()``; None for no limit.

        Returns:
            What the exchange gave, and the seconds of the wait for a free worker.

        Raises:
            WorkerBusy: No worker became free by then.
            WorkerUnavailable: No process can be started.
            WorkerUnready: A process ended before it was ready.
            WorkerDied: The worker died, or the pool was killed.
            WorkerLate: It took too long.
            BaseException: Whatever the exchange raises.
        """
        return self._here().ask(exchange, until)

    def close(self) -> None:
        """Kill the workers that wait, and the others once they have answered. A later request starts new."""
        ended, self._crew = self._here(), _Crew(self._program, self._most)
        ended.close()

    def kill(self) -> None:
        """Kill all workers at once, for good; callers that wait for an answer get an error."""
        self._here().kill()

    def retire(self) -> None:
        """Let one worker that waits, if there is one, end by itself, and wait until it has."""
        self._here().retire()

    def _here(self) -> _Crew:
        """The workers of this process."""
        crew = self._crew
        if crew.process_id != os.getpid():  # made before a fork: they are those of the parent
            crew.forget()
            crew = self._crew = _Crew(self._program, self._most)
        return crew


class _Place:
    """The right to have one worker at work, which ends when this object is no longer referenced.

    Ctrl-C may come between any two instructions, also within code that would give it back.
    """


class _Crew:
    """The workers of a pool in the process that started them.

    The operations on lists and sets that are used without the lock are atomic.
    """

    def __init__(self, program: Program, most: int) -> None:
        self.process_id = os.getpid()
        self._program = program
        self._most = most
        self._lock = threading.Lock()
        self._held: list[weakref.ref[_Place]] = []
        self._freed: SimpleQueue[None] = SimpleQueue()
        self._idle: list[Worker] = []
        self._busy: set[weakref.ref[Worker]] = set()  # weak: Ctrl-C may come before one is removed
        self._is_closed = False
        self._is_killed = False

    def ask(self, exchange: Callable[[Worker], T], until: float | None) -> tuple[T, float]:
        began = monotonic()
        waited = 0.0
        place: _Place | None = None
        try:
            place = self._place(None if until is None else until - began)
            waited = monotonic() - began
            return self._ask(exchange, until), waited
        except WorkerLate:
            raise WorkerLate(waited) from None
        finally:
            del place  # the traceback of an exception holds this frame
            if self._freed.empty():
                self._freed.put(None)

    def close(self) -> None:
        self._is_closed = True
        self._end_idle()

    def kill(self) -> None:
        self._is_killed = True
        for worker in (*self._idle, *(each() for each in list(self._busy))):
            if worker is not None:
                worker.kill()
        self.close()

    def retire(self) -> None:
        worker = self._waiting()
        if worker is not None:
            self._with(worker, Worker.leave)

    def forget(self) -> None:
        for worker in (*self._idle, *(each() for each in list(self._busy))):
            if worker is not None:
                worker.forget()
        self._idle.clear()

    def _place(self, seconds: float | None) -> _Place:
        """A place, as soon as there is one.

        Raises:
            WorkerBusy: There was none in so many seconds.
        """
        until = None if seconds is None else monotonic() + seconds
        place = _Place()
        while True:
            with self._lock:
                self._held = [each for each in self._held if each() is not None]
                if len(self._held) < self._most:
                    self._held.append(weakref.ref(place))
                    return place
            left = _LOOK if until is None else min(_LOOK, until - monotonic())
            if left <= 0:
                raise WorkerBusy
            with suppress(Empty):  # who was interrupted has not said that it is free
                self._freed.get(timeout=left)

    def _ask(self, exchange: Callable[[Worker], T], until: float | None) -> T:
        def begin_and_exchange(worker: Worker) -> T:
            if worker.is_new:
                worker.begin(until)
            return exchange(worker)

        while True:
            if self._is_killed:
                raise WorkerDied(-signal.SIGKILL)
            worker = self._waiting() or Worker(self._program)
            try:
                answer = self._with(worker, begin_and_exchange)
            except Unheard:
                status = worker.status
                worker.end()  # it was gone before it began: another one is asked
                if worker.is_new:
                    raise WorkerDied(status) from None
            except BaseException:
                worker.end()  # also on Ctrl-C: what it would answer is the answer to this request
                raise
            else:
                worker.is_new = False
                self._put(worker)
                return answer

    def _with(self, worker: Worker, do: Callable[[Worker], T]) -> T:
        """Do something with a worker, which ``kill`` finds meanwhile."""
        mark = weakref.ref(worker)
        try:
            self._busy.add(mark)
            if self._is_killed:  # before the worker could be found
                worker.kill()
            return do(worker)
        finally:
            self._busy.discard(mark)

    def _waiting(self) -> Worker | None:
        """A worker that waits, None where there is none."""
        while True:
            try:
                worker = self._idle.pop()
            except IndexError:
                return None
            if worker.is_alive():
                return worker
            worker.end()

    def _put(self, worker: Worker) -> None:
        """Keep a worker for the next request."""
        self._idle.append(worker)
        if self._is_closed:
            self._end_idle()

    def _end_idle(self) -> None:
        while (worker := self._waiting()) is not None:
            worker.end()

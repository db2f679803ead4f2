"""Threads that read a database: each has its own connection and runs one statement at a time.

SQLite cannot be interrupted within a single call of a function: a thread in one is left behind.
"""

from __future__ import annotations

import _thread
import os
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic
from typing import Any, Final, TypeVar

from planning.agent.databases.opened import OpenDatabase
from planning.agent.sql.guard import Failure
from planning.tools.background import is_given_up


_MOST: Final = 8
_IDLE: Final = 0.25  # seconds after which a thread releases what other programs may wait for
_SHORT_WAIT: Final = 0.05
_GRACE: Final = 10  # ticks between the end of the time and leaving the thread behind


class _Question:
    """The outcome of a piece of work for a thread."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self.waiting = Lock()
        self.waiting.acquire()

    def answer(self) -> Any:
        if self.error is None:
            return self.value
        try:
            raise self.error
        finally:
            self.error = None  # its traceback holds this question


class _Reader:
    """A thread and the file that it alone reads. The thread ends with this object, or with the program."""

    def __init__(self, file: OpenDatabase) -> None:
        self.file = file
        self.current: _Question | None = None
        self.lock = Lock()
        self.jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # Ctrl-C in the start of a threading.Thread may leave its locks locked for ever.
        _thread.start_new_thread(_serve, (self.jobs, file.rest))

    def stop(self, question: _Question) -> None:
        """Stop a question, unless the thread is at another one by now."""
        with self.lock:
            if self.current is question:
                self.file.deadline = 0.0
                self.file.interrupt()

    def close(self) -> None:
        self.file.close()
        self.jobs.put(None)

    def __del__(self) -> None:
        if hasattr(self, "jobs"):  # Ctrl-C may come before they are made
            self.close()


class Readers:
    """The threads of one database; any thread may ask them. A forked process starts its own."""

    def __init__(self) -> None:
        self._process = 0
        self._idle: list[_Reader] = []
        self._free = _places()

    def ask(
        self, open_file: Callable[[], OpenDatabase], work: Callable[[OpenDatabase], T], seconds: float
    ) -> T:
        """Run work on the file in a thread; it is stopped at its time, or when its caller stops waiting."""
        if self._process != os.getpid():
            self._process, self._idle, self._free = os.getpid(), [], _places()
        until, idle, free = monotonic() + seconds, self._idle, self._free
        if seconds <= 0:
            raise Failure("timeout")
        try:
            free.get(timeout=seconds)
        except Empty:
            raise Failure("busy") from None
        question = _Question()
        try:
            reader = idle.pop() if idle else _Reader(open_file())
        except BaseException as error:
            free.put(None)
            if isinstance(error, RuntimeError):
                raise Failure("unavailable", str(error)) from None
            raise

        def run() -> None:
            try:
                question.value = work(reader.file)
            except BaseException as error:  # noqa: BLE001 - it is raised again where the question was asked
                question.error = error
            with reader.lock:
                reader.current = None
            if idle is self._idle:
                idle.append(reader)
            else:
                reader.close()  # the database was closed meanwhile
            free.put(None)
            question.waiting.release()

        reader.current, reader.file.deadline = question, until
        reader.jobs.put(run)
        try:
            is_over = _wait(question, until)
        except BaseException:
            _stop(reader, question)
            raise
        if not is_over and not _stop(reader, question):
            raise Failure("timeout")
        answer: T = question.answer()
        return answer

    def close(self) -> None:
        """End the threads: those at work as soon as they are done. A later question starts new ones."""
        idle, self._idle = self._idle, []
        for reader in idle:
            reader.close()


def _places() -> SimpleQueue[None]:
    """A place for each thread. A semaphore would be locked for ever by Ctrl-C at the wrong moment."""
    places = SimpleQueue[None]()
    for _ in range(_MOST):
        places.put(None)
    return places


def _serve(jobs: SimpleQueue[Callable[[], None] | None], rest: Callable[[], None]) -> None:
    while True:
        try:
            job = jobs.get(timeout=_IDLE)
        except Empty:
            rest()
            job = jobs.get()
        if job is None:
            return
        job()
        del job  # it holds the reader, which could not be collected


def _wait(question: _Question, until: float) -> bool:
    """Wait for a question to end; False if its time is over, or the caller stopped waiting."""
    while not question.waiting.acquire(timeout=max(0.0, min(_SHORT_WAIT, until - monotonic()))):
        if monotonic() >= until or is_given_up():
            return False
    return True


def _stop(reader: _Reader, question: _Question) -> bool:
    """Stop a question; False if it does not end, within a call that cannot be interrupted."""
    for _ in range(_GRACE):
        reader.stop(question)
        if question.waiting.acquire(timeout=_SHORT_WAIT):
            return True
    return False

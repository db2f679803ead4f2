"""Worker processes, each of which runs one job at a time."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from planning.workflow.executors.jobs import dumps
from planning.workflow.run.failures import WorkerLost

__all__ = ["WorkerProcesses", "processes"]

T = TypeVar("T")
_Call = tuple["Future[Any]", bytes]


def processes(workers: int | None = None) -> WorkerProcesses:
    """Worker processes for ``executor=``; use them in a ``with`` block, which ends them.

    Args:
        workers: How many; as many as there are processors when left out.

    Raises:
        ValueError: ``workers`` is no whole number of at least 1.
    """
    return WorkerProcesses(workers)


class WorkerProcesses(Executor):
    """An executor whose workers are processes that share nothing, not even their fate.

    A worker that dies fails the one job that it ran, with ``WorkerLost``, and is replaced when there is
    more to do; the other jobs go on. Workers are started when they are needed, as fresh interpreters: what
    they run must stand in a module. A worker cannot start processes of its own.
    """

    most_losses = 3
    """How many workers a step may lose before it is given up."""

    def __init__(self, workers: int | None = None) -> None:
        """See ``processes``."""
        if workers is None:
            workers = os.cpu_count() or 1
        if type(workers) is not int or workers < 1:
            raise ValueError(f"workers must be a whole number of at least 1, got {workers!r}")
        self._most = workers
        self._jobs: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []
        self._unfinished = 0
        self._is_over = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Let a worker call a function; it, its arguments and its outcome must be picklable.

        Raises:
            RuntimeError: The executor was shut down.
            Exception: The call cannot be pickled.
        """
        written = dumps((fn, args, kwargs))
        future: Future[T] = Future()
        with self._lock:
            if self._is_over:
                raise RuntimeError("the worker processes were shut down; make new ones")
            self._unfinished += 1
            if self._unfinished > len(self._workers) < self._most:
                self._workers.append(_Worker(self._jobs, self._finished))
            self._jobs.put((future, written))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as in the base class
        """End the workers once they have done what was submitted.

        Args:
            wait: Whether to wait for that.
            cancel_futures: Whether what has not begun is cancelled.
        """
        with self._lock:
            first, self._is_over = not self._is_over, True
            if cancel_futures:
                self._cancel_waiting()
            for _ in self._workers if first else ():
                self._jobs.put(None)
        if wait:
            for worker in self._workers:
                worker.join()

    def kill(self) -> None:
        """End the workers at once: what has not begun is cancelled, what runs fails with ``WorkerLost``."""
        with self._lock:
            self._is_over = True
            self._cancel_waiting()
            for worker in self._workers:
                worker.kill()
                self._jobs.put(None)
        for worker in self._workers:
            worker.join()

    def _finished(self) -> None:
        with self._lock:
            self._unfinished -= 1

    def _cancel_waiting(self) -> None:
        try:
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    job[0].cancel()
                    job[0].set_running_or_notify_cancel()
                    self._unfinished -= 1
        except Empty:
            return


class _Worker:
    """A process, and the thread that hands jobs to it."""

    def __init__(self, jobs: SimpleQueue[_Call | None], finished: Callable[[], None]) -> None:
        self._jobs = jobs
        self._finished = finished
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._is_killed = False
        self._thread = threading.Thread(target=self._serve, name="workflow worker", daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def kill(self) -> None:
        self._is_killed = True
        process = self._process
        if process is not None:
            process.kill()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, written = job
            try:
                if future.set_running_or_notify_cancel():
                    self._carry_out(future, written)
            finally:
                self._finished()
            del job, future, written  # not to be held while waiting for the next
        self._end()

    def _carry_out(self, future: Future[Any], written: bytes) -> None:
        try:
            succeeded, outcome = self._ask(written)
        except (EOFError, OSError):
            self._end()
            future.set_exception(WorkerLost())
        except Exception as error:  # noqa: BLE001 - what comes back may fail to be read in any way
            future.set_exception(error)
        else:
            if succeeded:
                future.set_result(outcome)
            else:
                future.set_exception(outcome)

    def _ask(self, written: bytes) -> tuple[bool, Any]:
        if self._is_killed:
            raise EOFError
        if self._connection is None:
            self._start()
        connection = self._connection
        if connection is None:
            raise EOFError
        connection.send_bytes(written)
        answer: tuple[bool, Any] = pickle.loads(connection.recv_bytes())  # noqa: S301 - a process of our own wrote it
        return answer

    def _start(self) -> None:
        # A fresh interpreter: a fork would copy the locks that other threads hold.
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), name="workflow worker", daemon=True)
        process.start()
        self._process = process
        theirs.close()  # so that the end of the process is the end of the connection
        if self._is_killed:
            process.kill()

    def _end(self) -> None:
        connection, process = self._connection, self._process
        self._connection = self._process = None
        if connection is not None:
            connection.close()
        if process is not None:
            process.join()
            process.close()


def _work(connection: Connection) -> None:
    """What a worker does: one job after the other, until nobody is there to give any."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program, which ends its workers itself
    while True:
        try:
            written = connection.recv_bytes()
        except (EOFError, OSError):
            return
        connection.send_bytes(_outcome(written))


def _outcome(written: bytes) -> bytes:
    try:
        function, args, kwargs = pickle.loads(written)  # noqa: S301 - the program that started this process wrote it
        return dumps((True, function(*args, **kwargs)))
    except Exception as error:  # noqa: BLE001 - a job may fail in any way
        try:
            pickle.loads(back := dumps((False, error)))  # noqa: S301 - it was written here
        except Exception:  # noqa: BLE001 - not every exception can be pickled
            back = dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
        return back

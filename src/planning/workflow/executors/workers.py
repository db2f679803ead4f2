"""Worker processes, each of which runs one job at a time."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import pickle
import signal
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from planning.tools.result import safe_text
from planning.workflow.executors.jobs import NotStarted, dumps
from planning.workflow.failures import WorkerLost

__all__ = ["WorkerProcesses", "processes"]

T = TypeVar("T")

_UNSTARTED = (
    "a worker process ended before it was ready; let a script do its work under if __name__ == '__main__':"
)


class _Call(NamedTuple):
    future: Future[Any]
    written: bytes
    seconds: float | None


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
        self._lock = threading.Lock()
        self._jobs = _Jobs()
        self._workers: list[_Worker] = []
        self._is_over = False
        # The workers know the jobs, not the executor: one that nobody uses any more lets them go.
        weakref.finalize(self, _dismiss, self._jobs, self._workers).atexit = False
        # Before multiprocessing ends what is left at exit: it and the workers' threads would do so at once.
        self._at_exit = partial(_end_now, self._jobs, self._workers)
        atexit.register(self._at_exit)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Let a worker call a function; it, its arguments and its outcome must be picklable.

        Raises:
            RuntimeError: The executor was shut down.
            Exception: The call cannot be pickled.
        """
        return self._submit(None, dumps((fn, args, kwargs)))

    def submit_within(self, seconds: float, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """The same with a limit: a worker that is not done so many seconds after it began is ended.

        The future then fails with ``TimeoutError``, and another worker takes the place of the one.
        """
        return self._submit(seconds, dumps((fn, args, kwargs)))

    def _submit(self, seconds: float | None, written: bytes) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            if self._is_over:
                raise RuntimeError("the worker processes were shut down; make new ones")
            if self._jobs.put(_Call(future, written, seconds)) > len(self._workers) < self._most:
                self._workers.append(_Worker(self._jobs))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as in the base class
        """End the workers once they have done what was submitted.

        Args:
            wait: Whether to wait for that.
            cancel_futures: Whether what has not begun is cancelled.
        """
        with self._lock:
            self._is_over = True
            if cancel_futures:
                self._jobs.cancel()
            _dismiss(self._jobs, self._workers)
        if wait:
            for worker in self._workers:
                worker.join()
            atexit.unregister(self._at_exit)

    def kill(self) -> None:
        """End the workers at once: what has not begun is cancelled, what runs fails with ``WorkerLost``."""
        with self._lock:
            self._is_over = True
        _end_now(self._jobs, self._workers)  # without the lock: who hears of a lost job may submit another
        atexit.unregister(self._at_exit)


class _Jobs:
    """The jobs of an executor: those that wait, and how many are not finished."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._unfinished = 0

    def put(self, call: _Call) -> int:
        """Add a job, and say how many are unfinished now."""
        with self._lock:
            self._unfinished += 1
            self._waiting.put(call)
            return self._unfinished

    def get(self) -> _Call | None:
        """The next job, as soon as there is one; None for a worker that is to end."""
        return self._waiting.get()

    def finished(self) -> None:
        """One is no longer unfinished."""
        with self._lock:
            self._unfinished -= 1

    def end(self) -> None:
        """Let a worker end once it has done what was put before."""
        self._waiting.put(None)

    def cancel(self) -> None:
        """Cancel all that wait; the workers have to be told again to end."""
        with suppress(Empty):
            while True:
                call = self._waiting.get_nowait()
                if call is not None:
                    call.future.cancel()
                    call.future.set_running_or_notify_cancel()
                    self.finished()


def _dismiss(jobs: _Jobs, workers: list[_Worker]) -> None:
    for _ in workers:  # one that is told twice has ended by then
        jobs.end()


def _end_now(jobs: _Jobs, workers: list[_Worker]) -> None:
    jobs.cancel()
    for worker in workers:
        worker.kill()
    _dismiss(jobs, workers)
    for worker in workers:
        worker.join()


class _Worker:
    """A process, and the thread that hands jobs to it."""

    def __init__(self, jobs: _Jobs) -> None:
        self._jobs = jobs
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._killed = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="workflow worker", daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def kill(self) -> None:
        self._killed.set()
        process = self._process
        if process is not None:
            with suppress(ValueError):  # it has just ended by itself
                process.kill()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                if job.future.set_running_or_notify_cancel():
                    self._carry_out(job)
            finally:
                self._jobs.finished()
            del job  # not to be held while waiting for the next
        self._end()

    def _carry_out(self, job: _Call) -> None:
        try:
            answer = self._ask(job)
        except (EOFError, OSError) as error:
            self._end(kill=True)
            job.future.set_exception(error if isinstance(error, TimeoutError) else WorkerLost())
            return
        except NotStarted as error:
            self._end(kill=True)
            job.future.set_exception(error)
            return
        try:
            succeeded, outcome = pickle.loads(answer)  # noqa: S301 - a process of our own wrote it
        except BaseException as error:  # noqa: BLE001 - what comes back may fail to be read in any way
            succeeded, outcome = False, error
        if succeeded:
            job.future.set_result(outcome)
        else:
            job.future.set_exception(outcome)

    def _ask(self, job: _Call) -> bytes:
        """Have a job done by the process, a new one where there is none that lives."""
        if self._process is not None and not self._process.is_alive():
            self._end()
        connection = self._connection or self._start()
        connection.send_bytes(job.written)
        if job.seconds is not None and not connection.poll(job.seconds):
            raise TimeoutError(f"the worker took longer than {job.seconds:g} s and was ended")
        return connection.recv_bytes()

    def _start(self) -> Connection:
        """Start the process, and wait until it is ready.

        Raises:
            EOFError: It was killed meanwhile.
            NotStarted: It could not be.
        """
        if self._killed.is_set():
            raise EOFError
        # A fresh interpreter: a fork would copy the locks that other threads hold.
        context = multiprocessing.get_context("spawn")
        try:
            self._connection, theirs = context.Pipe()
            with theirs:  # closed here, so that the end of the process is the end of the connection
                process = context.Process(target=_work, args=(theirs,), name="workflow worker", daemon=True)
                _start_deaf(process)
            self._process = process
            if self._killed.is_set():
                process.kill()
            self._connection.recv_bytes()
        except Exception as error:  # noqa: BLE001 - it is told whoever waits for the job
            if self._killed.is_set():
                raise EOFError from None
            raise NotStarted(safe_text(error) or _UNSTARTED) from None
        return self._connection

    def _end(self, *, kill: bool = False) -> None:
        connection, process = self._connection, self._process
        self._connection = self._process = None
        if connection is not None:
            connection.close()
        if process is not None:
            if kill:
                process.kill()
            process.join()
            process.close()


def _start_deaf(process: BaseProcess) -> None:
    """Start a process that Ctrl-C does not reach, also not before it can say so itself."""
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover - Windows
        process.start()
        return
    resource_tracker.ensure_running()  # or starting it would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()  # it inherits what is blocked
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave_with(parent: BaseProcess) -> None:  # pragma: no cover - ends the process that runs it
    """End this process when the program ends that it works for, in the middle of a job too.

    The program's end closes the pipe that is waited on, unless a process that it forked holds a copy: then
    this process has another parent by the next look.
    """
    while parent.is_alive() and os.getppid() == parent.pid:
        parent.join(1.0)
    os._exit(1)


def _work(connection: Connection) -> None:
    """What a worker does: one job after the other, until nobody is there to give any."""
    parent = multiprocessing.parent_process()
    if parent is not None:  # pragma: no cover - true in a worker alone
        threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program ends its workers itself
    with suppress(EOFError, OSError):
        connection.send_bytes(b"ready")
        while True:
            connection.send_bytes(_outcome(connection.recv_bytes()))


def _outcome(written: bytes) -> bytes:
    try:
        function, args, kwargs = pickle.loads(written)  # noqa: S301 - the program that started this process wrote it
        return dumps((True, function(*args, **kwargs)))
    except BaseException as error:  # noqa: BLE001 - a job may fail in any way
        try:
            pickle.loads(back := dumps((False, error)))  # noqa: S301 - it was written here
        except BaseException:  # noqa: BLE001 - not every exception can be pickled, and some run code then
            back = dumps((False, RuntimeError(f"{type(error).__name__}: {safe_text(error)}")))
        return back

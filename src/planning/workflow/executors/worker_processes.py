"""Worker processes as an executor: each runs one job at a time."""

from __future__ import annotations

import atexit
import os
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import current_process
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, NamedTuple, TypeVar

from planning.tools.result import safe_text
from planning.workers.pool import Pool
from planning.workers.program import calling
from planning.workers.worker import Worker, WorkerDied, WorkerLate, WorkerUnavailable, WorkerUnready
from planning.workflow.executors.base import Job
from planning.workflow.executors.jobs import NotStarted, dumps, run_job
from planning.workflow.failures import WorkerLost

__all__ = ["WorkerProcesses", "opened", "processes"]

T = TypeVar("T")

_NAME: Final = "workflow worker"
_MOST_LOSSES: Final = 3
"""How many workers a step may lose before it is given up."""
_GRACE: Final = 1.0
"""The seconds that a worker has beyond those of its job, which it gives up itself if it can."""
_UNSTARTED: Final = (
    "a worker process ended before it was ready; let a script do its work under if __name__ == '__main__':"
)


class _Call(NamedTuple):
    """What a worker is asked.

    Attributes:
        future: Of its outcome.
        written: The pickled function, its arguments and its keyword arguments.
        seconds: After how many the worker is ended; None for no limit.
        tries: How many workers may be asked, one after the other, where each died.
        lost: The message for so many that died.
    """

    future: Future[Any]
    written: bytes
    seconds: float | None = None
    tries: int = 1
    lost: Callable[[int], str] = lambda _: "the worker was lost"


def processes(workers: int | None = None) -> WorkerProcesses:
    """Worker processes for ``executor=``; use them in a ``with`` block, which ends them.

    Args:
        workers: How many; as many as there are processors when not given.

    Raises:
        ValueError: ``workers`` is not a whole number of at least 1.
    """
    return WorkerProcesses(workers)


@contextmanager
def opened(_address: str, _most: int) -> Iterator[WorkerProcesses]:
    """Worker processes that are killed after the block."""
    workers = processes()
    try:
        yield workers
    finally:
        workers.kill()


class WorkerProcesses(Executor):
    """An executor whose workers are processes that share nothing, not even their fate.

    A worker that dies fails the one job that it ran, with ``WorkerLost``, and is replaced when there is
    more to do; the other jobs continue. Workers are started when they are needed, as fresh interpreters: what
    they run must be defined in a module. A worker cannot use worker processes itself.
    """

    def __init__(self, workers: int | None = None) -> None:
        """See ``processes``."""
        if workers is None:
            workers = os.cpu_count() or 1
        if type(workers) is not int or workers < 1:
            raise ValueError(f"workers must be a whole number of at least 1, got {workers!r}")
        self._most = workers
        self._queue = self._begun()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Let a worker call a function; it, its arguments and its outcome must be picklable.

        Raises:
            RuntimeError: The executor was shut down.
            Exception: The call cannot be pickled.
        """
        return self._submit(_Call(Future(), dumps((fn, args, kwargs))))

    def submit_job(self, job: Job) -> Future[Any]:
        """See ``Executor``: the worker of a job that takes too long is ended.

        Raises:
            RuntimeError: The executor was shut down.
            StepFailed: The call cannot be pickled.
        """
        written = dumps((run_job, (job.written(),), {}))
        seconds = None if job.seconds is None else job.seconds + _GRACE
        tries = _MOST_LOSSES if job.tool.idempotent else 1
        return self._submit(_Call(Future(), written, seconds, tries, job.lost))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as in the base class
        """End the workers once they have done what was submitted.

        Args:
            wait: Whether to wait for that.
            cancel_futures: Whether what has not begun is cancelled.
        """
        queue = self._here()
        queue.end(cancel=cancel_futures)
        if wait:
            queue.join()

    def kill(self) -> None:
        """End the workers at once: what has not begun is cancelled, what runs fails with ``WorkerLost``."""
        self._here().kill()

    def _submit(self, call: _Call) -> Future[Any]:
        self._here().put(call)
        return call.future

    def _here(self) -> _Queue:
        """The calls of this process: a forked process has workers of its own."""
        if self._queue.process_id != os.getpid():
            self._queue = self._begun()
        return self._queue

    def _begun(self) -> _Queue:
        # The workers know the queue, not the executor: an executor that is no longer used lets them go.
        queue = _Queue(self._most)
        weakref.finalize(self, queue.end).atexit = False
        return queue


class _Queue:
    """The calls of an executor in one process, and the threads that ask workers."""

    def __init__(self, most: int) -> None:
        self.process_id = os.getpid()
        self._most = most
        self._pool = Pool(calling(_answer, _NAME), most)
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = threading.RLock()  # an executor may be collected within, which calls ``end``
        self._threads: list[threading.Thread] = []
        self._unfinished = 0
        self._is_over = self._is_killed = False

    def put(self, call: _Call) -> None:
        """Add a call.

        Raises:
            RuntimeError: The executor was shut down; or no thread can be started.
        """
        with self._lock:
            if self._is_over:
                raise RuntimeError("the worker processes were shut down; make new ones")
            if not self._threads:
                atexit.register(
                    self.kill
                )  # before the workers are ended one by one, and others take their place
            if self._unfinished >= len(self._threads) < self._most:
                thread = threading.Thread(target=self._work, name=_NAME, daemon=True)
                thread.start()
                self._threads.append(thread)
            self._unfinished += 1
            self._calls.put(call)

    def end(self, *, cancel: bool = False) -> None:
        """Let the threads end once everything is done; what has not begun may be cancelled."""
        with self._lock:
            self._is_over = True  # no call comes after this
        if cancel:
            self._cancel()  # without the lock: who hears of it may submit another call
        self._calls.put(None)

    def kill(self) -> None:
        """End everything at once."""
        if os.getpid() != self.process_id:
            return
        self._is_killed = True
        self.end(cancel=True)
        self._pool.kill()
        self.join()

    def join(self) -> None:
        """Wait until the threads have ended."""
        for thread in list(self._threads):
            thread.join()

    def _cancel(self) -> None:
        with suppress(Empty):
            while True:
                call = self._calls.get_nowait()
                if call is not None:
                    call.future.cancel()
                    call.future.set_running_or_notify_cancel()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                if call.future.set_running_or_notify_cancel():
                    self._carry_out(call)
            finally:
                with self._lock:
                    self._unfinished -= 1
            del call  # not to be held while waiting for the next
        self._calls.put(None)  # for the other threads
        self._pool.retire()
        with self._lock:
            self._threads.remove(threading.current_thread())
            if not self._threads:
                atexit.unregister(self.kill)

    def _carry_out(self, call: _Call) -> None:
        try:
            succeeded, outcome = pickle.loads(self._ask(call))  # noqa: S301 - a process of our own wrote it
        except BaseException as error:  # noqa: BLE001 - what comes back may fail to be read in any way
            succeeded, outcome = False, error
        if succeeded:
            call.future.set_result(outcome)
        else:
            call.future.set_exception(outcome)

    def _ask(self, call: _Call) -> bytes:
        """The answer of a worker; of another one where one died and the call may be made again.

        Raises:
            NotStarted: There is none.
            WorkerLost: It died.
            TimeoutError: It took too long, and was ended.
        """
        if current_process().name == _NAME:
            raise NotStarted(_UNSTARTED)
        for times in range(1, call.tries + 1):
            try:
                return self._pool.ask(partial(_exchange, call))[0]
            except WorkerLate:
                raise TimeoutError(f"the worker took longer than {call.seconds:g} s and was ended") from None
            except WorkerUnavailable as error:
                raise NotStarted(str(error)) from None
            except WorkerDied as death:
                if isinstance(death, WorkerUnready) and not self._is_killed:
                    raise NotStarted(_UNSTARTED) from None
                if self._is_killed or times == call.tries:
                    raise WorkerLost(call.lost(times)) from None
        raise AssertionError("a call has at least one try")


def _exchange(call: _Call, worker: Worker) -> bytes:
    until = None if call.seconds is None else monotonic() + call.seconds
    worker.send(call.written, until)
    return worker.receive(until)


def _answer(written: bytes) -> bytes:
    """Make a call; in a worker."""
    try:
        function, args, kwargs = pickle.loads(written)  # noqa: S301 - the program that started this process wrote it
        return dumps((True, function(*args, **kwargs)))
    except BaseException as error:  # noqa: BLE001 - a job may fail in any way
        try:
            pickle.loads(back := dumps((False, error)))  # noqa: S301 - it was written here
        except BaseException:  # noqa: BLE001 - not every exception can be pickled, and some run code then
            back = dumps((False, RuntimeError(f"{type(error).__name__}: {safe_text(error)}")))
        return back

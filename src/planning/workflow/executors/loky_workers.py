"""Worker processes as an executor: a loky pool of one process for each worker, so that only one dies."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from planning.workflow.executors.jobs import Job, run_job
from planning.workflow.failures import WorkerLost

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

T = TypeVar("T")

_MOST_LOSSES: Final = 3
"""How many workers a step may lose before it is given up."""
_GRACE: Final = 1.0
"""Seconds that a worker has beyond those of its job, which stops by itself if it can."""
_LOOK: Final = 0.5
"""Seconds between two checks of a worker whether the program still runs."""


def processes(workers: int | None = None) -> WorkerProcesses:
    """As many worker processes, by default one for each processor; use them in a ``with`` block.

    Raises:
        ValueError: ``workers`` is not a whole number of at least 1.
        ImportError: loky is not installed.
    """
    return WorkerProcesses(workers)


class WorkerProcesses(Executor):
    """An executor whose workers are processes that share nothing.

    A worker that dies fails only the job that it ran, with ``WorkerLost``, and is replaced when there is more
    to do. Workers start when they are needed, and end when the program does, however that ends. What they
    print goes to standard error.
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is None:
            workers = os.cpu_count() or 1
        if type(workers) is not int or workers < 1:
            raise ValueError(f"workers must be a whole number of at least 1, got {workers!r}")
        try:
            from loky import ProcessPoolExecutor
        except ImportError:
            raise ImportError(
                "worker processes need loky: pip install 'session-planning[processes]'"
            ) from None
        self._open = partial(ProcessPoolExecutor, 1, initializer=_prepare_worker, initargs=(os.getpid(),))
        self._threads = ThreadPoolExecutor(workers, "workflow worker", initializer=_leave_ctrl_c)
        self._idle: list[ProcessPoolExecutor] = []
        self._busy: set[ProcessPoolExecutor] = set()
        self._is_killed = False
        self._process_id = os.getpid()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Let a worker call a function; it, its arguments and its outcome must be picklable."""
        return self._submit(partial(fn, *args, **kwargs), None, 1, "the worker was lost")

    def submit_job(self, job: Job) -> Future[Any]:
        """See ``JobExecutor``: the worker of a job that takes too long is ended."""
        seconds = None if job.seconds is None else job.seconds + _GRACE
        tries = _MOST_LOSSES if job.tool.idempotent else 1
        return self._submit(partial(run_job, job.written()), seconds, tries, job.lost())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as in the base class
        """End the workers once they have done what was submitted; without ``wait``, with the program."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        while wait and self._idle:
            self._idle.pop().shutdown()

    def kill(self) -> None:
        """End the workers at once: what has not begun is cancelled, what runs fails with ``WorkerLost``."""
        self._is_killed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for pool in [*self._busy]:
            pool.shutdown(kill_workers=True)
        self.shutdown()

    def _submit(self, call: Callable[[], Any], seconds: float | None, tries: int, lost: str) -> Future[Any]:
        if os.getpid() != self._process_id:
            raise RuntimeError("these worker processes belong to the parent process; make new ones")
        return self._threads.submit(self._run, call, seconds, tries, lost)

    def _run(self, call: Callable[[], Any], seconds: float | None, tries: int, lost: str) -> Any:
        """What a worker returns; another one is asked where one died and the call may be made again."""
        for _ in range(tries):
            try:
                return self._ask(call, seconds)
            except Exception as error:
                if self._is_killed:
                    break
                if not isinstance(error, BrokenExecutor):
                    raise
        raise WorkerLost(lost)

    def _ask(self, call: Callable[[], Any], seconds: float | None) -> Any:
        """What one worker returns."""
        pool = self._idle.pop() if self._idle else self._open()
        self._busy.add(pool)
        try:
            if self._is_killed:  # before this worker could be found
                pool.shutdown(kill_workers=True)
            try:
                future = pool.submit(call)
            except BrokenExecutor:  # it died while it waited: the call has not begun
                return self._ask(call, seconds)
            if wait([future], seconds).not_done:
                pool.shutdown(kill_workers=True)
                raise TimeoutError(f"the worker took longer than {seconds} s and was ended")
            if not isinstance(future.exception(), BrokenExecutor):
                self._idle.append(pool)
            return future.result()
        finally:
            self._busy.discard(pool)


def _leave_ctrl_c() -> None:
    """Let the processes that this thread starts begin without Ctrl-C: a program ends its workers itself."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _prepare_worker(program: int) -> None:
    """Set a worker process up, in that process; the program that it works for is another process."""
    os.setsid()  # Ctrl-C in a terminal is not for this process
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with suppress(OSError):  # there may be no standard error
        os.dup2(2, 1)  # standard output is the program's own
    threading.Thread(target=_end_with, args=(program,), daemon=True).start()


def _end_with(program: int) -> None:
    """End this process, and those that it has started, when a program has ended."""
    while os.getppid() == program:
        time.sleep(_LOOK)
    os.killpg(0, signal.SIGKILL)

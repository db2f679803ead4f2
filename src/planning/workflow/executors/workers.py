"""The executors of this package: worker processes, the workers of a Dask cluster, and both by their names."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

import attrs

from planning.errors import show
from planning.workflow.executors.jobs import AnyExecutor, ExecutorUnavailable, Job, reason, run_job
from planning.workflow.failures import WorkerLost

if TYPE_CHECKING:
    from distributed import Client
    from loky import ProcessPoolExecutor

_CONNECT: Final = 5.0  # seconds


def dask(client: Client) -> DaskExecutor:
    """An executor for ``executor=`` that runs steps on a Dask cluster.

    Dask runs a task again when its worker died, up to the scheduler's ``allowed-failures`` times (3). A step
    whose tool is not idempotent is not run again: it fails, and says why.

    Raises:
        TypeError: It is not such a client.
        ImportError: Dask is not installed.
    """
    if not isinstance(client, _client_type()) or client.asynchronous:
        raise TypeError(
            f"dask() takes a distributed.Client made without asynchronous=True, got {type(client).__name__}"
        )
    return DaskExecutor(client)


def connect(address: str) -> Any:
    """A client of the cluster at ``HOST:PORT``.

    Raises:
        ImportError: Dask is not installed.
        OSError: The cluster cannot be reached.
    """
    return _client_type()(f"tcp://{address}", timeout=_CONNECT, set_as_default=False)


def _client_type() -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("dask needs its library: run pip install 'session-planning[distributed]'") from None
    return Client


@attrs.frozen
class DaskExecutor:
    """See ``dask``."""

    _client: Client

    def submit_job(self, job: Job) -> Future[Any]:
        """See ``JobExecutor``; a job that must not run twice takes a claim where it runs."""
        if self._client.status != "running":
            raise BrokenExecutor(f"the Dask client is {self._client.status}")
        claim = None if job.tool.idempotent else partial(take_claim, f"session-planning-{uuid4().hex}")
        # not pure: two steps with the same call are two calls
        task = self._client.get_executor(pure=False).submit(run_job, job.written(claim))
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # Dask's own cancelling does not stop what runs
        task.add_done_callback(partial(_settle, job, future))
        return future


def _settle(job: Job, future: Future[Any], done: Future[bytes]) -> None:
    from distributed import KilledWorker

    try:
        future.set_result(done.result())
    except KilledWorker:
        future.set_exception(WorkerLost(job.lost()))
    except CancelledError:
        future.set_exception(BrokenExecutor("the Dask cluster gave up the task"))
    except BaseException as error:  # noqa: BLE001 - it is raised where the job was submitted
        future.set_exception(error)


def take_claim(name: str) -> bool:
    """True if this worker is the first to begin a job; called where the job runs.

    The scheduler keeps the claim, so that it outlives the worker.
    """
    from distributed import Event

    # Dask runs a task again only after it has lost its worker: no two workers ask at the same moment.
    event = Event(name)
    if event.is_set():
        return False
    event.set()
    return True


T = TypeVar("T")

_MOST_LOSSES: Final = 3
"""The most workers that a step may lose before it fails."""
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
        """The answer of a worker; another one is asked if one died and the call may be made again."""
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
        """The answer of one worker."""
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
                raise TimeoutError
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


_CLUSTER = r"dask://[^\s/]+:\d{1,5}/?"
_PATIENCE = 2.0  # seconds


def open_executor(name: str, max_parallel: int) -> AbstractContextManager[AnyExecutor]:
    """The executor of a name, for a ``with`` block, which ends it and whatever still runs there.

    Raises:
        ValueError: There is no such executor: raised at once.
        ExecutorUnavailable: It cannot be opened: raised when the block begins.
    """
    if name not in {"threads", "processes"} and re.fullmatch(_CLUSTER, name) is None:
        raise ValueError(f"Unknown executor {show(name)}. Use threads, processes or dask://HOST:PORT.")
    return _opened(name, max_parallel)


@contextmanager
def _opened(name: str, max_parallel: int) -> Iterator[AnyExecutor]:
    pool: AnyExecutor
    with ExitStack() as stack:
        try:
            if name == "threads":
                pool = ThreadPoolExecutor(max_parallel, "run")
                stack.callback(pool.shutdown, wait=False, cancel_futures=True)
            elif name == "processes":
                pool = processes()
                stack.callback(pool.kill)
            else:
                client = connect(name.removeprefix("dask://").rstrip("/"))
                stack.callback(_close, client)
                pool = dask(client)
        except ImportError as error:
            raise ExecutorUnavailable(str(error)) from None
        except Exception as error:  # noqa: BLE001 - a cluster may fail in any way
            raise ExecutorUnavailable(f"{name} cannot be reached: {reason(error)}") from None
        yield pool


def _close(client: Any) -> None:
    with suppress(Exception):  # the cluster may be gone
        client.close(timeout=_PATIENCE)

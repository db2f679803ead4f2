"""The workers of a Dask cluster as an executor."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

import attrs

from planning.workflow.executors.base import ExecutorUnavailable, Job
from planning.workflow.executors.jobs import reason, run_job
from planning.workflow.failures import WorkerLost

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["DaskExecutor", "dask", "opened"]

T = TypeVar("T")

_CONNECT: Final = 5.0  # seconds
_CLOSE: Final = 2.0


def dask(client: Client) -> DaskExecutor:
    """An executor for ``executor=`` that runs steps on a Dask cluster.

    Dask runs a task again when its worker died, up to the scheduler's ``allowed-failures`` times (3). A step
    whose tool is not idempotent is not run again: it fails, and says why.

    Args:
        client: A ``distributed.Client``, made without ``asynchronous=True``. It stays open.

    Raises:
        TypeError: It is not such a client.
        ImportError: Dask is not installed.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("steps on Dask need it: pip install 'session-planning[distributed]'") from None
    if not isinstance(client, Client):
        raise TypeError(f"dask() takes a distributed.Client, got {type(client).__name__}")
    if client.asynchronous:
        raise TypeError("dask() takes a Client that was made without asynchronous=True")
    return DaskExecutor(client)


@contextmanager
def opened(address: str, _most: int) -> Iterator[DaskExecutor]:
    """The cluster at ``HOST:PORT``, whose client is closed after the block.

    Raises:
        ExecutorUnavailable: It cannot be reached, or Dask is not installed.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ExecutorUnavailable(
            "dask:// needs Dask; run pip install 'session-planning[distributed]'"
        ) from None
    try:
        client: Any = Client(f"tcp://{address}", timeout=_CONNECT, set_as_default=False)
    except Exception as error:  # noqa: BLE001 - it may fail in any way
        why = f"no answer within {_CONNECT:g} s" if isinstance(error, TimeoutError) else reason(error)
        raise ExecutorUnavailable(f"dask://{address} cannot be reached: {why}") from None
    try:
        yield dask(client)
    finally:
        with suppress(Exception):  # the cluster may be gone by now
            client.close(timeout=_CLOSE)


def _write(value: Any) -> bytes:
    """Pickle for a machine that may have only what is installed there: a script's functions travel whole."""
    import cloudpickle

    written: bytes = cloudpickle.dumps(value)
    return written


class DaskExecutor(Executor):
    """See ``dask``."""

    def __init__(self, client: Client) -> None:
        """Take a client."""
        self._client = client
        # Not pure: two steps with the same call are two calls.
        self._executor: Executor = client.get_executor(pure=False)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Let a worker of the cluster call a function.

        Raises:
            BrokenExecutor: The cluster cannot be reached.
        """
        return self._submit(_settle, fn, *args, **kwargs)

    def submit_job(self, job: Job) -> Future[Any]:
        """See ``Executor``; a job that must not run twice takes a claim where it runs.

        Raises:
            BrokenExecutor: The cluster cannot be reached.
            StepFailed: The call cannot be pickled.
        """
        claim = None if job.tool.idempotent else DaskClaim()

        def drop_and_settle(claim: DaskClaim, done: Future[Any], future: Future[Any]) -> None:
            with suppress(Exception):  # the scheduler may be gone
                claim.drop(self._client)
            _settle(done, future, job.lost())

        def settle(done: Future[Any], future: Future[Any]) -> None:
            if claim is not None:  # not in the thread of Dask's event loop, which has to do it
                with suppress(RuntimeError):  # no memory for a thread
                    threading.Thread(target=drop_and_settle, args=(claim, done, future), daemon=True).start()
                    return
            _settle(done, future, job.lost())

        return self._submit(settle, run_job, job.written(_write, claim))

    def _submit(
        self,
        settle: Callable[[Future[T], Future[T]], object],
        fn: Callable[..., T],
        /,
        *args: Any,
        **kwargs: Any,
    ) -> Future[T]:
        if self._client.status != "running":
            raise BrokenExecutor(f"the Dask client is {self._client.status}")
        try:
            inner = self._executor.submit(fn, *args, **kwargs)
        except Exception as error:
            raise BrokenExecutor("the Dask cluster takes no more tasks") from error
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # Dask's own cancelling does not stop what runs
        inner.add_done_callback(lambda done: settle(done, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002, ARG002 - as in the base class
        """Take no more jobs; the client and the cluster stay."""
        self._executor.shutdown(wait=wait)


@attrs.frozen
class DaskClaim:
    """The right to run a job, kept by the scheduler: it outlives the worker that took it.

    Attributes:
        name: Under which the scheduler knows it.
    """

    name: str = attrs.field(factory=lambda: f"session-planning-{uuid4().hex}")

    def take(self) -> bool:
        """Whether this is the first worker to begin the job. Called where the job runs."""
        from distributed import Event, get_client

        # Dask runs a task again only after its worker was given up: no two workers ask at the same moment.
        event = Event(self.name, client=get_client())
        if event.is_set():
            return False
        event.set()
        return True

    def drop(self, client: Client) -> None:
        """Forget it, when its job is over; takes a moment."""
        from distributed import Event

        Event(self.name, client=client).clear()


def _settle(done: Future[T], future: Future[T], lost: str = "the worker was lost") -> None:
    """Hand on the outcome of a task."""
    from distributed import KilledWorker

    try:
        outcome = done.result()
    except KilledWorker:
        future.set_exception(WorkerLost(lost))
    except CancelledError:
        future.set_exception(BrokenExecutor("the Dask cluster gave the task up"))
    except BaseException as error:  # noqa: BLE001 - it is raised where the job was submitted
        future.set_exception(error)
    else:
        future.set_result(outcome)

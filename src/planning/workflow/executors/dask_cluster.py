"""The workers of a Dask cluster as an executor."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import attrs

from planning.workflow.failures import WorkerLost

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["DaskExecutor", "dask"]

T = TypeVar("T")


def dask(client: Client) -> DaskExecutor:
    """An executor for ``executor=`` that runs steps on a Dask cluster.

    Dask runs a task again when its worker died, up to the scheduler's ``allowed-failures`` times (3). A step
    whose tool is not idempotent is not run again: it fails, and says why.

    Args:
        client: A ``distributed.Client``, made without ``asynchronous=True``. It stays open.

    Raises:
        TypeError: It is none.
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


def _write(value: Any) -> bytes:
    """Pickle for a machine that may have only what is installed there: a script's functions travel whole."""
    import cloudpickle

    written: bytes = cloudpickle.dumps(value)
    return written


class DaskExecutor(Executor):
    """See ``dask``."""

    write = staticmethod(_write)

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
        if self._client.status != "running":
            raise BrokenExecutor(f"the Dask client is {self._client.status}")
        try:
            inner = self._executor.submit(fn, *args, **kwargs)
        except Exception as error:
            raise BrokenExecutor("the Dask cluster takes no more tasks") from error
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # Dask's own cancelling does not stop what runs
        inner.add_done_callback(lambda done: _settle(done, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002, ARG002 - as in the base class
        """Take no more jobs; the client and the cluster stay."""
        self._executor.shutdown(wait=wait)

    def new_claim(self) -> DaskClaim:
        """A claim for a job that must not be run again when its worker died."""
        return DaskClaim(f"session-planning-{uuid4().hex}")

    def drop_claim(self, claim: DaskClaim) -> None:
        """Forget a claim whose job is over; takes a moment."""
        from distributed import Event

        Event(claim.name, client=self._client).clear()


@attrs.frozen
class DaskClaim:
    """The right to run a job, kept by the scheduler: it outlives the worker that took it.

    Attributes:
        name: Under which the scheduler knows it.
    """

    name: str

    def take(self) -> bool:
        """Whether this is the first worker to begin the job. Called where the job runs."""
        from distributed import Event, get_client

        # Dask runs a task again only after its worker was given up: nobody asks at the same moment.
        event = Event(self.name, client=get_client())
        if event.is_set():
            return False
        event.set()
        return True


def _settle(done: Future[T], future: Future[T]) -> None:
    """Hand on what came of a task."""
    from distributed import KilledWorker

    try:
        outcome = done.result()
    except KilledWorker:
        future.set_exception(WorkerLost())
    except CancelledError:
        future.set_exception(BrokenExecutor("the Dask cluster gave the task up"))
    except BaseException as error:  # noqa: BLE001 - it is raised where the job was submitted
        future.set_exception(error)
    else:
        future.set_result(outcome)

"""The workers of a Dask cluster as an executor."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import attrs

from planning.workflow.executors.base import ExecutorUnavailable
from planning.workflow.executors.jobs import Job, reason, run_job
from planning.workflow.failures import WorkerLost

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["DaskExecutor", "dask", "opened"]

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
def opened(address: str) -> Iterator[DaskExecutor]:
    """The cluster at ``HOST:PORT``, whose client is closed after the block.

    Raises:
        ExecutorUnavailable: It cannot be reached, or Dask is not installed.
    """
    try:
        from distributed import Client

        client: Any = Client(f"tcp://{address}", timeout=_CONNECT, set_as_default=False)
    except ImportError:
        raise ExecutorUnavailable(
            "dask:// needs Dask; run pip install 'session-planning[distributed]'"
        ) from None
    except Exception as error:  # noqa: BLE001 - it may fail in any way
        why = f"no answer within {_CONNECT:g} s" if isinstance(error, TimeoutError) else reason(error)
        raise ExecutorUnavailable(f"dask://{address} cannot be reached: {why}") from None
    try:
        yield dask(client)
    finally:
        with suppress(Exception):  # the cluster may be gone by now
            client.close(timeout=_CLOSE)


@attrs.frozen
class DaskExecutor:
    """See ``dask``."""

    _client: Client

    def submit_job(self, job: Job) -> Future[Any]:
        """See ``Executor``; a job that must not run twice takes a claim where it runs."""
        claim = None if job.tool.idempotent else DaskClaim()
        written = job.written(None if claim is None else claim.take)
        if self._client.status != "running":
            raise BrokenExecutor(f"the Dask client is {self._client.status}")
        try:  # not pure: two steps with the same call are two calls
            task = self._client.get_executor(pure=False).submit(run_job, written)
        except Exception as error:
            raise BrokenExecutor("the Dask cluster takes no more tasks") from error
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # Dask's own cancelling does not stop what runs

        def settle(done: Future[bytes]) -> None:
            from distributed import KilledWorker

            if claim is not None:
                with suppress(Exception):  # the scheduler may be gone
                    claim.drop(self._client)
            try:
                future.set_result(done.result())
            except KilledWorker:
                future.set_exception(WorkerLost(job.lost()))
            except CancelledError:
                future.set_exception(BrokenExecutor("the Dask cluster gave the task up"))
            except BaseException as error:  # noqa: BLE001 - it is raised where the job was submitted
                future.set_exception(error)

        task.add_done_callback(settle)
        return future


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

    def drop(self, client: Any) -> None:
        """Forget it, when its job is over; the client's event loop does it later."""
        client.loop.add_callback(client.scheduler.event_clear, name=self.name)

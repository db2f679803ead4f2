"""The workers of a Dask cluster as an executor."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, CancelledError, Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import attrs

from planning.workflow.executors.jobs import Job, run_job
from planning.workflow.failures import WorkerLost

if TYPE_CHECKING:
    from distributed import Client

_CONNECT: Final = 5.0  # seconds


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
    """Whether this worker is the first to begin a job; called where the job runs.

    The scheduler keeps the claim, so that it outlives the worker.
    """
    from distributed import Event, get_client

    # Dask runs a task again only after its worker was given up: no two workers ask at the same moment.
    event = Event(name, client=get_client())
    if event.is_set():
        return False
    event.set()
    return True

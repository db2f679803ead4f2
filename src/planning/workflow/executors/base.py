"""What an executor is, and how the outcome of a job becomes that of a step."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Protocol, runtime_checkable

import attrs

from planning.tools.errors import ToolTimeout
from planning.workflow.executors.jobs import Job, reason, run_job, unpack
from planning.workflow.failures import StepFailed, WorkerLost

__all__ = [
    "AnyExecutor",
    "Executor",
    "ExecutorLost",
    "ExecutorUnavailable",
    "as_executor",
    "run_on",
]


class ExecutorUnavailable(Exception):
    """An executor cannot be opened; the text says why, on one line."""


class ExecutorLost(WorkerLost):
    """The executor runs nothing any more: the remaining steps wait for another."""


@runtime_checkable
class Executor(Protocol):
    """A place where the functions of steps run, besides the event loop.

    To add one, write a class with this method, and give an instance to ``run_workflow(executor=...)``. Where
    calls cannot have a deadline, nor be repeated, any ``concurrent.futures.Executor`` does as well: its
    ``submit`` is used.
    """

    def submit_job(self, job: Job) -> Future[Any]:
        """Hand over a job, and return at once.

        In this process, call ``job.run()``. In another one, call ``run_job(written)`` with the bytes that
        ``job.written()`` returned here. What that gives is the result of the future, unchanged: neither
        raises, and errors of the function are part of it.

        The future may be cancelled as long as the job has not begun. It fails with

        - ``WorkerLost(job.lost())`` if the worker that ran the job died. Where another worker is there, the
          job may be run again first, but only if ``job.tool.idempotent``.
        - ``TimeoutError`` if the job took longer than ``job.seconds`` and its worker was ended.
        - ``BrokenExecutor`` if the executor will run nothing any more.

        Raises:
            Exception: The job was not taken, and never begins.
        """
        ...


AnyExecutor = Executor | concurrent.futures.Executor
"""What ``run_workflow(executor=...)`` takes."""


@attrs.frozen
class _Pool:
    """Any executor of the standard library's kind."""

    pool: concurrent.futures.Executor

    def submit_job(self, job: Job) -> Future[Any]:
        if isinstance(self.pool, ThreadPoolExecutor):
            return self.pool.submit(copy_context().run, job.run)
        return self.pool.submit(run_job, job.written())


def as_executor(executor: Any) -> Executor:
    """An executor of this package's kind.

    Raises:
        TypeError: It is neither that nor of the standard library's kind.
    """
    if isinstance(executor, Executor):
        return executor
    if callable(getattr(executor, "submit", None)):
        return _Pool(executor)
    raise TypeError(
        f"executor must be a concurrent.futures.Executor, got {type(executor).__name__}; write "
        "planning.workflow.executors.dask(client) for a Dask client"
    )


async def run_on(executor: AnyExecutor, job: Job, begun: Callable[[Future[Any]], object]) -> Any:
    """Run a job on an executor, and return or raise what its function does.

    Args:
        executor: Where.
        job: The call.
        begun: Called with the future, which may be cancelled as long as the job has not begun.

    Raises:
        StepFailed: The call could not be sent, or its worker or the executor is lost.
    """
    outcome = await _outcome(as_executor(executor), job, begun)
    return unpack(outcome) if isinstance(outcome, bytes) else outcome()


async def _outcome(executor: Executor, job: Job, begun: Callable[[Future[Any]], object]) -> Any:
    """The outcome of a job that raises nothing itself: all that is raised here is the executor's."""
    name = job.tool.name
    try:
        future = executor.submit_job(job)
    except StepFailed:
        raise
    except Exception as error:  # noqa: BLE001 - an executor may refuse in any way
        why = f"the executor takes no jobs ({reason(error)}); resume with another"
        raise ExecutorLost(f"{name} was not run: {why}") from None
    begun(future)
    try:
        return await asyncio.wrap_future(future)
    except BrokenExecutor:
        raise ExecutorLost(f"{job.lost()}; the executor is broken, resume with another") from None
    except WorkerLost:
        raise
    except TimeoutError:
        after = "" if job.seconds is None else f" than {job.seconds:g} s"
        message = f"{name} took longer{after} and was given up; call it again, or go on without it"
        raise ToolTimeout(message) from None
    except Exception as error:  # noqa: BLE001 - an executor may fail in any way
        raise StepFailed(f"the executor could not run {name} ({reason(error)})", "not_sent") from None

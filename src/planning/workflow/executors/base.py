"""What an executor is, and how the outcome of a job becomes that of a step."""

from __future__ import annotations

import asyncio
import concurrent.futures
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Protocol, runtime_checkable

from planning.tools.errors import ToolTimeout
from planning.workflow.executors.jobs import Job, reason, run_job, unpack
from planning.workflow.failures import StepFailed, WorkerLost

__all__ = ["AnyExecutor", "Executor", "ExecutorUnavailable", "check_executor", "outcome_of", "submit"]


class ExecutorUnavailable(Exception):
    """An executor cannot be opened; the text says why, on one line."""


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


def check_executor(executor: object) -> None:
    """Refuse what is not an executor.

    Raises:
        TypeError: It has neither ``submit_job`` nor ``submit``.
    """
    if not (hasattr(executor, "submit_job") or hasattr(executor, "submit")):
        raise TypeError(f"executor must be a concurrent.futures.Executor, got {type(executor).__name__}")


def submit(executor: AnyExecutor, job: Job) -> Future[Any]:
    """Hand a job to an executor.

    Raises:
        StepFailed: The call cannot be sent, or the executor does not take it.
    """
    try:
        if isinstance(executor, Executor):
            return executor.submit_job(job)
        if isinstance(executor, ThreadPoolExecutor):
            return executor.submit(copy_context().run, job.run)
        return executor.submit(run_job, job.written())
    except StepFailed:
        raise
    except Exception as error:  # noqa: BLE001 - an executor may refuse in any way
        why = f"the executor takes no jobs ({reason(error)}); resume with another"
        raise WorkerLost(f"{job.tool.name} was not run: {why}") from None


async def outcome_of(future: Future[Any], job: Job) -> Any:
    """What the function of a job returns or raises.

    Raises:
        StepFailed: The worker or the executor is lost.
    """
    name = job.tool.name
    try:
        outcome = await asyncio.wrap_future(future)
    except BrokenExecutor:
        raise WorkerLost(f"{job.lost()}; the executor is broken, resume with another") from None
    except WorkerLost:
        raise
    except TimeoutError:
        after = "" if job.seconds is None else f" than {job.seconds:g} s"
        message = f"{name} took longer{after} and was given up; call it again, or go on without it"
        raise ToolTimeout(message) from None
    except Exception as error:  # noqa: BLE001 - an executor may fail in any way
        raise StepFailed(f"the executor could not run {name} ({reason(error)})", "not_sent") from None
    return unpack(outcome) if isinstance(outcome, bytes) else outcome.result()

"""The interface of an executor, and how the outcome of a job becomes that of a step."""

from __future__ import annotations

import asyncio
import concurrent.futures
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Protocol, runtime_checkable

from planning.tools.errors import GIVEN_UP, ToolTimeout
from planning.workflow.executors.jobs import Job, reason, run_job, unpack
from planning.workflow.failures import StepFailed, WorkerLost


class ExecutorUnavailable(Exception):
    """An executor cannot be opened; the message says why, on one line."""


@runtime_checkable
class JobExecutor(Protocol):
    """An executor of this package: it ends a job at its time, and runs it again where its worker died.

    The result of the future is what ``job.run()`` or ``run_job(job.written())`` returns. It fails with
    ``WorkerLost`` if the worker died, ``TimeoutError`` if the job took longer than ``job.seconds``, and
    ``BrokenExecutor`` if the executor will run nothing any more.
    """

    def submit_job(self, job: Job) -> Future[Any]:
        """Hand over a job, and return at once."""
        ...


AnyExecutor = JobExecutor | concurrent.futures.Executor
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
        if isinstance(executor, ThreadPoolExecutor):
            return executor.submit(copy_context().run, job.run)
        if isinstance(executor, JobExecutor):
            return executor.submit_job(job)
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
        raise ToolTimeout(f"{name} took longer{after} and {GIVEN_UP}") from None
    except Exception as error:  # noqa: BLE001 - an executor may fail in any way
        raise StepFailed(f"the executor could not run {name} ({reason(error)})", "not_sent") from None
    return unpack(outcome) if isinstance(outcome, bytes) else outcome.result()

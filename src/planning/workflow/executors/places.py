"""Running the function of a step on an executor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from typing import Any, NoReturn

from planning.tools.context import ToolContext
from planning.tools.errors import ToolTimeout
from planning.tools.tool import Tool
from planning.workflow.executors.base import AnyExecutor, Executor, Job, as_executor
from planning.workflow.executors.jobs import NotStarted, reason, unpack
from planning.workflow.failures import StepFailed, WorkerLost

__all__ = ["ExecutorLost", "run_on"]


class ExecutorLost(WorkerLost):
    """The executor runs nothing any more: what is left has to wait for another."""


async def run_on(
    executor: AnyExecutor,
    tool: Tool,
    params: Any,
    context: ToolContext,
    seconds: float | None,
    begun: Callable[[Future[Any]], object],
) -> Any:
    """Run a tool's function on an executor, and wait for its outcome.

    Args:
        executor: Where.
        tool: Whose function.
        params: Its parameters, checked.
        context: What it is given beside them; in another process it has no session.
        seconds: How long the function has; the time before it begins does not count.
        begun: Called with the future, which may be cancelled as long as the job has not begun.

    Raises:
        StepFailed: The call could not be sent, or its worker is lost.
        Exception: Whatever the function raises.
    """
    job = Job(tool, params, context, seconds)
    outcome = await _outcome(as_executor(executor), job, begun)
    return unpack(outcome) if isinstance(outcome, bytes) else outcome()


async def _outcome(executor: Executor, job: Job, begun: Callable[[Future[Any]], object]) -> Any:
    """The outcome of a job that raises nothing itself: all that is raised here is the executor's.

    Raises:
        ExecutorLost: It runs nothing any more.
        WorkerLost: The worker died.
        ToolTimeout: The worker hung, and was ended.
        StepFailed: The executor cannot run such a job.
    """
    try:
        future = executor.submit_job(job)
    except StepFailed:
        raise
    except Exception as error:  # noqa: BLE001 - an executor may refuse in any way
        _refused(job, error)
    begun(future)
    try:
        return await asyncio.wrap_future(future)
    except NotStarted as error:
        _refused(job, error)
    except BrokenExecutor:
        raise ExecutorLost(f"{job.lost()}; the executor is broken, resume with another") from None
    except WorkerLost:
        raise
    except TimeoutError:
        after = "" if job.seconds is None else f" than {job.seconds:g} s"
        message = f"{job.tool.name} took longer{after} and was given up"
        raise ToolTimeout(f"{message}; call it again, or go on without it") from None
    except Exception as error:  # noqa: BLE001 - an executor may fail in any way
        message = f"the executor could not run {job.tool.name} ({reason(error)})"
        raise StepFailed(message, "not_sent") from None


def _refused(job: Job, error: Exception) -> NoReturn:
    message = (
        f"{job.tool.name} was not run: the executor takes no jobs ({reason(error)}); resume with another"
    )
    raise ExecutorLost(message) from None

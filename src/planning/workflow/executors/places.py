"""Where the functions of steps are run when that is not the event loop: handing jobs to an executor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, NoReturn

from planning.tools.context import ToolContext
from planning.tools.errors import ToolTimeout
from planning.tools.parameters.signature import is_of_type, read_signature
from planning.tools.pipeline import CallPipeline
from planning.tools.tool import Tool, ToolSpec
from planning.workflow.executors.jobs import NotStarted, dumps, pack, reason, run_job, told_lost, unpack
from planning.workflow.failures import StepFailed, WorkerLost

__all__ = ["ExecutorLost", "check_executor", "run_on", "takes_context"]

_GRACE = 1.0
"""The seconds that a worker has beyond those of its job, which it gives up itself if it can."""


class ExecutorLost(WorkerLost):
    """The executor runs nothing any more: what is left has to wait for another."""


def check_executor(executor: object) -> None:
    """Refuse what is no executor.

    Raises:
        TypeError: It has no ``submit``.
    """
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"executor must be a concurrent.futures.Executor, got {type(executor).__name__}; write "
            "planning.workflow.executors.dask(client) for a Dask client"
        )


async def run_on(
    executor: Executor,
    tool: Tool,
    params: Any,
    context: ToolContext,
    seconds: float | None,
    begun: Callable[[Future[Any]], object],
) -> Any:
    """Run a tool's function on an executor, and wait for what comes of it.

    Args:
        executor: A pool of threads is handed the call as it is; any other a call that was written down.
        tool: Whose function.
        params: Its parameters, checked.
        context: What it is given beside them; in another process it has no session.
        seconds: How long the function has; the time before it begins does not count.
        begun: Told the future, which may be cancelled as long as the job has not begun.

    Raises:
        StepFailed: The call could not be sent, or its worker is lost.
        Exception: Whatever the function raises.
    """
    if isinstance(executor, ThreadPoolExecutor):
        path = CallPipeline(context, timeout=seconds)
        call = partial(executor.submit, copy_context().run, _caught, path, tool, params)
        return (await _outcome(call, tool, begun))()
    values = context.values if takes_context(tool) else _without_memory(context.values)
    claim = executor.new_claim() if not tool.idempotent and hasattr(executor, "new_claim") else None
    written = pack(tool, params, values, seconds, write=getattr(executor, "write", dumps), claim=claim)
    try:
        return unpack(await _answer(executor, tool, written, seconds, begun))
    finally:
        if claim is not None:
            await asyncio.shield(asyncio.to_thread(_drop, executor, claim))


async def _answer(
    executor: Executor,
    tool: Tool,
    written: bytes,
    seconds: float | None,
    begun: Callable[[Future[Any]], object],
) -> bytes:
    """What a worker writes back; another is asked where one died and a second call does no harm."""
    submit = executor.submit
    if seconds is not None and hasattr(executor, "submit_within"):
        submit = partial(executor.submit_within, seconds + _GRACE)
    lost, most = 0, getattr(executor, "most_losses", 1)
    while True:
        try:
            answer: bytes = await _outcome(partial(submit, run_job, written), tool, begun)
        except ExecutorLost:
            raise
        except WorkerLost:
            lost += 1
            if lost >= most or not tool.idempotent:
                raise WorkerLost(told_lost(tool, most)) from None
        except TimeoutError:
            told = f"{tool.name} took longer than {seconds:g} s and was given up"
            raise ToolTimeout(f"{told}; call it again, or go on without it") from None
        else:
            return answer


def _drop(executor: Any, claim: object) -> None:
    with suppress(Exception):  # there may be nobody left who knows of it
        executor.drop_claim(claim)


def _without_memory(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in values.items() if name != "memory"}


async def _outcome(
    submit: Callable[[], Future[Any]], tool: Tool, begun: Callable[[Future[Any]], object]
) -> Any:
    """What comes of a job that raises nothing itself: all that is raised here is the executor's.

    Raises:
        ExecutorLost: It runs nothing any more.
        WorkerLost: The worker died.
        TimeoutError: The worker hung, and was ended.
        StepFailed: The executor cannot run such a job.
    """
    try:
        future = submit()
    except Exception as error:  # noqa: BLE001 - an executor may refuse in any way
        _refused(tool, error)
    begun(future)
    try:
        return await asyncio.wrap_future(future)
    except NotStarted as error:
        _refused(tool, error)
    except BrokenExecutor:
        raise ExecutorLost(f"{told_lost(tool)}; the executor is broken, resume with another") from None
    except (WorkerLost, TimeoutError):
        raise
    except Exception as error:  # noqa: BLE001 - an executor may fail in any way
        raise StepFailed(f"the executor could not run {tool.name} ({reason(error)})", "not_sent") from None


def _refused(tool: Tool, error: Exception) -> NoReturn:
    told = f"{tool.name} was not run: the executor takes no jobs ({reason(error)}); resume with another"
    raise ExecutorLost(told) from None


def _caught(path: CallPipeline, tool: Tool, params: Any) -> Callable[[], Any]:
    """What came of a call, apart from what its thread pool raises: a tool may have a pool of its own."""
    try:
        outcome = path.attempt(tool, params)
    except BaseException as error:  # noqa: BLE001 - it is raised again where the call was made
        return partial(_raise, error)
    return lambda: outcome


def _raise(error: BaseException) -> NoReturn:
    raise error


def takes_context(tool: Tool) -> bool:
    """Whether a tool's function may look at its context; when in doubt, yes."""
    parameters = read_signature(tool.function).parameters
    if tool.parameters is None:
        return any(is_of_type(tool.function, name, ToolContext) for name in parameters)
    return not parameters or len(parameters) > 1 + isinstance(tool.parameters, ToolSpec)

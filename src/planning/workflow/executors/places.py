"""Where the functions of steps are run when that is not the event loop: handing jobs to an executor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from planning.tools.contract import Tool, ToolContext
from planning.tools.path import Path
from planning.workflow.executors.jobs import dumps, pack, run_job, told_lost, unpack
from planning.workflow.run.callables import takes_context
from planning.workflow.run.failures import WorkerLost

__all__ = ["ExecutorLost", "check_executor", "run_on"]


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
        path = Path(context, timeout=seconds)
        return await _outcome(executor, begun, copy_context().run, path.attempt, tool, params)
    values = context.values if takes_context(tool) else _without_memory(context.values)
    claim = executor.new_claim() if not tool.idempotent and hasattr(executor, "new_claim") else None
    written = pack(tool, params, values, seconds, write=getattr(executor, "write", dumps), claim=claim)
    losses, most = 0, getattr(executor, "most_losses", 1) if tool.idempotent else 1
    try:
        while True:
            try:
                return unpack(await _outcome(executor, begun, run_job, written))
            except ExecutorLost:
                raise ExecutorLost(
                    f"{told_lost(tool)}; the executor is broken, resume with another"
                ) from None
            except WorkerLost:
                losses += 1
                if losses >= most:
                    raise WorkerLost(told_lost(tool, getattr(executor, "most_losses", 1))) from None
    finally:
        if claim is not None:
            await asyncio.shield(asyncio.to_thread(executor.drop_claim, claim))  # type: ignore[attr-defined] # it gave the claim


def _without_memory(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in values.items() if name != "memory"}


async def _outcome(executor: Executor, begun: Callable[[Future[Any]], object], *call: Any) -> Any:
    try:
        future = executor.submit(*call)
        begun(future)
        return await asyncio.wrap_future(future)
    except BrokenExecutor as error:
        raise ExecutorLost from error

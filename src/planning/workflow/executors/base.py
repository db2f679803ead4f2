"""What an executor is, and the job that it is given."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, NoReturn, Protocol, runtime_checkable

import attrs

from planning.tools.context import ToolContext
from planning.tools.parameters.signature import is_of_type, read_signature
from planning.tools.pipeline import CallPipeline
from planning.tools.tool import Tool, ToolSpec
from planning.workflow.executors.jobs import Claim, Dumps, dumps, lost_message, pack, run_job

__all__ = ["AnyExecutor", "Executor", "ExecutorUnavailable", "Job", "as_executor", "takes_context"]


class ExecutorUnavailable(Exception):
    """An executor cannot be opened; the text says why, on one line."""


@attrs.frozen
class Job:
    """One call of a tool's function, to be made once.

    Attributes:
        tool: Whose function.
        params: Its parameters, checked.
        context: What it is given beside them; in another process it has no session.
        seconds: How long the function has; the time before it begins does not count. None for no limit.
    """

    tool: Tool
    params: Any
    context: ToolContext
    seconds: float | None

    def run(self) -> Callable[[], Any]:
        """Make the call in this process, in any thread; never raises."""
        try:
            outcome = CallPipeline(self.context, timeout=self.seconds).attempt(self.tool, self.params)
        except BaseException as error:  # noqa: BLE001 - it is raised again where the call was made
            return partial(_raise, error)
        return lambda: outcome

    def written(self, write: Dumps = dumps, claim: Claim | None = None) -> bytes:
        """The call for another process, where ``run_job`` makes it.

        Args:
            write: What pickles.
            claim: Taken before the function runs, where the executor may run a job again by itself.

        Raises:
            StepFailed: The function or its parameters cannot be pickled.
        """
        values = self.context.values
        if not takes_context(self.tool):
            values = _without_memory(values)
        return pack(self.tool, self.params, values, self.seconds, write=write, claim=claim)

    def lost(self, times: int = 1) -> str:
        """The message of a ``WorkerLost``: so many workers that ran this job died, one after the other."""
        return lost_message(self.tool, times)


@runtime_checkable
class Executor(Protocol):
    """A place where the functions of steps run, besides the event loop.

    To add one, write a class with this method, and give an instance to ``run_workflow(executor=...)``. Where
    calls cannot have a deadline of their own, nor be repeated, any ``concurrent.futures.Executor`` does as
    well: its ``submit`` is used. To give it a name on the command line, add a row to ``named.KINDS``.
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
        - ``NotStarted`` if no worker could be started: the job did not begin.
        - ``BrokenExecutor`` if the executor will run nothing any more.

        Raises:
            Exception: The job was not taken, and never begins.
        """
        ...


AnyExecutor = Executor | concurrent.futures.Executor
"""What ``run_workflow(executor=...)`` takes."""


@attrs.frozen
class _InThreads:
    """The threads of a pool."""

    pool: ThreadPoolExecutor

    def submit_job(self, job: Job) -> Future[Any]:
        return self.pool.submit(copy_context().run, job.run)


@attrs.frozen
class _Elsewhere:
    """Any executor of the standard library's kind: it may pickle what it is given."""

    pool: concurrent.futures.Executor

    def submit_job(self, job: Job) -> Future[Any]:
        return self.pool.submit(run_job, job.written())


def as_executor(executor: Any) -> Executor:
    """An executor of this package's kind.

    Raises:
        TypeError: It is neither that nor of the standard library's kind.
    """
    if isinstance(executor, Executor):
        return executor
    if isinstance(executor, ThreadPoolExecutor):
        return _InThreads(executor)
    if callable(getattr(executor, "submit", None)):
        return _Elsewhere(executor)
    raise TypeError(
        f"executor must be a concurrent.futures.Executor, got {type(executor).__name__}; write "
        "planning.workflow.executors.dask(client) for a Dask client"
    )


def takes_context(tool: Tool) -> bool:
    """Whether a tool's function may look at its context; when in doubt, yes."""
    parameters = read_signature(tool.function).parameters
    if tool.parameters is None:
        return any(is_of_type(tool.function, name, ToolContext) for name in parameters)
    return not parameters or len(parameters) > 1 + isinstance(tool.parameters, ToolSpec)


def _without_memory(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in values.items() if name != "memory"}


def _raise(error: BaseException) -> NoReturn:
    raise error

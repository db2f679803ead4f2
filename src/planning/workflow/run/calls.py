"""The calls of steps: attempts, timeouts, executors, and interrupted calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from copy import deepcopy
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import attrs

from planning.tools.context import ToolContext
from planning.tools.errors import (
    SORRY,
    CircuitOpen,
    ErrorKind,
    PrivateFailure,
    RateLimitExceeded,
)
from planning.tools.guard import Retry
from planning.tools.outcome import failed
from planning.tools.pipeline import CallPipeline
from planning.tools.result import ToolResult
from planning.tools.tool import Tool
from planning.workflow.executors.jobs import AnyExecutor, Job, outcome_of, submit
from planning.workflow.failures import StepFailed, StepFailure, WorkerLost
from planning.workflow.model import WorkflowStep
from planning.workflow.run.values import Copies, RunValues
from planning.workflow.run.writer import Writer
from session import Session

if TYPE_CHECKING:
    from planning.tools.rate_limit import RateLimiter

_MAY_PASS = frozenset({ErrorKind.STORAGE, ErrorKind.TIMEOUT, ErrorKind.RATE_LIMIT, ErrorKind.CIRCUIT_OPEN})


@attrs.frozen
class Ended(Exception):
    """The run must end: a tool ends the program, or the session refuses a change.

    Attributes:
        error: What was raised. KeyboardInterrupt itself would end one task after the other.
    """

    error: BaseException


@attrs.frozen
class _Passing(Exception):
    """A tool returned a failure that may pass by itself, instead of raising one."""

    error: StepFailure


@attrs.define
class StepCall:
    """One step's call and its state.

    Attributes:
        step: The step.
        tool: What it calls.
        inputs: The inputs, with their references resolved.
        attempt: Which attempt it is, from 1; 0 before the first.
        called: Whether the function was called, or may have been.
        future: The job on an executor.
        error: What failed in this attempt beside the tool: the session or the executor.
    """

    step: WorkflowStep
    tool: Tool
    inputs: dict[str, Any]
    attempt: int = 0
    called: bool = False
    future: Future[Any] | None = None
    error: Exception | None = None


@attrs.frozen
class Caller:
    """Makes the calls of a run.

    Their contexts show some values and the memory. ``begin`` records that a call is about to be made, or made
    again. Calls that nothing sets apart share a pipeline.
    """

    _session: Session
    _executor: AnyExecutor | None
    _timeout: float | None
    _shown: Mapping[str, Any]
    _values: RunValues
    _limiter: Callable[[], RateLimiter] | None
    _writer: Writer
    _begin: Callable[[StepCall], None]
    _shared: CallPipeline = attrs.field(init=False)

    @_shared.default
    def _make_shared(self) -> CallPipeline:
        context = ToolContext(self._session)
        return CallPipeline(context, limiter=self._limiter, timeout=self._timeout, tell=self._writer.tell)

    async def call(self, call: StepCall) -> ToolResult | StepFailure | None:
        """Make a call, again where its failure may pass by itself and the step has retries.

        Raises:
            Ended: The tool ends the program, or the session takes no changes.
        """
        started = perf_counter()
        try:
            if not call.step.retries or not call.tool.idempotent:
                return await self._try(call)
            retry = Retry(attempts=1 + call.step.retries, on=(RateLimitExceeded, CircuitOpen, _Passing))
            return await retry.arun(partial(self._try, call), call.tool.name)
        except GeneratorExit:  # the coroutine is closed unfinished
            raise
        except _Passing as report:
            return report.error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                return None
            return _error(failed(call.tool.name, error, started, tool=call.tool))  # it cancelled itself
        except BaseException as error:  # noqa: BLE001 - a tool may fail in any way
            cause = call.error or error  # a tool with private data does not show it
            if isinstance(cause, Ended):
                raise cause from None
            if isinstance(cause, StepFailed):
                return cause.error
            return _error(failed(call.tool.name, error, started, tool=call.tool))

    async def _try(self, call: StepCall) -> ToolResult | StepFailure:
        call.attempt += 1
        call.called = call.tool.idempotent  # for the others ``_run`` records it
        call.error = call.future = None
        self._begin(call)
        try:
            await self._writer.written()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - a session may refuse a change in any way; the run raises it
            raise Ended(error) from None
        if self._executor is None and _can_be_cancelled(call.tool):
            return await self._make(call)
        return await self._make_to_its_end(call)

    async def _make_to_its_end(self, call: StepCall) -> ToolResult | StepFailure:
        """Make a call that is not cancelled when the run is to stop, but awaited.

        A thread or a process cannot be stopped, and the outcome of a call that must not be made twice
        must be known. A job that has not begun is withdrawn; a second cancelling gives up.
        """
        task = asyncio.ensure_future(self._make(call))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if call.future is not None and call.future.cancel() and not call.tool.idempotent:
                call.called = False
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            raise
        except Exception:
            if call.step.retries and call.tool.idempotent:
                raise asyncio.CancelledError from None  # there is no other attempt
            raise

    async def _make(self, call: StepCall) -> ToolResult | StepFailure:
        inputs = call.inputs
        if call.step.retries:  # another attempt must not see what this one changes
            inputs = deepcopy(inputs)
        try:
            result = await self._pipeline(call).acall(call.tool, inputs, raises=True)
        except (KeyboardInterrupt, SystemExit) as error:
            raise Ended(error) from None
        except PrivateFailure as error:
            if error.kind in _MAY_PASS and call.error is None:
                raise _Passing(StepFailure(error.message, SORRY, str(error.kind))) from None
            raise
        if not result.success:
            reported = _error(result)
            if result.is_private:
                reported = StepFailure(f"{call.tool.name} reported a failure", SORRY, str(result.code))
            if result.code in _MAY_PASS:
                raise _Passing(reported)
            return reported
        form = await self._values.take(result.value, call.tool.name)
        return result if form is result.value else attrs.evolve(result, value=form)

    def _pipeline(self, call: StepCall) -> CallPipeline:
        tool = call.tool
        is_here = self._executor is None and tool.idempotent
        if is_here and tool.publishes == "call" and not tool.takes_context and tool.diagnose is None:
            return self._shared
        values = {
            **self._shown,
            "memory": Copies(self._values.memory),
            "step_id": call.step.step_id,
            "description": call.step.description,
        }
        context = ToolContext(self._session, values)
        runner = None if is_here else partial(self._run, call, context)
        tell = self._writer.tell if tool.publishes == "call" else None
        return CallPipeline(context, limiter=self._limiter, timeout=self._timeout, runner=runner, tell=tell)

    async def _run(
        self,
        call: StepCall,
        context: ToolContext,
        tool: Tool,
        params: Any,
        seconds: float | None,
        here: Callable[[], Awaitable[Any]],
    ) -> Any:
        """Record that the function may have been called from now on, and run it."""
        if not call.called:
            call.called = True
            self._begin(call)
            try:
                await self._writer.write()
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                call.error, call.called = Ended(error), False
                self._begin(call)
                raise
        if self._executor is None or tool.publishes == "own":  # what publishes needs its session
            return await here()
        job = Job(tool, params, context, seconds)
        try:
            call.future = submit(self._executor, job)
            return await outcome_of(call.future, job)
        except WorkerLost as error:
            call.error = error
            raise
        finally:
            if call.future is None:  # it never came to the executor
                call.called = False


def _can_be_cancelled(tool: Tool) -> bool:
    """True if a call of a tool ends when it is cancelled, and may be made again."""
    return tool.idempotent and (tool.is_async or not (tool.blocking or tool.timeout))


def _error(result: ToolResult) -> StepFailure:
    code = ErrorKind.UNKNOWN if result.code is None else result.code
    cause = None if result.cause is None or result.cause in result.message else result.cause
    message = result.message
    if code is ErrorKind.BAD_RESULT and cause is not None:
        message = f"{message} Reason: {cause}."  # for the developer: a model cannot fix that
    return StepFailure(message, result.user_message or SORRY, str(code), cause)

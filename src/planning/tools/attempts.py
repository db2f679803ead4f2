"""Running a tool's function: with a timeout and retries, here or elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, partial
from time import perf_counter
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from planning.errors import ToolError
from planning.tools.context import ToolContext
from planning.tools.contract import ToolContract
from planning.tools.outcome import failed, may_pass, settled, withholding
from planning.tools.result import ToolResult
from session import StoreError

if TYPE_CHECKING:
    from session import Session

T = TypeVar("T")

Runner = Callable[[ToolContract, Any, float | None, Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Runs a tool's function somewhere: given the tool, its parameters, the seconds that it has, and how it would
be run here; returns what the function returns, and raises what it raises."""


class Attempts:
    """Runs the functions of tools.

    Attributes:
        context: What they are given.
    """

    __slots__ = ("_runner", "_timeout", "context")

    def __init__(self, context: ToolContext, timeout: float | None, runner: Runner | None) -> None:
        self.context = context
        self._timeout = timeout
        self._runner = runner

    def attempt(self, tool: ToolContract, params: Any) -> Any:
        """Run a tool's function, its timeout and its tries included, and nothing else of the path.

        For the far end of an executor: everything else is done where the call was made.

        Raises:
            Exception: Whatever the tool itself raises.
        """
        if tool.is_async:
            return background().run_coroutine(partial(self._here, tool, params, perf_counter()), tool.name)
        return self._try(tool, params, perf_counter())

    async def off_loop(self, name: str, session: Session | None, answer: Callable[[], T]) -> T | ToolResult:
        """Answer a call of a tool in async code: a session's store must not hold the event loop."""
        if session is None or session.store is None:
            return answer()
        try:
            return await session.off_loop(answer)
        except StoreError as error:  # no thread can be started, and nothing was done
            return failed(name, error, perf_counter())

    def _run(self, tool: ToolContract, params: Any, started: float) -> ToolResult:
        if tool.is_async:
            coroutine = partial(self._arun, tool, params, started)
            result: ToolResult = background().run_coroutine(coroutine, tool.name)
            return result
        with withholding(tool):
            return settled(tool, self._try(tool, params, started), started)

    async def _arun(self, tool: ToolContract, params: Any, started: float) -> ToolResult:
        with withholding(tool):
            return settled(tool, await self._atry(tool, params, started), started)

    def _try(self, tool: ToolContract, params: Any, started: float) -> Any:
        seconds = self._seconds(tool)
        if seconds is not None:
            attempts = self._attempts(tool, params)
            return background().run_in_thread(attempts, tool.name, seconds, _spent(started))
        return self._attempts(tool, params)()

    async def _atry(self, tool: ToolContract, params: Any, started: float) -> Any:
        here = partial(self._here, tool, params, started)
        if self._runner is None:
            return await here()
        return await self._runner(tool, params, self._seconds(tool), here)

    async def _here(self, tool: ToolContract, params: Any, started: float) -> Any:
        seconds = self._seconds(tool)
        if tool.is_async:
            call = self._one(tool, params)
            coroutine = (
                call() if tool.retry is None else tool.retry.arun(call, tool.name, partial(may_pass, tool))
            )
            return await background().await_within(coroutine, tool.name, seconds, _spent(started))
        if tool.blocking or seconds is not None:
            attempts = self._attempts(tool, params)
            return await background().run_off_loop(attempts, tool.name, seconds, _spent(started))
        return self._try(tool, params, started)

    def _seconds(self, tool: ToolContract) -> float | None:
        """How long a call may take. A tool that does not block is not put into a thread to be timed."""
        if tool.timeout is None and (tool.blocking or tool.is_async):
            return self._timeout
        return tool.timeout

    def _attempts(self, tool: ToolContract, params: Any) -> Callable[[], Any]:
        call = self._one(tool, params)
        return (
            call if tool.retry is None else partial(tool.retry.run, call, tool.name, partial(may_pass, tool))
        )

    def _one(self, tool: ToolContract, params: Any) -> Callable[[], Any]:
        """One attempt; there is no other once the caller has stopped waiting."""
        call = partial(tool.run, params, self.context)
        if tool.retry is None:
            return call

        def call_unless_given_up() -> Any:
            if background().is_given_up():
                raise ToolError(f"the caller no longer waits for {tool.name}")
            return call()

        return call_unless_given_up


def _spent(started: float) -> float:
    return perf_counter() - started


@cache
def background() -> ModuleType:
    """What needs asyncio, which most calls do not load."""
    from planning.tools import background  # noqa: PLC0415 - it needs asyncio

    return background

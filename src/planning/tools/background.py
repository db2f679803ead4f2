"""Running blocking code: plain functions in separate threads, coroutines from plain code.

Each call has its own thread, which the interpreter does not wait for at its end: a tool that hangs
takes no thread from those that come after it, as it would from a pool.
"""

from __future__ import annotations

import asyncio
import threading
import types
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, TypeVar

from planning.tools.errors import GIVEN_UP, ToolError, ToolTimeout

__all__ = [
    "Future",
    "await_within",
    "is_given_up",
    "run_coroutine",
    "run_in_thread",
    "run_off_loop",
]

T = TypeVar("T")

_JOBS: ContextVar[tuple[_Job, ...]] = ContextVar("jobs", default=())


def is_given_up() -> bool:
    """Whether the caller of the tool that runs here has stopped waiting: it can stop what it started."""
    return any(job.is_given_up for job in _JOBS.get())


class _Job:
    """One call in its thread, and its outcome, which only the caller receives."""

    def __init__(self, function: Callable[[], Any], name: str, done: Callable[[], object]) -> None:
        self.is_given_up = False
        self._function = function
        self._done = done
        self._outcome: Any = None
        self._error: BaseException | None = None
        context = copy_context()
        self.thread = threading.Thread(
            target=context.run, args=(self._run,), name=f"tool {name}", daemon=True
        )
        self.thread.start()

    def _run(self) -> None:
        _JOBS.set((*_JOBS.get(), self))
        try:
            self._outcome = self._function()
        except BaseException as error:  # noqa: BLE001 - it is raised again where the call was made
            self._error = error
        finally:
            self._done()

    def result(self) -> Any:
        """What the function returned.

        Raises:
            BaseException: What it raised.
        """
        if self._error is None:
            return self._outcome
        try:
            raise self._error
        finally:
            self._error = None  # its traceback holds this frame


def run_in_thread(function: Callable[[], T], name: str, seconds: float, spent: float = 0.0) -> T:
    """Call a function in a thread and wait for it no longer than so many seconds.

    Raises:
        ToolTimeout: It took longer; it keeps running, and its outcome is ignored.
        BaseException: What the function raised.
    """
    job = _Job(function, name, lambda: None)
    job.thread.join(max(seconds - spent, 0.0))
    if job.thread.is_alive():
        job.is_given_up = True
        raise _too_long(name, seconds)
    result: T = job.result()
    return result


async def run_off_loop(function: Callable[[], T], name: str, seconds: float | None, spent: float = 0.0) -> T:
    """The same from async code, without blocking the event loop; None waits without a limit.

    A task that is cancelled meanwhile stops waiting; the function runs on.
    """
    loop = asyncio.get_running_loop()
    over = loop.create_future()

    def wake() -> None:
        if not over.done():
            over.set_result(None)

    def done() -> None:
        with suppress(RuntimeError):  # the loop is closed: the caller stopped waiting
            loop.call_soon_threadsafe(wake)

    job = _Job(function, name, done)
    try:
        await await_within(over, name, seconds, spent)
    except BaseException:
        job.is_given_up = True
        raise
    result: T = job.result()
    return result


async def await_within(awaitable: Awaitable[T], name: str, seconds: float | None, spent: float = 0.0) -> T:
    """Await something no longer than so many seconds, of which some are spent; None waits without a limit.

    What ends before it waits for anything needs no timer: most of the cost of a short call.

    Raises:
        ToolTimeout: It took longer, and was cancelled.
    """
    if seconds is None:
        return await awaitable
    deadline = asyncio.get_running_loop().time() + seconds - spent
    steps = awaitable.__await__()
    try:
        waiting = next(steps)
    except StopIteration as over:
        result: T = over.value
        return result
    limit = asyncio.timeout_at(deadline)
    try:
        async with limit:
            return await _resumed(steps, waiting)
    except TimeoutError:
        if not limit.expired():
            raise  # the tool's own
    raise _too_long(name, seconds)


@types.coroutine
def _resumed(steps: Generator[Any, Any, T], waiting: Any) -> Generator[Any, Any, T]:
    """The rest of something that has begun and waits."""
    step: Callable[[], Any]
    while True:
        try:
            yield waiting
            step = partial(next, steps)
        except BaseException as error:  # noqa: BLE001 - such as the cancelling of the task: raised where it waits
            step = partial(steps.throw, error)
        try:
            waiting = step()
        except StopIteration as over:
            result: T = over.value
            return result


def run_coroutine(start: Callable[[], Awaitable[T]], name: str) -> T:
    """Run a coroutine to its end from plain code.

    Raises:
        ToolError: There is a running event loop in this thread, which would have to wait for itself.
    """
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise ToolError(
            f"{name} is async: await acall, aexecute or ainvoke from code that runs in an event loop"
        )

    async def run() -> T:
        return await start()

    return asyncio.run(run())


def _too_long(name: str, seconds: float) -> ToolTimeout:
    return ToolTimeout(f"{name} took longer than {seconds:g} s and {GIVEN_UP}")

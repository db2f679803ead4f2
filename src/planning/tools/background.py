"""Running blocking code: plain functions in separate threads, coroutines from plain code.

Each call has its own thread, which the interpreter does not wait for at its end: a tool that hangs
takes no thread from those that come after it, as it would from a pool.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from planning.errors import ToolError
from planning.tools.errors import GIVEN_UP, ToolTimeout

T = TypeVar("T")

_JOBS: ContextVar[tuple[Any, ...]] = ContextVar("jobs", default=())
_CLEAN_UP = 0.5  # seconds that a call has, after its timeout, to clean up
_LONGEST = 3600.0  # seconds after which a clean-up that still runs is cancelled again
_EAGER: dict[str, Any] = {"eager_start": True} if sys.version_info >= (3, 12) else {}
_logger = logging.getLogger("planning.tools")
_logger.addHandler(logging.NullHandler())  # keeps stderr clean if logging is not configured


def is_given_up() -> bool:
    """True if the caller of the tool that runs here has stopped waiting: it can stop what it started."""
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
        """The value that the function returned."""
        if self._error is None:
            return self._outcome
        try:
            raise self._error
        finally:
            self._error = None  # its traceback holds this frame


def run_in_thread(function: Callable[[], T], name: str, seconds: float, spent: float = 0.0) -> T:
    """Call a function in a thread and wait for it no longer than so many seconds."""
    job = _Job(function, name, lambda: None)
    job.thread.join(max(seconds - spent, 0.0))
    if job.thread.is_alive():
        job.is_given_up = True
        raise _too_long(name, seconds)
    result: T = job.result()
    return result


async def run_off_loop(function: Callable[[], T], name: str, seconds: float | None, spent: float = 0.0) -> T:
    """Run a function in a thread, without blocking the event loop; None waits without a limit.

    A task that is cancelled meanwhile stops waiting; the function runs on.
    """
    loop = asyncio.get_running_loop()
    over = loop.create_future()

    def done() -> None:
        with suppress(RuntimeError):  # the loop is closed: the caller stopped waiting
            loop.call_soon_threadsafe(over.set_result, None)

    job = _Job(function, name, done)
    try:
        await asyncio.wait([over], timeout=None if seconds is None else max(seconds - spent, 0.0))
    finally:
        job.is_given_up = not over.done()
    if seconds is not None and job.is_given_up:
        raise _too_long(name, seconds)
    result: T = job.result()
    return result


class _ToolTask(asyncio.Task[Any]):
    """An async call with a timeout; its caller may stop waiting before it has cleaned up."""

    is_given_up = False

    async def give_up(self) -> None:
        """Cancel it, and wait a moment for its clean-up, which may run on afterwards."""
        self.is_given_up = True
        self.cancel()
        # Nothing else need refer to it.
        timer = self.get_loop().call_later(_LONGEST, self.cancel)
        self.add_done_callback(lambda _task: timer.cancel())
        await asyncio.wait([self], timeout=_CLEAN_UP)


class _Outcome:
    """The end of a call. Its repr says nothing: asyncio's logs show that of what a task returns or raises."""

    value: Any
    error: BaseException | None = None


async def _outcome(awaitable: Awaitable[Any]) -> _Outcome:
    """Await the end of a call; one that ends the program would end the loop if its task raised that."""
    _JOBS.set((*_JOBS.get(), asyncio.current_task()))
    outcome = _Outcome()
    try:
        outcome.value = await awaitable
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - it is raised where the call is awaited
        outcome.error = error
    return outcome


async def await_within(awaitable: Awaitable[T], name: str, seconds: float | None, spent: float = 0.0) -> T:
    """Await something no longer than so many seconds, less those spent; None waits without a limit.

    After that it is cancelled, and what it does to clean up has half a second more, then runs on behind.
    """
    if seconds is None:
        return await awaitable
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds - spent
    task = _ToolTask(_outcome(awaitable), loop=loop, **_EAGER)
    try:
        if not (_EAGER or task.done()):
            await asyncio.sleep(0)
        if not task.done():  # what ends before it waits for anything needs no timer
            await asyncio.wait([task], timeout=max(deadline - loop.time(), 0.0))
    finally:
        if not task.done():
            await task.give_up()
    if task.is_given_up:
        raise _too_long(name, seconds, runs_on=not task.done())
    outcome: _Outcome = task.result()
    if outcome.error is not None:
        raise outcome.error
    result: T = outcome.value
    return result


def run_coroutine(start: Callable[[], Awaitable[T]], name: str) -> T:
    """Run a coroutine to its end from plain code."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise ToolError(
            f"{name} is async: await acall, aexecute or ainvoke from code that runs in an event loop"
        )

    async def run() -> T:
        return await start()

    runner = asyncio.Runner()
    try:
        return runner.run(run())
    finally:
        behind = [task for task in asyncio.all_tasks(runner.get_loop()) if isinstance(task, _ToolTask)]
        if behind:
            asyncio.set_event_loop(None)  # as closing does in this thread
            threading.Thread(target=_wind_up, args=(runner, behind), name=f"tool {name}", daemon=True).start()
        else:
            runner.close()


def _wind_up(runner: asyncio.Runner, behind: list[_ToolTask]) -> None:
    """Let clean-ups run to their end, then close their event loop."""
    with runner:
        runner.run(asyncio.wait(behind))


def _too_long(name: str, seconds: float, *, runs_on: bool = True) -> ToolTimeout:
    if runs_on:
        _logger.warning("tool_runs_on", extra={"tool": name})
    return ToolTimeout(f"{name} took longer than {seconds:g} s and {GIVEN_UP}")

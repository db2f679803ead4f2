"""Driving a coroutine to its end, or to where signals stop it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, MappingProxyType
from typing import Any, Final, Generic, TypeVar

EXIT_CODES: Final = MappingProxyType({signal.SIGINT: 130, signal.SIGTERM: 143})
"""The signals that stop a run, and the exit code after each."""

_SAME: Final = 0.1  # seconds; a signal to a process and to its group arrives twice
_SOON: Final = 0.2  # seconds; what stops within them needs no message
_GRACE: Final = 0.5  # seconds that calls have to end once nothing waits for them
_IDLE: Final = 0.1  # seconds that a thread without work has to end

Result = TypeVar("Result")


class Drive(Generic[Result]):
    """Runs a coroutine in a new event loop, and stops it when a signal or ``stop`` asks for it.

    The first SIGINT or SIGTERM cancels the coroutine, which ends its steps. A second one interrupts whatever
    runs in the main thread, and nothing more is waited for.
    """

    def __init__(self, stopping: Callable[[], object] = lambda: None) -> None:
        """Nothing runs yet."""
        self._stopping = stopping
        self._task: asyncio.Task[Result] | None = None
        self._last = 0.0  # when the last signal came, in seconds
        self.result: Result | None = None  # None if it was stopped or failed
        self.error: BaseException | None = None  # also what a tool raised to end the program
        self.signal: signal.Signals | None = None  # the first that came

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> None:
        """Run it to its end; then read ``result``, ``error`` and ``signal``."""
        loop = asyncio.new_event_loop()
        self._task = task = loop.create_task(coroutine)
        is_main = threading.current_thread() is threading.main_thread()  # no other may handle signals
        before = {number: signal.signal(number, self._signalled) for number in EXIT_CODES if is_main}
        try:
            while not task.done():
                try:
                    loop.run_until_complete(asyncio.wait([task]))
                except (KeyboardInterrupt, SystemExit):
                    if self.signal is not None:
                        sys.unraisablehook = lambda _: None  # what is cut off here may be half closed
                        _end(loop)
                        return
            if not task.cancelled():
                self.error = task.exception()
                self.result = task.result() if self.error is None else None
            _end(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        """Ask it to stop. May be called from anywhere."""
        if self._task is not None:
            loop = self._task.get_loop()
            with suppress(RuntimeError):  # the loop is closed: the run is over
                loop.call_soon_threadsafe(self._task.cancel)
                loop.call_soon_threadsafe(loop.call_later, _SOON, self._stopping)

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        before, self._last = self._last, time.monotonic()
        if self._last - before < _SAME:
            return
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)
        self.stop()


def _end(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left; it may fail in silence, and is not waited for longer than a moment."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.set_exception_handler(lambda *_: None)
        with suppress(KeyboardInterrupt, SystemExit):
            loop.run_until_complete(asyncio.wait(left, timeout=_GRACE))


@contextmanager
def leave_if_held_up(code: Callable[[], int]) -> Iterator[None]:
    """Leave the process after the block if threads that it started still run.

    The interpreter would wait for the threads of a pool however long they take, and let others print after
    the end of the output.
    """
    before = set(threading.enumerate())
    yield
    left = [each for each in threading.enumerate() if each not in before and _holds_up(each)]
    for thread in left:
        thread.join(_IDLE)  # an idle thread of a pool ends at once
    if any(thread.is_alive() for thread in left):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code())


def _holds_up(thread: threading.Thread) -> bool:
    """True if the interpreter would wait for a thread; what a session's own does, takes no time."""
    return not (thread.daemon or thread.name.startswith("session ")) or thread.name.startswith("tool ")


def until_signalled(serving: Coroutine[Any, Any, None]) -> signal.Signals | None:
    """Run a server to its end, or until a signal ends it."""
    drive = Drive[None]()
    drive.run(serving)
    if drive.error is not None and drive.signal is None:  # what is cut off in the middle may fail, too
        raise drive.error
    return drive.signal

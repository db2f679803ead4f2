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

__all__ = ["EXIT_CODES", "Drive", "leave_if_held_up", "until_told"]

EXIT_CODES: Final = MappingProxyType({signal.SIGINT: 130, signal.SIGTERM: 143})
"""The signals that stop a run, and the exit code after each."""

_SAME: Final = 0.1  # seconds; a signal to a process and to its group arrives twice
_SOON: Final = 0.2  # seconds; what stops within them needs no message
_LAST_GRACE: Final = 0.5  # seconds that calls have to end once they are cancelled
_IDLE: Final = 0.1  # seconds that a thread without work has to end

Result = TypeVar("Result")


class Drive(Generic[Result]):
    """Runs a coroutine in a new event loop, and stops it when a signal or ``stop`` asks for it.

    The first signal cancels the coroutine, which ends its steps. The second interrupts whatever runs in the
    main thread; half a second later, the drive stops waiting.

    Attributes:
        result: The result of the coroutine; None if it was stopped or failed.
        error: Why it failed.
        signal: The first signal that came.
        ended_by: What a tool raised to end the program.
    """

    def __init__(
        self, start: Callable[[], Coroutine[Any, Any, Result]], stopping: Callable[[], object]
    ) -> None:
        """Nothing runs yet.

        Args:
            start: Makes the coroutine.
            stopping: Called once, in a thread, if it does not stop soon: a tool may keep the loop busy.
        """
        self._start = start
        self._stopping = stopping
        self._is_asked = threading.Event()
        self._is_over = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[Result] | None = None
        self._last = 0.0  # when the last signal came, in seconds
        self.result: Result | None = None
        self.error: Exception | None = None
        self.signal: signal.Signals | None = None
        self.ended_by: BaseException | None = None

    def run(self) -> None:
        """Run it to its end; then read ``result``, ``error`` and ``signal``."""
        threading.Thread(target=self._notify, name="stopping", daemon=True).start()
        try:
            self._run()
        finally:
            self._is_over.set()
            self._is_asked.set()

    def _run(self) -> None:
        loop, task = self._loop, self._loop.create_task(self._start())
        self._task = task
        while not task.done():
            try:
                loop.run_until_complete(asyncio.wait([task]))
            except (KeyboardInterrupt, SystemExit) as error:
                if self.signal is not None:
                    self._give_up(task)
                    return
                self.ended_by = self.ended_by or error  # the engine stops by itself when a tool ends so
        try:
            self.result = task.result()
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            pass
        except Exception as error:  # noqa: BLE001 - the caller reports it
            self.error = error
        with suppress(KeyboardInterrupt, SystemExit):
            self._close()

    def stop(self) -> None:
        """Ask it to stop. May be called from anywhere."""
        if self._task is None:
            return
        with suppress(RuntimeError):  # the loop is closed: the run is over
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._is_asked.set()

    @contextmanager
    def heeding_signals(self) -> Iterator[None]:
        """Stop it on SIGINT and SIGTERM; signals after its end are ignored until the block ends."""
        is_main = threading.current_thread() is threading.main_thread()  # no other may handle signals
        before = {number: signal.getsignal(number) for number in EXIT_CODES if is_main}
        for number in before:
            self._loop.add_signal_handler(number, lambda: None)  # a signal wakes the loop
            signal.signal(number, self._signalled)  # and is acted on where a tool keeps the loop busy
        try:
            yield
        finally:
            if self._task is None:
                self._loop.close()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        if self._task is None:
            raise SystemExit(EXIT_CODES[signal.Signals(number)])  # nothing runs yet
        before, self._last = self._last, time.monotonic()
        if self._task.done() or self._last - before < _SAME:
            return
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)
        self.stop()

    def _notify(self) -> None:
        self._is_asked.wait()
        if not self._is_over.wait(_SOON):
            self._stopping()

    def _give_up(self, task: asyncio.Task[Result]) -> None:
        """Wait for nothing more than what ends at once; what is left may fail in silence."""
        self._loop.set_exception_handler(lambda *_: None)
        task.cancel()
        with suppress(KeyboardInterrupt, SystemExit):
            self._loop.run_until_complete(asyncio.wait([task], timeout=_LAST_GRACE))

    def _close(self) -> None:
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left, timeout=_LAST_GRACE))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


def _holds_up(thread: threading.Thread) -> bool:
    """Whether the interpreter would wait for a thread; what a session's own does, takes no time."""
    return not (thread.daemon or thread.name.startswith("session ")) or thread.name.startswith("tool ")


@contextmanager
def leave_if_held_up(code: Callable[[], int]) -> Iterator[None]:
    """Leave the process after the block if threads that it started still run.

    The interpreter would wait for the threads of a pool however long they take, and let others print after
    the end of the output.

    Args:
        code: Gives the exit code.
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


def until_told(serving: Coroutine[Any, Any, None]) -> signal.Signals | None:
    """Run a server to its end, or until a signal ends it.

    Returns:
        The signal; None where it ended by itself.
    """
    drive = Drive(lambda: serving, lambda: None)
    with drive.heeding_signals():
        drive.run()
    error = drive.error or drive.ended_by
    if error is not None and drive.signal is None:  # what is cut off in the middle may fail, too
        raise error
    return drive.signal

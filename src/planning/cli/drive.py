"""Driving a run to its end, or to where signals stop it; and ending a command at a termination signal."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from planning.workflow.run.result import WorkflowResult

__all__ = ["EXIT_CODES", "Drive", "ending_when_told", "leave_if_held_up", "until_told"]

EXIT_CODES: Final = MappingProxyType({signal.SIGINT: 130, signal.SIGTERM: 143})
"""The signals that stop a run, and the exit code after each."""

_SOON: Final = 0.2  # seconds; a run that stops within them needs no message
_SAME: Final = 0.1  # seconds; a signal to a process and to its group arrives twice
_LAST_GRACE: Final = 0.5  # seconds that calls have to end once they are cancelled
_IDLE: Final = 0.1  # seconds that a thread without work has to end


class Drive:
    """Runs a coroutine in a new event loop, and stops it when a signal or ``stop`` asks for it.

    The first signal cancels the coroutine, which ends its steps. The second cancels it again; half a second
    later, or after the third, the drive stops waiting. A second signal that comes while a tool keeps the
    event loop busy interrupts that tool.

    Attributes:
        result: The result of the coroutine; None if it was stopped or failed.
        error: Why it failed.
        signal: The first signal that came.
        ended_by: What a tool raised to end the program.
        is_given_up: Whether something was left running.
    """

    def __init__(
        self, start: Callable[[], Coroutine[Any, Any, WorkflowResult]], stopping: Callable[[], object]
    ) -> None:
        """Nothing runs yet.

        Args:
            start: Makes the coroutine.
            stopping: Called once if the coroutine does not stop soon after the first request, in a thread:
                a tool may keep the event loop busy.
        """
        self._start = start
        self._messages: SimpleQueue[bool] = SimpleQueue()  # True to call stopping, False to end the thread
        self._notifier = threading.Thread(target=self._notify, args=(stopping,), name="stopping", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[WorkflowResult] | None = None
        self._last = -math.inf  # when the last signal came, in seconds
        self._asked = 0  # how often it was asked to stop
        self._heard = 0  # how often the event loop has acted on that
        self.result: WorkflowResult | None = None
        self.error: Exception | None = None
        self.signal: signal.Signals | None = None
        self.ended_by: BaseException | None = None
        self.is_given_up = False

    def run(self) -> None:
        """Run it to its end; then read ``result``, ``error`` and ``signal``."""
        self._notifier.start()
        try:
            self._run()
        finally:
            self._messages.put(False)
            self._notifier.join()

    def _run(self) -> None:
        self._loop = loop = asyncio.new_event_loop()
        self._task = task = loop.create_task(self._start())
        task.add_done_callback(lambda _: loop.stop())
        with _waking(loop):
            while not (task.done() or self.is_given_up):
                try:
                    loop.run_forever()
                except (KeyboardInterrupt, SystemExit) as error:
                    if self.signal is None and self.ended_by is None:
                        self.ended_by = error  # the engine stops by itself when a tool ends so
                        self._messages.put(True)
        if task.done():
            self._settle(task)
            self._close(loop)

    def stop(self) -> None:
        """Ask it to stop; twice, to stop at once. May be called from anywhere."""
        self._asked += 1
        if self._asked == 1:
            self._messages.put(True)  # it takes no lock that a signal could find taken
        if self._loop is None:
            return
        with suppress(RuntimeError):  # the loop is closed: the run is over
            self._loop.call_soon_threadsafe(self._hear)

    @contextmanager
    def heeding_signals(self) -> Iterator[None]:
        """Stop it on SIGINT and SIGTERM; signals after its end are ignored until the block ends."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may handle signals
            return
        before = {number: signal.signal(number, self._signalled) for number in EXIT_CODES}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        if self._loop is None:
            raise SystemExit(EXIT_CODES[signal.Signals(number)])  # nothing runs yet
        before, self._last = self._last, time.monotonic()
        if self.is_given_up or self._last - before < _SAME or (self._task is not None and self._task.done()):
            return
        self.signal = self.signal or signal.Signals(number)
        is_busy = self._asked > self._heard
        self.stop()
        if is_busy:
            raise KeyboardInterrupt

    def _hear(self) -> None:
        """Act on a request to stop, in the event loop."""
        task, loop = self._task, self._loop
        if task is None or loop is None or task.done():
            return
        self._heard += 1
        task.cancel()
        if self._heard == 2:
            loop.call_later(_LAST_GRACE, self._give_up, loop)
        elif self._heard > 2:
            self._give_up(loop)

    def _notify(self, stopping: Callable[[], object]) -> None:
        if not self._messages.get():
            return
        with suppress(Empty):
            self._messages.get(timeout=_SOON)
            return
        stopping()
        self._messages.get()

    def _give_up(self, loop: asyncio.AbstractEventLoop) -> None:
        self.is_given_up = True
        loop.set_exception_handler(lambda *_: None)  # what is left may fail in silence
        loop.stop()

    def _settle(self, task: asyncio.Task[WorkflowResult]) -> None:
        try:
            self.result = task.result()
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            return
        except Exception as error:  # noqa: BLE001 - the caller reports it
            self.error = error

    def _close(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=_LAST_GRACE))
            loop.run_until_complete(loop.shutdown_asyncgens())
        except (KeyboardInterrupt, SystemExit):
            self.is_given_up = True
        finally:
            loop.close()


@contextmanager
def _waking(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let signals wake an event loop: one that comes just before it starts to wait would be missed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = socket.socketpair()
    for end in (reading, writing):
        end.setblocking(False)
    loop.add_reader(reading, reading.recv, 4_096)
    before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        loop.remove_reader(reading)
        reading.close()
        writing.close()


@contextmanager
def ending_when_told() -> Iterator[None]:
    """End the block at a termination signal too, so that it can clean up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(EXIT_CODES[signal.SIGTERM])

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
    received: list[signal.Signals] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(serving)

        def stop(number: signal.Signals) -> None:
            received.append(number)
            task.cancel()

        for number in EXIT_CODES:
            loop.add_signal_handler(number, stop, number)
        await asyncio.wait([task])
        error = None if task.cancelled() else task.exception()
        if error is not None and not received:  # what is cut off in the middle may fail, too
            raise error

    asyncio.run(main())
    return received[0] if received else None

"""One worker process, and the channel to it."""

from __future__ import annotations

import os
import socket
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final

from planning.workers.inside.channel import framed, read_frame
from planning.workers.process import Process
from planning.workers.program import Program

__all__ = [
    "Unheard",
    "Worker",
    "WorkerBusy",
    "WorkerDied",
    "WorkerLate",
    "WorkerUnavailable",
    "WorkerUnready",
]

_INSIDE: Final = str(Path(__file__).with_name("inside"))
_LOOK: Final = 1.0
"""Seconds between two checks of a process whose channel another process may hold open."""


class WorkerLate(Exception):
    """The time for a request is over.

    Attributes:
        waited: The seconds of it that passed before a worker was free.
    """

    def __init__(self, waited: float = 0.0) -> None:
        super().__init__(waited)
        self.waited = waited


class WorkerDied(Exception):
    """A worker ended by itself, or was ended by another program.

    Attributes:
        status: Its exit status, below 0 for a signal.
    """

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class WorkerUnready(WorkerDied):
    """A worker ended before it was ready for a request."""


class WorkerUnavailable(Exception):
    """No worker can be started."""


class WorkerBusy(Exception):
    """All workers are busy, and stayed so."""


class Unheard(Exception):
    """A worker has not heard a request: another one may be asked."""


class Worker:
    """One process, which is ended with this object at the latest: Ctrl-C may come at any moment.

    One thread at a time may use it, but any may ``kill`` it.

    Attributes:
        is_new: Whether it has not answered yet.
        end: Kills it at once, and waits until it has ended.
    """

    def __init__(self, program: Program) -> None:
        """Start a process.

        Raises:
            WorkerUnavailable: There is no memory for one, or the like.
        """
        self._given = program.given()
        command = [*program.command(), _INSIDE, str(os.getpid()), program.folder, program.module]
        try:
            self._socket, theirs = socket.socketpair()
        except OSError as error:
            raise WorkerUnavailable(error.strerror or str(error)) from None
        with theirs:  # closed here, so that the end of the process is the end of the channel
            try:
                self._process = Process(command, theirs, is_silent=program.is_silent)
            except BaseException as error:
                self._socket.close()
                if isinstance(error, OSError):
                    raise WorkerUnavailable(error.strerror or str(error)) from None
                raise
        self.end = weakref.finalize(self, _end, self._process, self._socket, os.getpid())
        self.is_new = True

    @property
    def process_id(self) -> int:
        """The id of the process."""
        return self._process.id

    @property
    def status(self) -> int:
        """With what it ended, which it is about to do."""
        status: int | None = self._process.wait(_LOOK)
        while status is None:  # it closed the channel, and lives
            self._process.kill()
            status = self._process.wait(_LOOK)
        return status

    def is_alive(self) -> bool:
        """Whether it has not ended by itself."""
        return self._process.poll() is None

    def begin(self, until: float | None) -> None:
        """Wait until it is ready for requests.

        Raises:
            WorkerLate: It is not by then.
            WorkerUnready: It has ended.
        """
        try:
            self.send(self._given, until)
            self.receive(until)
        except (Unheard, WorkerDied):
            raise WorkerUnready(self.status) from None

    def send(self, content: bytes, until: float | None) -> None:
        """Send a request.

        Raises:
            WorkerLate: It does not listen, and the time is over.
            Unheard: It is gone, and has not got the whole request.
        """
        left = memoryview(framed(content))
        while left:
            sent = self._moved(self._socket.send, left, until)
            if not sent:
                raise Unheard
            left = left[sent:]

    def receive(self, until: float | None) -> bytes:
        """Wait for a message of an answer.

        Raises:
            WorkerLate: It did not come by then.
            WorkerDied: It will not come.
        """
        try:
            return read_frame(lambda size: self._moved(self._socket.recv, size, until))
        except EOFError:
            raise WorkerDied(self.status) from None

    def kill(self) -> None:
        """Kill it: callers that wait for its answer get an error."""
        self._process.kill()

    def leave(self) -> None:
        """Let it end by itself, with all that it does at its end, and wait until it has."""
        with suppress(OSError):  # it is gone
            self._socket.shutdown(socket.SHUT_WR)
        self._process.wait()
        self.end()

    def forget(self) -> None:
        """Let go of it without ending it: in a forked process, of which it is no child."""
        self.end.detach()
        self._socket.close()

    def _moved(self, move: Callable[[Any], Any], what: Any, until: float | None) -> Any:
        """What a method of the socket gives; nothing where the other end is gone.

        Raises:
            WorkerLate: It could not be done by then.
        """
        has_ended = False
        while True:
            left = _LOOK if until is None else min(_LOOK, until - monotonic())
            if left <= 0:
                raise WorkerLate
            self._socket.settimeout(0 if has_ended else left)
            try:
                return move(what)
            except TimeoutError:
                has_ended = not self.is_alive()
            except (BlockingIOError, ConnectionError):  # the first where a process that it forked lives on
                return None


def _end(process: Process, channel: socket.socket, process_id: int) -> None:
    if os.getpid() == process_id:
        process.kill()
        process.wait()
        channel.close()

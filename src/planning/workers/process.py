"""A process that this one has started, for code in which Ctrl-C may come at any moment."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Sequence
from time import monotonic, sleep

__all__ = ["Process"]

_FIRST, _LONGEST = 0.0005, 0.05
"""Seconds between two looks whether a process has ended: at first, and later."""


class Process:
    """A process, with its stdin at one end of a socket.

    ``Popen`` starts it and no more: when Ctrl-C comes in the middle of its ``poll``, its lock stays locked,
    and ``wait`` waits for ever. A lock in a ``with`` statement is let go of.
    """

    def __init__(self, command: Sequence[str], stdin: socket.socket, *, is_silent: bool) -> None:
        """Start it, in a session of its own: Ctrl-C in a terminal is for this process, which ends the other.

        Raises:
            OSError: It cannot be started.
        """
        output = subprocess.DEVNULL if is_silent else None
        started = subprocess.Popen(  # noqa: S603 - this Python, and a program of this package
            command, stdin=stdin.fileno(), stdout=output, stderr=output, start_new_session=True
        )
        started.returncode = 0  # it is waited for here alone
        self.id = started.pid
        self._lock = threading.Lock()
        self._status: int | None = None

    def poll(self) -> int | None:
        """Its exit status, below 0 for a signal; None as long as it runs."""
        with self._lock:
            if self._status is None:
                try:
                    ended, status = os.waitpid(self.id, os.WNOHANG)
                except ChildProcessError:  # something else in this program has waited for it
                    self._status = 0
                else:
                    self._status = os.waitstatus_to_exitcode(status) if ended else None
            return self._status

    def kill(self) -> None:
        """Kill it, if it runs."""
        if self.poll() is None:
            with self._lock:
                if self._status is None:
                    os.kill(self.id, signal.SIGKILL)

    def wait(self, seconds: float | None = None) -> int | None:
        """Wait until it has ended, for so many seconds at most: its exit status, or None."""
        until = None if seconds is None else monotonic() + seconds
        pause = _FIRST
        while (status := self.poll()) is None and (until is None or monotonic() < until):
            sleep(pause)
            pause = min(pause * 2, _LONGEST)
        return status

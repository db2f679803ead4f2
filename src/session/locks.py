"""A lock that does not outlive the process of the thread that held it."""

from __future__ import annotations

import threading
from os import getpid

__all__ = ["ProcessLock"]


class ProcessLock:
    """A re-entrant lock that is free in a forked child, whichever thread held it at the fork.

    A fork copies a lock as it is, but of the threads only the one that forks. A lock that another
    thread held would stay locked in the child for ever, so the child gets a new one.
    """

    __slots__ = ("_fresh", "newest", "pid")

    def __init__(self) -> None:
        self.newest = threading.RLock()
        self.pid = getpid()
        self._fresh: dict[int, threading.RLock] = {}

    def lock(self) -> threading.RLock:
        """The lock of this process, to be acquired."""
        pid = getpid()
        if pid != self.pid:
            # setdefault is atomic: threads of the child that come here at once get the same lock.
            lock = self._fresh.setdefault(pid, threading.RLock())
            with lock:
                if pid != self.pid:
                    self.forget_other_threads()
                    self.newest = lock
                    self.pid = pid  # from here on nobody comes here
                    self._fresh = {}
        return self.newest

    def forget_other_threads(self) -> None:
        """End what threads had begun that are not in this process; called once in a forked child."""

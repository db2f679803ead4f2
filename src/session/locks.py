"""A lock that is released in a forked child."""

from __future__ import annotations

import os
import threading
import weakref

__all__ = ["ProcessLock"]


class ProcessLock:
    """The owner of a re-entrant lock that is free in a forked child, whichever thread held it at the fork.

    A fork copies a lock as it is, but of the threads only the one that forks. A lock that another
    thread held would stay locked in the child forever, so the child gets a new one.
    """

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _owners.add(self)

    def forget_other_threads(self) -> None:
        """End what threads had begun that are not in this process; called once in a forked child."""


# Python has one list of what to do after a fork, and nothing leaves it: it calls one function for all.
_owners: weakref.WeakSet[ProcessLock] = weakref.WeakSet()


def _renew_locks() -> None:
    for owner in tuple(_owners):
        owner.lock = threading.RLock()
        owner.forget_other_threads()


if hasattr(os, "register_at_fork"):  # a system that cannot fork has none
    os.register_at_fork(after_in_child=_renew_locks)

"""The connections to a SQLite file: each with a lock, and closed before a fork."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from session.errors import StoreError

__all__ = ["Link", "Unchanging", "close_links"]


class Unchanging(sqlite3.Connection):
    """A connection that takes the file to be as it is now; each read needs one of its own."""


class Link:
    """A connection, and the lock that is held while SQLite is called through it.

    SQLite keeps the locks of a file in the memory of the process, which a fork copies, while the locks stay
    the parent's. So every connection is closed before a fork, and parent and child each open their own. The
    fork waits a second for the transactions of other threads. One that takes longer has written nothing
    before ``append``, and begins again in the parent at once.

    Attributes:
        turn: Held by the thread that is in a transaction.
        lock: Held by the thread that calls SQLite.
        connection: The connection; None where it is not open.
        is_cut: Whether a fork has ended the transaction of the connection.
    """

    __slots__ = ("__weakref__", "_open", "_writes", "connection", "is_cut", "lock", "turn")

    def __init__(self, open_: Callable[[], sqlite3.Connection], *, writes: bool) -> None:
        """Prepare a connection.

        Args:
            open_: Opens it.
            writes: Whether its transactions write.
        """
        self._writes = writes
        self._open = open_
        self.turn = threading.RLock()
        self.lock = threading.RLock()
        self.connection: sqlite3.Connection | None = None
        self.is_cut = False
        with _opening:
            _links.add(self)

    def connected(self) -> sqlite3.Connection:
        """The connection, opened where it is not; in the transaction that a fork has ended, where one has.

        The caller holds the lock.

        Raises:
            StoreError: The file holds something else, or has another format.
            sqlite3.Error: It cannot be opened.
            OSError: It cannot be made.
        """
        if self.connection is None:
            self.connection = self._open()
        if self.is_cut:
            self.connection.execute("BEGIN IMMEDIATE")
            self.is_cut = False
        return self.connection

    def rest(self) -> None:
        """Close a connection that must not be used for another read; the caller holds the lock."""
        if isinstance(self.connection, Unchanging) and not self.connection.in_transaction:
            self.close()

    def close(self) -> None:
        """Close the connection; the caller holds the lock."""
        connection, self.connection = self.connection, None
        if connection is not None:
            self.is_cut = self._writes and connection.in_transaction
            with suppress(sqlite3.Error):
                connection.close()


_links: weakref.WeakSet[Link] = weakref.WeakSet()
_opening = threading.RLock()
_PATIENCE = 1.0  # seconds
_turns: list[Any] = []  # that the fork under way has taken
_closed: list[Link] = []  # for it
_pipe: list[int] = []  # by which the child waits until the parent's transactions have begun again


def _before_fork() -> None:
    _opening.acquire()
    until = time.monotonic() + _PATIENCE
    for link in tuple(_links):
        if link.turn.acquire(timeout=max(until - time.monotonic(), 0)):
            _turns.append(link.turn)
    for link in tuple(_links):
        link.lock.acquire()
        _closed.append(link)
        link.close()
    if any(link.is_cut for link in _closed):
        _pipe.extend(os.pipe())


def _after_in_parent() -> None:
    for link in _closed:
        if link.is_cut:
            with suppress(StoreError, sqlite3.Error, OSError):
                link.connected()
    _after_fork()


def _after_in_child() -> None:
    for link in _closed:
        link.is_cut, link.turn = False, threading.RLock()
    if _pipe:
        os.close(_pipe.pop())
        os.read(_pipe[0], 1)
    _after_fork()


def _after_fork() -> None:
    while _pipe:
        os.close(_pipe.pop())
    while _turns:
        _turns.pop().release()
    while _closed:
        _closed.pop().lock.release()
    _opening.release()


if hasattr(os, "register_at_fork"):  # a system that cannot fork has none
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


def close_links(*links: Link) -> None:
    """Close the connections of a store that is gone.

    A lock that is held is a fork's, which closes the connection. The garbage collector calls this in any
    thread at any moment, and must not wait.
    """
    for link in links:
        if link.lock.acquire(blocking=False):
            link.close()
            link.lock.release()

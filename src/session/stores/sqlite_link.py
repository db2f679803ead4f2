"""The connections to a SQLite file: each with a lock, and closed before a fork."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import uniform

from session.errors import StoreError
from session.locks import Held, ProcessLock

APPLICATION = 0x53455353  # "SESS": what is in the file's header


_PAUSE = (0.0005, 0.003)
"""The seconds between two tries to write, by chance: two processes must not keep in step."""


class Unchanging(sqlite3.Connection):
    """A connection that takes the file to be as it is now; each read needs one of its own."""


class Link(ProcessLock):
    """A connection; the lock of this is held while SQLite is called through it.

    SQLite keeps the locks of a file in the memory of the process, which a fork copies, while the locks stay
    the parent's. So every connection is closed before a fork, and parent and child each open their own. The
    fork waits a second for the transactions of other threads. One that takes longer has written nothing
    before ``append``, and begins again in the parent at once.

    A file that is copied over another keeps its place, so before each read, and before a transaction
    writes, a look at the file and its WAL says whether they are those that were opened, of the same store.
    Between two checkpoints nothing writes to the file: its first page is read only after it has changed.

    Attributes:
        turn: Held by the thread that is in a transaction.
        connection: The connection; None where it is not open.
        wal_size: The size of the WAL in bytes at the last look; at least 1 after a commit.
        is_cut: Whether a fork has ended the transaction of the connection.
        store_id: The store that the file holds; empty until it was opened.
    """

    __slots__ = (
        "_main",
        "_open",
        "_path",
        "_timeout",
        "_wal",
        "_writes",
        "connection",
        "is_cut",
        "store_id",
        "turn",
        "wal_size",
    )

    def __init__(
        self, path: Path, open_: Callable[[], sqlite3.Connection], timeout: float, *, writes: bool
    ) -> None:
        """Prepare a connection."""
        super().__init__()
        self._writes = writes
        self._open = open_
        self._timeout = timeout
        self._path = str(path)
        self._main: tuple[int, ...] = ()  # the file as it was when it was looked into
        self._wal: tuple[int, ...] = ()  # and its WAL and the index of that
        self.store_id = ""
        self.wal_size = 0
        self.turn = ProcessLock()
        self.connection: sqlite3.Connection | None = None
        self.is_cut = False
        with _opening.lock:
            _links.add(self)

    def connected(self) -> sqlite3.Connection:
        """The connection, opened where it is not; in the transaction that a fork has ended, where one has.

        The caller holds the lock.

        Raises:
            StoreError: The file holds something else or has a different format, now or when it was opened.
            sqlite3.Error: It cannot be opened.
            OSError: It cannot be made.
        """
        connection = self.opened()
        if not connection.in_transaction:
            self.require_same(connection)
        if self.is_cut:
            self.begin(connection, self._timeout)
            self.is_cut = False
        return connection

    def begin(
        self, connection: sqlite3.Connection, timeout: float, statement: str = "BEGIN IMMEDIATE"
    ) -> None:
        """Begin to write, or run another statement that writes, as soon as other processes have ended.

        SQLite's own wait sleeps up to 0.1 s, in which the threads of another process take the file in turn.

        Raises:
            sqlite3.Error: Another process writes for longer than so many seconds, or the file is read-only.
        """
        until = time.monotonic() + timeout
        while True:
            try:
                connection.execute(statement)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                    raise
                time.sleep(uniform(*_PAUSE))  # noqa: S311 - not a secret
            else:
                return

    def roll_back(self) -> None:
        """End a transaction, if need be with its connection; the caller holds the lock."""
        connection = self.connection
        if connection is not None and connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            if connection.in_transaction:
                self.close()
        self.is_cut = False

    def opened(self) -> sqlite3.Connection:
        """The connection, opened if it is not, as ``connected`` does; the file may be a new one."""
        if self.connection is None:
            self.connection = self._open()
            if self._writes:
                self.connection.execute("PRAGMA busy_timeout = 0")  # see ``begin``
            self._main = self._wal = ()
        return self.connection

    def require_same(self, connection: sqlite3.Connection) -> None:
        """Refuse what is no longer the file that was opened, or the WAL.

        Raises:
            StoreError: It is not.
        """
        self._require_file()
        (store_id,) = connection.execute("SELECT id FROM store WHERE rowid = 1").fetchone() or ("",)
        self.store_id = self.store_id or store_id
        if store_id != self.store_id:
            raise self._replaced_error()

    def _require_file(self) -> None:
        """The same by only the files; only one that was written since is looked into."""
        try:
            found = _stat(self._path)
        except FileNotFoundError:
            raise StoreError(f"the store {self._path} is gone") from None
        main: tuple[int, ...] = (found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns)
        known = self._main or main
        inode, size = _inode_and_size(f"{self._path}-wal")
        wal = (inode, _inode_and_size(f"{self._path}-shm")[0])
        if main[:2] != known[:2] or wal != (self._wal or wal):
            raise self._replaced_error()
        if main != self._main:
            store_id = id_in(self._path)
            if store_id == "":
                raise StoreError(
                    f"{self._path} is not a store of sessions any more, it was overwritten or cut: end the "
                    "programs that use it, and restore it from a copy"
                )
            if self.store_id and store_id not in {self.store_id, None}:
                raise self._replaced_error()
        if main[2] < known[2] or (self._wal and size < min(self.wal_size, 1)):
            self._require_whole()
        self._main, self._wal, self.wal_size = main, wal if all(wal) else (), size

    def _replaced_error(self) -> StoreError:
        return StoreError(
            f"another file has replaced {self._path}, or its WAL: end the programs that use it, "
            "and open it again"
        )

    def _require_whole(self) -> None:
        """Refuse a file or a WAL that was cut: SQLite's own tools shorten them, and no page is missing."""
        with closing(self._open()) as connection:
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if said != "ok":
            raise StoreError(
                f"{self._path}, or its WAL, was cut: end the programs that use it, and restore it from a copy"
            )

    def checkpoint(self) -> None:
        """Copy a long WAL into the file; the caller holds the lock, and no other writer can commit.

        SQLite before 3.51.3 may lose a commit that is made during a checkpoint
        (https://sqlite.org/wal.html#walresetbug).

        Raises:
            StoreError: The file holds something else.
            sqlite3.Error: It cannot be written.
        """
        with closing(self._open()) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def rest(self) -> None:
        """Close a connection that must not be used for another read; the caller holds the lock."""
        if isinstance(self.connection, Unchanging) and not self.connection.in_transaction:
            self.close()

    def close(self) -> None:
        """Close the connection; the caller holds the lock."""
        connection, self.connection = self.connection, None
        if connection is not None:
            self.is_cut = self._writes and connection.in_transaction
            try:
                self._require_file()
            except (StoreError, sqlite3.Error, OSError):
                if sys.version_info >= (3, 12):  # what the WAL holds must not be written into another file
                    connection.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE)
            with suppress(sqlite3.Error):
                connection.close()


def _stat(path: str) -> os.stat_result:
    return os.stat(path)  # noqa: PTH116 - a third of the time of a Path


def _inode_and_size(path: str) -> tuple[int, int]:
    try:
        found = _stat(path)
    except OSError:
        return 0, 0
    return found.st_ino, found.st_size


def id_in(path: str) -> str | None:
    """The store that the file holds without its WAL; None if it does not say, empty if it is not a store's.

    A checkpoint that others have begun, or that their reads have stopped halfway, leaves pages of several
    moments in the file: together with the WAL they are sound, and without it SQLite may not be able to read
    them. A file whose new format is only in the WAL has no id yet.
    """
    uri = f"{Path(path).as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("PRAGMA writable_schema = ON")  # reads the first page of a file that is short
            page, application, format_ = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_size", "application_id", "user_version")
            )
            if application != APPLICATION or _stat(path).st_size < page:
                return ""
            found: str | None = None
            if format_ != 1:
                (found,) = connection.execute("SELECT id FROM store").fetchone()
            return found
    except (sqlite3.Error, TypeError) as error:
        return "" if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB else None


_links: weakref.WeakSet[Link] = weakref.WeakSet()
_opening = ProcessLock()
_PATIENCE = 1.0  # seconds
_forks: list[Held] = []  # what holds the locks for the fork under way
_closed: list[Link] = []  # for it
_pipe: list[int] = []  # by which the child waits until the parent's transactions have begun again


def _before_fork() -> None:
    fork = Held(_opening)
    _opening.take(fork)
    _forks.append(fork)
    until = time.monotonic() + _PATIENCE
    for link in tuple(_links):
        link.turn.take(fork, max(until - time.monotonic(), 0))
    for link in tuple(_links):
        link.take(fork)
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
        link.is_cut = False
    if _pipe:
        os.close(_pipe.pop())
        os.read(_pipe[0], 1)
    _after_fork()


def _after_fork() -> None:
    while _pipe:
        os.close(_pipe.pop())
    _closed.clear()
    while _forks:
        fork = _forks[-1]
        for link in tuple(_links):
            link.give(fork)
            link.turn.give(fork)
        _opening.give(fork)
        _forks.pop()


if hasattr(os, "register_at_fork"):  # a system that cannot fork has none
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


def close_links(*links: Link) -> None:
    """Close the connections of a store that is gone.

    A lock that is held is a fork's, which closes the connection. The garbage collector calls this in any
    thread at any moment, and must not wait.
    """
    for link in links:
        with suppress(StoreError), Held(link, 0):
            link.close()

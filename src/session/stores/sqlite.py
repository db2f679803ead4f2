"""A store in one SQLite file: for many sessions, and several processes of one machine."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Hashable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from session.errors import TransactionError, shown
from session.events import SessionId
from session.locks import Ending, Held, scoped
from session.stores.chain import (
    Checkpoint,
    StoredChange,
    StoredSession,
    check_timeout,
    key_of,
    nested_error,
    stale_error,
)
from session.stores.sql import CHANGE, CHECKPOINT, IsThere, Run, SqlStore, change_row
from session.stores.sqlite_file import Explaining, explained, identity, opened, path_of
from session.stores.sqlite_link import Link, close_links

# The files that this thread writes to, each with its process: a file's lock is not an object's, and a thread
# must not wait for itself.
_here = threading.local()
_LONG_WAL = 4_000_000  # bytes
_BEGIN_HEAD = "INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)"
_WRITE_HEAD = (
    "UPDATE sessions SET id = ?, version = ?, hash = ?, changed_at = ?, about = ?, checked = ?"
    " WHERE key = ? AND version = ?"
)


class SqliteStore(SqlStore):
    """Keeps sessions in a file: WAL, so that readers never wait; one writer at a time, also across processes.

    The file has the mode 0600. A network file system cannot hold it: its locks do not work there.
    """

    where = "file"
    change_columns = "version, CAST(text AS TEXT), CAST(hash AS BLOB), idempotency_key, rewound_to"
    claim_row = "(SELECT data_version FROM pragma_data_version)"  # changes with another process's commit

    def __init__(
        self,
        path: str | Path,
        *,
        timeout: float = 5.0,
        synchronous: Literal["normal", "full"] = "normal",
    ) -> None:
        """Open a file, or create it.

        Args:
            path: The file.
            timeout: How many seconds a writer waits for another.
            synchronous: ``normal``: what is committed outlives the process. ``full``: a loss of power too.

        Raises:
            StoreError: The file cannot be opened, holds something else, or has a newer format.
            ValueError: ``timeout`` is not seconds of 0 to 1,000,000, or ``synchronous`` is another word.
        """
        super().__init__()
        if synchronous not in {"normal", "full"}:
            raise ValueError(f"synchronous must be 'normal' or 'full', got {shown(synchronous)}")
        self._timeout = check_timeout(timeout)
        self._path = path_of(path)
        open_ = partial(opened, self._path, self._timeout, synchronous)
        self._writer, self._reader = (
            Link(self._path, open_, self._timeout, writes=each) for each in (True, False)
        )
        weakref.finalize(self, close_links, self._writer, self._reader)
        with self._reader.lock, self._explaining():
            self._reader.connected()
        self._writer.store_id = self._reader.store_id
        self._file = identity(self._path)

    def __repr__(self) -> str:
        return f"SqliteStore({str(self._path)!r})"

    @property
    def place(self) -> Hashable:
        """The file."""
        return self._file

    # Writing

    @scoped
    def lock(self, _session_id: SessionId, timeout: float | None = None) -> Iterator[None]:
        """Keep other writers of the file away; see ``Store.lock``."""
        files = self._files_here()
        if self._file in files:
            raise nested_error()
        link, process = self._writer, os.getpid()
        timeout = self._timeout if timeout is None else timeout
        with Held(link.turn, timeout), Ending(partial(self._let_go, process)):
            with link.lock, self._explaining(timeout):
                connection = link.opened()
                link.begin(connection, timeout)
                link.require_same(connection)  # before the transaction it would need one of its own
                if link.wal_size > _LONG_WAL:
                    link.checkpoint()
                    connection.execute(
                        "ROLLBACK"
                    )  # the next transaction begins the WAL again, if no reader needs it
                    link.begin(connection, timeout)
            files[self._file] = process
            yield

    def _let_go(self, process: int) -> None:
        """End what was not committed."""
        self._files_here().pop(self._file, None)
        link = self._writer
        if os.getpid() == process:  # in a forked child the transaction is the parent's
            with link.lock:
                link.roll_back()

    @scoped
    def _writing(self, session_id: SessionId, is_there: IsThere) -> Iterator[Run]:
        """A connection that writes, with the lock; committed at the end of the block, and settled."""
        with self.lock(session_id), self._writer.lock:
            with self._explaining():
                connection = self._begun()
                yield _runner(connection)
            self._commit(connection, session_id, is_there)

    def _begun(self) -> sqlite3.Connection:
        """The writer's connection in its transaction."""
        if self._files_here().get(self._file) != os.getpid():
            raise TransactionError("this process was forked inside the transaction, which is its parent's")
        return self._writer.connected()

    def append(
        self,
        head: StoredSession,
        change: StoredChange | None,
        *,
        expected: int,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Write a change, durably, or nothing; see ``Store.append``."""
        if self._file not in self._files_here():
            with self.lock(head.session_id):
                return self.append(head, change, expected=expected, checkpoint=checkpoint)
        key = key_of(head.session_id)
        with self._writer.lock:
            with self._explaining():
                connection = self._begun()
                if not connection.in_transaction:
                    raise TransactionError("a lock allows one change: release it and take it again")
                row, run = head.row(), _runner(connection)
                found = connection.execute(_WRITE_HEAD, (*row, key, expected)).rowcount
                if not found and not expected:
                    found = connection.execute(_BEGIN_HEAD, (key, *row)).rowcount
                if not found:
                    known = connection.execute(
                        "SELECT version FROM sessions WHERE key = ?", (key,)
                    ).fetchone()
                    raise stale_error(expected, 0 if known is None else known[0])
                self._known = (row, head)
                if change is not None:
                    run(CHANGE, *change_row(key, change))
                if checkpoint is not None:
                    run(CHECKPOINT, key, checkpoint.version, checkpoint.text, checkpoint.check)
            self._commit(connection, head.session_id, partial(self._is_appended, head, change))
        return None

    def _commit(self, connection: sqlite3.Connection, session_id: SessionId, is_there: IsThere) -> None:
        """Commit; if the answer is an error, look for what was committed."""
        try:
            connection.execute("COMMIT")
            self._writer.wal_size = self._writer.wal_size or 1
        except (sqlite3.Error, MemoryError) as error:
            self._writer.roll_back()
            self._settle(session_id, is_there, explained(error, self._path, self._timeout), error)

    @scoped
    def _asking(self, _session_id: SessionId | None) -> Iterator[Run]:
        """A connection that reads after a commit was answered by an error; the caller holds the lock."""
        with self._explaining():
            yield _runner(self._writer.connected())

    def compact(self) -> None:
        """Give the space of deleted sessions back to the file system. Writers wait; readers do not.

        Raises:
            StoreError: Another process writes for too long, or the disk has no room for a second copy.
            TransactionError: This thread is inside a transaction of this file.
        """
        if self._file in self._files_here():
            raise nested_error()
        link = self._writer
        with Held(link.turn, self._timeout), link.lock, self._explaining():
            connection = link.connected()
            link.begin(connection, self._timeout, "VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    # Reading

    @scoped
    def reading(self) -> Iterator[None]:
        """Let all that this thread reads be of one moment; see ``Store.reading``."""
        if self._file in self._files_here():
            yield  # the lock is held: no other program writes
            return
        with self._reader.lock:
            with self._explaining():
                connection = self._reader.connected()
            if connection.in_transaction:
                yield
                return
            with Ending(partial(self._rest, connection)):
                with self._explaining():
                    connection.execute("BEGIN")
                yield

    def _rest(self, connection: sqlite3.Connection) -> None:
        """End what was read at one moment."""
        if self._reader.connection is connection:  # no fork has closed it
            self._reader.roll_back()
            self._reader.rest()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        for link in (self._writer, self._reader):
            with link.lock:
                link.close()

    @scoped
    def _querying(self) -> Iterator[Run]:
        """A connection that reads: the one that holds the lock, in its thread; else the one for readers."""
        link = self._writer if self._file in self._files_here() else self._reader
        with link.lock, self._explaining():
            try:
                yield _runner(link.connected())
            finally:
                link.rest()

    # The file

    def _files_here(self) -> dict[tuple[int, int], int]:
        files: dict[tuple[int, int], int] | None = getattr(_here, "files", None)
        if files is None:
            files = _here.files = {}
        return files

    def _explaining(self, timeout: float | None = None) -> Explaining:
        """Make a StoreError of what SQLite raises."""
        return Explaining(self._path, self._timeout if timeout is None else timeout)


def _runner(connection: sqlite3.Connection) -> Run:
    return lambda statement, *values: connection.execute(statement.replace("{s}", ""), values)

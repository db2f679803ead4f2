"""A store in one SQLite file: for many sessions, and several processes of one machine."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from session.errors import StoreError, TransactionError, locked, shown
from session.events import SessionId
from session.stores.base import Store
from session.stores.chain import (
    Checkpoint,
    StoredChange,
    StoredSession,
    check_of,
    key_of,
    nested,
    no_session,
    refuse_copy,
    stale,
)
from session.stores.sqlite_file import Explaining, explained, identity, opened, path_of
from session.stores.sqlite_link import Link, close_links

__all__ = ["SqliteStore"]

T = TypeVar("T")

# The files that this thread writes to, each with its process: a file's lock is not an object's, and a thread
# must not wait for itself.
_here = threading.local()
_BEGIN_HEAD = "INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)"
_CHANGE = "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?)"
_CHECKPOINT = "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)"
_CLAIM = "INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)"
_WRITE_HEAD = (
    "UPDATE sessions SET id = ?, version = ?, hash = ?, changed_at = ?, about = ?, checked = ?"
    " WHERE key = ? AND version = ?"
)


class SqliteStore(Store):
    """Keeps sessions in a file: WAL, so that readers never wait; one writer at a time, also across processes.

    The file has the mode 0600. A network file system cannot hold it: its locks do not work there.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        timeout: float = 5.0,
        synchronous: Literal["normal", "full"] = "normal",
    ) -> None:
        """Open a file, or begin one.

        Args:
            path: The file.
            timeout: How many seconds a writer waits for another.
            synchronous: ``normal``: what is committed outlives the process. ``full``: a loss of power too.

        Raises:
            StoreError: The file cannot be opened, holds something else, or has a newer format.
            ValueError: ``timeout`` is negative, or ``synchronous`` is another word.
        """
        super().__init__()
        if synchronous not in {"normal", "full"}:
            raise ValueError(f"synchronous must be 'normal' or 'full', got {shown(synchronous)}")
        if not timeout >= 0:
            raise ValueError(f"timeout must be seconds of 0 or more, got {shown(timeout)}")
        self._path = path_of(path)
        self._timeout = float(timeout)
        open_ = partial(opened, self._path, self._timeout, synchronous)
        self._writer, self._reader = (Link(self._path, open_, writes=each) for each in (True, False))
        weakref.finalize(self, close_links, self._writer, self._reader)
        with self._reader.lock, self._explaining():
            self._reader.connected()
        self._writer.store_id = self._reader.store_id
        self._file = identity(self._path)
        self._known: tuple[tuple[Any, ...], StoredSession | None] = ((), None)

    def __repr__(self) -> str:
        return f"SqliteStore({str(self._path)!r})"

    # Writing

    @contextmanager
    def lock(self, _session_id: SessionId, timeout: float | None = None) -> Iterator[None]:
        """Keep other writers of the file away; see ``Store.lock``."""
        files = self._files_here()
        if self._file in files:
            raise nested()
        link, turn, process = self._writer, self._writer.turn, os.getpid()
        timeout = self._timeout if timeout is None else timeout
        if not turn.acquire(timeout=timeout):
            raise locked(timeout)
        try:
            with link.lock, self._explaining(timeout):
                self._begin(link.connected(), timeout)
            files[self._file] = process
            yield
        finally:
            files.pop(self._file, None)
            if os.getpid() == process:  # in a forked child the transaction is the parent's
                with link.lock, suppress(sqlite3.Error):
                    link.is_cut = False
                    if link.connection is not None and link.connection.in_transaction:
                        link.connection.execute("ROLLBACK")
                turn.release()

    def _begin(self, connection: sqlite3.Connection, timeout: float) -> None:
        """Begin to write, as soon as other processes have ended."""
        if timeout == self._timeout:
            connection.execute("BEGIN IMMEDIATE")
            return
        connection.execute(f"PRAGMA busy_timeout = {int(timeout * 1000)}")
        try:
            connection.execute("BEGIN IMMEDIATE")
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(self._timeout * 1000)}")

    @contextmanager
    def _writing(self, session_id: SessionId) -> Iterator[sqlite3.Connection]:
        """The writer's connection, with the lock, for statements that belong together."""
        with self.lock(session_id), self._writer.lock, self._explaining():
            yield self._begun()

    def _begun(self) -> sqlite3.Connection:
        """The writer's connection in its transaction.

        Raises:
            TransactionError: It is that of the process that this one was forked from.
        """
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
        with self._writer.lock, self._explaining():
            connection = self._begun()
            if not connection.in_transaction:
                raise TransactionError("a lock takes one change: leave it and take it again")
            row = head.row()
            found = connection.execute(_WRITE_HEAD, (*row, key, expected)).rowcount
            if not found and not expected:
                found = connection.execute(_BEGIN_HEAD, (key, *row)).rowcount
            if not found:
                known = connection.execute("SELECT version FROM sessions WHERE key = ?", (key,)).fetchone()
                raise stale(expected, 0 if known is None else known[0])
            self._known = (row, head)
            if change is not None:
                connection.execute(_CHANGE, _change_row(key, change))
            if checkpoint is not None:
                connection.execute(_CHECKPOINT, (key, checkpoint.version, checkpoint.text, checkpoint.check))
            self._commit(connection, head)
        return None

    def _commit(self, connection: sqlite3.Connection, head: StoredSession) -> None:
        """Commit; where the answer is an error, look for what was committed."""
        try:
            connection.execute("COMMIT")
        except (sqlite3.Error, MemoryError) as error:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            refusal = explained(error, self._path, self._timeout)
            try:
                found = self._head(connection, head.session_id)
            except (StoreError, sqlite3.Error):
                refusal.outcome = "unknown"
                raise refusal from error
            if found is None or (found.version, found.hash) != (head.version, head.hash):
                raise refusal from error

    def drop_checkpoints(self, session_id: SessionId) -> None:
        """Forget the checkpoints of a session; see ``Store.drop_checkpoints``."""
        with self._writing(session_id) as connection:
            connection.execute("DELETE FROM checkpoints WHERE session = ?", (key_of(session_id),))
            connection.execute("COMMIT")

    def claim(self, session_id: SessionId, name: str) -> bool:
        """Record a name, durably; see ``Store.claim``."""
        with self._writing(session_id) as connection:
            head = self._head(connection, session_id)
            row = (str(session_id), name, 0 if head is None else head.version)
            is_new = connection.execute(_CLAIM, (*row, check_of(row))).rowcount == 1
            connection.execute("COMMIT")
        return is_new

    def verify(self, session_id: SessionId) -> int:
        """Check all that is kept of a session, its claims too; see ``Store.verify``."""
        with self.reading():
            versions = super().verify(session_id)
            self.claims(session_id)
        return versions

    def copy(self, source: SessionId, fork: StoredSession) -> None:
        """Begin a session with the changes of another; see ``Store.copy``."""
        with self._writing(source) as connection:
            head = self._head(connection, source)
            if head is None:
                raise no_session(source)
            refuse_copy(head, fork, self._head(connection, fork.session_id))
            old, new = key_of(source), key_of(fork.session_id)
            for table, columns in (
                ("changes", "version, text, hash, rewound_to, idempotency_key"),
                ("checkpoints", "version, text, checked"),
            ):
                copied = f"SELECT ?, {columns} FROM {table} WHERE session = ? AND version <= ?"  # noqa: S608 - constants
                connection.execute(f"INSERT INTO {table} {copied}", (new, old, fork.version))
            claims = [claim for claim in self.claims(source) if claim[1] <= fork.version]
            connection.executemany(_CLAIM, _claim_rows(fork.session_id, claims))
            connection.execute(_BEGIN_HEAD, (new, *fork.row()))
            connection.execute("COMMIT")

    def restore(
        self,
        head: StoredSession,
        changes: Iterable[StoredChange],
        checkpoints: Iterable[Checkpoint],
        claims: Iterable[tuple[str, int]],
    ) -> None:
        """Begin a session that another store has; see ``Store.restore``."""
        key = key_of(head.session_id)
        with self._writing(head.session_id) as connection:
            refuse_copy(head, head, self._head(connection, head.session_id))
            connection.executemany(_CHANGE, (_change_row(key, each) for each in changes))
            rows = ((key, each.version, each.text, each.check) for each in checkpoints)
            connection.executemany(_CHECKPOINT, rows)
            connection.executemany(_CLAIM, _claim_rows(head.session_id, claims))
            connection.execute(_BEGIN_HEAD, (key, *head.row()))
            connection.execute("COMMIT")

    def delete(self, session_id: SessionId) -> bool:
        """Delete a session; see ``Store.delete``."""
        key = key_of(session_id)
        with self._writing(session_id) as connection:
            found = connection.execute("DELETE FROM sessions WHERE key = ?", (key,)).rowcount
            connection.execute("DELETE FROM changes WHERE session = ?", (key,))
            connection.execute("DELETE FROM checkpoints WHERE session = ?", (key,))
            connection.execute("DELETE FROM claims WHERE id = ?", (str(session_id),))
            connection.execute("COMMIT")
        return bool(found)

    # Reading

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let all that this thread reads be of one moment; see ``Store.reading``."""
        if self._file in self._files_here():
            yield  # the lock is held: nobody writes
            return
        with self._reader.lock:
            with self._explaining():
                connection = self._reader.connected()
                is_outer = not connection.in_transaction
                if is_outer:
                    connection.execute("BEGIN")
            try:
                yield
            finally:
                if is_outer and self._reader.connection is connection:  # no fork has closed it
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                    self._reader.rest()

    def head(self, session_id: SessionId) -> StoredSession | None:
        """What there is of a session; see ``Store.head``."""
        return self._read(lambda connection: self._head(connection, session_id))

    def changes(self, session_id: SessionId, first: int, last: int) -> Sequence[StoredChange]:
        """The changes from a version to another; see ``Store.changes``."""
        rows = self._select(
            "SELECT version, CAST(text AS TEXT), CAST(hash AS BLOB), idempotency_key, rewound_to FROM changes"
            " WHERE session = ? AND version BETWEEN ? AND ? ORDER BY version",
            (key_of(session_id), first, last),
        )
        return [StoredChange(*row) for row in rows]

    def checkpoints(self, session_id: SessionId, last: int, most: int) -> Sequence[Checkpoint]:
        """The newest checkpoints up to a version; see ``Store.checkpoints``."""
        rows = self._select(
            "SELECT version, CAST(text AS TEXT), checked FROM checkpoints"
            " WHERE session = ? AND version <= ? ORDER BY version DESC LIMIT ?",
            (key_of(session_id), last, most),
        )
        return [Checkpoint(*row) for row in rows]

    def with_key(self, session_id: SessionId, key: str) -> Sequence[int]:
        """The versions that have a key; see ``Store.with_key``."""
        rows = self._select(
            "SELECT version FROM changes WHERE session = ? AND idempotency_key = ? ORDER BY version DESC",
            (key_of(session_id), key),
        )
        return [version for (version,) in rows]

    def rewinds(self, session_id: SessionId) -> Sequence[tuple[int, int]]:
        """The rewinds of a session; see ``Store.rewinds``."""
        return self._select(
            "SELECT version, rewound_to FROM changes"
            " WHERE session = ? AND rewound_to IS NOT NULL ORDER BY version",
            (key_of(session_id),),
        )

    def claims(self, session_id: SessionId) -> Sequence[tuple[str, int]]:
        """The claims of a session; see ``Store.claims``."""
        every = "SELECT id, name, version, checked FROM claims WHERE id = ?"
        return self._read(lambda found: [_claim(*row) for row in found.execute(every, (str(session_id),))])

    def sessions(self, most: int | None = None) -> Sequence[StoredSession]:
        """The sessions that were changed last; see ``Store.sessions``."""
        rows = self._select(
            "SELECT id, version, hash, changed_at, about, checked FROM sessions"
            " ORDER BY changed_at DESC LIMIT ?",
            (-1 if most is None else most,),
        )
        return [StoredSession.listed(row) for row in rows]

    def close(self) -> None:
        """Close the file; whoever uses the store again opens it again."""
        for link in (self._writer, self._reader):
            with link.lock:
                link.close()

    def _head(self, connection: sqlite3.Connection, session_id: SessionId) -> StoredSession | None:
        key = key_of(session_id)
        row = connection.execute(
            "SELECT id, version, hash, changed_at, about, checked FROM sessions WHERE key = ?", (key,)
        ).fetchone()
        if row is not None:
            known, found = self._known
            if found is None or row != known:
                found = StoredSession.of(row)
                self._known = (row, found)
            if str(found.session_id) != str(session_id):
                raise StoreError(f"the record of session {shown(str(session_id))} is damaged")
            return found
        # In one statement: the session may begin between two.
        lost = "SELECT 1 FROM changes WHERE session = ? AND session NOT IN (SELECT key FROM sessions) LIMIT 1"
        if connection.execute(lost, (key,)).fetchone():
            raise StoreError(
                f"the record of session {shown(str(session_id))} is missing: the file is damaged"
            )
        return None

    def _select(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        return self._read(lambda connection: connection.execute(statement, values).fetchall())

    def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Read by the connection that holds the lock, in its thread; else by the one for readers."""
        link = self._writer if self._file in self._files_here() else self._reader
        with link.lock, self._explaining():
            try:
                return read(link.connected())
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


def _change_row(key: int, change: StoredChange) -> tuple[Any, ...]:
    return (key, change.version, change.text, change.hash, change.rewound_to, change.idempotency_key)


def _claim(session_id: str, name: str, version: int, checked: bytes) -> tuple[str, int]:
    if checked != check_of((session_id, name, version)):
        raise StoreError(f"the claim {shown(name)} of the session is damaged: restore the file from a copy")
    return name, version


def _claim_rows(session_id: SessionId, claims: Iterable[tuple[str, int]]) -> Iterator[tuple[Any, ...]]:
    return ((*row, check_of(row)) for row in ((str(session_id), *claim) for claim in claims))

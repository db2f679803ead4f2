"""A store in one SQLite file: for many sessions, and several processes of one machine."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

from session.errors import StoreError, TransactionError, shown
from session.events import SessionId
from session.records import Upcasters
from session.stores.base import Store
from session.stores.chain import (
    NESTED,
    Checkpoint,
    StoredChange,
    StoredSession,
    locked,
    no_session,
    refuse_copy,
    stale,
)
from session.stores.sqlite_file import (
    Link,
    check_of,
    close_links,
    explained,
    identity,
    key_of,
    listed,
    mark_of,
    opened,
    path_of,
    session_of,
    tallied,
    tally_of,
    write_head,
)

__all__ = ["SqliteStore"]

T = TypeVar("T")

# Which files this thread writes to, so that it never waits for itself: the lock of a file is not an object's.
_here = threading.local()


class SqliteStore(Store):
    """Keeps sessions in a file: WAL, so that readers never wait; one writer at a time, also across processes.

    The file has the mode 0600. A network file system cannot hold it: its locks do not work there.
    """

    def __init__(
        self,
        path: str | Path,
        upcasters: Upcasters | None = None,
        *,
        timeout: float = 5.0,
        synchronous: Literal["normal", "full"] = "normal",
    ) -> None:
        """Open a file, or begin one.

        Args:
            path: The file.
            upcasters: See ``Store``.
            timeout: How many seconds a writer waits for another.
            synchronous: ``normal``: what is committed outlives the process. ``full``: a loss of power too.

        Raises:
            StoreError: The file cannot be opened, holds something else, or has a newer format.
            ValueError: ``timeout`` is negative, or ``synchronous`` is another word.
        """
        super().__init__(upcasters)
        if synchronous not in {"normal", "full"}:
            raise ValueError(f"synchronous must be 'normal' or 'full', got {shown(synchronous)}")
        if not timeout >= 0:
            raise ValueError(f"timeout must be seconds of 0 or more, got {shown(timeout)}")
        self._path = path_of(path)
        self._timeout = float(timeout)
        self._synchronous = synchronous
        self._writer, self._reader = Link(), Link()
        weakref.finalize(self, close_links, self._writer, self._reader)
        with self._reader.lock:
            self._connect(self._reader)
        self._file = identity(self._path)
        self._tallied = set[int]()  # the sessions whose rows were counted here

    def __repr__(self) -> str:
        return f"SqliteStore({str(self._path)!r})"

    # Writing

    @contextmanager
    def lock(self, _session_id: SessionId) -> Iterator[None]:
        """Keep other writers of the file away; see ``Store.lock``."""
        files = self._files_here()
        if self._file in files:
            raise TransactionError(NESTED)
        link = self._writer
        if not link.lock.acquire(timeout=self._timeout):
            raise locked(self._timeout)
        try:
            if identity(self._path) != self._file:
                raise StoreError(f"the file {self._path} is gone, or another is in its place: open it anew")
            connection = self._connect(link)
            with self._explaining():
                connection.execute("BEGIN IMMEDIATE")
            files.add(self._file)
            try:
                yield
            finally:
                files.discard(self._file)
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
        finally:
            link.lock.release()

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
        connection = self._connect(self._writer)
        if not connection.in_transaction:
            raise TransactionError("a lock takes one change: leave it and take it again")
        key = key_of(head.session_id)
        with self._explaining():
            row = connection.execute("SELECT version, tally FROM sessions WHERE key = ?", (key,)).fetchone()
            known, tally = (0, tallied(connection, head.session_id)) if row is None else row
            if known != expected:
                raise stale(expected, known)
            if change is not None:
                tally ^= tally_of(change)
            write_head(connection, head, tally)
            if change is not None:
                connection.execute(
                    "INSERT INTO changes VALUES (?, ?, ?, ?, ?)",
                    (key, change.version, change.text, change.hash, change.rewound_to),
                )
                connection.executemany(
                    "INSERT INTO calls VALUES (?, ?, ?)",
                    [(key, key_of(each), change.version) for each in change.call_ids],
                )
            if checkpoint is not None:
                connection.execute(
                    "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)",
                    (key, checkpoint.version, checkpoint.text, checkpoint.check),
                )
        self._commit(connection, head)
        return None

    def _commit(self, connection: sqlite3.Connection, head: StoredSession) -> None:
        """Commit; where the answer is an error, look for what was committed."""
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
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
        with self.lock(session_id), self._explaining():
            connection = self._connect(self._writer)
            connection.execute("DELETE FROM checkpoints WHERE session = ?", (key_of(session_id),))
            connection.execute("COMMIT")

    def claim(self, session_id: SessionId, name: str) -> bool:
        """Record a name, durably; see ``Store.claim``."""
        with self.lock(session_id), self._explaining():
            connection = self._connect(self._writer)
            self._require_tally(connection, session_id)
            head = self._head(connection, session_id)
            row = (str(session_id), name, 0 if head is None else head.version)
            values = (*row, check_of(row))
            is_new = (
                connection.execute("INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)", values).rowcount == 1
            )
            if is_new and head is not None:
                key = (key_of(session_id),)
                (tally,) = connection.execute("SELECT tally FROM sessions WHERE key = ?", key).fetchone()
                write_head(connection, head, tally ^ mark_of(*row[1:]))
            connection.execute("COMMIT")
        return is_new

    def _verified(self, session_id: SessionId) -> int:
        """Check all that is kept of a session, its claims too; see ``Store.verify``."""
        versions = super()._verified(session_id)
        rows = self._select("SELECT id, name, version, checked FROM claims WHERE id = ?", (str(session_id),))
        for *values, checked in rows:
            if checked != check_of(tuple(values)):
                raise StoreError(
                    f"the claim {shown(values[1])} of the session is damaged: restore the file from a copy"
                )
        self._tallied.discard(key_of(session_id))
        self._read(lambda connection: self._require_tally(connection, session_id))
        return versions

    def copy(self, source: SessionId, fork: StoredSession) -> None:
        """Begin a session with the changes of another; see ``Store.copy``."""
        with self.lock(source), self._explaining():
            connection = self._connect(self._writer)
            head = self._head(connection, source)
            if head is None:
                raise no_session(source)
            refuse_copy(head, fork, self._head(connection, fork.session_id))
            self._require_tally(connection, source)
            old, new = key_of(source), key_of(fork.session_id)
            for table, columns in (
                ("changes", "version, text, hash, rewound_to"),
                ("calls", "key, version"),
                ("checkpoints", "version, text, checked"),
            ):
                copied = f"SELECT ?, {columns} FROM {table} WHERE session = ? AND version <= ?"  # noqa: S608 - constants
                connection.execute(f"INSERT INTO {table} {copied}", (new, old, fork.version))
            claims = connection.execute(
                "SELECT name, version FROM claims WHERE id = ? AND version <= ?", (str(source), fork.version)
            ).fetchall()
            rows = [(str(fork.session_id), *claim) for claim in claims]
            connection.executemany(
                "INSERT INTO claims VALUES (?, ?, ?, ?)", [(*row, check_of(row)) for row in rows]
            )
            write_head(connection, fork, tallied(connection, fork.session_id))
            connection.execute("COMMIT")

    def delete(self, session_id: SessionId) -> bool:
        """Delete a session; see ``Store.delete``."""
        key = key_of(session_id)
        with self.lock(session_id), self._explaining():
            connection = self._connect(self._writer)
            found = connection.execute("DELETE FROM sessions WHERE key = ?", (key,)).rowcount
            connection.execute("DELETE FROM changes WHERE session = ?", (key,))
            connection.execute("DELETE FROM calls WHERE session = ?", (key,))
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
            connection = self._connect(self._reader)
            is_outer = not connection.in_transaction
            if is_outer:
                with self._explaining():
                    connection.execute("BEGIN")
            try:
                yield
            finally:
                if is_outer and connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")

    def head(self, session_id: SessionId) -> StoredSession | None:
        """What there is of a session; see ``Store.head``."""
        return self._read(lambda connection: self._head(connection, session_id))

    def changes(self, session_id: SessionId, first: int, last: int) -> Sequence[StoredChange]:
        """The changes from a version to another; see ``Store.changes``."""
        rows = self._select(
            "SELECT version, CAST(text AS TEXT), CAST(hash AS BLOB), rewound_to FROM changes"
            " WHERE session = ? AND version BETWEEN ? AND ? ORDER BY version",
            (key_of(session_id), first, last),
        )
        return [StoredChange(version, text, hash_, (), to) for version, text, hash_, to in rows]

    def checkpoints(self, session_id: SessionId, last: int, most: int) -> Sequence[Checkpoint]:
        """The newest checkpoints up to a version; see ``Store.checkpoints``."""
        rows = self._select(
            "SELECT version, CAST(text AS TEXT), checked FROM checkpoints"
            " WHERE session = ? AND version <= ? ORDER BY version DESC LIMIT ?",
            (key_of(session_id), last, most),
        )
        return [Checkpoint(*row) for row in rows]

    def calls(self, session_id: SessionId, key: str, most: int | None) -> Sequence[int]:
        """The versions that a call made; see ``Store.calls``."""
        self._read(lambda connection: self._require_tally(connection, session_id))
        rows = self._select(
            "SELECT version FROM calls WHERE session = ? AND key = ? ORDER BY version DESC LIMIT ?",
            (key_of(session_id), key_of(key), -1 if most is None else most),
        )
        return [version for (version,) in rows]

    def rewinds(self, session_id: SessionId) -> Sequence[tuple[int, int]]:
        """The rewinds of a session; see ``Store.rewinds``."""
        return self._select(
            "SELECT version, rewound_to FROM changes"
            " WHERE session = ? AND rewound_to IS NOT NULL ORDER BY version",
            (key_of(session_id),),
        )

    def sessions(self, most: int | None = None) -> Sequence[StoredSession]:
        """The sessions that were changed last; see ``Store.sessions``."""
        rows = self._select(
            "SELECT id, version, hash, changed_at, about, tally, checked FROM sessions"
            " ORDER BY changed_at DESC LIMIT ?",
            (-1 if most is None else most,),
        )
        return [listed(row) for row in rows]

    def close(self) -> None:
        """Close the file; whoever uses the store again opens it again."""
        close_links(self._writer, self._reader)

    def _head(self, connection: sqlite3.Connection, session_id: SessionId) -> StoredSession | None:
        key = key_of(session_id)
        row = connection.execute(
            "SELECT id, version, hash, changed_at, about, tally, checked FROM sessions WHERE key = ?", (key,)
        ).fetchone()
        if row is not None:
            found = session_of(row)
            if found.session_id != session_id:
                raise StoreError(f"the record of session {shown(str(session_id))} is damaged")
            return found
        # In one statement: the session may begin between two.
        lost = "SELECT 1 FROM changes WHERE session = ?1 AND ?1 NOT IN (SELECT key FROM sessions) LIMIT 1"
        if connection.execute(lost, (key,)).fetchone():
            raise StoreError(
                f"the record of session {shown(str(session_id))} is missing: the file is damaged"
            )
        return None

    def _require_tally(self, connection: sqlite3.Connection, session_id: SessionId) -> None:
        """Refuse a session of which a call, a rewind or a claim would not be found; once in a store.

        Raises:
            StoreError: That is so.
        """
        key = key_of(session_id)
        if key in self._tallied:
            return
        is_own = not connection.in_transaction
        if is_own:
            connection.execute("BEGIN")  # all of it as it is at one moment
        try:
            row = connection.execute("SELECT tally FROM sessions WHERE key = ?", (key,)).fetchone()
            if row is not None and row[0] != tallied(connection, session_id):
                raise StoreError(
                    f"by what the calls, rewinds and claims of session {shown(str(session_id))} are found is "
                    "damaged: restore the file from a copy"
                )
        finally:
            if is_own:
                connection.execute("ROLLBACK")
        self._tallied.add(key)

    def _select(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        return self._read(lambda connection: connection.execute(statement, values).fetchall())

    def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Read by the connection that holds the lock, in its thread; else by the one for readers."""
        link = self._writer if self._file in self._files_here() else self._reader
        with link.lock, self._explaining():
            return read(self._connect(link))

    # The file

    def _files_here(self) -> set[tuple[int, int]]:
        files: set[tuple[int, int]] | None = getattr(_here, "files", None)
        if files is None:
            files = _here.files = set()
        return files

    def _connect(self, link: Link) -> sqlite3.Connection:
        """The connection of a link, opened where it is not; the caller holds its lock."""
        if link.connection is None:
            with self._explaining():
                link.connection = opened(self._path, self._timeout, self._synchronous)
        return link.connection

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Make a StoreError of what SQLite raises."""
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raise explained(error, self._path, self._timeout) from error

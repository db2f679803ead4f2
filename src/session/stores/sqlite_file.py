"""The SQLite file of a store: its tables, how it is opened, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from session.errors import StoreError, locked, shown
from session.events import SessionId
from session.stores.chain import StoredSession

__all__ = [
    "Link",
    "Unchanging",
    "check_of",
    "close_links",
    "explained",
    "identity",
    "key_of",
    "opened",
    "session_of",
    "write_head",
]

_APPLICATION = 0x53455353  # "SESS": what is in the file's header
_FORMAT = 2
_LONGEST = 100_000_000  # bytes of one text: a file cannot fill the memory
_TABLES = {
    "sessions": """CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    hash BLOB NOT NULL,
    changed_at TEXT NOT NULL,
    about TEXT NOT NULL,
    checked BLOB NOT NULL
)""",
    "changes": """CREATE TABLE changes (
    session INTEGER NOT NULL,
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    hash BLOB NOT NULL,
    rewound_to INTEGER,
    idempotency_key TEXT,
    PRIMARY KEY (session, version)
) WITHOUT ROWID""",
    "changes_idempotency_key": """CREATE INDEX changes_idempotency_key ON changes (session, idempotency_key)
    WHERE idempotency_key IS NOT NULL""",
    "changes_rewound_to": """CREATE INDEX changes_rewound_to ON changes (session, version, rewound_to)
    WHERE rewound_to IS NOT NULL""",
    "checkpoints": """CREATE TABLE checkpoints (
    session INTEGER NOT NULL,
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    checked BLOB NOT NULL,
    PRIMARY KEY (session, version)
) WITHOUT ROWID""",
    "claims": """CREATE TABLE claims (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    checked BLOB NOT NULL,
    PRIMARY KEY (id, name)
) WITHOUT ROWID""",
}
_REASONS = {
    sqlite3.SQLITE_FULL: "there is no room left for it: make room and try again",
    sqlite3.SQLITE_READONLY: "it is read-only: make it writable and try again",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: restore it from a copy",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite file",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened: look whether its folder exists and is writable",
    sqlite3.SQLITE_IOERR: "the disk reports an error: look whether it is full",
    sqlite3.SQLITE_TOOBIG: f"a text is longer than {_LONGEST:,} bytes",
}


def opened(path: Path, timeout: float, synchronous: str) -> sqlite3.Connection:
    """Open a file, or begin one.

    Args:
        path: The file.
        timeout: How many seconds to wait for another process.
        synchronous: SQLite's word for when it waits for the disk.

    Raises:
        StoreError: It holds something else, or has another format.
        sqlite3.Error: It cannot be opened.
        OSError: It cannot be made.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        return _opened(path.as_uri(), path, timeout, synchronous, sqlite3.Connection)
    except sqlite3.OperationalError:
        # WAL needs its two files beside it. Where they cannot be made, and nobody who writes has made them:
        if os.access(path.parent, os.W_OK, effective_ids=True) or Path(f"{path}-wal").exists():
            raise
        return _opened(f"{path.as_uri()}?immutable=1", path, timeout, synchronous, Unchanging)


class Unchanging(sqlite3.Connection):
    """A connection that takes the file to be as it is now; each read needs one of its own."""


def _opened(
    uri: str, path: Path, timeout: float, synchronous: str, kind: type[sqlite3.Connection]
) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False, factory=kind
    )
    try:
        # A text that is not UTF-8 is read as another one, so that its hash says which version is damaged.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        if not _tables(connection) and not _number(connection, "user_version"):
            _create(connection, timeout)
        if (_number(connection, "application_id"), _number(connection, "user_version")) == (_APPLICATION, 1):
            _migrate(connection, path)
        _require_format(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def explained(error: Exception, path: Path, timeout: float) -> StoreError:
    """What an error of SQLite or of the system means for a store."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if isinstance(error, UnicodeDecodeError):
        code = sqlite3.SQLITE_CORRUPT
    if isinstance(error, OSError):
        code = sqlite3.SQLITE_CANTOPEN
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return locked(timeout)
    return StoreError(f"the store {path} cannot be used: {_REASONS.get(code, str(error))}")


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

    __slots__ = ("__weakref__", "_open", "connection", "is_cut", "lock", "turn")

    def __init__(self, open_: Callable[[], sqlite3.Connection]) -> None:
        """Prepare a connection.

        Args:
            open_: Opens it.
        """
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

    def close(self) -> None:
        """Close the connection; the caller holds the lock."""
        connection, self.connection = self.connection, None
        if connection is not None:
            self.is_cut = connection.in_transaction
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


def identity(path: Path) -> tuple[int, int]:
    """Which file a path leads to."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino


def _tables(connection: sqlite3.Connection) -> dict[str, str]:
    """What is in the file, and how it was created."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return dict(rows)


def _number(connection: sqlite3.Connection, name: str) -> int:
    found: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return found


def _create(connection: sqlite3.Connection, timeout: float) -> None:
    """Create the tables, unless another process does it first."""
    until = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:  # SQLite does not wait here while another process does the same
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    connection.execute("BEGIN IMMEDIATE")
    if not _tables(connection):
        for statement in _TABLES.values():
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
    connection.execute("COMMIT")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring a file of format 1 to format 2, unless another process does it first.

    Format 1 looked calls up by their ids in a table of their own, and had a tally of its rows in each record.

    Raises:
        StoreError: The file is read-only, or has other tables than format 1 has.
        sqlite3.Error: It cannot be migrated; nothing has changed.
    """
    connection.execute("BEGIN IMMEDIATE")
    if _number(connection, "user_version") == 1:
        try:
            connection.execute("DROP INDEX changes_rewound_to")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY:
                raise
            raise StoreError(
                f"{path} has format 1 and is read-only: make it writable and open it once, which brings it "
                f"to format {_FORMAT}"
            ) from error
        for table in ("sessions", "changes"):
            connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
        for name in ("sessions", "changes", "changes_idempotency_key", "changes_rewound_to"):
            connection.execute(_TABLES[name])
        connection.execute("INSERT INTO changes SELECT *, NULL FROM old_changes")
        for key, *row, tally, checked in connection.execute("SELECT * FROM old_sessions"):
            is_sound = checked == check_of((*row, tally))  # a record that is damaged stays so
            values = (key, *row, check_of(tuple(row)) if is_sound else checked)
            connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        for table in ("old_sessions", "old_changes", "calls"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
        _require_format(connection, path)
    connection.execute("COMMIT")


def _require_format(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is no store, or one of another format.

    Raises:
        StoreError: It is.
    """
    found, known = _number(connection, "user_version"), _number(connection, "application_id")
    if known != _APPLICATION:
        raise StoreError(f"{path} is a SQLite file, but not a store of sessions: name another")
    if found > _FORMAT:
        raise StoreError(
            f"{path} has format {found}; this release reads formats up to {_FORMAT}: use a newer one"
        )
    if _tables(connection) != _TABLES:
        raise StoreError(f"{path} has other tables than a store of sessions: it is damaged, or was changed")


def key_of(name: SessionId) -> int:
    """The key of a session's rows: made of the name, so that a lost record hides no rows."""
    digest = blake2b(str(name).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def write_head(connection: sqlite3.Connection, head: StoredSession) -> None:
    """Write the record of a session."""
    row = (str(head.session_id), head.version, head.hash, head.changed_at.isoformat(), head.about())
    connection.execute(
        "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)",
        (key_of(head.session_id), *row, check_of(row)),
    )


def session_of(row: tuple[Any, ...]) -> StoredSession:
    """The session of a record.

    Raises:
        StoreError: The record is damaged.
    """
    *values, checked = row
    if checked != check_of(tuple(values)):
        raise StoreError(f"the record of session {shown(str(row[0]))} is damaged")
    return StoredSession.of(*values)


def check_of(row: tuple[Any, ...]) -> bytes:
    """The hash of a row."""
    return blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=16).digest()

"""The SQLite file of a store: its tables, how it is opened, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

import attrs

from session.address import is_address, show_address
from session.errors import StoreError, locked_error, shown
from session.locks import ProcessLock
from session.stores.chain import check_of
from session.stores.sqlite_link import APPLICATION, Unchanging

_FORMAT = 2
_MODE = 0o600
_OTHER_KINDS = ((stat.S_ISLNK, "a link"), (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"))
_preparing = ProcessLock()  # a new file is made, and closed again, before another thread uses it
_LONGEST = 100_000_000  # bytes of one text: a file cannot fill the memory
_TABLES = {
    "store": "CREATE TABLE store (id TEXT NOT NULL)",
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
    sqlite3.SQLITE_FULL: "there is no space left: free some and try again",
    sqlite3.SQLITE_READONLY: "it is read-only: make it writable and try again",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: restore it from a copy",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite file",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened: check whether its folder exists and is writable",
    sqlite3.SQLITE_IOERR: "the disk reports an error: check whether it is full",
    sqlite3.SQLITE_NOMEM: "there is too little memory, or the file is damaged: then restore it from a copy",
    sqlite3.SQLITE_TOOBIG: f"text is longer than {_LONGEST:,} bytes",
}


def path_of(given: str | Path) -> Path:
    """The whole path of a file.

    Raises:
        StoreError: It is a name that means no file elsewhere.
    """
    name = str(given)
    if is_address(name):
        raise StoreError(f"a store needs the path of a file, got the address {show_address(name)}")
    if name in {"", ":memory:"} or name.startswith("file:") or "\0" in name:
        raise StoreError(f"a store needs the path of a file, got {shown(name)}: MemoryStore needs none")
    return Path(given).absolute()


def opened(path: Path, timeout: float, synchronous: str) -> sqlite3.Connection:
    """Open a file, or begin one.

    Raises:
        StoreError: It holds something else, or has a different format.
        sqlite3.Error: It cannot be opened.
        OSError: It cannot be made.
    """
    with _preparing.lock:
        _prepare(path, timeout)
        try:
            return _opened(f"{path.as_uri()}?mode=rw", path, timeout, synchronous, sqlite3.Connection)
        except sqlite3.OperationalError:
            # WAL needs two files beside it. If they cannot be made, and no writer has made them:
            if os.access(path.parent, os.W_OK, effective_ids=True) or _beside(path, "-wal").exists():
                raise
            uri = f"{path.as_uri()}?mode=ro&immutable=1"
            return _opened(uri, path, timeout, synchronous, Unchanging)


def _opened(
    uri: str,
    path: Path,
    timeout: float,
    synchronous: str,
    kind: type[sqlite3.Connection],
) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False, factory=kind
    )
    try:
        # Text that is not UTF-8 is read as different text, so that its hash says which version is damaged.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # Link.checkpoint
        connection.execute("PRAGMA journal_size_limit = 0")  # so that its size says how long the WAL is
        if not _number(connection, "page_count"):
            _create(connection)
        if (_number(connection, "application_id"), _number(connection, "user_version")) == (APPLICATION, 1):
            _migrate(connection, path)
        _require_format(connection, path)
        _require_wal(connection, timeout)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(path: Path, timeout: float) -> None:
    """Make a file, or refuse one that is of another application; an empty one becomes private to its owner.

    Only SQLite opens an existing file: to close it here would let go of the locks that SQLite has on
    it in this process.

    Raises:
        StoreError: It is not a file, or of another application.
        OSError: It cannot be made.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    found = path.lstat()
    what = next((what for is_such, what in _OTHER_KINDS if is_such(found.st_mode)), "not a file")
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:  # each name would have a WAL of its own
        what = "a file with several names" if stat.S_ISREG(found.st_mode) else what
        raise StoreError(f"{path} is {what}: use a separate file")
    if found.st_size == 1:  # which SQLite takes for an empty one, and overwrites
        raise StoreError(f"the store {path} cannot be used: {_REASONS[sqlite3.SQLITE_NOTADB]}")
    if found.st_size:
        _require_ours(path, timeout)
        return
    beside = [_beside(path, suffix) for suffix in ("-wal", "-shm")]
    if beside[0].exists() and beside[0].stat().st_size:  # which SQLite would delete
        raise StoreError(f"{path} is empty, and its WAL has its content: restore it from a copy")
    for each in (path, *beside):  # those that SQLite makes have the mode of the file
        with suppress(FileNotFoundError):
            if each.lstat().st_mode & 0o777 != _MODE:
                each.chmod(_MODE)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _require_ours(path: Path, timeout: float) -> None:
    """Refuse a file of another application, without a change to it."""
    # Without a WAL there is nothing but the file to read: immutable, SQLite makes no files beside it.
    how = "mode=ro" if _beside(path, "-wal").exists() else "mode=ro&immutable=1"
    try:
        is_ours = _is_ours(path, how, timeout)
    except sqlite3.DatabaseError:
        # A process is writing the file, or was killed then: SQLite waits for it, or finishes what it began.
        is_ours = _is_ours(path, "mode=rw", timeout)
    if not is_ours:
        raise StoreError(f"{path} is a SQLite file, but not a store of sessions: use another file")


def _is_ours(path: Path, how: str, timeout: float) -> bool:
    """True if a file is a store, or has nothing in it."""
    uri = f"{path.as_uri()}?{how}"
    with closing(sqlite3.connect(uri, uri=True, timeout=timeout)) as connection:
        _tables(connection)  # a file that is damaged says so here
        return not _number(connection, "page_count") or _number(connection, "application_id") == APPLICATION


def explained(error: Exception, path: Path, timeout: float) -> StoreError:
    """The ``StoreError`` for an error of SQLite or of the system."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if isinstance(error, OSError):
        code = sqlite3.SQLITE_CANTOPEN
    if isinstance(error, MemoryError):  # a length in a damaged file asks for more than there is
        code = sqlite3.SQLITE_NOMEM
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return locked_error(timeout)
    return StoreError(f"the store {path} cannot be used: {_REASONS.get(code, str(error))}")


@attrs.define
class Explaining:
    """Make a StoreError of what SQLite raises within a ``with`` block.

    Attributes:
        path: The file.
        timeout: How many seconds a writer waits for another.
    """

    path: Path
    timeout: float

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Explain what was raised."""
        if isinstance(error, (sqlite3.Error, OSError, UnicodeError, MemoryError)):
            raise explained(error, self.path, self.timeout) from error


def identity(path: Path) -> tuple[int, int]:
    """The file that a path leads to."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino


def _tables(connection: sqlite3.Connection) -> dict[str, str]:
    """The contents of the file, and how it was created."""
    rows = connection.execute(
        # Without what SQLite makes for itself, as ANALYZE does.
        "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND substr(name, 1, 7) != 'sqlite_'"
    ).fetchall()
    return dict(rows)


def _number(connection: sqlite3.Connection, name: str) -> int:
    found: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return found


def _create(connection: sqlite3.Connection) -> None:
    """Create the tables, unless another process does it first.

    They are there before the file has a WAL, so that no file of ours is without them.
    """
    connection.execute("BEGIN IMMEDIATE")
    if not _tables(connection):
        for statement in _TABLES.values():
            connection.execute(statement)
        connection.execute("INSERT INTO store VALUES (?)", (uuid4().hex,))
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
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
                f"{path} has format 1 and is read-only: make it writable and open it once, which "
                f"converts it to format {_FORMAT}"
            ) from error
        for table in ("sessions", "changes"):
            connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
        for name in ("store", "sessions", "changes", "changes_idempotency_key", "changes_rewound_to"):
            connection.execute(_TABLES[name])
        connection.execute("INSERT INTO store VALUES (?)", (uuid4().hex,))
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


def _require_wal(connection: sqlite3.Connection, timeout: float) -> None:
    """Have a WAL: a tool may have taken it away. A file that is only read, or in use, goes without."""
    until = time.monotonic() + timeout
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
            if not is_busy or time.monotonic() > until:
                return
            time.sleep(0.01)  # SQLite does not wait here while another process does the same
        else:
            return


def _require_format(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not a store, or has a different format."""
    found = _number(connection, "user_version")
    if found > _FORMAT:
        raise StoreError(
            f"{path} has format {found}; this release reads formats up to {_FORMAT}: use a newer one"
        )
    if _tables(connection) != _TABLES:
        raise StoreError(f"{path} has other tables than a store of sessions: it is damaged, or was changed")

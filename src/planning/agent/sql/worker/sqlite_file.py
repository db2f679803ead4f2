"""An SQLite file that statements can only read.

Each of these holds by itself: the file is opened for reading (``mode=ro``), the connection takes queries
only, an authorizer lets through what reads and denies all else, limits bound what one statement may take.

Nothing is written beside the file either. Of a database in WAL mode SQLite, even when it opens it for
reading, makes the files ``-wal`` and ``-shm`` and leaves them there. So as long as there is no ``-wal``
with changes in it, the file is opened as one that does not change (``immutable``), and a statement during
which it changed after all is run again. Where a ``-wal`` has changes in it, its writer has a ``-shm`` too,
which readers share; only if the writer died and its ``-shm`` was lost, SQLite creates it again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final

from .chunks import AGAIN, Send, stream
from .dialects import DIALECTS
from .failure import HALF, Failure
from .sqlite_strict import PRINTF, StrictPrintf, strict_names
from .stamp import IDENTITY, LOG_SIZE, stamp

__all__ = ["SqliteFile"]

MEGABYTE: Final = 1_000_000
HEAP: Final = 256 * MEGABYTE
LONGEST_VALUE: Final = 64 * MEGABYTE
_LONGEST_SQL: Final = 500_000
_OPERATIONS: Final = 5_000  # between two looks at the clock: well under a millisecond
_BUSY: Final = 2.0
_TRIES: Final = 5
_HEADER: Final = 100
_EXPLAIN: Final = "EXPLAIN "
_URI_BYTES: Final = frozenset(b"/._-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")

_READ, _SELECT, _FUNCTION, _UPDATE = 20, 21, 31, 23
_READING: Final = frozenset({_READ, _SELECT, _FUNCTION, 33})  # 33: a recursive SELECT
_ACTIONS: Final = {
    1: "CREATE INDEX", 2: "CREATE TABLE", 3: "CREATE TEMP INDEX", 4: "CREATE TEMP TABLE",
    5: "CREATE TEMP TRIGGER", 6: "CREATE TEMP VIEW", 7: "CREATE TRIGGER", 8: "CREATE VIEW", 9: "DELETE",
    10: "DROP INDEX", 11: "DROP TABLE", 12: "DROP TEMP INDEX", 13: "DROP TEMP TABLE",
    14: "DROP TEMP TRIGGER", 15: "DROP TEMP VIEW", 16: "DROP TRIGGER", 17: "DROP VIEW", 18: "INSERT",
    19: "PRAGMA", 22: "a transaction", 23: "UPDATE", 24: "ATTACH", 25: "DETACH", 26: "ALTER TABLE",
    27: "REINDEX", 28: "ANALYZE", 29: "CREATE VIRTUAL TABLE", 30: "DROP VIRTUAL TABLE", 32: "SAVEPOINT",
}  # fmt: skip
_CONNECTING: Final = "connecting a virtual table"
_MADE_UP: Final = ("json_each", "json_tree", "generate_series", "dbstat")
_UNSAFE: Final = frozenset(
    {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "fsdir", "lsmode", "sqlite_log"}
)
# Functions and virtual tables in views need no switch of their own (trusted_schema): the authorizer sees
# those in views too, and there are none but SQLite's. With it no view of a full-text table could be read.
_PRAGMAS: Final = (
    "query_only = 1",
    "temp_store = MEMORY",
    "cell_size_check = ON",
    f"hard_heap_limit = {HEAP}",
    "mmap_size = 0",
)
_LIMITS: Final = (
    ("SQLITE_LIMIT_ATTACHED", 0),
    ("SQLITE_LIMIT_LENGTH", LONGEST_VALUE),
    ("SQLITE_LIMIT_SQL_LENGTH", _LONGEST_SQL),
    ("SQLITE_LIMIT_LIKE_PATTERN_LENGTH", 10_000),
    ("SQLITE_LIMIT_EXPR_DEPTH", 1_000),
    ("SQLITE_LIMIT_COMPOUND_SELECT", 500),
    ("SQLITE_LIMIT_VDBE_OP", 10_000_000),
    ("SQLITE_LIMIT_WORKER_THREADS", 0),
)
_ENDS: Final = {  # by SQLite's primary result code
    sqlite3.SQLITE_INTERRUPT: "timeout",
    sqlite3.SQLITE_NOMEM: "memory",
    sqlite3.SQLITE_TOOBIG: "large",
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_PROTOCOL: "locked",
    sqlite3.SQLITE_CORRUPT: "corrupt",
    sqlite3.SQLITE_NOTADB: "corrupt",
    sqlite3.SQLITE_CANTOPEN: "unreadable",
    sqlite3.SQLITE_IOERR: "unreadable",
    sqlite3.SQLITE_AUTH: "refused",
    sqlite3.SQLITE_READONLY: "refused",
}
_UNFINISHED: Final = frozenset({sqlite3.SQLITE_READONLY_ROLLBACK, sqlite3.SQLITE_READONLY_RECOVERY})


class SqliteFile:
    """One file, and the connection to it, which is made when it is needed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_trusted = False  # the statements of this package itself
        self._connection: sqlite3.Connection | None = None
        self._printf: StrictPrintf | None = None
        self._descriptor: int | None = None
        self._stamp: tuple[int, ...] = ()
        self._is_immutable = False
        self._is_live = False
        self._deadline = 0.0
        self._denied = ""

    def run(self, sql: str, most_rows: int, seconds: float, send: Send) -> tuple[list[str], bool]:
        """Run one statement and send its rows.

        Returns:
            The names of the columns, and whether there are more rows than were sent.

        Raises:
            Failure: It ended without an answer.
        """
        with self.session(seconds):
            answer: tuple[list[str], bool] = self.steadily(
                lambda: self._query(sql, most_rows, send), lambda: send(AGAIN)
            )
            return answer

    def rest(self) -> None:
        """Release what another program may wait for; called when there are no requests for a while."""
        if self._is_live:
            self.close()

    def close(self) -> None:
        """End the connection."""
        self._disconnect()
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:  # after the connection, which would lose its locks by it
            os.close(descriptor)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self._is_live = False
        if connection is not None:
            connection.close()
        if self._printf is not None:
            self._printf.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, within a session."""
        assert self._connection is not None  # noqa: S101 - it is made before anything is asked of it
        return self._connection

    def steadily(self, read: Callable[[], Any], again: Callable[[], object]) -> Any:
        """Read the file as of one moment: again if it changed under an immutable connection."""
        for _ in range(_TRIES):
            self._prepare()
            answer = self._connected(read, again)
            if not self._is_immutable or self._look() == self._stamp:
                return answer
            again()
        raise Failure("locked")

    @contextmanager
    def session(self, seconds: float) -> Iterator[None]:
        """Bound the block by a time, and raise its errors as a ``Failure``."""
        self._deadline = monotonic() + seconds
        self._denied = ""
        try:
            yield
        except MemoryError:
            self.close()
            raise Failure("memory") from None
        except sqlite3.Error as error:
            raise self._failure(error) from None
        except sqlite3.Warning as error:  # before Python 3.12: more than one statement
            raise Failure("sql", str(error)) from None
        except UnicodeEncodeError:
            raise Failure("sql", HALF) from None
        except UnicodeDecodeError:
            raise Failure("sql", "a name in the database is not valid UTF-8") from None

    # Opening

    def _prepare(self) -> None:
        """Connect to the current file: it may have been replaced since the last request."""
        now = self._look()
        if self._connection is not None and now == self._stamp:
            return
        is_logged, has_changes = bool(now[-1]), now[LOG_SIZE] > 0
        is_immutable = is_logged and not has_changes
        if self._connection is None or is_immutable or self._is_immutable:
            self._disconnect()
            self._open(is_immutable=is_immutable)
        self._stamp, self._is_live = now, is_logged and has_changes

    def _look(self) -> tuple[int, ...]:
        try:
            found = stamp(self.path, DIALECTS["sqlite"].log)
            return (*found, *self._header(found))
        except FileNotFoundError:
            self.close()
            raise Failure("missing") from None
        except IsADirectoryError:
            raise Failure("folder") from None
        except PermissionError:
            raise Failure("denied") from None
        except OSError as error:
            raise Failure("unreadable", error.strerror or "") from None

    def _header(self, found: tuple[int, ...]) -> tuple[int, int, int]:
        """Two counters that SQLite keeps in the file, and whether it keeps a log.

        They are read through one descriptor, which stays open as long as the connection.
        """
        if self._descriptor is not None:
            mine = os.fstat(self._descriptor)
            if (mine.st_dev, mine.st_ino) != found[IDENTITY]:
                self.close()  # another file is there now
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        header = os.read(self._descriptor, _HEADER)
        changes, schema = header[24:28], header[40:44]
        return int.from_bytes(changes, "big"), int.from_bytes(schema, "big"), int(header[18:20] == b"\2\2")

    def _open(self, *, is_immutable: bool) -> None:
        remaining = self._deadline - monotonic()
        options = "mode=ro&immutable=1" if is_immutable else "mode=ro"
        uri = f"file:{_quoted(os.fsencode(self.path))}?{options}"
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=max(0.0, min(_BUSY, remaining / 2)),
            isolation_level=None,
            cached_statements=0,  # one that this package prepared for itself is not given to another
        )
        for name, value in _LIMITS:
            connection.setlimit(getattr(sqlite3, name), value)
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").close()
        self._printf = StrictPrintf(LONGEST_VALUE)
        for name in PRINTF:
            connection.create_function(name, -1, self._printf, deterministic=True)
        connection.set_authorizer(self._authorize)
        connection.set_progress_handler(self._is_late, _OPERATIONS)
        self._connection, self._is_immutable = connection, is_immutable

    # Guarding

    def _authorize(self, action: int, first: str | None, second: str | None, *_: object) -> int:
        if self.is_trusted:
            return sqlite3.SQLITE_OK
        if action in _READING and not (action == _FUNCTION and (second or "").lower() in _UNSAFE):
            return sqlite3.SQLITE_OK
        if not self._denied:
            is_connecting = action == _UPDATE and first == "sqlite_master"
            self._denied = _CONNECTING if is_connecting else _ACTIONS.get(action, second or "that")
        return sqlite3.SQLITE_DENY

    def _is_late(self) -> bool:
        return monotonic() > self._deadline

    def _failure(self, error: sqlite3.Error) -> Failure:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code in _UNFINISHED:
            return Failure("unfinished")
        kind = _ENDS.get(code & 0xFF, "sql")
        if self._denied and kind in {"sql", "refused"}:
            return Failure("refused", self._denied)
        if kind == "refused":
            return Failure("refused", "writing")
        if kind in {"corrupt", "unreadable", "memory"}:
            self.close()
        return Failure(kind, str(error))

    # Asking

    def _query(self, sql: str, most_rows: int, send: Send) -> tuple[list[str], bool]:
        try:
            return self._rows(sql, most_rows, send)
        except sqlite3.OperationalError as error:
            if not str(error).startswith("Could not decode to UTF-8"):
                raise
        send(AGAIN)
        self.connection.text_factory = lambda text: text.decode("utf-8", "replace")
        try:
            return self._rows(sql, most_rows, send)
        finally:
            self.connection.text_factory = str

    def _rows(self, sql: str, most_rows: int, send: Send) -> tuple[list[str], bool]:
        self._check_names(sql)
        cursor = self.connection.execute(sql)
        try:
            names = [column[0] for column in cursor.description or ()]
            return names, stream(cursor.fetchmany, most_rows, send)
        finally:
            cursor.close()  # it would hold a lock

    def _check_names(self, sql: str) -> None:
        """Check that each name in double quotes is a column: SQLite takes any other for a string.

        Raises:
            sqlite3.Error: One is not, or SQLite cannot parse the statement.
        """
        strict = strict_names(sql)
        if strict == sql:
            return
        try:
            self.connection.execute(_EXPLAIN + strict.removeprefix(_EXPLAIN)).close()
        except sqlite3.Error as error:
            if not str(error).startswith("no such column"):
                self.connection.execute(_EXPLAIN + sql.removeprefix(_EXPLAIN)).close()  # in its own words
            raise

    def _connected(self, ask: Callable[[], Any], again: Callable[[], object]) -> Any:
        """Ask, and again after virtual tables are connected, which takes more than reading."""
        try:
            return ask()
        except sqlite3.DatabaseError:
            if self._denied != _CONNECTING:
                raise
        self._connect_virtual_tables()
        self._denied = ""
        again()
        try:
            return ask()
        finally:
            if self._denied == _CONNECTING:  # still: a table that SQLite makes up, such as pragma_table_info
                self._denied = "PRAGMA"

    def _connect_virtual_tables(self) -> None:
        """Connect the virtual tables of the file, and SQLite's own; nothing is written even then."""
        self.is_trusted = True
        try:
            found = self.connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0"
            ).fetchall()
            for name in (*_MADE_UP, *(name for (name,) in found)):
                try:
                    self.connection.execute(f"SELECT 1 FROM {quoted(name)} LIMIT 0").close()  # noqa: S608 - a name as the file has it, quoted
                except sqlite3.DatabaseError:
                    continue  # this SQLite lacks its module: a query of the table gets the error
        finally:
            self.is_trusted = False


def _quoted(path: bytes) -> str:
    """A path as a URI has it; importing urllib would take as long as opening the database."""
    return "".join(chr(each) if each in _URI_BYTES else f"%{each:02X}" for each in path)


def quoted(name: str) -> str:
    """A name as SQL takes any name."""
    return '"' + name.replace('"', '""') + '"'

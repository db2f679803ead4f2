"""An SQLite file, and how it is read as of one moment without a file beside it.

Of a database in WAL mode SQLite, even when it opens it for reading, makes the files ``-wal`` and ``-shm``
and leaves them there. So as long as there is no ``-wal`` with changes in it, the file is opened as one that
does not change (``immutable``), and a statement during which it changed after all is run again. Where a
``-wal`` has changes in it, its writer has a ``-shm`` too, which readers share; only if the writer died and
its ``-shm`` was lost, SQLite creates it again.

The file is opened by SQLite alone: a process that closes a file in any other way gives up all its locks on
it, those of other connections included.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from time import monotonic, sleep
from typing import Any, Final, TypeVar

from planning.agent.databases.rows import fetched
from planning.agent.databases.source import LOG_SIZE, is_settled, stamp
from planning.agent.databases.sqlite_boundary import Boundary, connect
from planning.agent.databases.sqlite_strict import check_copies, check_names
from planning.agent.databases.sqlite_tables import add_values, read_tables
from planning.agent.sql.failures import Failure

T = TypeVar("T")
Answer = tuple[list[str], list[list[Any]], bool]

_BUSY: Final = 2.0
_TRIES: Final = 5
_SOON: Final = 0.02
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
    """One file, and the connection to it, which is made when it is needed; one thread uses it.

    Attributes:
        deadline: When the current statement has to end, on the monotonic clock.
    """

    def __init__(self, path: str, seconds: float) -> None:
        """Name the file.

        Args:
            path: The file.
            seconds: How long a statement may take.
        """
        self.deadline = 0.0
        self._path = path
        self._busy = min(_BUSY, seconds / 2)
        self._stamp: tuple[int, ...] = ()
        self._is_immutable = False
        self._is_live = False
        self._until = 0.0  # the deadline, or sooner
        self._boundary: Boundary | None = None

    def run(self, sql: str, most_rows: int) -> Answer:
        """Run one statement: the names of its columns, its rows, and whether there are more.

        Raises:
            Failure: The database could not answer.
        """
        with self._session():
            return self._steadily(lambda boundary: self._query(boundary, sql, most_rows))

    def version(self) -> str:
        """The version of the database."""
        return sqlite3.sqlite_version

    def tables(self, samples: int, until: float) -> list[dict[str, Any]]:
        """Read the tables.

        Args:
            samples: How many values of a column to read; below 0, no values are read and no rows counted.
            until: When to stop reading values and counting rows.

        Returns:
            For each table its ``name``, ``schema``, ``kind``, ``columns``, ``foreign_keys`` and ``rows``.

        Raises:
            Failure: They cannot be read.
        """
        with self._session():
            return self._steadily(lambda boundary: self._tables(boundary, samples, until))

    def interrupt(self) -> None:
        """Stop the current statement; called from another thread."""
        boundary = self._boundary
        if boundary is not None:
            with suppress(sqlite3.Error):  # it was closed just now
                boundary.connection.interrupt()

    def rest(self) -> None:
        """Let the last writer of a log clean up."""
        if self._is_live:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        boundary, self._boundary = self._boundary, None
        self._is_live = False
        if boundary is not None:
            boundary.connection.close()

    @contextmanager
    def _session(self) -> Iterator[None]:
        """Raise the errors of the block as a ``Failure``."""
        self._until = self.deadline
        try:
            yield
        except MemoryError:
            self.close()
            raise Failure("memory") from None
        except sqlite3.Error as error:
            raise self._failure(error) from None
        except sqlite3.Warning as error:  # before Python 3.12: more than one statement
            raise Failure("sql", str(error)) from None
        except UnicodeError:
            raise Failure("sql", "the SQL, or a name in the database, is not valid UTF-8") from None

    def _failure(self, error: sqlite3.Error) -> Failure:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code in _UNFINISHED:
            return Failure("unfinished")
        kind = _ENDS.get(code & 0xFF, "sql")
        denied = self._boundary.denied if self._boundary is not None else ""
        if not denied and "not authorized" in str(error):  # it was late while the statement was prepared
            return Failure("timeout")
        if kind == "refused" or (denied and kind == "sql"):
            return Failure("refused", denied or "writing")
        if kind in {"corrupt", "unreadable", "memory"}:
            self.close()
        if kind == "unreadable" and not os.access(self._path, os.R_OK, effective_ids=True):
            return Failure("denied")
        return Failure(kind, str(error))

    # Opening

    def _steadily(self, read: Callable[[Boundary], T]) -> T:
        """Read the file as of one moment: again if it changed under an immutable connection."""
        for _ in range(_TRIES):
            answer = read(self._connected())
            if not self._is_immutable or self._look() == self._stamp:
                return answer
        raise Failure("locked")

    def _look(self) -> tuple[int, ...]:
        try:
            return stamp(self._path, "sqlite")
        except Failure:
            self.close()
            raise

    def _connected(self) -> Boundary:
        """The connection to the current file: it may have been replaced since the last statement."""
        now = self._look()
        if self._boundary is None or now != self._stamp:
            self.close()
            self._is_live = now[LOG_SIZE] > 0
            self._is_immutable = not self._is_live and self._keeps_log()
            if self._is_immutable and not is_settled(now, _SOON):
                sleep(_SOON)  # a change in the same tick of the clock as the last one would not be seen
                now = self._look()
            connection = connect(self._path, "immutable=1" if self._is_immutable else "", self._busy)
            self._boundary, self._stamp = Boundary(connection, self._is_late), now
        return self._boundary

    def _keeps_log(self) -> bool:
        """Whether the file is in WAL mode: without locks SQLite cannot open one that is."""
        try:
            with closing(connect(self._path, "nolock=1")) as connection:
                connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").close()
        except sqlite3.Error as error:
            return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CANTOPEN
        return False

    def _is_late(self) -> bool:
        return monotonic() > min(self._until, self.deadline)

    # Asking

    def _query(self, boundary: Boundary, sql: str, most_rows: int) -> Answer:
        try:
            return self._rows(boundary, sql, most_rows)
        except sqlite3.OperationalError as error:
            if not str(error).startswith("Could not decode to UTF-8"):
                raise
        boundary.connection.text_factory = _decoded  # from now on
        return self._rows(boundary, sql, most_rows)

    def _rows(self, boundary: Boundary, sql: str, most_rows: int) -> Answer:
        boundary.begin(sql)
        check_copies(sql)
        check_names(boundary.connection, sql)
        with closing(boundary.connection.execute(sql)) as cursor:  # one that is open would hold a lock
            names = [column[0] for column in cursor.description or ()]
            return names, *fetched(cursor, most_rows)

    def _tables(self, boundary: Boundary, samples: int, until: float) -> list[dict[str, Any]]:
        connection = boundary.connection
        connection.text_factory = _decoded
        try:
            with boundary.lifted():
                tables = read_tables(connection, self._is_late)
                if samples >= 0:
                    self._until = min(self.deadline, until)
                    add_values(connection, tables, samples, self._is_late)
        finally:
            connection.text_factory = str
            self._until = self.deadline
        return tables


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")

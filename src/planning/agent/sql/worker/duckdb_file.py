"""A DuckDB file that statements can only read.

Each of these holds by itself: the file is opened for reading, only statements of the type SELECT are run,
other files, extensions and settings are out of reach. The file is closed as soon as there are no requests:
a DuckDB file cannot be written while it is open for reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Timer
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from .chunks import Send, stream
from .dialects import DIALECTS
from .duckdb_values import converter
from .failure import HALF, WORN, Failure
from .stamp import stamp

if TYPE_CHECKING:
    import duckdb

__all__ = ["DuckdbFile", "open_file"]

_CONFIG: Final = {
    "temp_directory": "",
    "max_temp_directory_size": "0B",
    "memory_limit": "256MB",
    "threads": "2",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",  # an unknown table is not looked up among Python variables
    "python_scan_all_frames": "false",
    "enable_external_access": "false",
    "lock_configuration": "true",  # last: nothing can be set after it
}
_ZONED: Final = "WITH TIME ZONE"
_SOON: Final = 0.02


class DuckdbFile:
    """One file, and the connection to it, which is made when it is needed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._stamp: tuple[int, ...] = ()
        self._deadline = 0.0

    def run(self, sql: str, most_rows: int, seconds: float, send: Send) -> tuple[list[str], bool]:
        """Run one statement and send its rows.

        Returns:
            The names of the columns, and whether there are more rows than were sent.

        Raises:
            Failure: It ended without an answer.
        """
        with self.session(seconds):
            kinds = [statement.type.name for statement in self.connection.extract_statements(sql)]
            if kinds != ["SELECT"]:
                raise Failure("refused", _refused(kinds))
            cursor = self.connection.execute(sql)
            columns = list(cursor.description or ())
            names = [column[0] for column in columns]
            if any(_ZONED in str(column[1]) for column in columns):
                cursor = self.connection.execute(_without_zones(sql, columns))
            return names, stream(cursor.fetchmany, most_rows, send, converter(map(str, _types(columns))))

    def facts(self, samples: int, budget: float, seconds: float) -> dict[str, Any]:
        """Read the tables of the file, as ``SqliteDatabase.facts`` does, each with its ``schema``."""
        from .duckdb_facts import read_facts

        with self.session(seconds):
            until = min(self._deadline, monotonic() + budget)
            return read_facts(self.connection.execute, samples, lambda: monotonic() < until)

    def rest(self) -> None:
        """Close the file, so that others may write to it."""
        self.close()

    def close(self) -> None:
        """End the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection, within a session."""
        assert self._connection is not None  # noqa: S101 - it is made before anything is asked of it
        return self._connection

    @contextmanager
    def session(self, seconds: float) -> Iterator[None]:
        """Bound the block by a time, and raise its errors as a ``Failure``."""
        try:
            import duckdb
        except ImportError:
            raise Failure("library") from None
        self._deadline = monotonic() + seconds
        try:
            self._prepare(duckdb.connect)
            timer = Timer(seconds, self.connection.interrupt)
            timer.daemon = True
            _start(timer)
            try:
                yield
            finally:
                timer.cancel()
        except duckdb.Error as error:
            raise self._failure(error) from None
        except MemoryError:
            self.close()
            raise Failure("memory") from None
        except UnicodeError:
            raise Failure("sql", HALF) from None

    def _prepare(self, connect: Callable[..., duckdb.DuckDBPyConnection]) -> None:
        """Connect to the current file: it may have been replaced since the last request."""
        try:
            now = stamp(self.path, DIALECTS["duckdb"].log)
        except FileNotFoundError:
            self.close()
            raise Failure("missing") from None
        except IsADirectoryError:
            raise Failure("folder") from None
        except PermissionError:
            raise Failure("denied") from None
        except OSError as error:
            raise Failure("unreadable", error.strerror or "") from None
        if self._connection is None or now != self._stamp:
            self.close()
            self._connection, self._stamp = connect(self.path, read_only=True, config=_CONFIG), now

    def _failure(self, error: duckdb.Error) -> Failure:
        kind, text = type(error).__name__, str(error)
        if kind == "InterruptException" or monotonic() > self._deadline + _SOON:
            return Failure("timeout")
        if self._connection is None:
            return Failure("locked" if "lock" in text.lower() else "corrupt", text)
        if kind == "OutOfMemoryException":
            self.close()
            return Failure("memory")
        if kind in {"FatalException", "SerializationException", "IOException"}:
            self.close()
            return Failure("corrupt", text)
        if kind == "InternalException":
            self.close()
            return Failure("broken")
        if kind == "PermissionException":
            return Failure("refused", "reaching other files")
        if "read-only mode" in text:
            return Failure("refused", "writing")
        if "configuration has been locked" in text:
            return Failure("refused", "changing settings")
        return Failure("sql", text)


def open_file(path: str) -> DuckdbFile:
    """Open a file for a worker process."""
    return DuckdbFile(path)


def _start(timer: Timer) -> None:
    """Start a timer.

    Raises:
        SystemExit: There is no memory for a thread: earlier statements took it for good.
    """
    try:
        timer.start()
    except RuntimeError:
        raise SystemExit(WORN) from None


def _refused(kinds: list[str]) -> str:
    """The kind of a statement that does not only read."""
    if kinds == ["MULTI"]:
        return "PIVOT without its values (IN ...)"
    other = [kind for kind in kinds if kind != "SELECT"]
    return other[0] if other else "more than one statement" if kinds else "an empty statement"


def _types(columns: Sequence[Any]) -> list[Any]:
    return [column[1] for column in columns]


def _without_zones(sql: str, columns: Sequence[Any]) -> str:
    """The same query with its times with a zone as strings: as values they need another library."""
    names = [f"c{number}" for number in range(len(columns))]
    chosen = [
        f"CAST({name} AS VARCHAR)" if _ZONED in str(kind) else name
        for name, kind in zip(names, _types(columns), strict=True)
    ]
    return f"SELECT {', '.join(chosen)} FROM (\n{sql}\n) AS q({', '.join(names)})"  # noqa: S608 - the statement itself, in brackets

"""A DuckDB file that statements can only read.

Each of these holds by itself: the file is opened for reading, only statements of the type SELECT are run,
other files, extensions and settings are out of reach. The file is closed as soon as there are no questions:
a DuckDB file cannot be written while it is open for reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from planning.agent.databases.duckdb_tables import read_tables
from planning.agent.databases.duckdb_values import plain, size_of
from planning.agent.databases.rows import fetched
from planning.agent.databases.source import stamp
from planning.agent.sql.dialects import DIALECTS
from planning.agent.sql.failures import Failure
from planning.agent.sql.guard import HALF
from planning.agent.sql.schema import select

if TYPE_CHECKING:
    import duckdb

__all__ = ["DuckdbFile"]

_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
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
_KINDS: Final = {
    "InterruptException": "timeout",
    "OutOfMemoryException": "memory",
    "FatalException": "corrupt",
    "SerializationException": "corrupt",
    "IOException": "corrupt",
    "InternalException": "broken",
}
_REFUSED: Final = (
    ("PermissionException", "reaching other files"),
    ("read-only mode", "writing"),
    ("configuration has been locked", "changing settings"),
)


class DuckdbFile:
    """One file, and the connection to it, which is made when it is needed.

    Attributes:
        deadline: See ``DatabaseFile``.
    """

    def __init__(self, path: str) -> None:
        self.deadline = 0.0
        self._path = path
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._stamp: tuple[int, ...] = ()

    def run(self, sql: str, most_rows: int) -> tuple[list[str], list[list[Any]], bool]:
        """Run one statement; see ``DatabaseFile``."""
        with self._session() as connection:
            kinds = [statement.type.name for statement in connection.extract_statements(sql)]
            if kinds != ["SELECT"]:
                raise Failure("refused", _refused(kinds))
            cursor = connection.execute(sql)
            columns = [(column[0], str(column[1])) for column in cursor.description or ()]
            if any(_ZONED in kind for _, kind in columns):
                cursor = connection.execute(_without_zones(sql, columns))
            rows = ([plain(value) for value in row] for row in iter(cursor.fetchone, None))
            return [name for name, _ in columns], *fetched(rows, most_rows, size_of)

    def probe(self, sql: str) -> str:
        """The error of a statement that is only prepared; see ``DatabaseFile``."""
        try:
            self.run(select("1", f"(\n{sql}\n)", 0), 1)
        except Failure as failure:
            return failure.text or failure.kind
        return ""

    def tables(self, samples: int, until: float) -> list[dict[str, Any]]:
        """Read the tables; see ``DatabaseFile``."""
        with self._session() as connection:
            return read_tables(connection.execute, samples, lambda: monotonic() < min(until, self.deadline))

    def interrupt(self) -> None:
        """Stop the current statement; called from another thread."""
        connection = self._connection
        if connection is not None:
            connection.interrupt()

    def rest(self) -> None:
        """Close the file, so that others may write to it."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @contextmanager
    def _session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The connection to the current file; errors of the block are raised as a ``Failure``."""
        try:
            import duckdb
        except ImportError:
            raise Failure("library") from None
        try:
            now = stamp(self._path, DIALECTS["duckdb"].log)
            if self._connection is None or now != self._stamp:
                self.close()
                self._connection = duckdb.connect(self._path, read_only=True, config=_CONFIG)
                self._stamp = now
            yield self._connection
        except duckdb.Error as error:
            failure = self._failure(error)
            if failure.kind in {"memory", "corrupt", "broken"}:
                self.close()
            raise failure from None
        except MemoryError:
            self.close()
            raise Failure("memory") from None
        except UnicodeError:
            raise Failure("sql", HALF) from None
        except (
            ValueError,
            OverflowError,
            TypeError,
        ) as error:  # a value or a statement that it cannot give Python
            raise Failure("sql", f"{type(error).__name__}: {error}") from None

    def _failure(self, error: duckdb.Error) -> Failure:
        kind, text = type(error).__name__, str(error)
        if monotonic() > self.deadline:
            return Failure("timeout")
        if self._connection is None:
            if "different configuration" in text:
                return Failure("settings")
            return Failure("locked" if "lock" in text.lower() else "corrupt", text)
        refused = [words for mark, words in _REFUSED if mark == kind or mark in text]
        return Failure("refused", refused[0]) if refused else Failure(_KINDS.get(kind, "sql"), text)


def _refused(kinds: list[str]) -> str:
    """The kind of a statement that does not only read."""
    if kinds == ["MULTI"]:
        return "PIVOT without its values (IN ...)"
    other = [kind for kind in kinds if kind != "SELECT"]
    return other[0] if other else "more than one statement" if kinds else "an empty statement"


def _without_zones(sql: str, columns: Sequence[tuple[str, str]]) -> str:
    """The same query with its times with a zone as strings: as values they need another library."""
    names = [f"c{number}" for number in range(len(columns))]
    chosen = [
        f"CAST({name} AS VARCHAR)" if _ZONED in kind else name
        for name, (_, kind) in zip(names, columns, strict=True)
    ]
    return f"SELECT {', '.join(chosen)} FROM (\n{sql}\n) AS q({', '.join(names)})"  # noqa: S608 - the statement itself, in brackets

"""A DuckDB file that statements can only read.

Each of these holds by itself: the file is opened for reading, only statements of the type SELECT are run,
other files, extensions and settings are out of reach. The file is closed as soon as there are no questions:
a DuckDB file cannot be written while it is open for reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from sys import getsizeof
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from planning.agent.databases.rows import SAMPLED, add_samples, fetched
from planning.agent.databases.source import stamp
from planning.agent.sql.failures import Failure
from planning.agent.sql.schema import MOST_COUNTED, quoted, select

if TYPE_CHECKING:
    import duckdb

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
    "PermissionException": "refused",
}
_NUMBERS: Final = ("TINY", "SMALL", "INT", "BIG", "HUGE", "UINT", "UBIG", "FLOAT", "DOUBLE", "DEC", "BOOL")
_TABLES: Final = """
    SELECT c.schema_name, c.table_name, v.view_name IS NOT NULL, list(column_name ORDER BY column_index),
        list(data_type ORDER BY column_index), list(NOT is_nullable ORDER BY column_index)
    FROM duckdb_columns() AS c LEFT JOIN duckdb_views() AS v
        ON v.view_oid = c.table_oid AND v.database_oid = c.database_oid
    WHERE c.database_name = current_database() AND NOT c.internal
    GROUP BY 1, 2, 3 ORDER BY 3, nullif(c.schema_name, 'main') NULLS FIRST, 2
"""
_KEYS: Final = """
    SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table,
        referenced_column_names
    FROM duckdb_constraints() WHERE database_name = current_database() ORDER BY table_oid, constraint_index
"""


class DuckdbFile:
    """One file, and the connection to it, which is made when it is needed.

    Attributes:
        deadline: See ``SqliteFile``.
    """

    def __init__(self, path: str) -> None:
        self.deadline = 0.0
        self._path = path
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._stamp: tuple[int, ...] = ()

    def run(self, sql: str, most_rows: int) -> tuple[list[str], list[list[Any]], bool]:
        """Run one statement; see ``SqliteFile``."""
        with self._session() as connection:
            kinds = [statement.type.name for statement in connection.extract_statements(sql)]
            if kinds != ["SELECT"]:
                raise Failure("refused", kinds[0] if len(kinds) == 1 else "more than one statement")
            cursor = connection.execute(sql)
            columns = [(column[0], str(column[1])) for column in cursor.description or ()]
            if any(_ZONED in kind for _, kind in columns):
                cursor = connection.execute(_without_zones(sql, columns))
            rows = ([_plain(value) for value in row] for row in iter(cursor.fetchone, None))
            return [name for name, _ in columns], *fetched(rows, most_rows, _size_of)

    def probe(self, sql: str) -> str:
        """The error of a statement that is only prepared; see ``SqliteFile``."""
        try:
            self.run(select("1", f"(\n{sql}\n)", 0), 1)
        except Failure as failure:
            return failure.text or failure.kind
        return ""

    def tables(self, samples: int, until: float) -> list[dict[str, Any]]:
        """Read the tables; see ``SqliteFile``."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        with self._session() as connection:
            for schema, name, is_view, *columns in connection.execute(_TABLES).fetchall():
                found[schema, name] = {
                    "name": name,
                    "schema": "" if schema == "main" else schema,
                    "kind": "view" if is_view else "table",
                    "columns": [
                        {"name": column, "type": kind, "not_null": not_null, "primary": 0, "samples": []}
                        for column, kind, not_null in zip(*columns, strict=True)
                    ],
                    "foreign_keys": [],
                    "rows": None,
                }
            for schema, name, kind, names, target, targets in connection.execute(_KEYS).fetchall():
                table = found[schema, name]
                if kind == "FOREIGN KEY":
                    table["foreign_keys"].append({"columns": names, "table": target, "targets": targets})
                elif kind == "PRIMARY KEY":
                    for column in table["columns"]:
                        column["primary"] = names.index(column["name"]) + 1 if column["name"] in names else 0
            for table in found.values():
                if samples >= 0 and table["kind"] == "table" and monotonic() < min(until, self.deadline):
                    source = f"{quoted(table['schema'] or 'main')}.{quoted(table['name'])}"
                    counted = select("count(*)", f"({select('1', source, MOST_COUNTED + 1)})", 1)
                    ((table["rows"],),) = connection.execute(counted).fetchall()
                    values = select(", ".join(map(_chosen, table["columns"])), source, SAMPLED)
                    rows = connection.execute(values).fetchall() if samples else ()
                    add_samples(table, [[*map(_plain, row)] for row in rows], samples)
        return list(found.values())

    def interrupt(self) -> None:
        """Stop the current statement; called from another thread."""
        connection = self._connection
        if connection is not None:
            connection.interrupt()

    def close(self) -> None:
        """Close the connection, so that others may write to the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    rest = close

    @contextmanager
    def _session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The connection to the current file; errors of the block are raised as a ``Failure``."""
        try:
            import duckdb
        except ImportError:
            raise Failure("library", "duckdb: pip install 'session-planning[duckdb]'") from None
        try:
            now = stamp(self._path, "duckdb")
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
        except (ValueError, OverflowError, TypeError) as error:  # a value that it cannot give Python
            raise Failure("sql", f"{type(error).__name__}: {error}") from None

    def _failure(self, error: duckdb.Error) -> Failure:
        text = str(error)
        if monotonic() > self.deadline:
            return Failure("timeout")
        if self._connection is None:
            if "different configuration" in text:
                return Failure("settings")
            return Failure("locked" if "lock" in text.lower() else "corrupt", text)
        if "read-only mode" in text or "configuration has been locked" in text:
            return Failure("refused", "more than reading")
        kind = _KINDS.get(type(error).__name__, "sql")
        return Failure(kind, "reaching other files" if kind == "refused" else text)


def _chosen(column: dict[str, Any]) -> str:
    """A column as it can be shown: long values cut, and all but numbers as text."""
    name, kind = quoted(column["name"]), column["type"]
    if kind == "BLOB" or kind.startswith(_NUMBERS):
        return "NULL" if kind == "BLOB" else name
    return f"left(CAST({name} AS VARCHAR), 200)"


def _without_zones(sql: str, columns: Sequence[tuple[str, str]]) -> str:
    """The same query with its times with a zone as strings: as values they need another library."""
    names = [f"c{number}" for number in range(len(columns))]
    chosen = [
        f"CAST({name} AS VARCHAR)" if _ZONED in kind else name
        for name, (_, kind) in zip(names, columns, strict=True)
    ]
    return f"SELECT {', '.join(chosen)} FROM (\n{sql}\n) AS q({', '.join(names)})"  # noqa: S608 - the statement itself, in brackets


def _plain(value: Any) -> Any:
    """A value as JSON has it, or bytes; a decimal as a number if one is equal, any other as a string."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Decimal) and Decimal(repr(float(value))) == value:
        return float(value)
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else str(value)


def _size_of(row: Sequence[Any]) -> int:
    """The bytes of a row in memory: an empty dict in a list takes more there than in a file."""
    size, left = 0, list(row)
    while left:
        value = left.pop()
        size += getsizeof(value)
        if isinstance(value, (list, dict, tuple)):
            left += value.values() if isinstance(value, dict) else value
    return size

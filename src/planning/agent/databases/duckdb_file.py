"""A DuckDB file that statements can only read.

Each of these holds by itself: the file is opened for reading, only statements of the type SELECT are run,
other files, extensions and settings are out of reach. The file is closed as soon as there are no questions:
a DuckDB file cannot be written while it is open for reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from planning.agent.databases.rows import (
    SAMPLED,
    add_column,
    add_samples,
    fetched,
    memory_of,
    new_table,
    plain,
)
from planning.agent.databases.source import stamp
from planning.agent.sql.guard import Failure
from planning.agent.sql.schema import MOST_COUNTED, quoted, select

if TYPE_CHECKING:
    import duckdb

_OFF: Final = (
    "autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions",
    "allow_unsigned_extensions", "allow_persistent_secrets", "enable_external_access",
    "python_enable_replacements",  # an unknown table is not looked up among Python variables
    "python_scan_all_frames",
)  # fmt: skip
_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "temp_directory": "",
    "max_temp_directory_size": "0B",
    "memory_limit": "256MB",
    "threads": "2",
    **dict.fromkeys(_OFF, "false"),
    "lock_configuration": "true",  # last: nothing can be set after it
}
_PIVOT: Final = re.compile(r"\bpivot", re.IGNORECASE)
"""Without IN it is several statements: the first ones collect the names of the columns."""
_ZONED: Final = "WITH TIME ZONE"
_KINDS: Final = {
    "InterruptException": "timeout",
    "OutOfMemoryException": "memory",
    **dict.fromkeys(("FatalException", "SerializationException", "IOException"), "corrupt"),
    "InternalException": "broken",
    "PermissionException": "refused",
}
_NUMBERS: Final = ("TINY", "SMALL", "INT", "BIG", "HUGE", "UINT", "UBIG", "FLOAT", "DOUBLE", "DEC", "BOOL")
_TABLES: Final = """
    SELECT c.schema_name, c.table_name, if(v.view_name IS NULL, 'table', 'view'),
        list(column_name ORDER BY column_index), list(data_type ORDER BY column_index),
        list(NOT is_nullable ORDER BY column_index)
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
            if kinds != ["SELECT"] and (kinds != ["MULTI"] or not _PIVOT.search(sql)):
                raise Failure("refused", kinds[0] if len(kinds) == 1 else "more than one statement")
            cursor = connection.execute(sql)
            columns = [(column[0], str(column[1])) for column in cursor.description or ()]
            if any(_ZONED in kind for _, kind in columns):
                cursor = connection.execute(_without_zones(sql, columns))
            rows = ([plain(value) for value in row] for row in iter(cursor.fetchone, None))
            return [name for name, _ in columns], *fetched(rows, most_rows, memory_of)

    def version(self) -> str:
        """The version of the database."""
        import duckdb

        return duckdb.__version__

    def tables(self, samples: int, until: float) -> list[dict[str, Any]]:
        """Read the tables; see ``SqliteFile``."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        with self._session() as connection:
            for schema, name, kind, *columns in connection.execute(_TABLES).fetchall():
                found[schema, name] = new_table(name, kind, "" if schema == "main" else schema)
                for column in zip(*columns, strict=True):
                    add_column(found[schema, name], *column)
            for schema, name, kind, names, target, targets in connection.execute(_KEYS).fetchall():
                table = found[schema, name]
                if kind == "FOREIGN KEY":
                    table["foreign_keys"].append({"columns": names, "table": target, "targets": targets})
                for column in table["columns"] if kind == "PRIMARY KEY" else ():
                    column["primary"] = names.index(column["name"]) + 1 if column["name"] in names else 0
            for table in found.values():
                if samples >= 0 and table["kind"] == "table" and monotonic() < min(until, self.deadline):
                    source = f"{quoted(table['schema'] or 'main')}.{quoted(table['name'])}"
                    counted = select("count(*)", f"({select('1', source, MOST_COUNTED + 1)})", 1)
                    ((table["rows"],),) = connection.execute(counted).fetchall()
                    values = select(", ".join(map(_chosen, table["columns"])), source, SAMPLED)
                    rows = connection.execute(values).fetchall() if samples else ()
                    add_samples(table, [[*map(plain, row)] for row in rows], samples)
        return list(found.values())

    def interrupt(self) -> None:
        """Stop the current statement; called from another thread."""
        if connection := self._connection:
            connection.interrupt()

    def close(self) -> None:
        """Close the connection, so that others may write to the file."""
        connection, self._connection = self._connection, None
        if connection:
            connection.close()

    rest = close

    @contextmanager
    def _session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The connection to the current file; errors of the block are raised as a ``Failure``."""
        try:
            import duckdb
        except ImportError:
            raise Failure("library") from None
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
            kind = "settings" if "different configuration" in text else "corrupt"
            return Failure("locked" if "lock" in text.lower() and kind == "corrupt" else kind, text)
        if "read-only mode" in text or "configuration has been locked" in text:
            return Failure("refused", "more than reading")
        kind = _KINDS.get(type(error).__name__, "sql")
        return Failure(kind, "reaching other files" if kind == "refused" else text)


def _chosen(column: dict[str, Any]) -> str:
    """A column as it can be shown: long values cut, and all but numbers as text."""
    name, kind = quoted(column["name"]), column["type"]
    shown = "NULL" if kind == "BLOB" else f"left(CAST({name} AS VARCHAR), 200)"
    return name if kind.startswith(_NUMBERS) else shown


def _without_zones(sql: str, columns: Sequence[tuple[str, str]]) -> str:
    """The same query with its times with a zone as strings: as values they need another library."""
    names = [f"c{number}" for number in range(len(columns))]
    kinds = [kind for _, kind in columns]
    pairs = zip(names, kinds, strict=True)
    chosen = [f"CAST({name} AS VARCHAR)" if _ZONED in kind else name for name, kind in pairs]
    return f"SELECT {', '.join(chosen)} FROM (\n{sql}\n) AS q({', '.join(names)})"  # noqa: S608 - the statement itself, in brackets

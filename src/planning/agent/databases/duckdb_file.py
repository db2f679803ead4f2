"""A DuckDB file that statements can only read.

Each of these holds by itself: it is opened for reading, only SELECT is run, nothing else is in reach.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final

import duckdb

from planning.agent.databases import opened
from planning.agent.databases.opened import Answer, OpenDatabase, Table
from planning.agent.sql.guard import Failure
from planning.agent.sql.schema import quoted

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
    **dict.fromkeys(_OFF, False),
    "lock_configuration": True,  # last: nothing can be set after it
}
_NUMBERS: Final = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?\b|FLOAT|DOUBLE|DEC|BOOL")
_ZONED: Final = "WITH TIME ZONE"
_KINDS: Final = {
    "InterruptException": "timeout",
    **dict.fromkeys(("OutOfMemoryException", "MemoryError"), "memory"),
    **dict.fromkeys(("FatalException", "SerializationException", "IOException"), "corrupt"),
    "InternalException": "broken",
    "PermissionException": "refused",
}
_COLUMNS: Final = """
    SELECT c.schema_name, c.table_name, if(v.view_name IS NULL, 'table', 'view'), column_name, data_type,
        NOT is_nullable, coalesce(list_position(k.constraint_column_names, column_name), 0)
    FROM duckdb_columns() AS c LEFT JOIN duckdb_views() AS v
        ON v.view_oid = c.table_oid AND v.database_oid = c.database_oid
    LEFT JOIN duckdb_constraints() AS k ON k.table_oid = c.table_oid
        AND k.database_oid = c.database_oid AND k.constraint_type = 'PRIMARY KEY'
    WHERE c.database_name = current_database() AND NOT c.internal
    ORDER BY 3, nullif(c.schema_name, 'main') NULLS FIRST, 2, column_index
"""
_KEYS: Final = """
    SELECT schema_name, table_name, constraint_column_names, referenced_table, referenced_column_names
    FROM duckdb_constraints() WHERE database_name = current_database() AND constraint_type = 'FOREIGN KEY'
    ORDER BY table_oid, constraint_index
"""


class DuckdbFile(OpenDatabase):
    """One file of DuckDB."""

    version = duckdb.__version__
    _stamp: tuple[int, ...] = ()

    def run(self, sql: str, most_rows: int) -> Answer:
        """See ``OpenDatabase``."""
        with self._session() as connection:
            kinds = [statement.type.name for statement in connection.extract_statements(sql)]
            is_pivot = kinds == ["MULTI"] and "pivot" in sql.lower()  # it collects names first, without IN
            if kinds != ["SELECT"] and not is_pivot:
                raise Failure("refused", kinds[0] if len(kinds) == 1 else "more than one statement")
            cursor = connection.execute(sql)
            columns = [(column[0], str(column[1])) for column in cursor.description or ()]
            if any(_ZONED in kind for _, kind in columns):
                cursor = connection.execute(_without_zones(sql, columns))
            values = ([*map(opened.plain, row)] for row in iter(cursor.fetchone, None))
            return [name for name, _ in columns], *opened.fetched(values, most_rows, opened.memory_of)

    def tables(self, samples: int, until: float) -> list[Table]:
        """See ``OpenDatabase``."""
        found: dict[tuple[str, str], Table] = {}
        with self._session() as connection:

            def rows_of(query: str) -> Any:
                return connection.execute(query).fetchall()

            for schema, name, kind, *column in rows_of(_COLUMNS):
                table = opened.new_table(name, kind, "" if schema == "main" else schema)
                opened.add_column(found.setdefault((schema, name), table), *column)
            for schema, name, names, target, targets in rows_of(_KEYS):
                key = {"columns": names, "table": target, "targets": targets}
                found[schema, name]["foreign_keys"].append(key)
            for table in found.values():
                if samples >= 0 and table["kind"] == "table" and monotonic() < min(until, self.deadline):
                    source = f"{quoted(table['schema'] or 'main')}.{quoted(table['name'])}"
                    opened.count_rows(table, source, rows_of)
                    opened.add_samples(table, source, rows_of, samples, _as_shown)
        return list(found.values())

    def interrupt(self) -> None:
        """See ``OpenDatabase``."""
        if connection := self._connection:
            connection.interrupt()

    @contextmanager
    def _session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The connection to the current file; errors of the block are raised as a ``Failure``."""
        try:
            now = opened.stamp(self._place, "duckdb")
            if self._connection is None or now != self._stamp:
                self.close()
                self._connection = duckdb.connect(self._place, read_only=True, config=_CONFIG)
                self._stamp = now
            yield self._connection
        except duckdb.Error as error:
            failure = self._failure(error)
            if failure.kind in {"memory", "corrupt", "broken"}:
                self.close()
            raise failure from None
        except (MemoryError, ValueError, OverflowError, TypeError) as error:  # in a value for Python
            self.close()
            name = type(error).__name__
            raise Failure(_KINDS.get(name, "sql"), f"{name}: {error}") from None

    def _failure(self, error: duckdb.Error) -> Failure:
        text, kind = str(error), _KINDS.get(type(error).__name__, "sql")
        if monotonic() > self.deadline:
            kind = "timeout"
        elif self._connection is None:
            opening = (("different configuration", "settings"), ("set lock", "locked"), ("", "corrupt"))
            kind = next(kind for words, kind in opening if words in text.lower())
        elif text.startswith("Corrupt database file"):  # an error without a class of its own
            kind = "corrupt"
        elif "read-only mode" in text or "configuration has been locked" in text:
            return Failure("refused", "more than reading")
        return Failure(kind, "reaching other files" if kind == "refused" else text)


def _without_zones(sql: str, columns: Sequence[tuple[str, str]]) -> str:
    """The same query with its times with a zone as strings: as values they need another library."""
    names = {f"c{number}": kind for number, (_, kind) in enumerate(columns)}
    chosen = [f"CAST({name} AS VARCHAR)" if _ZONED in kind else name for name, kind in names.items()]
    return f"SELECT {', '.join(chosen)} FROM (\n{sql}\n) AS q({', '.join(names)})"  # noqa: S608 - the statement itself, in brackets


def _as_shown(column: Table) -> str:
    kind = column["type"]
    return opened.as_shown(column, is_hidden=kind == "BLOB", is_number=_NUMBERS.match(kind) is not None)

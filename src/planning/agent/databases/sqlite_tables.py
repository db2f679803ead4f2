"""The tables and views of an SQLite file: columns, keys, number of rows, and a few values."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Final

from planning.agent.databases.rows import SAMPLED, add_column, add_samples, new_table
from planning.agent.sql.failures import Failure
from planning.agent.sql.schema import MOST_COUNTED, quoted, select

Late = Callable[[], bool]
Table = dict[str, Any]

# Without the tables that a virtual table, which has no root page, keeps its data in.
_TABLES: Final = """
    SELECT m.name, m.type FROM sqlite_master AS m
    WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND NOT EXISTS (
        SELECT 1 FROM sqlite_master AS v WHERE v.type = 'table' AND v.rootpage = 0
        AND substr(m.name, 1, length(v.name) + 1) = v.name || '_'
        AND substr(m.name, length(v.name) + 2) IN ('config', 'content', 'data', 'docsize', 'idx', 'node',
            'parent', 'rowid', 'segdir', 'segments', 'stat'))
    ORDER BY m.rowid
"""
_COLUMNS: Final = """
    SELECT t.name, c.name, c.type, c."notnull", c.pk
    FROM sqlite_master AS t, pragma_table_xinfo(t.name) AS c
    WHERE t.type IN ('table', 'view') AND c.hidden <> 1 ORDER BY t.rowid, c.cid
"""
_KEYS: Final = """
    SELECT t.name, k.id, k."table", k."from", k."to"
    FROM sqlite_master AS t, pragma_foreign_key_list(t.name) AS k WHERE t.type = 'table'
    ORDER BY t.rowid, k.id DESC, k.seq
"""
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_BUSY})


def read_tables(connection: sqlite3.Connection, is_late: Late) -> list[Table]:
    """Read the tables of the file; see ``SqliteFile.tables``.

    Args:
        connection: A connection that may read the description of the tables.
        is_late: Whether the time is over.
    """
    tables: dict[str, Table] = {
        name: new_table(name, kind) for name, kind in connection.execute(_TABLES).fetchall()
    }

    def rows_of(query: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a query over all tables; table by table if one of them cannot be read."""
        for names, each in [([], query)] + [([name], _of_one(query)) for name in tables]:
            try:
                yield from [row for row in connection.execute(each, names) if row[0] in tables]
            except sqlite3.OperationalError as error:
                if is_late():
                    raise Failure("timeout") from error
            else:
                if not names:
                    return

    for name, column, kind, not_null, primary in rows_of(_COLUMNS):
        add_column(tables[name], column, kind, not_null, primary)
    keys: dict[tuple[str, int], Table] = {}
    for name, number, target, column, to in rows_of(_KEYS):
        if (name, number) not in keys:
            keys[name, number] = {"columns": [], "table": target, "targets": []}
            tables[name]["foreign_keys"].append(keys[name, number])
        keys[name, number]["columns"].append(column)
        keys[name, number]["targets"] += [] if to is None else [to]  # None is the primary key
    return list(tables.values())


def _of_one(query: str) -> str:
    return query.replace("WHERE ", "WHERE t.name = ? AND ", 1)


def add_values(connection: sqlite3.Connection, tables: list[Table], samples: int, is_late: Late) -> None:
    """Add values and counts of rows to the tables, for as long as the time lasts.

    Args:
        connection: The connection.
        tables: What ``read_tables`` returned.
        samples: How many values of a column.
        is_late: Whether the time is over.
    """
    for look in [_sample, _count] if samples else [_count]:
        for table in tables:
            try:
                if table["kind"] == "table":
                    look(connection, table, samples)
            except sqlite3.DatabaseError as error:
                if not is_late() and getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
                    raise
            if is_late():
                return


def _sample(connection: sqlite3.Connection, table: Table, samples: int) -> None:
    names = ", ".join(quoted(column["name"]) for column in table["columns"])
    query = select(names, quoted(table["name"]), SAMPLED)
    with closing(connection.execute(query)) as cursor:
        add_samples(table, cursor, samples)


def _count(connection: sqlite3.Connection, table: Table, _samples: int) -> None:
    counted = select("1", quoted(table["name"]), MOST_COUNTED + 1)
    query = select("count(*)", f"({counted})", 1)
    (table["rows"],) = connection.execute(query).fetchone()

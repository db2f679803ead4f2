"""The tables and views of an SQLite file: columns, keys, number of rows, and a few values."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from planning.agent.databases.rows import SAMPLED, add_samples
from planning.agent.sql.failures import Failure
from planning.agent.sql.schema import MOST_COUNTED, quoted, select

__all__ = ["add_values", "read_tables"]

Late = Callable[[], bool]
Table = dict[str, Any]

_TABLES: Final = """
    SELECT name, type, rootpage = 0 AND type = 'table', sql FROM sqlite_master
    WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid
"""
_COLUMNS: Final = """
    SELECT t.name, c.name, c.type, c."notnull", c.pk, c.hidden
    FROM sqlite_master AS t, pragma_table_xinfo(t.name) AS c WHERE t.type IN ('table', 'view')
    ORDER BY t.rowid, c.cid
"""
_KEYS: Final = """
    SELECT t.name, k.id, k."table", k."from", k."to"
    FROM sqlite_master AS t, pragma_foreign_key_list(t.name) AS k WHERE t.type = 'table'
    ORDER BY t.rowid, k.id DESC, k.seq
"""
_UNIQUE: Final = """
    SELECT t.name, i.name, c.name
    FROM sqlite_master AS t, pragma_index_list(t.name) AS i, pragma_index_info(i.name) AS c
    WHERE t.type = 'table' AND i."unique" AND NOT i.partial AND i.origin <> 'pk'
    ORDER BY t.rowid, i.seq DESC, c.seqno
"""
_HIDDEN: Final = 1
# The tables that a virtual table keeps its data in: its name, and one of these. It is SQLite's own rule.
_SHADOWS: Final = {
    "fts3": ("content", "docsize", "segdir", "segments", "stat"),
    "fts4": ("content", "docsize", "segdir", "segments", "stat"),
    "fts5": ("config", "content", "data", "docsize", "idx"),
    "rtree": ("node", "parent", "rowid"),
    "rtree_i32": ("node", "parent", "rowid"),
    "geopoly": ("node", "parent", "rowid"),
}


_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_BUSY})


def read_tables(connection: sqlite3.Connection, is_late: Late) -> list[Table]:
    """Read the tables of the file; see ``DatabaseFile.tables``.

    Args:
        connection: A connection that may read the description of the tables.
        is_late: Whether the time is over.
    """
    found = connection.execute(_TABLES).fetchall()
    virtual = {name.lower(): _module(sql) for name, _, is_virtual, sql in found if is_virtual}
    hidden = {f"{name}_{part}" for name, module in virtual.items() for part in _SHADOWS.get(module, ())}
    tables: dict[str, Table] = {
        name: {"name": name, "kind": kind, "columns": [], "unique": [], "foreign_keys": [], "rows": None}
        for name, kind, _, _ in found
        if name.lower() not in hidden
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

    for name, *column in rows_of(_COLUMNS):
        if column[-1] != _HIDDEN:
            tables[name]["columns"].append(_column(*column))
    _add_unique(tables, rows_of(_UNIQUE))
    _add_keys(tables, rows_of(_KEYS))
    return list(tables.values())


def _of_one(query: str) -> str:
    return query.replace("WHERE ", "WHERE t.name = ? AND ", 1)


def _add_unique(tables: dict[str, Table], rows: Iterator[tuple[Any, ...]]) -> None:
    indexes: dict[tuple[str, str], list[str | None]] = {}
    for name, index, column in rows:
        indexes.setdefault((name, index), []).append(column)
    for (name, _), columns in indexes.items():
        if None not in columns and columns not in tables[name]["unique"]:  # None is an expression
            tables[name]["unique"].append(columns)


def _add_keys(tables: dict[str, Table], rows: Iterator[tuple[Any, ...]]) -> None:
    keys: dict[tuple[str, int], Table] = {}
    for name, number, target, column, to in rows:
        key = keys.setdefault((name, number), {"columns": [], "table": target, "targets": []})
        key["columns"].append(column)
        key["targets"].append(to)
    by_name = {name.lower(): table for name, table in tables.items()}
    for (name, _), key in keys.items():
        if None in key["targets"]:  # it refers to the primary key
            primary = _primary_key(by_name.get(key["table"].lower()))
            key["targets"] = primary if len(primary) == len(key["columns"]) else []
        tables[name]["foreign_keys"].append(key)


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


def _module(sql: str) -> str:
    """The module of a virtual table, from what it was made with."""
    _, _, after = sql.lower().replace("(", " ").replace("\n", " ").partition(" using ")
    return (after.split() or [""])[0].strip("\"'`[]")


def _primary_key(table: Mapping[str, Any] | None) -> list[str]:
    """The columns of a table's primary key, in their order in it."""
    columns = table["columns"] if table else []
    return [
        name for _, name in sorted((each["primary"], each["name"]) for each in columns if each["primary"])
    ]


def _column(name: str, kind: str, not_null: int, primary: int, hidden: int) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "not_null": bool(not_null),
        "primary": primary,
        "generated": hidden in {2, 3},
        "samples": [],
    }

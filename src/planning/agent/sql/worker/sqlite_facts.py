"""The tables and views of an SQLite file: columns, keys, number of rows, and a few values."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from time import monotonic
from typing import Any, Final

from .failure import Failure
from .samples import MOST_COUNTED, Samples
from .sqlite_file import SqliteFile, quoted

__all__ = ["SqliteDatabase", "open_file"]

_TABLES: Final = """
    SELECT name, type, rootpage = 0 AND type = 'table', sql FROM sqlite_master
    WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid
"""
_COLUMNS: Final = """
    SELECT t.name, c.name, c.type, c."notnull", c.pk, c.hidden
    FROM sqlite_master AS t, pragma_table_xinfo(t.name) AS c WHERE t.type = 'table' ORDER BY t.rowid, c.cid
"""
_VIEW: Final = 'SELECT name, type, "notnull", pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid'
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


class SqliteDatabase(SqliteFile):
    """An SQLite file whose tables can be listed."""

    def facts(self, samples: int, budget: float, seconds: float) -> dict[str, Any]:
        """Read the tables of the file.

        Args:
            samples: How many values of a column to show; none are read, and no rows counted, below 0.
            budget: The seconds for values and counts; the rest is omitted.
            seconds: The seconds for all of it.

        Returns:
            ``tables``: for each its ``name``, ``kind``, ``columns``, ``unique``, ``foreign_keys`` and
            ``rows``.

        Raises:
            Failure: It cannot be read.
        """
        with self.session(seconds):
            facts: dict[str, Any] = self.steadily(lambda: self._facts(samples, budget), lambda: None)
            return facts

    def _facts(self, samples: int, budget: float) -> dict[str, Any]:
        connection, deadline = self.connection, self._deadline
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        self.is_trusted = True
        try:
            tables = self._tables()
            if samples >= 0:
                self._deadline = min(deadline, monotonic() + budget)
                self._look_into([each for each in tables if each["kind"] == "table"], samples)
        finally:
            connection.text_factory = str
            self.is_trusted = False
            self._deadline = deadline
        return {"tables": tables}

    def _tables(self) -> list[dict[str, Any]]:
        found = self.connection.execute(_TABLES).fetchall()
        virtual = {name.lower(): _module(sql) for name, _, is_virtual, sql in found if is_virtual}
        hidden = {f"{name}_{part}" for name, module in virtual.items() for part in _SHADOWS.get(module, ())}
        tables: dict[str, dict[str, Any]] = {
            name: {"name": name, "kind": kind, "columns": [], "unique": [], "foreign_keys": [], "rows": None}
            for name, kind, _, _ in found
            if name.lower() not in hidden
        }
        for name, *column in self._rows_of(_COLUMNS, tables):
            if column[-1] != _HIDDEN:
                tables[name]["columns"].append(_column(*column))
        for name, table in tables.items():
            if table["kind"] == "view":
                table["columns"] = [_column(*column) for column in self._view(name)]
        self._add_unique(tables)
        self._add_keys(tables)
        return list(tables.values())

    def _rows_of(self, query: str, tables: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """The rows of a query over all tables; table by table where one of them cannot be read."""
        try:
            return [row for row in self.connection.execute(query) if row[0] in tables]
        except sqlite3.OperationalError as error:
            self._pass_over(error)
        rows: list[tuple[Any, ...]] = []
        for name in tables:
            one = query.replace(" WHERE ", " WHERE t.name = ? AND ", 1)
            try:
                rows += self.connection.execute(one, (name,)).fetchall()
            except sqlite3.OperationalError as error:
                self._pass_over(error)
        return rows

    def _view(self, name: str) -> list[tuple[Any, ...]]:
        """The columns of a view; none if it reads a table that no longer exists."""
        try:
            return self.connection.execute(_VIEW, (name,)).fetchall()
        except sqlite3.OperationalError as error:
            self._pass_over(error)
            return []

    def _pass_over(self, error: sqlite3.Error) -> None:
        """Continue without a table that cannot be read, unless the time is over."""
        if self._is_late():
            raise Failure("timeout") from error

    def _add_unique(self, tables: dict[str, dict[str, Any]]) -> None:
        indexes: dict[tuple[str, str], list[str | None]] = {}
        for name, index, column in self._rows_of(_UNIQUE, tables):
            indexes.setdefault((name, index), []).append(column)
        for (name, _), columns in indexes.items():
            if None not in columns and columns not in tables[name]["unique"]:  # None is an expression
                tables[name]["unique"].append(columns)

    def _add_keys(self, tables: dict[str, dict[str, Any]]) -> None:
        keys: dict[tuple[str, int], dict[str, Any]] = {}
        for name, number, target, column, to in self._rows_of(_KEYS, tables):
            key = keys.setdefault((name, number), {"columns": [], "table": target, "targets": []})
            key["columns"].append(column)
            key["targets"].append(to)
        by_name = {name.lower(): table for name, table in tables.items()}
        for (name, _), key in keys.items():
            if None in key["targets"]:  # it refers to the primary key
                primary = _primary_key(by_name.get(key["table"].lower()))
                key["targets"] = primary if len(primary) == len(key["columns"]) else []
            tables[name]["foreign_keys"].append(key)

    def _look_into(self, tables: list[dict[str, Any]], samples: int) -> None:
        """Add values and counts, for as long as the time lasts."""
        if samples:
            for table in tables:
                if not self._in_time(lambda table=table: self._sample(table, samples)):
                    break
        for table in tables:
            if not self._in_time(lambda table=table: self._count(table)):
                break

    def _in_time(self, look: Any) -> bool:
        try:
            look()
        except sqlite3.DatabaseError as error:
            if self._is_late():
                return False
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_BUSY}:
                raise
        return not self._is_late()

    def _sample(self, table: dict[str, Any], samples: int) -> None:
        names = ", ".join(quoted(column["name"]) for column in table["columns"])
        kept = Samples(len(table["columns"]), samples)
        cursor = self.connection.execute(f"SELECT {names} FROM {quoted(table['name'])} LIMIT {kept.rows}")  # noqa: S608 - names as the file has them, quoted
        try:
            for row in cursor:
                if kept.add(row):
                    break
        finally:
            cursor.close()
        for column, values in zip(table["columns"], kept.values, strict=True):
            column["samples"] = values

    def _count(self, table: dict[str, Any]) -> None:
        query = f"SELECT count(*) FROM (SELECT 1 FROM {quoted(table['name'])} LIMIT {MOST_COUNTED + 1})"  # noqa: S608 - as above
        (table["rows"],) = self.connection.execute(query).fetchone()


def open_file(path: str) -> SqliteDatabase:
    """Open a file for a worker process."""
    return SqliteDatabase(path)


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

"""The tables of a DuckDB file, in the form of ``sqlite_facts``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .duckdb_values import plain
from .samples import MOST_COUNTED, Samples

__all__ = ["read_facts"]

_TABLES: Final = """
    SELECT schema_name, table_name, 'table' FROM duckdb_tables()
    WHERE database_name = current_database() AND NOT internal
    UNION ALL
    SELECT schema_name, view_name, 'view' FROM duckdb_views()
    WHERE database_name = current_database() AND NOT internal
    ORDER BY 3, schema_name <> 'main', 1, 2
"""
_COLUMNS: Final = """
    SELECT schema_name, table_name, column_name, data_type, NOT is_nullable FROM duckdb_columns()
    WHERE database_name = current_database() AND NOT internal ORDER BY table_oid, column_index
"""
_CONSTRAINTS: Final = """
    SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table,
        referenced_column_names
    FROM duckdb_constraints() WHERE database_name = current_database() ORDER BY table_oid, constraint_index
"""

Execute = Callable[[str], Any]
Table = dict[str, Any]


def read_facts(execute: Execute, samples: int, is_in_time: Callable[[], bool]) -> dict[str, Any]:
    """Read the tables of the file.

    Args:
        execute: Runs a statement and returns a cursor.
        samples: How many values of a column to show; none are read, and no rows counted, below 0.
        is_in_time: Whether there is time for values and counts.
    """
    tables: dict[tuple[str, str], Table] = {}
    for schema, name, kind in execute(_TABLES).fetchall():
        table = {"name": name, "kind": kind, "columns": [], "unique": [], "foreign_keys": [], "rows": None}
        tables[schema, name] = table | {"schema": "" if schema == "main" else schema}
    for schema, name, column, kind, not_null in execute(_COLUMNS).fetchall():
        fields = {"name": column, "type": kind, "not_null": not_null, "primary": 0, "generated": False}
        tables[schema, name]["columns"].append(fields | {"samples": []})
    for schema, name, *constraint in execute(_CONSTRAINTS).fetchall():
        _add_constraint(tables[schema, name], *constraint)
    if samples >= 0:
        _look_into(
            execute, [each for each in tables.values() if each["kind"] == "table"], samples, is_in_time
        )
    return {"tables": list(tables.values())}


def _add_constraint(
    table: Table, kind: str, columns: list[str], target: str | None, targets: list[str]
) -> None:
    if kind == "PRIMARY KEY":
        for column in table["columns"]:
            column["primary"] = columns.index(column["name"]) + 1 if column["name"] in columns else 0
    elif kind == "UNIQUE":
        table["unique"].append(columns)
    elif kind == "FOREIGN KEY":
        table["foreign_keys"].append({"columns": columns, "table": target, "targets": targets})


def _look_into(execute: Execute, tables: list[Table], samples: int, is_in_time: Callable[[], bool]) -> None:
    for table in tables:
        if not is_in_time():
            return
        query = f"SELECT count(*) FROM (SELECT 1 FROM {_name(table)} LIMIT {MOST_COUNTED + 1})"  # noqa: S608 - names as the file has them, quoted
        (table["rows"],) = execute(query).fetchone()
        if samples:
            _sample(execute, table, samples)


def _sample(execute: Execute, table: Table, samples: int) -> None:
    kept = Samples(len(table["columns"]), samples)
    chosen = ", ".join(map(_chosen, table["columns"]))
    for row in execute(f"SELECT {chosen} FROM {_name(table)} LIMIT {kept.rows}").fetchall():  # noqa: S608 - as above
        if kept.add([plain(value) for value in row]):
            break
    for column, values in zip(table["columns"], kept.values, strict=True):
        column["samples"] = values


def _chosen(column: dict[str, Any]) -> str:
    """A column as it can be shown: long values cut, and all but numbers as text."""
    name, kind = _quoted(column["name"]), column["type"]
    if kind == "BLOB":
        return "NULL"
    if kind.startswith(("VARCHAR", "TIMESTAMP", "STRUCT", "MAP", "UNION", "ENUM")) or kind.endswith("]"):
        return f"left(CAST({name} AS VARCHAR), 200)"
    return name


def _name(table: Table) -> str:
    return f"{_quoted(table['schema'] or 'main')}.{_quoted(table['name'])}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

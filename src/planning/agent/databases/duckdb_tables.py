"""The tables of a DuckDB file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from planning.agent.databases.duckdb_values import plain
from planning.agent.databases.rows import SAMPLED, add_samples
from planning.agent.sql.schema import MOST_COUNTED, quoted, select

__all__ = ["read_tables"]

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


def read_tables(execute: Execute, samples: int, is_in_time: Callable[[], bool]) -> list[Table]:
    """Read the tables of the file; see ``DatabaseFile.tables``.

    Args:
        execute: Runs a statement and returns a cursor.
        samples: How many values of a column; below 0, no values are read and no rows counted.
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
    for table in tables.values():
        if samples >= 0 and table["kind"] == "table" and is_in_time():
            _add_values(execute, table, samples)
    return list(tables.values())


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


def _add_values(execute: Execute, table: Table, samples: int) -> None:
    name = f"{quoted(table['schema'] or 'main')}.{quoted(table['name'])}"
    counted = select("1", name, MOST_COUNTED + 1)
    (table["rows"],) = execute(select("count(*)", f"({counted})", 1)).fetchone()
    if samples:
        chosen = ", ".join(map(_chosen, table["columns"]))
        rows = execute(select(chosen, name, SAMPLED)).fetchall()
        add_samples(table, [[plain(value) for value in row] for row in rows], samples)


def _chosen(column: dict[str, Any]) -> str:
    """A column as it can be shown: long values cut, and all but numbers as text."""
    name, kind = quoted(column["name"]), column["type"]
    if kind == "BLOB":
        return "NULL"
    if kind.startswith(("VARCHAR", "TIMESTAMP", "STRUCT", "MAP", "UNION", "ENUM")) or kind.endswith("]"):
        return f"left(CAST({name} AS VARCHAR), 200)"
    return name

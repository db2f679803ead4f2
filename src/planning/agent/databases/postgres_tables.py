"""The tables of a PostgreSQL database that a role may read, from the catalogue."""

from __future__ import annotations

import json
from typing import Any, Final

import psycopg

from planning.agent.databases.rows import SAMPLED, add_samples
from planning.agent.sql.schema import MOST_COUNTED, ExactName, literal, quoted, select

# Columns that the role may read; of keys, those between such columns. Partitions are in their table.
_TABLES: Final = """
    WITH readable AS (
        SELECT c.*, n.nspname, CASE WHEN pg_table_is_visible(c.oid) THEN '' ELSE n.nspname END AS prefix
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'f', 'm', 'v') AND NOT c.relispartition
            AND n.nspname = ANY(current_schemas(false))
    ), columns AS (
        SELECT a.attrelid, a.attnum, a.attname, json_build_object(
            'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'not_null', a.attnotnull,
            'primary', coalesce(array_position(k.conkey, a.attnum), 0),
            'comment', col_description(a.attrelid, a.attnum), 'samples', ARRAY[]::text[],
            'values', ARRAY(SELECT e.enumlabel FROM pg_enum AS e WHERE e.enumtypid = coalesce(
                nullif(t.typbasetype, 0), nullif(t.typelem, 0), t.oid) ORDER BY e.enumsortorder)) AS described
        FROM readable AS r JOIN pg_attribute AS a ON a.attrelid = r.oid
            JOIN pg_type AS t ON t.oid = a.atttypid
            LEFT JOIN pg_constraint AS k ON k.conrelid = a.attrelid AND k.contype = 'p'
        WHERE a.attnum > 0 AND NOT a.attisdropped AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
    ), keys AS MATERIALIZED (
        SELECT k.conrelid, k.conname, json_build_object('table', r.relname, 'columns', json_agg(c.attname
            ORDER BY u.place), 'targets', json_agg(d.attname ORDER BY u.place)) AS described
        FROM pg_constraint AS k JOIN readable AS r ON r.oid = k.confrelid
            CROSS JOIN unnest(k.conkey, k.confkey) WITH ORDINALITY AS u(from_number, to_number, place)
            LEFT JOIN columns AS c ON c.attrelid = k.conrelid AND c.attnum = u.from_number
            LEFT JOIN columns AS d ON d.attrelid = k.confrelid AND d.attnum = u.to_number
        WHERE k.contype = 'f' AND k.conparentid = 0
        GROUP BY k.oid, k.conrelid, k.conname, r.relname
        HAVING count(c.*) = count(*) AND count(d.*) = count(*)
    )
    SELECT json_build_object('name', r.relname, 'schema', r.prefix, 'rows', null, 'stored', r.relkind,
        'kind', CASE WHEN r.relkind IN ('m', 'v') THEN 'view' ELSE 'table' END, 'is_large', r.reltuples > %s,
        'comment', obj_description(r.oid, 'pg_class'), 'columns', json_agg(c.described ORDER BY c.attnum),
        'foreign_keys', ARRAY(SELECT k.described FROM keys AS k WHERE k.conrelid = r.oid ORDER BY k.conname))
    FROM readable AS r JOIN columns AS c ON c.attrelid = r.oid
    GROUP BY r.oid, r.relname, r.prefix, r.relkind, r.reltuples, r.nspname
    ORDER BY r.relkind IN ('m', 'v'), array_position(current_schemas(false), r.nspname), r.relname
"""
_NUMBERS: Final = ("smallint", "integer", "bigint", "numeric", "real", "double", "bool")


def read_tables(connection: psycopg.Connection[Any]) -> list[dict[str, Any]]:
    """Read the tables; see ``SqliteFile.tables``."""
    rows = connection.execute(_TABLES, (2 * MOST_COUNTED,))
    tables = [json.loads(table, object_hook=_exact) for (table,) in rows]
    for column in [column for table in tables for column in table["columns"]]:
        if column["values"]:
            column["type"] += f" ({', '.join(map(literal, column['values']))})"
    return tables


def add_values(connection: psycopg.Connection[Any], table: dict[str, Any], samples: int) -> None:
    """Add values to a table, and how many rows it has. Those of views and foreign tables cost too much."""
    source = ".".join(quoted(name) for name in (table["schema"], table["name"]) if name)
    if samples and table["stored"] in "rpm":
        chosen = select(", ".join(map(_chosen, table["columns"])), source, SAMPLED)
        add_samples(table, connection.execute(chosen), samples)
    if table["stored"] in "rp":
        counted = select("count(*)", f"({select('1', source, MOST_COUNTED + 1)}) AS t", 1)
        is_large = table["is_large"]  # by the statistics
        ((table["rows"],),) = [(MOST_COUNTED + 1,)] if is_large else connection.execute(counted).fetchall()


def _exact(described: dict[str, Any]) -> dict[str, Any]:
    """A table, a column or a key with its names marked: they may need quotes."""
    for key in ("name", "schema", "table"):
        described |= {key: ExactName(described[key])} if key in described else {}
    for key in ("columns", "targets"):
        names = described.get(key, [])
        described |= {key: [*map(ExactName, names)]} if all(isinstance(name, str) for name in names) else {}
    return described


def _chosen(column: dict[str, Any]) -> str:
    """A column as it can be shown: long values cut, and all but numbers as text."""
    name, kind = quoted(column["name"]), column["type"]
    if kind == "bytea" or column["values"]:
        return "NULL"
    return name if kind.startswith(_NUMBERS) and not kind.endswith("]") else f"left({name}::text, 200)"

"""What is in a database, as a model reads it."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase
from planning.agent.sql.schema import identifier, schema_text


def tables(**more: Any) -> list[dict[str, Any]]:
    column = {"name": "id", "type": "", "not_null": False, "primary": 0, "samples": []}
    table = {"name": "t", "kind": "table", "columns": [column], "foreign_keys": [], "rows": 1}
    return [table | more]


def test_the_schema_of_a_shop(shop: SqlDatabase, snapshot: SnapshotAssertion) -> None:
    assert shop.get_schema().replace(sqlite3.sqlite_version, "VERSION") == snapshot


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (None, "t"),
        (0, "t, 0 rows"),
        (1, "t, 1 row"),
        (1_000_000, "t, 1,000,000 rows"),
        (1_000_001, "t, over 1,000,000 rows"),
    ],
)
def test_rows_are_counted_up_to_a_million(rows: int | None, told: str) -> None:
    assert schema_text(tables(rows=rows), "sqlite") == f"SQLite, 1 table\n\n{told}\n  id\n"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("name", "name"),
        ("a b", '"a b"'),
        ("Order", '"Order"'),
        ('a"b', '"a""b"'),
        ("1a", '"1a"'),
        ("a\nb", '"a\\nb"'),
    ],
)
def test_names_are_written_as_sql_takes_them(name: str, written: str) -> None:
    assert identifier(name) == written

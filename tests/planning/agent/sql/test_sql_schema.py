"""What is in a database, as a model reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from readonly_files import make, state
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase
from planning.agent.sql.schema import identifier, schema_text

ODD = r'''
    CREATE TABLE "odd names" ("a b" INTEGER PRIMARY KEY, "select" TEXT, "say ""hi""" REAL,
        naïve TEXT, plain);
    INSERT INTO "odd names" VALUES (1, 'it''s', 0.1, 'a' || char(9) || 'b', 'é'),
        (2, printf('%.60c', 'x'), 1e300, NULL, x'00');
    CREATE TABLE parents (code TEXT PRIMARY KEY, a INT, b INT, UNIQUE (a, b)) WITHOUT ROWID;
    INSERT INTO parents VALUES ('DE', 1, 2);
    CREATE TABLE children (id INTEGER PRIMARY KEY AUTOINCREMENT, parent TEXT UNIQUE REFERENCES parents,
        a INT, b INT,
        gone INT REFERENCES missing, total INT NOT NULL AS (a + b) STORED,
        FOREIGN KEY (a, b) REFERENCES parents (a, b));
    CREATE UNIQUE INDEX by_expression ON children (lower(parent));
    CREATE UNIQUE INDEX some ON children (b) WHERE b > 5;
    CREATE INDEX plain_one ON children (a);
    CREATE VIRTUAL TABLE papers USING fts5(title, body);
    INSERT INTO papers VALUES ('One', 'hello');
    CREATE TABLE papers_data_of_mine (x);
    CREATE VIEW v AS SELECT code FROM parents;
    CREATE TRIGGER t AFTER INSERT ON parents BEGIN SELECT 1; END;
'''


def tables(**more: Any) -> list[dict[str, Any]]:
    column = {"name": "id", "type": "", "not_null": False, "primary": 0, "samples": []}
    table = {"name": "t", "kind": "table", "columns": [column], "foreign_keys": [], "rows": 1}
    return [table | more]


def test_the_schema_of_a_shop(shop: SqlDatabase, snapshot: SnapshotAssertion) -> None:
    assert shop.get_schema() == snapshot


def test_the_schema_of_odd_names_and_keys(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path = make(tmp_path / "odd.db", ODD)
    before = state(tmp_path)
    with SqlDatabase(path) as database:
        assert database.get_schema() == snapshot
    assert state(tmp_path) == before


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

"""What is in a database, as a model reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from readonly_files import COUNTING, make, state
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase
from planning.agent.sql.schema import identifier, schema_text
from planning.agent.sql.worker import sqlite_facts
from planning.agent.sql.worker.failure import Failure
from planning.agent.sql.worker.sqlite_facts import SqliteDatabase

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


def facts(**more: Any) -> dict[str, Any]:
    column = {"name": "id", "type": "", "not_null": False, "primary": 0, "generated": False, "samples": []}
    table = {"name": "t", "kind": "table", "columns": [column], "unique": [], "foreign_keys": [], "rows": 1}
    return {"tables": [table | more]}


def test_the_schema_of_a_shop(shop: SqlDatabase, snapshot: SnapshotAssertion) -> None:
    assert shop.get_schema() == snapshot


def test_the_schema_of_odd_names_and_keys(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path = make(tmp_path / "odd.db", ODD)
    before = state(tmp_path)
    with SqlDatabase(path) as database:
        assert database.get_schema() == snapshot
    assert state(tmp_path) == before


def test_samples_can_be_switched_off(shop_path: Path) -> None:
    with SqlDatabase(shop_path, samples=0) as database:
        told = database.get_schema()
    assert "cities, 3 rows" in told
    assert "Oslo" not in told
    with SqlDatabase(shop_path, samples=1) as database:
        assert "name TEXT, not null, unique: 'Oslo'\n" in database.get_schema()


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
    assert schema_text(facts(rows=rows), "sqlite") == f"SQLite, 1 table\n\n{told}\n  id\n"


def test_a_table_whose_columns_cannot_be_read_says_so() -> None:
    told = schema_text(facts(columns=[], kind="view", schema="other"), "duckdb")
    assert told == "DuckDB, 1 view\n\nview other.t\n  (its columns cannot be read)\n"


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


def test_an_index_over_an_expression_or_a_part_makes_no_column_unique(tmp_path: Path) -> None:
    file = SqliteDatabase(str(make(tmp_path / "odd.db", ODD)))
    unique = {table["name"]: table["unique"] for table in file.facts(-1, 1.0, 5.0)["tables"]}
    assert unique == {
        "odd names": [],
        "parents": [["a", "b"]],
        "children": [["parent"]],
        "papers": [],
        "papers_data_of_mine": [],
        "v": [],
    }
    file.close()


def test_without_samples_wanted_nothing_is_counted_either(shop_path: Path) -> None:
    file = SqliteDatabase(str(shop_path))
    assert [table["rows"] for table in file.facts(-1, 1.0, 5.0)["tables"]] == [None] * 5
    file.close()


@pytest.mark.parametrize("budget", [-1.0, 0.0])
def test_what_does_not_fit_into_the_time_is_left_out(shop_path: Path, budget: float) -> None:
    file = SqliteDatabase(str(shop_path))
    tables = file.facts(3, budget, 5.0)["tables"]
    assert [table["name"] for table in tables] == ["cities", "customers", "visits", "notes", "big_spenders"]
    assert [table["rows"] for table in tables][1:] == [None] * 4
    assert file.facts(3, 1.0, 5.0)["tables"][0]["rows"] == 3
    file.close()


def test_counting_a_long_table_stops_in_time(tmp_path: Path) -> None:
    many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 400000) SELECT x FROM c"
    path = make(tmp_path / "long.db", f"CREATE TABLE long (x); INSERT INTO long {many};")
    file = SqliteDatabase(str(path))
    assert file.facts(0, 0.001, 5.0)["tables"][0]["rows"] is None
    assert file.facts(0, 5.0, 5.0)["tables"][0]["rows"] == 400_000
    file.close()


def test_reading_the_tables_themselves_stops_in_time(
    shop_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SqliteDatabase(str(shop_path))
    for name in ("_COLUMNS", "_VIEW"):
        with monkeypatch.context() as patched:
            patched.setattr(
                sqlite_facts, name, COUNTING + (", (SELECT ?)" if name == "_VIEW" else " WHERE x")
            )
            with pytest.raises(Failure) as caught:
                file.facts(3, 1.0, 0.1)
            assert caught.value.kind == "timeout"
    with monkeypatch.context() as patched:
        patched.setattr(sqlite_facts, "_COLUMNS", "SELECT nothing" + " WHERE t.name".replace("t.name", "1"))
        with pytest.raises(Failure):
            patched.setattr(file, "_is_late", lambda: True)
            file.facts(3, 1.0, 5.0)
    file.close()


def test_a_table_that_is_locked_while_it_is_counted_is_told(
    shop_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SqliteDatabase(str(shop_path))

    def locked(_self: object, _table: object) -> None:
        import sqlite3

        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error

    monkeypatch.setattr(SqliteDatabase, "_count", locked)
    with pytest.raises(Failure) as caught:
        file.facts(0, 1.0, 5.0)
    assert caught.value.kind == "locked"
    file.close()

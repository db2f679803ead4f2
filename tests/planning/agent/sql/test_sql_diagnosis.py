"""Why a statement failed, or was refused although it runs: what no file of statements can hold."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest
from readonly_files import make

from laws import work_of
from planning.agent import SqlDatabase
from planning.agent.databases.sqlite_file import SqliteFile
from planning.agent.sql.columns import Columns
from planning.agent.sql.diagnosis import diagnose
from planning.agent.sql.guard import Failure
from planning.agent.sql.judge import wrong_answer


def test_names_in_a_database_of_many_are_not_all_listed(tmp_path: Path) -> None:
    path = make(tmp_path / "many.db", "".join(f"CREATE TABLE t{number:02} (a);" for number in range(25)))
    with SqlDatabase(path) as database:
        told = database.execute("SELECT * FROM zzz")["error"]
    listed = ", ".join(f"t{number:02}" for number in range(20))
    assert told == f"no such table: zzz; the tables are {listed} and 5 more"


def test_a_database_without_tables_names_none(tmp_path: Path) -> None:
    with SqlDatabase(make(tmp_path / "empty.db", "")) as database:
        assert [database.execute(sql)["error"] for sql in ("SELECT * FROM zzz", "SELECT zzz")] == [
            "no such table: zzz",
            "no such column: zzz; check the name",
        ]


def test_of_tables_that_cannot_be_read_nothing_is_told(
    shop: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: object) -> None:
        raise Failure("corrupt")

    monkeypatch.setattr(SqliteFile, "tables", unreadable)
    assert shop.execute("SELECT * FROM custmers")["error"] == "no such table: custmers"
    assert shop.execute("SELECT name, COUNT(*) FROM cities GROUP BY id")["error"] is None


def test_a_group_by_a_key_that_may_be_null_needs_each_column(tmp_path: Path) -> None:
    script = "CREATE TABLE t (code TEXT UNIQUE, name TEXT); INSERT INTO t VALUES (NULL, 'a'), (NULL, 'b')"
    with SqlDatabase(make(tmp_path / "t.db", script)) as database:
        assert database.execute("SELECT code, name, COUNT(*) FROM t GROUP BY code")["error"] == (
            "name has many values in a group, and SQLite would use any of them; add it to GROUP BY, or "
            "aggregate it, as in max(name)"
        )


def test_an_answer_that_cannot_be_checked_in_time_is_none(
    shop: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = SqliteFile.run

    def slow(self: SqliteFile, sql: str, most_rows: int) -> object:
        if "CASE WHEN NOT" in sql:
            raise Failure("timeout")
        return run(self, sql, most_rows)

    monkeypatch.setattr(SqliteFile, "run", slow)
    assert shop.execute("SELECT name, COUNT(*) FROM cities GROUP BY id % 2")["code"] == "timeout"
    assert shop.execute("SELECT name, COUNT(*) FROM cities GROUP BY id")["error"] is None


@pytest.mark.parametrize(
    ("dialect", "text", "sql", "told"),
    [
        ("sqlite", "no such table: x", "SELECT * FROM x", "no such table: x"),
        (
            "sqlite",
            'no such column: "x" - should this be a string literal in single-quotes?',
            'SELECT "x"',
            "no such column: x; for a string, write 'x' in single quotes",
        ),
        ("sqlite", "a\n\n" + "b" * 400, "SELECT 1", "a " + "b" * 294 + "...; correct the SQL"),
        (
            "duckdb",
            'Catalog Error: Table with name x does not exist!\nDid you mean "y"?\n\nLINE 1: ...',
            "SELECT 1",
            "no such table: x",
        ),
        (
            "duckdb",
            "Binder Error: aggregate function calls cannot be nested\n\nLINE 1: x\n ^",
            "SELECT 1",
            "aggregate function calls cannot be nested; correct the SQL",
        ),
    ],
)
def test_the_error_of_a_database_is_told_in_one_line(dialect: str, text: str, sql: str, told: str) -> None:
    assert diagnose(text, sql, dialect, lambda: None) == told


def steps(sql: str) -> int:
    """How many calls it takes to look for traps and for remedies in a statement."""

    def look() -> None:
        wrong_answer(Columns(sql, "sqlite", list, lambda _: None))
        for text in ('near "(": syntax error', "no such column: day", "no such function: DATEDIFF"):
            diagnose(text, sql, "sqlite", list)

    return work_of(look)


@pytest.mark.parametrize(
    ("before", "piece", "after"),
    [
        ("SELECT sum(x), ", "f(a),", " b FROM t GROUP BY f(a)"),
        ("SELECT sum(x) FROM t GROUP BY ", "f(a, b),", "c"),
        ("SELECT ", "year(x),", "1"),
        ("SELECT sum(x), b FROM t WHERE ", "a = b AND ", "1"),
        ("SELECT sum(x), ", "(SELECT t.a),", "b FROM t"),
        ("WITH a AS (SELECT 1)", ", a AS (SELECT 1)", " SELECT 1"),
        ("SELECT x", " + INTERVAL 1 DAY", ""),
        ("SELECT ", "DATEDIFF(day, " * 40 + "x" + ", x)" * 40 + ",", "1"),
    ],
)
def test_looking_for_what_is_wrong_grows_as_the_statement_does(before: str, piece: str, after: str) -> None:
    few, many = (steps(before + piece * count + after) for count in (20, 80))
    assert many < 5 * few


@pytest.mark.parametrize(
    ("before", "piece", "after"),
    [
        ("SELECT sum(a) FROM t", " JOIN t", ""),
        ("SELECT sum(a), ", "STRUCT(", ""),
        ("SELECT sum(a), ", "(", ")"),
        ("SELECT sum(a) FROM ", "(SELECT * FROM ", "t"),
        ("SELECT sum(a), ", "a + ", "b"),
        ("SELECT sum(a), ", "a = NULL OR ", "b"),
    ],
)
@pytest.mark.parametrize("times", [50, 10_000])
def test_what_is_deep_or_long_is_analysed_or_left_within_a_second(
    before: str, piece: str, after: str, times: int
) -> None:
    sql, seconds = before + piece * times + after, process_time()
    wrong_answer(Columns(sql, "sqlite", list, lambda _: None))
    told = diagnose("no such column: zz", sql, "sqlite", list)
    assert told.startswith("no such column: zz")
    assert process_time() - seconds < 1

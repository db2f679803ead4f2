"""Statements that run, judged by what their columns hold."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any
from unittest.mock import Mock

import pytest
from readonly_files import make
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase
from planning.agent.databases.sqlite_file import SqliteFile
from planning.agent.sql.columns import Columns
from planning.agent.sql.guard import Failure
from planning.agent.sql.judge import wrong_answer

TABLES, SOUND, WRONG = (
    Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8")
    for name in ("orders", "sound", "wrong")
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("orders") / "orders.db"
    with closing(sqlite3.connect(path)) as shop:
        shop.executescript(TABLES)
        for n in range(1, 301):
            day = datetime.date(2022, 1, 1) + datetime.timedelta(days=n * 3)
            sent, seconds = day + datetime.timedelta(days=n % 9), 1_640_995_200 + n * 3 * 86_400
            row = (
                n, n % 40 + 1, str(day), f"{sent} 10:{n % 60:02}:00" if n % 7 else None, n * 1.5, n % 13,
                ["open", "closed", "void"][n % 3], f"{n * 317 % 100_000:05}", str(day.year),
                n - 1 if n % 5 else None, f"{day}T08:00:00Z", seconds, day.strftime("%m/%d/%Y"),
                day.strftime("%Y%m%d"), str(n) if n % 2 else None, n % 2, n / 7, str(n) if n % 10 else "N/A",
                f"{n} kg", f"{n % 24:02}:15:00", f"A{n}", seconds * 1_000, None, int(day.strftime("%Y%m%d")),
            )  # fmt: skip
            shop.execute(f"INSERT INTO orders VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - marks
        for n in range(1, 41):
            person = (
                n, f"F{chr(65 + n % 26)}a", f"L{chr(65 + n % 20)}b", f"{1960 + n}-0{n % 9 + 1}-1{n % 9}",
                ["Oslo", "Bergen", "Rome"][n % 3], f"{n * 37:05}", n % 4, ["yes", "no"][n % 2],
                f"+47 22 {n:02} 33", n % 2, n - 1 if n > 1 else None,
            )  # fmt: skip
            shop.execute(f"INSERT INTO customers VALUES ({', '.join('?' * len(person))})", person)  # noqa: S608 - marks
        for year in range(2020, 2026):
            shop.execute("INSERT INTO years VALUES (?, ?, ?)", (year, f"Y{year}", str(year)))
        for n in range(1, 101):
            day = datetime.date(2023, 1, 1) + datetime.timedelta(days=n)
            shop.execute(
                'INSERT INTO "Order Items" VALUES (?, ?, ?, ?, ?)',
                (n, n % 50 + 1, n / 2, n % 5 + 1, str(day)),
            )
        for n in range(1, 51):
            value = str(n) if n % 2 else f"2024-02-{n // 2 + 1:02}"
            times = (f"{9 + n % 8:02}:{n % 60:02}", f"{17 + n % 3}:{n % 60:02}")
            shop.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?)", (n, ["date", "num"][n % 2], value, *times)
            )
        shop.commit()
    return path


@pytest.fixture(scope="module")
def orders(path: Path) -> Iterator[SqlDatabase]:
    with SqlDatabase(path) as database:
        yield database


@pytest.mark.parametrize("sql", SOUND.splitlines())
def test_a_sound_statement_is_answered_as_sqlite_does(orders: SqlDatabase, path: Path, sql: str) -> None:
    answer = orders.execute(sql)
    with closing(sqlite3.connect(path)) as connection:
        rows = [list(row) for row in connection.execute(sql)]
    assert (answer["error"], answer["data"]) == (None, rows)


def test_wrong_statements_are_errors(orders: SqlDatabase, path: Path, snapshot: SnapshotAssertion) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for sql in WRONG.splitlines():
            connection.execute(sql).fetchone()  # it sees nothing wrong
    errors = {sql: orders.execute(sql)["error"] for sql in WRONG.splitlines()}
    assert "".join(f"{sql}\n    {error}\n" for sql, error in errors.items()) == snapshot


@pytest.mark.parametrize(
    ("sql", "questions"),
    [
        ("SELECT count(*) FROM orders", 0),
        ("SELECT first FROM customers WHERE city = 'Oslo'", 0),
        ("SELECT count(*) FROM orders o JOIN customers c ON c.id = o.customer_id", 0),
        ("SELECT count(*) FROM orders WHERE qty > 5 AND qty < 9 AND qty <> 7 OR qty = 1", 1),
        ("SELECT count(*) FROM orders WHERE placed > '2022-05-01' AND placed < '2023-05-01'", 1),
        ("SELECT status, count(*) FROM orders GROUP BY status", 0),
    ],
)
def test_a_column_is_read_once(path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, questions: int) -> None:
    run, asked = SqliteFile.run, list[str]()

    def noted(self: SqliteFile, statement: str, most_rows: int) -> Any:
        asked.append(statement)
        return run(self, statement, most_rows)

    monkeypatch.setattr(SqliteFile, "run", noted)
    with SqlDatabase(path) as database:
        assert [database.execute(sql)["error"] for _ in range(2)] == [None, None]
    assert (asked[0], asked[-1], len(asked) - 2) == (sql, sql, questions)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT day + 1 FROM days",
        "SELECT upper(day) + 1 FROM days",
        "SELECT count(*) FROM days WHERE day = '2024-01-05 00:00:00'",
        "SELECT count(*) FROM days WHERE day > 20240101",
        "SELECT date(replace(day, '2', '')) FROM days",
    ],
)
def test_a_value_behind_the_sample_is_looked_for_before_a_refusal(tmp_path: Path, sql: str) -> None:
    script = """
        CREATE TABLE days (day);
        WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 51000)
        INSERT INTO days SELECT date('2024-01-01', x || ' days') FROM n
    """
    with SqlDatabase(make(tmp_path / "days.db", script)) as database:
        assert database.execute(sql)["error"] is not None
    with SqlDatabase(make(tmp_path / "days.db", "INSERT INTO days VALUES (5)")) as database:
        assert database.execute(sql)["error"] is None


def test_what_cannot_be_asked_is_not_refused_but_a_query_with_null_has_to_be_checked() -> None:
    late = Mock(side_effect=Failure("timeout"))
    tables = [{"name": "t", "columns": [{"name": "d", "type": "", "primary": 0}]}]
    assert wrong_answer(Columns("SELECT d - 1 FROM t", "sqlite", lambda: tables, late)) is None
    with pytest.raises(Failure):
        wrong_answer(Columns("SELECT 1 WHERE 1 NOT IN (SELECT d FROM t)", "sqlite", lambda: tables, late))


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "postgresql"])
@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT * FROM t WHERE a > NULL", "a > NULL is never true; write a IS NULL for a > NULL"),
        ("SELECT * FROM t WHERE a <> ALL (SELECT b FROM t)", "a <> ALL (SELECT b FROM t)"),
        ("SELECT * FROM t WHERE a NOT IN (SELECT b FROM t)", "NOT a IN (SELECT b FROM t)"),
        ("SELECT a - b, a = 2024 FROM t", None),
        ("SELECT a, count(*) FROM t", None),
    ],
)
def test_a_database_with_types_is_only_asked_about_null(dialect: str, sql: str, error: str | None) -> None:
    asked = list[str]()

    def rows_of(question: str) -> list[list[int]]:
        asked.append(question)
        return [[1]]

    message = wrong_answer(Columns(sql, dialect, lambda: None, rows_of))
    if error is not None and "SELECT" in error:
        error += " is never true, as the query in it returns NULL; add IS NOT NULL to its WHERE"
        assert asked == ["SELECT 1 FROM t WHERE b IS NULL LIMIT 1"]
    assert message == error


@pytest.mark.parametrize(
    ("sql", "issues"),
    [
        ("SELECT qty / 2 FROM orders", ["qty / 2"]),
        ("SELECT sum(qty) FILTER (WHERE id > 2) / 5 FROM orders", ["SUM(qty) FILTER(WHERE id > 2) / 5"]),
        ("SELECT sum(qty) / count(DISTINCT status) FROM orders", ["SUM(qty) / COUNT(DISTINCT status)"]),
        ("SELECT n / 7 FROM v_sum", ["n / 7"]),
        ("SELECT q.n / 2 FROM (SELECT qty AS n FROM orders) AS q", ["q.n / 2"]),
        ("SELECT qty / 2.0, qty * 1.0 / 7, total / qty, CAST(qty AS REAL) / 2 FROM orders", []),
        ("SELECT qty / 10 * 10, CAST(qty / 3 AS INTEGER), id / 1 FROM orders", []),
        ("SELECT sum(total) / count(*) FROM orders", []),
        ("SELECT 'a / b' FROM orders", []),
    ],
)
def test_a_whole_division_is_only_an_issue(orders: SqlDatabase, sql: str, issues: list[str]) -> None:
    _, _, validate = orders.tools()
    verdict = validate.execute(query="How much?", sql=sql, results=orders.execute(sql))["result"]
    assert verdict["is_valid"] is True
    assert [issue.partition(" divides")[0] for issue in verdict["issues"]] == issues


PEOPLE = """
CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT, "postal code" TEXT);
INSERT INTO cities VALUES (1, 'Bergen', '5003'), (3, 'O''Higgins', NULL);
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, city_id INTEGER, status TEXT, age INTEGER);
INSERT INTO people VALUES (1, 'Ada Lund', 1, 'active', 30), (2, 'Bram Peeters', 2, 'gone', 40);
CREATE VIEW endless AS
  WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 'q' || x AS name FROM n;
"""


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("people WHERE status = 'Active'", ["people.status has no 'Active'; it has 'active'"]),
        (
            "people WHERE status IN ('gone', 'lost')",
            ["people.status has no 'lost'; it has only 'active', 'gone'"],
        ),
        (
            "people AS p JOIN cities c ON c.id = p.city_id WHERE c.name = 'bergen' AND p.name = 'Ada Lundt'",
            [
                "cities.name has no 'bergen'; it has 'Bergen'",
                "people.name has no 'Ada Lundt'; it has 'Ada Lund'",
            ],
        ),
        (
            "cities WHERE name = 'o''higgins' AND \"postal code\" = '5004'",
            [
                "cities.\"postal code\" has no '5004'; it has '5003'",
                "cities.name has no 'o''higgins'; it has 'O''Higgins'",
            ],
        ),
        ("people WHERE status = 'active'", []),
        ("people WHERE age = '30' OR age = 'thirty' OR name <> 'ada'", []),
        ("people WHERE upper(name) = 'ADA' OR nothing = 'ada'", []),
        ("strangers WHERE name = 'ada'", []),
        ("'unclosed", []),
    ],
)
def test_a_string_that_no_row_has_is_named(tmp_path: Path, rest: str, told: list[str]) -> None:
    path, sql = make(tmp_path / "people.db", PEOPLE), f"SELECT * FROM {rest}"  # noqa: S608 - of this table
    with SqlDatabase(path) as database, SqlDatabase(path, samples=0) as private:
        assert (sorted(database.missing_values(sql)), private.missing_values(sql)) == (told, [])


@pytest.mark.parametrize("count", [20, 8000])
def test_an_endless_view_or_a_long_list_takes_no_longer_than_the_limit(tmp_path: Path, count: int) -> None:
    listed = ", ".join(f"'b{number}'" for number in range(count))
    with SqlDatabase(make(tmp_path / "people.db", PEOPLE), timeout=0.5) as database:
        started = monotonic()
        assert database.missing_values(f"SELECT name FROM endless WHERE name IN ({listed})") == []  # noqa: S608 - numbers
        assert monotonic() - started < 3

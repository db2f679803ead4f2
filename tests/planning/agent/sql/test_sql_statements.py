"""Which statements are sent to a database, and its answer: what to change, what was meant, or the rows."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from time import monotonic, process_time
from typing import Any
from unittest.mock import Mock

import duckdb
import pytest
from agent_samples import failing
from plan_findings import stored_values, whole, with_outcomes
from readonly_files import make, settle
from run_cases import refusal
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase
from planning.agent.databases.sqlite_file import SqliteFile
from planning.agent.sql.columns import Columns
from planning.agent.sql.diagnosis import diagnose
from planning.agent.sql.guard import Failure, check
from planning.agent.sql.judge import whole_divisions, wrong_answer

Paths = dict[str, Path]
Databases = dict[str, SqlDatabase]
TABLES = Path(__file__).with_name("music_shop.sql").read_text(encoding="utf-8")
STATEMENTS: dict[str, Any] = json.loads(Path(__file__).with_name("statements.json").read_text("utf-8"))
ORDERS, PEOPLE, SOUND, WRONG, DIVISIONS, SEARCHED = (
    Path(__file__).with_name(f"{name}.sql").read_text(encoding="utf-8")
    for name in ("orders", "people", "sound", "wrong", "divisions", "searched")
)


def make_sqlite(folder: Path) -> Path:
    """The shop as a file of SQLite, with a view whose author wrote texts in double quotes."""
    path = folder / "music.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES)
        connection.executescript(
            'CREATE VIEW Quoted AS SELECT InvoiceId, "a text" AS note FROM Invoice '
            'WHERE BillingCountry = "USA"'
        )
    return path


def make_duckdb(folder: Path) -> Path:
    path = folder / "music.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute(TABLES)
    return path


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    folder = tmp_path_factory.mktemp("samples")
    paths = {"shop": make(folder / "shop.db"), "orders": make(folder / "orders.db", ORDERS)}
    settle(paths["orders"])
    return paths | {"music": make_sqlite(folder), "duckdb": make_duckdb(folder)}


@pytest.fixture(scope="module")
def databases(paths: Paths) -> Iterator[Databases]:
    """The databases, each opened once for all statements of this module that are asked of it."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(SqlDatabase(path)) for name, path in paths.items()}


def by_sqlite(path: Path, sql: str) -> tuple[list[str], list[list[Any]]]:
    with closing(sqlite3.connect(path)) as connection:
        cursor = connection.execute(sql)
        return [column[0] for column in cursor.description], [list(row) for row in cursor]


KINDS = [(kind, sql) for kind in ("shop", "music", "music, of any row") for sql in STATEMENTS[kind]]


@pytest.mark.parametrize(("kind", "sql"), KINDS)
def test_an_error_says_what_to_change(databases: Databases, paths: Paths, kind: str, sql: str) -> None:
    if kind == "music, of any row":
        by_sqlite(paths["music"], sql)  # it sees nothing wrong
    answer = databases[kind.partition(",")[0]].execute(sql)
    assert answer == failing(STATEMENTS[kind][sql]) | {"elapsed": answer["elapsed"]}


@pytest.mark.parametrize("sql", STATEMENTS["fair"])
def test_what_looks_wrong_and_is_fair_is_answered(databases: Databases, sql: str) -> None:
    answer = databases["music"].execute(sql)
    assert (answer["error"], answer["data"]) == (None, STATEMENTS["fair"][sql])


SOUND_OF = {"music": STATEMENTS["as sqlite answers"], "orders": SOUND.splitlines()}


@pytest.mark.parametrize(("name", "sql"), [(name, sql) for name in SOUND_OF for sql in SOUND_OF[name]])
def test_sound_sql_is_answered_as_by_sqlite(databases: Databases, paths: Paths, name: str, sql: str) -> None:
    answer = databases[name].execute(sql)
    assert (answer["error"], answer["columns"], answer["data"]) == (None, *by_sqlite(paths[name], sql))


@pytest.mark.parametrize("name", ["music", "duckdb"])
def test_errors_of_other_dialects(databases: Databases, name: str, snapshot: SnapshotAssertion) -> None:
    told = {sql: databases[name].execute(sql)["error"] for sql in STATEMENTS["of other databases"]}
    assert "".join(f"{sql}\n    {error}\n" for sql, error in told.items()) == snapshot


def test_what_reads_is_sent_without_what_ends_it(snapshot: SnapshotAssertion) -> None:
    assert with_outcomes(stored_values(snapshot), lambda sql: ascii(check(sql, "sqlite"))) == snapshot
    deep = "SELECT (" * 5000
    assert check(deep, "sqlite") == deep


def test_tokens_that_cannot_be_told_are_left_to_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlglot.tokenize", Mock(side_effect=RecursionError))
    assert check("DELETE FROM x", "sqlite") == "DELETE FROM x"


def test_without_sqlglot_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    message = "reading SQL needs sqlglot: pip install 'session-planning[agent]'"
    assert refusal(ImportError, check, "SELECT 1", "sqlite") == message


MANY = "".join(f"CREATE TABLE t{number:02} (a);" for number in range(25))
NULLS = "CREATE TABLE t (code TEXT UNIQUE, name TEXT); INSERT INTO t VALUES (NULL, 'a'), (NULL, 'b')"


def test_an_error_has_what_the_tables_are(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    told = ""
    for script, sql in (
        (MANY, "SELECT * FROM zzz"),
        ("", "SELECT * FROM zzz"),
        ("", "SELECT zzz"),
        (NULLS, "SELECT code, name, COUNT(*) FROM t GROUP BY code"),
    ):
        (tmp_path / "t.db").unlink(missing_ok=True)
        with SqlDatabase(make(tmp_path / "t.db", script)) as database:
            told += f"{database.execute(sql)['error']}\n"
    assert told == snapshot


def test_tables_that_cannot_be_read_are_not_named(shop: SqlDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteFile, "tables", Mock(side_effect=Failure("corrupt")))
    assert shop.execute("SELECT * FROM custmers")["error"] == "no such table: custmers"
    assert shop.execute("SELECT name, COUNT(*) FROM cities GROUP BY id")["error"] is None


def test_an_answer_is_checked_in_time_or_none(shop: SqlDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    run = SqliteFile.run

    def slow(self: SqliteFile, sql: str, most_rows: int) -> object:
        if "CASE WHEN NOT" in sql:
            raise Failure("timeout")
        return run(self, sql, most_rows)

    monkeypatch.setattr(SqliteFile, "run", slow)
    assert shop.execute("SELECT name, COUNT(*) FROM cities GROUP BY id % 2")["code"] == "timeout"
    assert shop.execute("SELECT name, COUNT(*) FROM cities GROUP BY id")["error"] is None


def test_the_error_of_a_database_is_told_in_one_line(snapshot: SnapshotAssertion) -> None:
    def outcome(given: tuple[str, str, str]) -> str:
        dialect, text, sql = given
        return diagnose(text, sql, dialect, lambda: None)

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot


@pytest.mark.parametrize(("before", "piece", "after"), STATEMENTS["deep"])
@pytest.mark.parametrize("times", [50, 10_000])
def test_what_is_deep_or_long_takes_no_second(before: str, piece: str, after: str, times: int) -> None:
    sql, seconds = before + piece * times + after, process_time()
    wrong_answer(Columns(sql, "sqlite", list, lambda _: None))
    told = diagnose("no such column: zz", sql, "sqlite", list)
    assert told.startswith("no such column: zz")
    assert process_time() - seconds < 1


def test_wrong_statements_are_errors(databases: Databases, paths: Paths, snapshot: SnapshotAssertion) -> None:
    for sql in WRONG.splitlines():
        by_sqlite(paths["orders"], sql)  # it sees nothing wrong
    errors = {sql: databases["orders"].execute(sql)["error"] for sql in WRONG.splitlines()}
    assert "".join(f"{sql}\n    {error}\n" for sql, error in errors.items()) == snapshot


def test_columns_read_once(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    """How many questions the check of a statement asks, however often it is run."""
    run, asked = SqliteFile.run, list[str]()

    def noted(self: SqliteFile, statement: str, most_rows: int) -> Any:
        asked.append(statement)
        return run(self, statement, most_rows)

    def outcome(written: object) -> int:
        sql = whole(written)
        asked.clear()
        with SqlDatabase(paths["orders"]) as database:
            assert [database.execute(sql)["error"] for _ in range(2)] == [None, None]
        assert asked[0] == sql
        return len(asked) - 2

    monkeypatch.setattr(SqliteFile, "run", noted)
    assert with_outcomes(stored_values(snapshot), outcome) == snapshot


OF_DAYS = [
    "day + 1",
    "upper(day) + 1",
    "day = '2024-01-05 00:00:00'",
    "day || ' 10:00' = '2024-01-05'",
    "day || 'T10:00' = '2024-01-05'",
    "day > 20240101",
    "date(replace(day, '2', ''))",
]


def test_a_value_behind_the_sample_is_looked_for_before_a_refusal(tmp_path: Path) -> None:
    script = """
        CREATE TABLE days (day);
        WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 51000)
        INSERT INTO days SELECT date('2024-01-01', x || ' days') FROM n
    """
    with SqlDatabase(make(tmp_path / "days.db", script)) as database:
        assert all(database.execute(f"SELECT {each} FROM days")["error"] for each in OF_DAYS)
        make(tmp_path / "days.db", "INSERT INTO days VALUES (5)")
        assert not any(database.execute(f"SELECT {each} FROM days")["error"] for each in OF_DAYS)


ONE = [{"name": "t", "columns": [{"name": "a", "type": "", "primary": 0}]}]


def test_what_cannot_be_asked_is_not_refused_but_a_query_with_null_has_to_be_checked() -> None:
    late = Mock(side_effect=Failure("timeout"))
    assert wrong_answer(Columns("SELECT a - 1 FROM t", "sqlite", lambda: ONE, late)) is None
    with pytest.raises(Failure):
        wrong_answer(Columns("SELECT 1 WHERE 1 NOT IN (SELECT a FROM t)", "sqlite", lambda: ONE, late))


def test_a_database_with_types_is_only_asked_about_null(snapshot: SnapshotAssertion) -> None:
    def outcome_of(dialect: str, sql: str) -> str:
        asked = list[str]()

        def rows_of(question: str) -> list[list[int]]:
            asked.append(question)
            return [[1]]

        return f"{wrong_answer(Columns(sql, dialect, lambda: None, rows_of))} {asked}"

    def outcome(sql: str) -> str:
        (told,) = {outcome_of(dialect, sql) for dialect in ("duckdb", "postgres", "postgresql")}
        return told

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot


def test_a_whole_division_is_only_an_issue(databases: Databases, snapshot: SnapshotAssertion) -> None:
    orders = databases["orders"]
    _, _, validate = orders.tools()
    told = list[str]()
    for sql in DIVISIONS.splitlines():
        verdict = validate.execute(query="How much?", sql=sql, results=orders.execute(sql))["result"]
        assert verdict["is_valid"] is True
        told += [sql, *(f"    {issue}" for issue in verdict["issues"])]
    assert "\n".join(told) + "\n" == snapshot
    for dialect, count in (("postgresql", 1), ("duckdb", 0)):
        columns = Columns("SELECT a / 2 FROM t", dialect, lambda: ONE, lambda _: [[1]])
        assert len(whole_divisions(columns)) == count


def test_a_string_that_no_row_has_is_named(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path, told = make(tmp_path / "people.db", PEOPLE), list[str]()
    with SqlDatabase(path) as database, SqlDatabase(path, samples=0) as private:
        for sql in SEARCHED.splitlines():
            told += [sql, *(f"    {each}" for each in sorted(database.missing_values(sql)))]
            assert private.missing_values(sql) == []
    assert "\n".join(told) + "\n" == snapshot


@pytest.mark.parametrize("count", [20, 8000])
def test_an_endless_view_or_a_long_list_takes_no_longer_than_the_limit(tmp_path: Path, count: int) -> None:
    listed = ", ".join(f"'b{number}'" for number in range(count))
    with SqlDatabase(make(tmp_path / "people.db", PEOPLE), timeout=0.5) as database:
        started = monotonic()
        assert database.missing_values(f"SELECT name FROM endless WHERE name IN ({listed})") == []
        assert monotonic() - started < 3

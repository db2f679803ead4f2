"""Which statements are sent to a database, and its answer: what to change, what was meant, or the rows."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import Mock

import duckdb
import pytest
from agent_samples import failing
from readonly_files import make
from syrupy.assertion import SnapshotAssertion

from laws import work_of
from planning.agent import SqlDatabase
from planning.agent.databases.sqlite_file import SqliteFile
from planning.agent.sql.columns import Columns
from planning.agent.sql.diagnosis import diagnose
from planning.agent.sql.guard import Failure, check
from planning.agent.sql.judge import wrong_answer

Paths = dict[str, Path]
Databases = dict[str, SqlDatabase]
TABLES = Path(__file__).with_name("music_shop.sql").read_text(encoding="utf-8")
STATEMENTS: dict[str, Any] = json.loads(Path(__file__).with_name("statements.json").read_text("utf-8"))


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
    return {"shop": make(folder / "shop.db"), "music": make_sqlite(folder), "duckdb": make_duckdb(folder)}


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


@pytest.mark.parametrize("sql", STATEMENTS["as sqlite answers"])
def test_names_in_double_quotes_and_sound_aggregates_are_as_sqlite_has_them(
    databases: Databases, paths: Paths, sql: str
) -> None:
    answer = databases["music"].execute(sql)
    assert (answer["error"], answer["columns"], answer["data"]) == (None, *by_sqlite(paths["music"], sql))


def test_duckdb_says_the_same_of_names_in_double_quotes(databases: Databases) -> None:
    for sql in ('SELECT "Nmae" FROM Artist', 'SELECT count(*) FROM Invoice WHERE BillingCountry = "USA"'):
        assert databases["duckdb"].execute(sql)["error"] == STATEMENTS["music"][sql]


@pytest.mark.parametrize("name", ["music", "duckdb"])
def test_what_a_model_reads_of_other_dialects(
    databases: Databases, name: str, snapshot: SnapshotAssertion
) -> None:
    told = {sql: databases[name].execute(sql)["error"] for sql in STATEMENTS["of other databases"]}
    assert "".join(f"{sql}\n    {error}\n" for sql, error in told.items()) == snapshot


@pytest.mark.parametrize(
    ("sql", "sent"),
    [
        ("select 1;", "select 1"),
        (" \n-- DROP TABLE x\n;SELECT 1;; -- x", "SELECT 1"),
        ("\ufeffSELECT 1", "SELECT 1"),
        ("/* /* */ SELECT ';' -- ;", "SELECT ';' -- ;"),
        ("SELECT '\U0001f600;', 1; -- \U0001f600", "SELECT '\U0001f600;', 1"),
        ('SELECT 1 AS "a;b", [c;d], `e;f`', 'SELECT 1 AS "a;b", [c;d], `e;f`'),
        ("WITH RECURSIVE a(x) AS (VALUES (1)), delete_me AS NOT MATERIALIZED (SELECT 2) SELECT 1", ...),
        ("WITH replace AS (SELECT 1) SELECT * FROM replace", ...),
        ("WITH a AS (SELECT 1) VALUES (1)", ...),
        ("WITH a", ...),
        ("SELECT 'no end", ...),
        ("SELECT 1 /* no end", ...),
        ("DELETE FROM x /* no end", ...),
        ("SELECT (" * 5000, ...),
    ],
)
def test_what_reads_is_sent_without_what_ends_it(sql: str, sent: object) -> None:
    assert check(sql, "sqlite") == (sql if sent is ... else sent)


def test_tokens_that_cannot_be_told_are_left_to_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlglot.tokenize", Mock(side_effect=RecursionError))
    assert check("DELETE FROM x", "sqlite") == "DELETE FROM x"


def test_without_sqlglot_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(ImportError) as caught:
        check("SELECT 1", "sqlite")
    assert str(caught.value) == "reading SQL needs sqlglot: pip install 'session-planning[agent]'"


LISTED = ", ".join(f"t{number:02}" for number in range(20))
MANY = "".join(f"CREATE TABLE t{number:02} (a);" for number in range(25))
NULLS = "CREATE TABLE t (code TEXT UNIQUE, name TEXT); INSERT INTO t VALUES (NULL, 'a'), (NULL, 'b')"
MANY_VALUES = "name has many values in a group, and SQLite would use any of them"
ADD = f"{MANY_VALUES}; add it to GROUP BY, or aggregate it, as in max(name)"


@pytest.mark.parametrize(
    ("script", "sql", "error"),
    [
        (MANY, "SELECT * FROM zzz", f"no such table: zzz; the tables are {LISTED} and 5 more"),
        ("", "SELECT * FROM zzz", "no such table: zzz"),
        ("", "SELECT zzz", "no such column: zzz; check the name"),
        (NULLS, "SELECT code, name, COUNT(*) FROM t GROUP BY code", ADD),
    ],
    ids=["many tables", "no table", "no column", "a key that may be NULL"],
)
def test_an_error_has_what_the_tables_are(tmp_path: Path, script: str, sql: str, error: str) -> None:
    with SqlDatabase(make(tmp_path / "t.db", script)) as database:
        assert database.execute(sql)["error"] == error


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


CATALOG = "Catalog Error: Table with name x does not exist!"
NESTED = "aggregate function calls cannot be nested"
COLUMN = 'no such column: "x"'
QUOTES = "no such column: x; for a string, write 'x' in single quotes"


@pytest.mark.parametrize(
    ("dialect", "text", "sql", "told"),
    [
        ("sqlite", "no such table: x", "SELECT * FROM x", "no such table: x"),
        ("sqlite", f"{COLUMN} - should this be a string literal in single-quotes?", 'SELECT "x"', QUOTES),
        ("sqlite", "a\n\n" + "b" * 400, "SELECT 1", "a " + "b" * 294 + "...; correct the SQL"),
        ("duckdb", f'{CATALOG}\nDid you mean "y"?\n\nLINE 1: ...', "SELECT 1", "no such table: x"),
        ("duckdb", f"Binder Error: {NESTED}\n\nLINE 1: x\n ^", "SELECT 1", f"{NESTED}; correct the SQL"),
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
def test_what_is_deep_or_long_takes_no_second(before: str, piece: str, after: str, times: int) -> None:
    sql, seconds = before + piece * times + after, process_time()
    wrong_answer(Columns(sql, "sqlite", list, lambda _: None))
    told = diagnose("no such column: zz", sql, "sqlite", list)
    assert told.startswith("no such column: zz")
    assert process_time() - seconds < 1

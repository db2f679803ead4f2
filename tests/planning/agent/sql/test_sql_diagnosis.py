"""Why a statement failed, in words that help to correct it."""

from __future__ import annotations

from pathlib import Path

import pytest
from readonly_files import make

from planning.agent.sql import SqlDatabase
from planning.agent.sql.diagnosis import diagnose
from planning.tools import StorageUnavailable

SAID = {
    "SELECT * FROM custmers": "no such table: custmers; did you mean customers?",
    "SELECT * FROM other.Customer": "no such table: other.Customer; did you mean customers?",
    "SELECT * FROM zzz": "no such table: zzz; the tables are cities, customers, visits, notes, big_spenders",
    "SELECT nmae FROM customers": "no such column: nmae; did you mean name, of customers?",
    "SELECT c.nmae FROM customers AS c": "no such column: c.nmae; did you mean c.name?",
    "SELECT customers.ordr FROM customers": 'no such column: customers.ordr; did you mean customers."order"?',
    "SELECT c.zzz FROM cities c": "no such column: c.zzz; cities has id, name",
    "SELECT x.id FROM customers c, cities": (
        "no such column: x.id; x is not in FROM; the query reads c, cities"
    ),
    "SELECT x.id": "no such column: x.id; x is not in FROM",
    "SELECT zzz FROM cities": "no such column: zzz; cities has id, name",
    "SELECT zzz FROM cities a JOIN cities b JOIN visits": (
        "no such column: zzz; cities has id, name; visits has customer_id, day, number, month"
    ),
    "SELECT photo FROM cities": (
        "no such column: photo; customers has it, which the query does not read; join it"
    ),
    "SELECT zzz": "no such column: zzz; check the name, and the table it is of",
    "SELECT id FROM customers, cities": "id is ambiguous; write customers.id or cities.id",
    'SELECT name FROM cities "a b" JOIN customers': 'name is ambiguous; write "a b".name or customers.name',
    "SELECT x FROM (SELECT 1 AS x) JOIN (SELECT 2 AS x)": (
        "x is ambiguous; write its table before it, and name a table that is read twice"
    ),
    "SELECT now()": "no such function: now; write datetime('now') for now()",
    "SELECT nope(1)": "no such function: nope; SQLite has none of that name; use one that it has",
    "SELECT * FORM customers": (
        "syntax error at line 1, column 10, near FORM; correct the SQL there or just before"
    ),
    "SELECT name,\n  ,id, id FROM customers": (
        "syntax error at line 2, column 3, near ,; correct the SQL there or just before"
    ),
    "SELECT TOP 5 name FROM customers": (
        "syntax error at line 1, column 12, near 5; SQLite has no TOP: write LIMIT 5 at the end"
    ),
    "SELECT top 'TOP 5' 1 FROM customers": (
        "syntax error at line 1, column 20, near 1; correct the SQL there or just before"
    ),
    "SELECT 1 FROM customers WHERE name ILIKE 'a%'": (
        "syntax error at line 1, column 36, near ILIKE; SQLite has no ILIKE: write LIKE, which takes small"
        " and capital letters for the same"
    ),
    "SELECT LEFT(name, 2) FROM customers": (
        "syntax error at line 1, column 12, near (; SQLite has no LEFT: write substr(name, 1, 2)"
        " for LEFT(name, 2)"
    ),
    "SELECT 1, 1 1 1": "syntax error at line 1, column 13, near 1; correct the SQL there or just before",
    "SELECT name FROM customers WHERE": "the SQL ends too early; write the rest of it, or close what is open",
    "SELECT 'abc": "a quote is not closed, from 'abc on; close it, and write a quote inside text twice",
    "SELECT #": "# is no SQL; remove it",
    "SELECT ?": "the SQL has a parameter, such as ? or :name; write the value itself",
    "SELECT count(1, 2)": "wrong number of arguments to count(); check how many it takes",
    "SELECT 1 WHERE sum(1) > 2": (
        "misuse of the aggregate sum(); use it in SELECT, HAVING or ORDER BY, and not inside another"
    ),
    "SELECT " + "(" * 2000 + "1" + ")" * 2000: "the SQL is nested too deeply; send a simpler SELECT",
    "SELECT json('x')": "malformed JSON; correct the SQL",
    "SELECT 1 UNION SELECT 1, 2": (
        "SELECTs to the left and right of UNION do not have the same number of result columns; "
        "correct the SQL"
    ),
}


@pytest.mark.parametrize("sql", SAID)
def test_a_failing_statement_is_told_what_to_change(shop: SqlDatabase, sql: str) -> None:
    given = shop.execute(sql)
    assert (given["success"], given["code"], given["error"]) == (False, "parameter", SAID[sql])


def test_names_in_a_database_of_many_are_not_all_listed(tmp_path: Path) -> None:
    path = make(tmp_path / "many.db", "".join(f"CREATE TABLE t{number:02} (a);" for number in range(25)))
    with SqlDatabase(path) as database:
        told = database.execute("SELECT * FROM zzz")["error"]
    listed = ", ".join(f"t{number:02}" for number in range(20))
    assert told == f"no such table: zzz; the tables are {listed} and 5 more"


def test_a_database_without_tables_names_none(tmp_path: Path) -> None:
    with SqlDatabase(make(tmp_path / "empty.db", "")) as database:
        assert database.execute("SELECT * FROM zzz")["error"] == (
            "no such table: zzz; the database holds no table"
        )
        told = "no such column: zzz; check the name"
        assert database.execute("SELECT zzz")["error"] == told


def test_names_that_cannot_be_read_are_not_told(shop: SqlDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(_samples: int, _seconds: float) -> None:
        raise StorageUnavailable("x")

    monkeypatch.setattr(shop, "_facts", unreadable)
    assert shop.execute("SELECT * FROM custmers")["error"] == "no such table: custmers"


def said(text: str, sql: str, dialect: str = "sqlite", probe: str = "") -> str:
    return diagnose(text, sql, dialect, lambda: None, lambda _: probe)


def test_without_the_names_it_is_told_what_the_database_says() -> None:
    assert said("no such table: x", "SELECT * FROM x") == "no such table: x"


def test_newer_versions_that_say_more_are_understood() -> None:
    text = 'no such column: "x" - should this be a string literal in single-quotes?'
    told = "no such column: x; check the name; for a text, write 'x' in single quotes"
    assert said(text, 'SELECT "x"') == told


def test_a_word_whose_place_cannot_be_told_is_told_alone() -> None:
    told = "syntax error, near ,; correct the SQL there or just before"
    assert said('near ",": syntax error', "SELECT ,, 1") == told
    assert said('near "x": syntax error', "SELECT 'x") == told.replace("near ,", "near x")


def test_a_long_message_is_one_short_line() -> None:
    assert said("a\n\n" + "b" * 400, "SELECT 1") == "a " + "b" * 295 + "..."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            'Catalog Error: Table with name x does not exist!\nDid you mean "y"?\n\nLINE 1: ...',
            "no such table: x",
        ),
        (
            'Binder Error: Referenced table "q" not found!\nCandidate tables: "c"',
            "no such column: q.*; q is not in FROM",
        ),
        (
            "Parser Error: syntax error at end of input\n\nLINE 1: ...",
            "the SQL ends too early; write the rest of it, or close what is open",
        ),
        (
            "Catalog Error: Scalar Function with name now2 does not exist!\nDid",
            "no such function: now2; DuckDB has none of that name; use one that it has",
        ),
        (
            "Binder Error: aggregate function calls cannot be nested\n\nLINE 1: x\n ^",
            "aggregate function calls cannot be nested; correct the SQL",
        ),
        ("Out of Range Error: too much.", "too much; correct the SQL"),
    ],
)
def test_what_duckdb_says_is_told_in_the_same_words(text: str, told: str) -> None:
    assert said(text, "SELECT 1", "duckdb") == told

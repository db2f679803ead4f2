"""Names in double quotes, which SQLite takes for a text where there is no such column."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from music_shop import make_duckdb, make_sqlite

from planning.agent.sql import SqlDatabase

TOLD = {
    'SELECT "Nmae" FROM Artist': "no such column: Nmae; did you mean Name, of Artist?",
    "SELECT `Nmae` FROM Artist": "no such column: Nmae; did you mean Name, of Artist?",
    "SELECT count(*) FROM Customer WHERE \"Contry\" = 'Norway'": (
        "no such column: Contry; did you mean Country, of Customer?"
    ),
    'SELECT c."Contry" FROM Customer AS c': "no such column: c.Contry; did you mean c.Country?",
    'SELECT FirstName FROM Customer ORDER BY "FristName"': (
        "no such column: FristName; did you mean FirstName, of Customer?"
    ),
    'SELECT count(*) FROM Customer GROUP BY "typo"': (
        "no such column: typo; Customer has CustomerId, FirstName, LastName, Country, Email, SupportRepId; "
        "for a text, write 'typo' in single quotes"
    ),
    'SELECT "na""me" FROM Artist': 'no such column: na"me; did you mean Name, of Artist?',
    'SELECT count(*) FROM Invoice WHERE BillingCountry = "USA"': (
        "no such column: USA; for a text, write 'USA' in single quotes"
    ),
    'SELECT count(*) FROM Invoice WHERE BillingCountry = "BillingCuontry"': (
        "no such column: BillingCuontry; for the column, write BillingCountry; for a text, write "
        "'BillingCuontry' in single quotes"
    ),
    'SELECT count(*) FROM Invoice WHERE BillingCity LIKE "B%"': (
        "no such column: B%; for a text, write 'B%' in single quotes"
    ),
    "SELECT count(*) FROM Invoice WHERE InvoiceDate BETWEEN \"2022-01-01\" AND '2022-12-31'": (
        "no such column: 2022-01-01; for a text, write '2022-01-01' in single quotes"
    ),
    'SELECT strftime("%Y.%m", InvoiceDate) FROM Invoice': (
        "no such column: %Y.%m; for a text, write '%Y.%m' in single quotes"
    ),
    'SELECT FirstName || " it\'s" FROM Customer': (
        "no such column: it's; for a text, write ' it''s' in single quotes"
    ),
    'SELECT count(*) FROM Quoted WHERE note = "a text"': (
        "no such column: a text; for a text, write 'a text' in single quotes"
    ),
    'WITH "a b" AS (SELECT 1 AS "x y") SELECT "x z" FROM "a b"': (
        "no such column: x z; check the name, and the table it is of; for a text, write 'x z' in single "
        "quotes"
    ),
    'SELECT ,, "Name" FROM Artist': (
        "syntax error at line 1, column 8, near ,; correct the SQL there or just before"
    ),
    'SELECT "Name" FROM Artist WHERE': (
        "the SQL ends too early; write the rest of it, or close what is open"
    ),
}
READ = [
    'SELECT Name AS "Total Amount" FROM Artist ORDER BY "Total Amount"',
    'SELECT Name "alias" FROM Artist ORDER BY "alias" DESC',
    'SELECT "Name" || \'"\' FROM "Artist" AS "a b" WHERE "a b"."ArtistId" = 1',
    'WITH "a b" AS (SELECT 1 AS "x y") SELECT "x y" + 1 FROM "a b"',
    'SELECT \'"Nmae"\' -- "Nmae"\n /* "Nmae" */ FROM Artist',
    'SELECT `Name`, [Name], "Name" FROM Artist WHERE \'it\'\'s "x\' <> "Name"',
    "SELECT * FROM Quoted",
    'SELECT "note" FROM Quoted',
    'SELECT count(*) AS "a`b" FROM Artist ORDER BY "a`b"',
    'SELECT count("Name"), "rowid" FROM Artist GROUP BY "ArtistId"',
    'SELECT "Name" COLLATE "NOCASE" FROM "main"."Artist"',
    "SELECT Name FROM Artist WHERE Name = 'Accept' /* \" */",
    "SELECT x'22', Name FROM Artist WHERE \"ArtistId\" = 1",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sqlite(tmp_path_factory.mktemp("music"))


@pytest.fixture(scope="module")
def music(path: Path) -> Iterator[SqlDatabase]:
    with SqlDatabase(path) as database:
        yield database


@pytest.mark.parametrize("sql", TOLD)
def test_a_name_in_double_quotes_that_is_no_column_is_an_error(music: SqlDatabase, sql: str) -> None:
    answer = music.execute(sql)
    assert (answer["success"], answer["data"], answer["error"]) == (False, [], TOLD[sql])


@pytest.mark.parametrize("sql", READ)
def test_names_and_aliases_in_double_quotes_are_read_as_sqlite_reads_them(
    music: SqlDatabase, path: Path, sql: str
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        cursor = connection.execute(sql)
        expected = [column[0] for column in cursor.description], [list(row) for row in cursor]
    answer = music.execute(sql)
    assert answer["error"] is None
    assert (answer["columns"], answer["data"]) == expected


def test_duckdb_says_the_same_of_names_in_double_quotes(tmp_path: Path) -> None:
    with SqlDatabase(make_duckdb(tmp_path)) as database:
        for sql in list(TOLD)[:4:2]:
            assert database.execute(sql)["error"] == TOLD[sql]
        sql = 'SELECT count(*) FROM Invoice WHERE BillingCountry = "USA"'
        assert database.execute(sql)["error"] == TOLD[sql]

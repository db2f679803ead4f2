"""Statements that a database runs, and whose answer is not what was asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from music_shop import make_sqlite

from planning.agent.sql import SqlDatabase
from planning.agent.sql.diagnosis import diagnose
from planning.agent.sql.traps import trap

TRAPS = {
    "SELECT InvoiceId FROM Invoice WHERE BillingCity = NULL": (
        "BillingCity = NULL is never true; write BillingCity IS NULL for BillingCity = NULL"
    ),
    "SELECT InvoiceId FROM Invoice AS i WHERE (i.BillingCity != NULL)": (
        "i.BillingCity != NULL is never true; write i.BillingCity IS NOT NULL for i.BillingCity != NULL"
    ),
    "SELECT CAST(InvoiceDate AS DATE) FROM Invoice": (
        "SQLite has no type DATE, and casts to a number; write date(InvoiceDate) for "
        "CAST(InvoiceDate AS DATE)"
    ),
    "SELECT CAST(InvoiceDate AS timestamp) FROM Invoice": (
        "SQLite has no type TIMESTAMP, and casts to a number; write datetime(InvoiceDate) for "
        "CAST(InvoiceDate AS TIMESTAMP)"
    ),
    "SELECT CAST(Total AS STRING) FROM Invoice": (
        "SQLite has no type STRING, and casts to a number; write CAST(Total AS TEXT) for "
        "CAST(Total AS STRING)"
    ),
    "SELECT InvoiceId FROM Invoice WHERE 2022 = strftime('%Y', InvoiceDate)": (
        "strftime('%Y', InvoiceDate) is a text, and never equal to a number; write "
        "CAST(strftime('%Y', InvoiceDate) AS INTEGER) for strftime('%Y', InvoiceDate)"
    ),
    "SELECT InvoiceId FROM Invoice WHERE substr(InvoiceDate, 1, 4) BETWEEN 2021 AND 2022": (
        "substr(InvoiceDate, 1, 4) is a text, and never equal to a number; write "
        "CAST(substr(InvoiceDate, 1, 4) AS INTEGER) for substr(InvoiceDate, 1, 4)"
    ),
    "SELECT FORMAT(Total, 2) FROM Invoice": (
        "format takes its template first; give it a template, then the value"
    ),
}
FAIR = {
    "SELECT count(*) FROM Invoice WHERE BillingCity IS NULL": [[0]],
    "SELECT coalesce(NULL, 1) = 1, 'x = NULL'": [[1, "x = NULL"]],
    "SELECT count(*) FROM Invoice WHERE strftime('%Y', InvoiceDate) = '2022'": [[2]],
    "SELECT count(*) FROM Invoice WHERE substr(InvoiceDate, 1, 4) + 0 = 2022": [[2]],
    "SELECT count(*) FROM Invoice WHERE 1 + substr(InvoiceDate, 1, 4) = 2023": [[2]],
    "SELECT count(*) FROM Invoice WHERE CAST(strftime('%Y', InvoiceDate) AS INTEGER) IN (2021, 2022)": [[3]],
    "SELECT CAST('12abc' AS INTEGER), CAST(5 AS TEXT), CAST('1.5' AS DECIMAL(10, 2))": [[12, "5", 1.5]],
    "SELECT format('%.2f', Total) FROM Invoice WHERE InvoiceId = 1": [["5.00"]],
    "SELECT printf('%d items', 3), printf('', 1), format('%s')": [["3 items", None, ""]],
    "SELECT printf('%5.1f|%-4s|%x|%Q|%%|%c', 3.14159, 'ab', 255, 'it''s', 'xyz')": [
        ["  3.1|ab  |ff|'it''s'|%|x"]
    ],
    "SELECT printf('%s%d%s', NULL, 9223372036854775807, x'6162'), typeof(printf(NULL)), typeof(printf())": [
        ["9223372036854775807ab", "null", "null"]
    ],
    "SELECT length(printf('%.*c', 1000, 'x')), printf('%.*s', 1000000000, 'abc')": [[1000, "abc"]],
    "(SELECT 1)": [[1]],
    "((SELECT 1 UNION SELECT 2)) ;": [[1], [2]],
}
TOO_LARGE = "a value in it is too large for an answer; ask for its length, or a part of it with substr"


@pytest.fixture(scope="module")
def music(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlDatabase]:
    with SqlDatabase(make_sqlite(tmp_path_factory.mktemp("music"))) as database:
        yield database


@pytest.mark.parametrize("sql", TRAPS)
def test_what_cannot_mean_what_was_asked_is_an_error_with_a_remedy(music: SqlDatabase, sql: str) -> None:
    answer = music.execute(sql)
    assert (answer["success"], answer["data"], answer["error"]) == (False, [], TRAPS[sql])


@pytest.mark.parametrize("sql", FAIR)
def test_what_looks_like_it_and_is_fair_is_answered(music: SqlDatabase, sql: str) -> None:
    answer = music.execute(sql)
    assert (answer["error"], answer["data"]) == (None, FAIR[sql])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT printf('%.*c', 1000000000, 'x')",
        "SELECT printf('%.1000000000c', 'x')",
        "SELECT length(format('%.*c', 1000000000, 'x'))",
        "SELECT printf('%2000000000d', 1) IS NULL",
        "SELECT printf('%Q', hex(zeroblob(31999999))) IS NULL",
        "SELECT hex(zeroblob(20000000)) || hex(zeroblob(20000000)) IS NULL",
        "SELECT replace(hex(zeroblob(20000000)), '0', 'xx') IS NULL",
        "SELECT group_concat(hex(zeroblob(20000000))) IS NULL FROM Invoice",
    ],
)
def test_a_value_that_is_too_large_is_never_null(music: SqlDatabase, sql: str) -> None:
    answer = music.execute(sql)
    assert (answer["success"], answer["data"], answer["error"]) == (False, [], TOO_LARGE)


def test_printf_of_a_text_that_is_no_utf_8_is_an_error_that_says_so(music: SqlDatabase) -> None:
    assert music.execute("SELECT printf('%s', CAST(x'ff' AS TEXT))")["error"] == (
        "printf and format take only text in UTF-8 here; join the texts with ||"
    )


def steps(sql: str) -> int:
    """How many lines it takes to look for traps and for remedies in a statement."""
    count = 0

    def counting(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counting)
    try:
        trap(sql, "sqlite", list)
        for text in ('near "(": syntax error', "no such column: day", "no such function: DATEDIFF"):
            diagnose(text, sql, "sqlite", lambda: {"tables": []}, lambda _: "")
    finally:
        sys.setprofile(None)
    return count


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

"""What is in a database, as a model reads it."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

import sqlite3
import tracemalloc
from pathlib import Path
from typing import Any

import duckdb
import pytest
from agent_samples import rows as rows_of
from readonly_files import make
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase
from planning.agent.sql.schema import schema_text, table_text, validate_results
from planning.tools import Toolbox


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
    text = schema_text([table("t", column("id")) | {"rows": rows}], "sqlite")
    assert text == f"SQLite, 1 table\n\n{told}\n  id TEXT\n"


def good(data: list[Any], columns: list[str], **more: Any) -> dict[str, Any]:
    return rows_of(*data, columns=columns) | more


NONE = "No results returned"
COUNTED = "Malformed results: row_count is not the number of rows"
NO_ROWS = "Malformed results: data must be a list of rows"


@pytest.mark.parametrize(
    ("results", "told"),
    [
        (good([[1]], ["n"]), (True, True, 1, [])),
        ({"data": [(1, 2)], "columns": ("a", "b")}, (True, True, 1, [])),
        (good([], ["n"]), (True, False, 0, [NONE])),
        ({"success": False, "data": [], "error": "x"}, (False, False, 0, [NONE, "Execution error: x"])),
        ({"success": False, "data": [[1]], "error": None}, (False, True, 1, ["Execution error: None"])),
        (None, (False, False, 0, [NONE, "No results to check: got NoneType; run execute_sql first"])),
        ({}, (False, False, 0, [NONE, f"{NO_ROWS}, got NoneType"])),
        ({"data": "abc"}, (False, False, 0, [NONE, f"{NO_ROWS}, got str"])),
        ({"data": [[1]]}, (True, True, 1, [])),
        (good([{"a": 1}], ["a", "a"]), (True, True, 1, [])),
        (good([[1]], ["n"], row_count=2), (False, True, 1, [f"{COUNTED}, 1"])),
        (good([[1], 3], ["n"]), (False, True, 2, ["Malformed results: each row must be a list"])),
    ],
)
def test_results_are_checked_and_nothing_is_raised(results: Any, told: tuple[Any, ...]) -> None:
    assert validate_results(results) == dict(
        zip(("is_valid", "has_results", "row_count", "issues"), told, strict=True)
    )


def test_a_model_reads_a_compact_table() -> None:
    rows = [["Oslo", 1.5, None], ["a|b\nc\t\x07", b"\0" * 12, True], ["x" * 101, b"\0", 3]]
    assert table_text(good(rows, ["na|me", "v", "w"])) == (
        "na\\|me | v | w\n"
        "Oslo | 1.5 | NULL\n"
        "a\\|b\\nc\\t\\x07 | <blob, 12 bytes> | True\n" + "x" * 97 + "... | <blob, 1 byte> | 3"
    )


@pytest.mark.parametrize(
    ("width", "last"), [(1_007, "x" * 98), (1_008, "(49 of 50 rows; ask for less, or aggregate)")]
)
def test_rows_that_just_fit_are_shown(width: int, last: str) -> None:
    def row(width: int) -> list[str]:
        """Ten cells, whose line has that many characters."""
        return ["x" * ((width - 9 * len(" | ") + place) // 10) for place in range(10)]

    told = table_text(good([*[row(994)] * 49, row(width)], ["n"] * 10))
    assert told.splitlines()[-1].split(" | ")[-1] == last


def test_how_many_rows_there_are_is_told_honestly() -> None:
    assert table_text(good([], ["n"])) == "n\n0 rows"
    assert table_text(good([[1]] * 50, ["n"])) == "\n".join(["n", *["1"] * 50])
    many = table_text(good([[1]] * 1000, ["n"])).splitlines()
    assert many == ["n", *["1"] * 50, "(50 of 1,000 rows; ask for less, or aggregate)"]
    cut = table_text(good([[1]] * 1000, ["n"], truncated=True)).splitlines()
    assert cut[-1] == "(50 of more than 1,000 rows; ask for less, or aggregate)"


MOST = 50_000


def test_the_result_of_a_tool_is_bounded_whatever_is_asked(tmp_path: Path) -> None:
    with SqlDatabase(make(tmp_path / "t.db", "CREATE TABLE t (a TEXT)"), timeout=60) as database:
        toolbox = Toolbox(database.tools())
        columns = ", ".join(f"'{'x' * 40}' AS \"{'n' * 90}{number}\"" for number in range(600))
        result = toolbox.call("execute_sql", {"sql": f"SELECT {columns} FROM (VALUES (1), (2), (3))"})
        assert result.success
        assert result.value["row_count"] == 3
        assert len(result.message) <= MOST
        for sql in (f"SELECT {'n' * 90_000} FROM t", f"SELECT '{'x' * 99_000}", f'SELECT 1 "{"n" * 90_000}"'):
            assert len(toolbox.call("execute_sql", {"sql": sql}).message) <= MOST


def column(name: str, *samples: Any) -> dict[str, Any]:
    return {"name": name, "type": "TEXT", "not_null": False, "primary": 0, "samples": list(samples)}


def table(name: str, *columns: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "kind": "table", "columns": list(columns), "foreign_keys": [], "rows": 3}


def told_of(*tables: dict[str, Any]) -> str:
    text = schema_text(tables, "sqlite")
    assert len(text) <= MOST
    return text


def test_a_schema_that_is_too_long_is_shown_with_fewer_values_first() -> None:
    values = ["a" * 30, "b" * 30, "c" * 30]
    columns = [column(f"c{number}", *values) for number in range(100)]
    one = told_of(*[table(f"t{number}", *columns) for number in range(8)]).split("\n")
    assert one[:5] == [
        "SQLite, 8 tables; too long for one message, it is shown with one value of each column",
        "",
        "t0, 3 rows",
        f"  c0 TEXT: '{'a' * 30}'",
        f"  c1 TEXT: '{'a' * 30}'",
    ]
    none = told_of(*[table(f"t{number}", *columns) for number in range(20)]).split("\n")
    assert none[:5] == [
        "SQLite, 20 tables; too long for one message, it is shown with no values",
        "",
        "t0, 3 rows",
        "  c0 TEXT",
        "  c1 TEXT",
    ]
    assert [one.count("  c99 TEXT: " + repr("a" * 30)), none.count("  c99 TEXT")] == [8, 20]


def test_of_tables_that_are_too_many_or_too_wide_the_first_columns_are_shown() -> None:
    wide = [column(f"c{number}", "x") for number in range(10_000)]
    lines = told_of(table("wide", *wide), table("slim", column("a"))).split("\n")
    part = "too long for one message, it is shown with at most 100 columns of a table and no values"
    assert lines == [
        f"SQLite, 2 tables; {part}",
        "",
        "wide, 3 rows",
        *[f"  c{number} TEXT" for number in range(100)],
        "  (and 9,900 more)",
        "",
        "slim, 3 rows",
        "  a TEXT",
        "",
    ]
    lines = told_of(*[table(f"table{number}", column("a")) for number in range(4_000)]).split("\n")
    assert (lines[0], lines[-2]) == ("SQLite, 4000 tables", "(and more tables, too many for one message)")


def test_a_line_of_any_length_is_cut() -> None:
    lines = told_of(table("x" * 100_000, column("y" * 100_000))).split("\n")
    assert lines[2:] == ["x" * 1_997 + "...", "  " + "y" * 1_995 + "...", ""]


@pytest.mark.slow
@pytest.mark.parametrize("value", ["MAP {}", "[]", "{'a': NULL}", "[[]]"])
def test_nested_values_of_duckdb_cost_the_caller_a_bounded_memory(tmp_path: Path, value: str) -> None:
    path = tmp_path / "empty.duckdb"
    duckdb.connect(str(path)).close()
    with SqlDatabase(path, timeout=60) as database:
        database.execute("SELECT 1")
        tracemalloc.start()
        try:
            sql = f"SELECT list_transform(range(7000), lambda x: {value}) FROM range(500)"
            answer = database.execute(sql)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (answer["success"], answer["truncated"]) == (True, True)
    assert peak < 120_000_000

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
from plan_findings import stored_values, with_outcomes
from readonly_files import make
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase
from planning.agent.sql.schema import ExactName, schema_text, table_text, validate_results
from planning.tools import Toolbox


def test_the_schema_of_a_shop(shop: SqlDatabase, snapshot: SnapshotAssertion) -> None:
    assert shop.get_schema().replace(sqlite3.sqlite_version, "VERSION") == snapshot


def test_rows_are_counted_up_to_a_million(snapshot: SnapshotAssertion) -> None:
    counts = None, 0, 1, 1_000_000, 1_000_001
    tables = [table(f"t{rows}", column("id")) | {"rows": rows} for rows in counts]
    names = "ok_1", "_", "Order", "user", "order", "a b", "1a", "é", "a\n"
    tables.append(table("of_postgresql", *(column(ExactName(name)) for name in names)))
    assert schema_text(tables, "sqlite") == snapshot


def good(data: list[Any], columns: list[str], **more: Any) -> dict[str, Any]:
    return rows_of(*data, columns=columns) | more


def test_results_are_checked_and_nothing_is_raised(snapshot: SnapshotAssertion) -> None:
    assert with_outcomes(stored_values(snapshot), validate_results) == snapshot


def test_a_model_reads_a_compact_table_and_how_many_rows_there_are(snapshot: SnapshotAssertion) -> None:
    odd = [["Oslo", 1.5, None], ["a|b\nc\t\x07", b"\0" * 12, True], ["x" * 101, b"\0", 3]]
    some, many = [[1]] * 50, [[1]] * 1000
    answers = [good(odd, ["na|me", "v", "w"]), *(good(each, ["n"]) for each in ([], some, many))]
    answers.append(good(many, ["n"], truncated=True))
    assert "\n\n".join(map(table_text, answers)) + "\n" == snapshot


@pytest.mark.parametrize(
    ("width", "last"), [(1_007, "x" * 98), (1_008, "(49 of 50 rows; ask for less, or aggregate)")]
)
def test_rows_that_just_fit_are_shown(width: int, last: str) -> None:
    def row(width: int) -> list[str]:
        """Ten cells, whose line has that many characters."""
        return ["x" * ((width - 9 * len(" | ") + place) // 10) for place in range(10)]

    told = table_text(good([*[row(994)] * 49, row(width)], ["n"] * 10))
    assert told.splitlines()[-1].split(" | ")[-1] == last


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
        assert len(database.execute(f"SELECT a FROM t WHERE '{'x' * 5_000}' = NULL")["error"]) == 4_000


def column(name: str, *samples: Any) -> dict[str, Any]:
    return {"name": name, "type": "TEXT", "not_null": False, "primary": 0, "samples": list(samples)}


def table(name: str, *columns: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "kind": "table", "columns": list(columns), "foreign_keys": [], "rows": 3}


def told_of(*tables: dict[str, Any]) -> str:
    text = schema_text(tables, "sqlite")
    assert len(text) <= MOST
    return text


def test_a_long_schema_loses_values_first_and_then_columns(snapshot: SnapshotAssertion) -> None:
    columns = [column(f"c{number}", "a" * 30, "b" * 30, "c" * 30) for number in range(100)]
    wide = [column(f"c{number}", "x") for number in range(10_000)]
    schemas = (
        [table(f"t{number}", *columns) for number in range(8)],
        [table(f"t{number}", *columns) for number in range(20)],
        [table("wide", *wide), table("slim", column("a"))],
        [table(f"table{number}", column("a")) for number in range(4_000)],
    )
    shown = list[str]()
    for tables in schemas:
        lines = told_of(*tables).split("\n")
        shown += [*lines[:5], f"({len(lines) - 10} lines)", *lines[-5:]]
    assert "\n".join(shown) == snapshot


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

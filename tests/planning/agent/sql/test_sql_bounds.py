"""What a model reads of a database has at most 50,000 characters, and what Python gets a bounded size."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from readonly_files import make

from planning.agent import SqlDatabase
from planning.agent.sql.schema import schema_text
from planning.tools import Toolbox

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


# The schema


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
    lines = told_of(*[table(f"table{number}", column("a")) for number in range(20_000)]).split("\n")
    assert (lines[0], lines[-2]) == ("SQLite, 20000 tables", "(and more tables, too many for one message)")


def test_a_line_of_any_length_is_cut() -> None:
    lines = told_of(table("x" * 100_000, column("y" * 100_000))).split("\n")
    assert lines[2:] == ["x" * 1_997 + "...", "  " + "y" * 1_995 + "...", ""]


# What is unpacked


@pytest.mark.slow
@pytest.mark.parametrize("value", ["MAP {}", "[]", "{'a': NULL}", "[[]]"])
def test_nested_values_of_duckdb_cost_the_caller_a_bounded_memory(tmp_path: Path, value: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "empty.duckdb"
    duckdb.connect(str(path)).close()
    with SqlDatabase(path, timeout=60) as database:
        database.execute("SELECT 1")
        tracemalloc.start()
        try:
            answer = database.execute(
                f"SELECT list_transform(range(7000), lambda x: {value}) FROM range(500)"
            )
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (answer["success"], answer["truncated"]) == (True, True)
    assert peak < 120_000_000

"""Whether results are any good, and how a model reads them."""

from __future__ import annotations

from typing import Any

import pytest

from planning.agent import SqlDatabase
from planning.agent.sql.schema import table_text, validate_results
from planning.tools import Toolbox


def good(data: list[Any], columns: list[str], **more: Any) -> dict[str, Any]:
    return {
        "success": True,
        "data": data,
        "columns": columns,
        "row_count": len(data),
        "truncated": False,
    } | more


NONE = "No results returned"


@pytest.mark.parametrize(
    ("results", "told"),
    [
        (good([[1]], ["n"]), (True, True, 1, [])),
        ({"data": [(1, 2)], "columns": ("a", "b")}, (True, True, 1, [])),
        (good([], ["n"]), (True, False, 0, [NONE])),
        (
            {"success": False, "data": [], "error": "no such table: x"},
            (False, False, 0, [NONE, "Execution error: no such table: x"]),
        ),
        ({"success": False, "data": [[1]], "error": None}, (False, True, 1, ["Execution error: None"])),
        (None, (False, False, 0, [NONE, "No results to check: got NoneType; run execute_sql first"])),
        ("rows", (False, False, 0, [NONE, "No results to check: got str; run execute_sql first"])),
        ({}, (False, False, 0, [NONE, "Malformed results: data must be a list of rows, got NoneType"])),
        (
            {"data": "abc"},
            (False, False, 0, [NONE, "Malformed results: data must be a list of rows, got str"]),
        ),
        ({"data": [[1]]}, (True, True, 1, [])),
        (good([{"a": 1}], ["a", "a"]), (True, True, 1, [])),
        (
            good([[1]], ["n"], row_count=2),
            (False, True, 1, ["Malformed results: row_count is not the number of rows, 1"]),
        ),
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


def test_of_wide_rows_a_model_sees_as_many_as_there_is_room_for() -> None:
    names, line = [f"c{number}" for number in range(100)], " | ".join(["x" * 100] * 100)
    told = table_text(good([["x" * 100] * 100] * 30, names))
    assert told == "\n".join([" | ".join(names), *[line] * 4, "(4 of 30 rows; ask for less, or aggregate)"])
    assert len(told) <= 50_000


def test_how_many_rows_there_are_is_told_honestly() -> None:
    assert table_text(good([], ["n"])) == "n\n0 rows"
    assert table_text(good([[1]] * 50, ["n"])) == "\n".join(["n", *["1"] * 50])
    many = table_text(good([[1]] * 1000, ["n"])).splitlines()
    assert many == ["n", *["1"] * 50, "(50 of 1,000 rows; ask for less, or aggregate)"]
    cut = table_text(good([[1]] * 1000, ["n"], truncated=True)).splitlines()
    assert cut[-1] == "(50 of more than 1,000 rows; ask for less, or aggregate)"
    assert table_text(good([[1]] * 2, ["n"], truncated=True)).splitlines()[-1] == (
        "(2 of more than 2 rows; ask for less, or aggregate)"
    )


def test_the_tools_give_what_the_methods_give(shop: SqlDatabase) -> None:
    get_schema, execute_sql, validate = shop.tools()
    assert [each.name for each in shop.tools()] == ["get_schema", "execute_sql", "validate_results"]
    assert get_schema.execute(query="x")["result"] == get_schema.execute()["result"] == shop.get_schema()
    given = execute_sql.execute(sql="SELECT id FROM cities ORDER BY id")
    assert (given["success"], given["tool"], given["error"]) == (True, "execute_sql", None)
    assert given["result"]["data"] == [[1], [2], [7]]
    told = validate.execute(query="q", sql="s", results=given["result"])
    assert told["result"] == {"is_valid": True, "has_results": True, "row_count": 3, "issues": []}
    assert validate.execute(results=None)["result"]["is_valid"] is False


def test_a_failing_query_is_a_failing_call(shop: SqlDatabase) -> None:
    _, execute_sql, _ = shop.tools()
    given = execute_sql.execute(sql="SELECT * FROM custmers")
    assert (given["success"], given["error"]) == (False, "no such table: custmers; did you mean customers?")
    assert given["result"]["code"] == "parameter"
    result = Toolbox(shop.tools()).call("execute_sql", {"sql": "SELECT * FROM custmers"})
    assert (str(result.code), result.message, result.user_message) == (
        "parameter",
        "no such table: custmers; did you mean customers?",
        "I could not write a working query for that.",
    )

"""Reflection in the graph: of two statements the one whose result holds more is the answer."""

from __future__ import annotations

from typing import Any

import pytest
from agent_samples import COUNT, FINE, QUESTION, ShopTools, called, failing, graph_of, in_turn, rows

EMPTY = (
    "it ran and returned no rows; compare its conditions and joins with the values in the schema, also their"
    " upper and lower case"
)
NULLS = "it ran, and is NULL in every row of total; compare its joins with the schema"
REFUSED = {"is_valid": False, "issues": ["a column is missing"]}
HALF = rows([1, None], [2, None], columns=["id", "total"])
NOTHING = "No rows: nothing in the database matches."


def kept(reason: str) -> dict[str, Any]:
    return {"verdict": "kept", "reasons": [reason], "kept": None}


@pytest.mark.parametrize(
    ("shop", "statements", "final", "errors"),
    [
        (
            {"executed": in_turn(rows(), rows([3]))},
            ["SELECT 1", "SELECT 2"],
            {
                "success": True,
                "sql_query": "SELECT 2",
                "answer": "n: 3",
                "reflection": {"verdict": "fine", "reasons": []},
            },
            [EMPTY],
        ),
        (
            {"executed": in_turn(rows(), failing("no such column: nope"))},
            ["SELECT 1", "SELECT nope"],
            {
                "success": True,
                "error": None,
                "sql_query": "SELECT 1",
                "execution_result": rows(),
                "answer": NOTHING,
                "reflection": kept(EMPTY),
            },
            [
                EMPTY,
                "no such column: nope",
                *["the same SQL as before, which failed: no such column: nope"] * 2,
            ],
        ),
        (
            {"executed": in_turn(HALF, rows())},
            ["SELECT 1", "SELECT 2"],
            {
                "success": True,
                "sql_query": "SELECT 1",
                "execution_result": HALF,
                "answer": "2 rows.",
                "reflection": kept(NULLS),
            },
            [NULLS],
        ),
        (
            {"executed": in_turn(rows(), "text"), "verdict": in_turn(FINE, FINE)},
            ["SELECT 1", "SELECT 2"],
            {"success": True, "iteration": 9, "execution_result": rows(), "reflection": kept(EMPTY)},
            [EMPTY],
        ),
        (
            {"executed": in_turn(rows(), "text"), "verdict": in_turn(REFUSED, FINE)},
            ["SELECT 1", "SELECT 2"],
            {"success": False, "iteration": 9, "execution_result": "text"},
            ["a column is missing"],
        ),
        (
            {"executed": rows()},
            [COUNT],
            {"success": True, "sql_query": COUNT, "answer": NOTHING, "reflection": kept(EMPTY)},
            [EMPTY],
        ),
    ],
    ids=["better", "fails", "finds less", "no result", "refused, then no result", "stood by"],
)
def test_of_two_statements_the_one_whose_result_holds_more_is_the_answer(
    shop: dict[str, Any], statements: list[str], final: dict[str, Any], errors: list[str]
) -> None:
    seen: list[Any] = []

    def write(error: str | None) -> str:
        seen.append(error)
        return statements[min(len(seen), len(statements)) - 1]

    given: dict[str, Any] = {
        name: in_turn(*turns) if isinstance(turns, type(in_turn())) else turns for name, turns in shop.items()
    }
    told = graph_of(ShopTools(**given), write).invoke({"resolved_query": QUESTION})
    assert {key: told[key] for key in final} == final
    assert seen[:2] == [None, errors[0]]
    assert [attempt["error"] for attempt in told["attempts"]][: len(errors)] == errors
    assert all(succeeded for name, succeeded in called(told) if name != "execute_sql")


def test_a_judge_that_is_never_content_is_bounded() -> None:
    asked: list[int] = []

    def write() -> str:
        asked.append(1)
        return f"SELECT {len(asked)}"

    final = graph_of(None, write, reflect=lambda: "wrong", max_iterations=12).invoke(
        {"resolved_query": QUESTION}
    )
    assert (len(asked), final["iteration"], final["success"]) == (3, 13, True)
    assert final["reflection"] == {"verdict": "doubtful", "reasons": ["wrong"]}


def test_without_reflection_an_empty_result_is_the_answer() -> None:
    shop = ShopTools(executed=rows())
    final = graph_of(shop, reflect=False).invoke({"resolved_query": QUESTION})
    assert (final["success"], final["reflection"], shop.statements) == (True, None, [COUNT])

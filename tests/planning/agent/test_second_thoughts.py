"""Reflection in the graph: of two statements the one whose result holds more is the answer."""

from __future__ import annotations

from typing import Any

import pytest
from agent_samples import COUNT, FINE, QUESTION, ShopTools, called, failing, in_turn, rows

from planning.agent import build_text_to_sql_graph

EMPTY = (
    "it ran and returned no rows; compare its conditions and joins with the values in the schema, also their"
    " upper and lower case"
)
REFUSED = {"is_valid": False, "issues": ["a column is missing"]}


def test_a_second_statement_that_is_better_is_the_answer() -> None:
    shop = ShopTools(executed=in_turn(rows(), rows([3])))
    seen: list[Any] = []

    def write(error: str | None) -> str:
        seen.append(error)
        return f"SELECT {len(seen)}"

    final = build_text_to_sql_graph(shop.tools(), write).invoke({"resolved_query": QUESTION})
    assert seen == [None, EMPTY]
    assert (final["success"], final["sql_query"], final["answer"]) == (True, "SELECT 2", "n: 3")
    assert final["reflection"] == {"verdict": "fine", "reasons": []}
    assert final["attempts"] == [{"sql": "SELECT 1", "error": EMPTY}]


def test_a_second_statement_that_fails_leaves_the_first_ones_result() -> None:
    shop = ShopTools(executed=in_turn(rows(), failing("no such column: nope")))
    statements = iter(["SELECT 1", *["SELECT nope"] * 9])
    final = build_text_to_sql_graph(shop.tools(), lambda: next(statements)).invoke(
        {"resolved_query": QUESTION}
    )
    assert (final["success"], final["error"], final["sql_query"]) == (True, None, "SELECT 1")
    assert (final["execution_result"], final["answer"]) == (rows(), "No rows: nothing in the database fits.")
    assert final["reflection"] == {"verdict": "kept", "reasons": [EMPTY], "kept": None}
    assert [attempt["sql"] for attempt in final["attempts"]] == ["SELECT 1", *["SELECT nope"] * 3]


def test_a_second_statement_that_finds_less_leaves_the_first_ones_result() -> None:
    half = rows([1, None], [2, None], columns=["id", "total"])
    shop = ShopTools(executed=in_turn(half, rows()))
    statements = iter(["SELECT 1", "SELECT 2"])
    final = build_text_to_sql_graph(shop.tools(), lambda: next(statements)).invoke(
        {"resolved_query": QUESTION}
    )
    assert (final["success"], final["sql_query"], final["execution_result"]) == (True, "SELECT 1", half)
    assert final["answer"] == "2 rows."


@pytest.mark.parametrize("verdict", [FINE, REFUSED])
def test_a_second_result_that_is_none_ends_it(verdict: Any) -> None:
    shop = ShopTools(executed=in_turn(rows(), "text"), verdict=in_turn(verdict, FINE))
    statements = iter(["SELECT 1", "SELECT 2"])
    final = build_text_to_sql_graph(shop.tools(), lambda: next(statements)).invoke(
        {"resolved_query": QUESTION}
    )
    assert (final["success"], final["iteration"]) == (verdict is FINE, 9)
    assert final["execution_result"] == (rows() if verdict is FINE else "text")


def test_a_generator_that_stands_by_its_statement_is_believed() -> None:
    shop = ShopTools(executed=rows())
    final = build_text_to_sql_graph(shop.tools(), lambda: COUNT).invoke({"resolved_query": QUESTION})
    assert (final["success"], final["sql_query"]) == (True, COUNT)
    assert final["answer"] == "No rows: nothing in the database fits."
    assert shop.statements == [COUNT]
    assert called(final) == [("get_schema", True), ("execute_sql", True), ("validate_results", True)]
    assert final["reflection"] == {"verdict": "kept", "reasons": [EMPTY], "kept": None}


def test_a_judge_that_is_never_content_is_bounded() -> None:
    asked: list[int] = []
    shop = ShopTools()

    def write() -> str:
        asked.append(1)
        return f"SELECT {len(asked)}"

    graph = build_text_to_sql_graph(shop.tools(), write, reflect=lambda: "wrong", max_iterations=12)
    final = graph.invoke({"resolved_query": QUESTION})
    assert (len(asked), final["iteration"], final["success"]) == (3, 13, True)
    assert final["reflection"] == {"verdict": "doubtful", "reasons": ["wrong"]}


def test_without_reflection_an_empty_result_is_the_answer() -> None:
    shop = ShopTools(executed=rows())
    graph = build_text_to_sql_graph(shop.tools(), lambda: COUNT, reflect=False)
    final = graph.invoke({"resolved_query": QUESTION})
    assert (final["success"], final["reflection"], shop.statements) == (True, None, [COUNT])

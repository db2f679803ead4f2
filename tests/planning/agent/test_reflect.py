"""The review of results: when another statement is asked for, and which results are the answer then."""

from __future__ import annotations

from typing import Any

import pytest
from agent_samples import COUNT, FINE, QUESTION, ShopTools, called, failing, graph_of, in_turn, rows

from planning.agent.answer import is_doubtful, reviewing

COMPARE = "; compare its conditions and joins with the values in the schema, also their upper and lower case"
NO_ROWS = "it ran and returned no rows"
NULL = "it ran and returned nothing but NULL"
ZERO = "it ran and returned nothing but 0"
REFUSED = {"is_valid": False, "has_results": True, "row_count": 1, "issues": ["a column is missing"]}
VALID: list[Any] = [{}, FINE, True, []]
NOTHING = "No rows: nothing in the database matches."


def state(result: Any, **more: Any) -> dict[str, Any]:
    """A state whose statement ran."""
    return {
        "resolved_query": QUESTION,
        "sql_query": COUNT,
        "execution_result": result,
        "validation_result": FINE,
        "iteration": 5,
        "max_iterations": 12,
    } | more


def again(reason: str, result: Any, verdict: Any = FINE) -> dict[str, Any]:
    """The update that asks for another statement."""
    kept = {"sql_query": COUNT, "execution_result": result, "validation_result": verdict}
    return {
        "reflection": {"reason": reason, "kept": None if verdict == REFUSED else kept},
        "attempts": [{"sql": COUNT, "error": reason}],
        "sql_query": None,
        "execution_result": None,
        "validation_result": None,
        "is_complete": False,
    }


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (rows(), NO_ROWS),
        ({}, NO_ROWS),
        (rows([None]), NULL),
        (rows([None, None], [None, None], columns=["a", "b"]), NULL),
        ({"data": [{"n": None}]}, NULL),
        (rows([0]), ZERO),
        (rows([0.0, None], columns=["n", "s"]), ZERO),
        ({"data": [{"n": 0}]}, ZERO),
        (rows([3]), None),
        (rows([0], [0]), None),
        (rows([False]), None),
        (rows(["0"]), None),
        (rows([1, None], [2, None], columns=["a", "b"]), None),
    ],
)
def test_a_result_without_values_is_reviewed(result: Any, problem: str | None) -> None:
    assert is_doubtful(state(result)) is (problem is not None)
    if problem == ZERO:  # as good an answer as any other number, unless a value is missing
        assert reviewing(None).run(state(result)) == {"reflection": {"reason": None, "kept": None}}
    elif problem is not None:
        assert reviewing(None).run(state(result)) == again(problem + COMPARE, result)
    if problem is not None:
        missing = reviewing(lambda sql: [f"city has no 'x' in {sql}", "b has no 'y'"]).run(state(result))
        assert missing == again(f"{problem}: city has no 'x' in {COUNT}; b has no 'y'", result)


@pytest.mark.parametrize(
    ("more", "is_reviewed"),
    [
        ({"iteration": 9}, True),
        ({"iteration": 10}, False),
        ({"max_iterations": None}, True),
        ({"validation_result": None}, False),
        ({"execution_result": "text"}, False),
        ({"reflection": {"reason": None, "kept": None}}, False),
        ({"validation_result": REFUSED, "execution_result": rows([3])}, True),
        ({"validation_result": False, "execution_result": rows([3])}, True),
        *(({"validation_result": verdict, "execution_result": rows([3])}, False) for verdict in VALID),
    ],
)
def test_refused_or_empty_results_are_reviewed_once_if_there_is_room_for_another_statement(
    more: dict[str, Any], is_reviewed: bool
) -> None:
    assert is_doubtful(state(rows(), **more)) is is_reviewed


def test_refused_results_are_not_kept_and_a_search_that_fails_changes_nothing() -> None:
    refused = state(rows([3]), validation_result=REFUSED)
    assert reviewing(None).run(refused) == again("a column is missing", rows([3]), REFUSED)

    def fails(sql: str) -> list[str]:
        raise ValueError("secret")

    assert reviewing(fails).run(state(rows())) == again(NO_ROWS + COMPARE, rows())


# In the graph


@pytest.mark.parametrize(
    ("shop", "final", "error"),
    [
        (
            {"executed": in_turn(rows(), rows([3]))},
            {"success": True, "sql_query": "SELECT 2", "answer": "n: 3"},
            NO_ROWS + COMPARE,
        ),
        (
            {"executed": in_turn(rows(), failing("no such column: nope"))},
            {"success": True, "error": None, "sql_query": "SELECT 1", "answer": NOTHING},
            NO_ROWS + COMPARE,
        ),
        (
            {"executed": in_turn(rows(), "text")},
            {"success": True, "sql_query": "SELECT 1", "execution_result": rows()},
            NO_ROWS + COMPARE,
        ),
        (
            {"executed": in_turn(rows(), rows([4])), "verdict": in_turn(FINE, REFUSED)},
            {"success": True, "sql_query": "SELECT 1", "execution_result": rows()},
            NO_ROWS + COMPARE,
        ),
        (
            {"executed": in_turn(rows(), "text"), "verdict": in_turn(REFUSED, FINE)},
            {"success": False, "execution_result": "text"},
            "a column is missing",
        ),
        (
            {"executed": rows()},
            {"success": True, "sql_query": "SELECT 2", "answer": NOTHING},
            NO_ROWS + COMPARE,
        ),
    ],
    ids=["better", "fails", "no result", "refused", "refused, then no result", "nothing again"],
)
def test_the_second_statement_counts_unless_it_comes_to_nothing(
    shop: dict[str, Any], final: dict[str, Any], error: str
) -> None:
    seen: list[Any] = []

    def write(error: str | None) -> str:
        seen.append(error)
        return f"SELECT {min(len(seen), 2)}"

    given: Any = {key: in_turn(*each) if isinstance(each, list) else each for key, each in shop.items()}
    outcome = graph_of(ShopTools(**given), write).invoke({"resolved_query": QUESTION})
    assert {key: outcome[key] for key in final} == final
    assert seen[:2] == [None, error]
    assert all(succeeded for name, succeeded in called(outcome) if name != "execute_sql")


def test_without_reflection_an_empty_result_is_the_answer() -> None:
    shop = ShopTools(executed=rows())
    final = graph_of(shop, reflect=False).invoke({"resolved_query": QUESTION})
    assert (final["success"], final["reflection"], shop.statements) == (True, None, [COUNT])

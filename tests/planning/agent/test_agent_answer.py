"""The end of a question: it was answered only where a statement ran and its results were not refused."""

from __future__ import annotations

from typing import Any

import pytest
from agent_samples import COUNT, FINE, QUESTION, ShopTools, failing, graph_of, rows

from planning.agent.answer import complete, is_doubtful, reviewing

DONE = {"is_complete": True, "next_action": "complete"}


def ended(result: Any, **more: Any) -> dict[str, Any]:
    state = {"sql_query": COUNT, "execution_result": result, "validation_result": FINE, "iteration": 5} | more
    return dict(complete(state))


def success(answer: str) -> dict[str, Any]:
    nothing = {"error": None, "user_message": None, "needs_user_input": False, "input_request": None}
    return {**DONE, "success": True, "answer": answer, **nothing}


def failure(error: str, message: str | None = None) -> dict[str, Any]:
    answer = f"The question could not be answered: {error if message is None else message}"
    return {**DONE, "success": False, "error": error, "answer": answer}


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (rows([3]), "n: 3"),
        (rows([None]), "n: NULL"),
        (rows(["Ada"], columns=["name"]), "name: Ada"),
        (rows(["x" * 201], columns=["name"]), f"name: {'x' * 197}..."),
        (rows([b"\x00"], columns=["blob"]), "blob: b'\\x00'"),
        (rows(), "No rows: nothing in the database matches."),
        (rows([1, 2], columns=["a", "b"]), "1 row."),
        (rows([1], [2]), "2 rows."),
        (rows(*[[1]] * 1_200), "1,200 rows."),
        (rows(*[[1]] * 1_000) | {"truncated": True}, "The first 1,000 rows; there are more."),
        (rows([3], columns=[]), "1 row."),
        ({"data": [{"n": 3}], "columns": ["n"]}, "n: 3"),
        ({"data": [3], "columns": ["n"]}, "n: 3"),
        ({"data": None}, "No rows: nothing in the database matches."),
        ({}, "No rows: nothing in the database matches."),
    ],
)
def test_results_are_summed_up_and_clear_an_old_error(result: Any, answer: str) -> None:
    assert ended(result, error="Tool execute_sql: no such column", user_message="no") == success(answer)


REFUSED = "its results were refused"
NO_RESULT = "the statement has no result"
NO_LIST = "execute_sql returned no list of rows under data"
NO_TIME = "no answer within {} decisions; allow more with max_iterations"


@pytest.mark.parametrize(
    ("result", "more", "error"),
    [
        (rows([3]), {"validation_result": {"is_valid": False, "issues": ["a", "b"]}}, "a; b"),
        (rows([3]), {"validation_result": {"is_valid": None, "issues": "too few"}}, "too few"),
        (rows([3]), {"validation_result": {"is_valid": False, "issues": [5]}}, "5"),
        (rows([3]), {"validation_result": {"is_valid": False}}, REFUSED),
        (rows([3]), {"validation_result": False}, REFUSED),
        ({"rows": [[3]]}, {}, NO_LIST),
        ({"data": {"n": [3]}}, {}, NO_LIST),
        (failing("no such table: nope"), {}, "no such table: nope"),
        ({"success": False}, {}, NO_RESULT),
        ("text", {}, NO_RESULT),
        ([[3]], {}, NO_RESULT),
        ([[3]], {"error": "Tool x: before"}, "Tool x: before"),
        (None, {"error": "Tool get_schema: it is gone"}, "Tool get_schema: it is gone"),
        (None, {"max_iterations": 1}, NO_TIME.format(1)),
        (None, {}, NO_TIME.format(12)),
        (None, {"error": "Tool x: gone", "reflection": {"reason": "r", "kept": None}}, "Tool x: gone"),
    ],
)
def test_without_valid_results_the_error_says_why(result: Any, more: dict[str, Any], error: str) -> None:
    assert ended(result, **more) == failure(error)


def test_the_user_reads_the_error_in_words_for_a_user() -> None:
    final = ended(None, error="Tool execute_sql: no such column", user_message="It did not work.")
    assert final == failure("Tool execute_sql: no such column", "It did not work.")


@pytest.mark.parametrize("more", [{}, {"error": "Tool execute_sql: no such column", "user_message": "no"}])
def test_if_only_the_user_can_help_the_answer_is_the_question(more: dict[str, Any]) -> None:
    final = ended(None, needs_user_input=True, input_request="Which year?", **more)
    assert final == {**DONE, "success": False, "answer": "Which year?", "error": None, "user_message": None}


def test_an_answer_is_short_whatever_is_in_it() -> None:
    for more in ({"error": "e" * 100_000}, {"needs_user_input": True, "input_request": "Which " * 10_000}):
        assert (len(ended(None, **more)["answer"]), ended(None, **more)["answer"][-3:]) == (10_000, "...")


# A result that was put aside

KEPT = {"sql_query": COUNT, "execution_result": rows(), "validation_result": FINE}


@pytest.mark.parametrize(
    "more",
    [
        {"error": "Tool execute_sql: no such column", "user_message": "no such column"},
        {"needs_user_input": True, "input_request": "Which year?"},
        {"execution_result": "text"},
        {"execution_result": rows([3]), "validation_result": False},
        {},
    ],
)
def test_if_a_later_attempt_failed_the_earlier_result_is_the_answer(more: dict[str, Any]) -> None:
    state = {
        "sql_query": None,
        "validation_result": None,
        "reflection": {"reason": "r", "kept": KEPT},
        **more,
    }
    final = ended(state.pop("execution_result", None), **state)
    assert final == {**KEPT, **success("No rows: nothing in the database matches.")}


def test_a_result_that_cannot_be_read_is_no_answer_also_if_it_was_put_aside() -> None:
    kept = {**KEPT, "execution_result": {"rows": [[3]]}}
    assert ended(None, reflection={"reason": "r", "kept": kept}) == failure(NO_TIME.format(12))


# The review of results


COMPARE = "; compare its conditions and joins with the values in the schema, also their upper and lower case"
NO_ROWS = "it ran and returned no rows"
NULL = "it ran and returned nothing but NULL"
ZERO = "it ran and returned nothing but 0"
REFUSING = {"is_valid": False, "has_results": True, "row_count": 1, "issues": ["a column is missing"]}
VALID: list[Any] = [{}, FINE, True, []]


def state(result: Any, **more: Any) -> dict[str, Any]:
    return {
        "resolved_query": QUESTION,
        "sql_query": COUNT,
        "execution_result": result,
        "validation_result": FINE,
        "iteration": 5,
        "max_iterations": 12,
    } | more


def again(reason: str, result: Any, verdict: Any = FINE) -> dict[str, Any]:
    kept = {"sql_query": COUNT, "execution_result": result, "validation_result": verdict}
    return {
        "reflection": {"reason": reason, "kept": None if verdict == REFUSING else kept},
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
        ({"max_iterations": 8}, True),
        ({"max_iterations": 7}, False),
        ({"validation_result": None}, False),
        ({"execution_result": "text"}, False),
        ({"reflection": {"reason": None, "kept": None}}, False),
        ({"validation_result": REFUSING, "execution_result": rows([3])}, True),
        ({"validation_result": False, "execution_result": rows([3])}, True),
        *(({"validation_result": verdict, "execution_result": rows([3])}, False) for verdict in VALID),
    ],
)
def test_refused_or_empty_results_are_reviewed_once_if_there_is_room_for_another_statement(
    more: dict[str, Any], is_reviewed: bool
) -> None:
    assert is_doubtful(state(rows(), **more)) is is_reviewed


def test_refused_results_are_not_kept_and_a_search_that_fails_changes_nothing() -> None:
    refused = state(rows([3]), validation_result=REFUSING)
    assert reviewing(None).run(refused) == again("a column is missing", rows([3]), REFUSING)

    def fails(sql: str) -> list[str]:
        raise ValueError("secret")

    assert reviewing(fails).run(state(rows())) == again(NO_ROWS + COMPARE, rows())


# In the graph


def test_without_reflection_an_empty_result_is_the_answer() -> None:
    shop = ShopTools(executed=rows())
    final = graph_of(shop, reflect=False).invoke({"resolved_query": QUESTION})
    assert (final["success"], final["reflection"], shop.statements) == (True, None, [COUNT])

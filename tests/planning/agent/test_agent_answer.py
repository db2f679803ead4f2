"""The end of a question: it was answered only where a statement ran and its results were not refused."""

from __future__ import annotations

from typing import Any

import pytest
from agent_samples import COUNT, failing, rows

from planning.agent.answer import complete

DONE = {"is_complete": True, "next_action": "complete"}
FINE = {"is_valid": True, "has_results": True, "row_count": 1, "issues": []}


def ended(result: Any, **more: Any) -> dict[str, Any]:
    """The end of a state with this result."""
    state = {"sql_query": COUNT, "execution_result": result, "validation_result": FINE, "iteration": 5} | more
    return dict(complete(state))


def success(answer: str) -> dict[str, Any]:
    """An end with an answer."""
    nothing = {"error": None, "user_message": None, "needs_user_input": False, "input_request": None}
    return {**DONE, "success": True, "answer": answer, **nothing}


def failure(error: str, message: str | None = None) -> dict[str, Any]:
    """An end without one."""
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

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


def failure(error: str, told: str | None = None) -> dict[str, Any]:
    """An end without one."""
    answer = f"The question could not be answered: {error if told is None else told}"
    return {**DONE, "success": False, "error": error, "answer": answer}


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (rows([3]), "n: 3"),
        (rows([None]), "n: NULL"),
        (rows(["Ada"], columns=["name"]), "name: Ada"),
        (rows([""], columns=["name"]), "name: "),
        (rows(["x" * 200], columns=["name"]), f"name: {'x' * 200}"),
        (rows(["x" * 201], columns=["name"]), f"name: {'x' * 200}..."),
        (rows([b"\x00"], columns=["blob"]), "blob: b'\\x00'"),
        (rows(), "No rows: nothing in the database fits."),
        (rows([1, 2], columns=["a", "b"]), "1 row."),
        (rows([1], [2]), "2 rows."),
        (rows(*[[1]] * 1_200), "1,200 rows."),
        (rows(*[[1]] * 1_000) | {"truncated": True}, "The first 1,000 rows; there are more."),
        (rows([1, 2], columns=["a", "b"]) | {"truncated": True}, "The first 1 row; there are more."),
        (rows([3], columns=[]), "1 row."),
        ({"data": [{"n": 3}], "columns": ["n"]}, "n: 3"),
        ({"data": [{"a": 3, "b": 4}], "columns": ["a", "b"]}, "1 row."),
        ({"data": [3], "columns": ["n"]}, "n: 3"),
        ({"data": None}, "No rows: nothing in the database fits."),
        ({"data": 5}, "No rows: nothing in the database fits."),
        ({}, "No rows: nothing in the database fits."),
    ],
)
def test_what_was_found_is_told_in_a_few_words(result: Any, answer: str) -> None:
    assert ended(result) == success(answer)


def test_a_value_that_cannot_be_told_has_the_name_of_its_type() -> None:
    class Odd:
        def __str__(self) -> str:
            raise ValueError

    assert ended(rows([Odd()]))["answer"] == "n: <Odd>"


@pytest.mark.parametrize("result", [{"rows": [[3]]}, {"success": True}, {"columns": ["n"], "row_count": 1}])
def test_rows_under_another_name_are_no_answer(result: Any) -> None:
    assert ended(result) == failure("execute_sql returned no rows under data")


def test_an_answer_is_short_whatever_is_in_it() -> None:
    assert ended(rows([3], columns=["n" * 100_000])) == success(f"{'n' * 200}...: 3")
    told = ended(None, error="e" * 100_000)["answer"]
    assert told == f"The question could not be answered: {'e' * 9_961}..."
    asked = ended(None, needs_user_input=True, input_request="Which " * 10_000)["answer"]
    assert (len(asked), asked[-3:]) == (10_000, "...")


def test_a_success_clears_an_old_error() -> None:
    assert ended(rows([3]), error="Tool execute_sql: no such column", user_message="no") == success("n: 3")


@pytest.mark.parametrize("verdict", [None, FINE, {}, True, "odd", {"is_valid": True, "issues": ["odd"]}])
def test_results_that_nobody_refused_are_an_answer(verdict: Any) -> None:
    assert ended(rows([3]), validation_result=verdict) == success("n: 3")


@pytest.mark.parametrize(
    ("verdict", "error"),
    [
        ({"is_valid": False, "issues": ["too few", "no names"]}, "too few; no names"),
        ({"is_valid": False, "issues": "too few"}, "too few"),
        ({"is_valid": False, "issues": [5]}, "5"),
        ({"is_valid": False}, "its results were refused"),
        ({"is_valid": None, "issues": None}, "its results were refused"),
        ({"is_valid": "no"}, "its results were refused"),
        (False, "its results were refused"),
    ],
)
def test_refused_results_are_no_answer(verdict: Any, error: str) -> None:
    assert ended(rows([3]), validation_result=verdict) == failure(error)


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (failing("no such table: nope"), "no such table: nope"),
        ({"success": False}, "the statement has no result"),
        ({"success": "yes"}, "the statement has no result"),
        ("text", "the statement has no result"),
        ([[3]], "the statement has no result"),
    ],
)
def test_what_is_no_result_of_a_statement_is_no_answer(result: Any, error: str) -> None:
    assert ended(result) == failure(error)
    assert ended(result, error="Tool x: before", user_message="before") == failure("Tool x: before", "before")


def test_without_a_result_the_last_error_is_told() -> None:
    told = ended(None, error="Tool execute_sql: no such column: nope", user_message="no such column: nope")
    assert told == failure("Tool execute_sql: no such column: nope", "no such column: nope")
    assert ended(None, error="Tool get_schema: it is gone") == failure("Tool get_schema: it is gone")


@pytest.mark.parametrize(
    ("iteration", "most", "decisions"),
    [(13, 12, "12 decisions"), (2, 1, "1 decision"), (1, 0, "0 decisions"), (13, None, "13 decisions")],
)
def test_without_a_result_and_an_error_there_was_no_room(
    iteration: int, most: int | None, decisions: str
) -> None:
    error = f"nothing was found out in {decisions}; allow more with max_iterations"
    assert ended(None, iteration=iteration, max_iterations=most) == failure(error)


def test_an_empty_state_comes_to_its_end_too() -> None:
    assert dict(complete({})) == failure(
        "nothing was found out in 0 decisions; allow more with max_iterations"
    )


# The user is asked

ASKS = {
    **DONE,
    "success": False,
    "answer": "Which year?",
    "error": None,
    "user_message": None,
}


def test_where_only_the_user_can_help_the_answer_is_the_question_to_him() -> None:
    asking = {"needs_user_input": True, "input_request": "Which year?"}
    assert ended(None, **asking) == ASKS
    assert ended(None, **asking, error="Tool execute_sql: no such column", user_message="no") == ASKS


# A result that was put aside

KEPT = {"sql_query": COUNT, "execution_result": rows(), "validation_result": FINE}
AGAIN = {"verdict": "again", "reasons": ["it ran and returned no rows"], "kept": KEPT}
TAKEN = {
    **KEPT,
    "reflection": {"verdict": "kept", "reasons": ["it ran and returned no rows"], "kept": None},
}


@pytest.mark.parametrize(
    "more",
    [
        {"error": "Tool execute_sql: no such column", "user_message": "no such column"},
        {"needs_user_input": True, "input_request": "Which year?"},
        {},
    ],
)
def test_where_a_later_attempt_came_to_nothing_the_earlier_result_is_the_answer(more: dict[str, Any]) -> None:
    told = ended(None, sql_query=None, validation_result=None, reflection=AGAIN, **more)
    assert told == {**TAKEN, **success("No rows: nothing in the database fits.")}


def test_an_earlier_result_that_was_refused_is_no_answer_either() -> None:
    refused = {**KEPT, "validation_result": {"is_valid": False, "issues": ["too few"]}}
    again = {**AGAIN, "kept": refused}
    later = {"error": "Tool generate_sql: gone", "user_message": "gone"}
    told = ended(None, sql_query=None, validation_result=None, reflection=again, **later)
    assert told == {**TAKEN, **refused, "user_message": None, **failure("too few")}
    asking = {"needs_user_input": True, "input_request": "Which year?"}
    assert ended(None, sql_query=None, validation_result=None, reflection=again, **asking) == ASKS


def test_a_later_result_goes_before_the_one_that_was_put_aside() -> None:
    assert ended(rows([3]), reflection=AGAIN) == success("n: 3")


def test_what_was_not_put_aside_is_not_taken() -> None:
    later = {"error": "Tool generate_sql: gone"}
    for kept in (None, "odd"):
        reflection = {"verdict": "doubtful", "kept": kept}
        assert ended(None, reflection=reflection, **later) == failure("Tool generate_sql: gone")

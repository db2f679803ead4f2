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


class Odd:
    """What cannot be told has the name of its type."""

    def __str__(self) -> str:
        raise ValueError


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
        (rows(), "No rows: nothing in the database matches."),
        (rows([1, 2], columns=["a", "b"]), "1 row."),
        (rows([1], [2]), "2 rows."),
        (rows(*[[1]] * 1_200), "1,200 rows."),
        (rows(*[[1]] * 1_000) | {"truncated": True}, "The first 1,000 rows; there are more."),
        (rows([1, 2], columns=["a", "b"]) | {"truncated": True}, "The first 1 row; there are more."),
        (rows([3], columns=[]), "1 row."),
        ({"data": [{"n": 3}], "columns": ["n"]}, "n: 3"),
        ({"data": [{"a": 3, "b": 4}], "columns": ["a", "b"]}, "1 row."),
        ({"data": [3], "columns": ["n"]}, "n: 3"),
        ({"data": None}, "No rows: nothing in the database matches."),
        ({"data": 5}, "No rows: nothing in the database matches."),
        ({}, "No rows: nothing in the database matches."),
        (rows([Odd()]), "n: <Odd>"),
        (rows([3], columns=["n" * 100_000]), f"{'n' * 200}...: 3"),
    ],
)
def test_what_was_found_is_told_in_a_few_words_and_clears_an_old_error(result: Any, answer: str) -> None:
    assert ended(result, error="Tool execute_sql: no such column", user_message="no") == success(answer)


REFUSED = "its results were refused"
NO_RESULT = "the statement has no result"
NO_ROWS = "execute_sql returned no rows under data"
NO_ROOM = "no answer after {}; allow more with max_iterations"


@pytest.mark.parametrize(
    ("result", "more", "error"),
    [
        (rows([3]), {"validation_result": {"is_valid": False, "issues": ["a", "b"]}}, "a; b"),
        (rows([3]), {"validation_result": {"is_valid": False, "issues": "too few"}}, "too few"),
        (rows([3]), {"validation_result": {"is_valid": False, "issues": [5]}}, "5"),
        (rows([3]), {"validation_result": {"is_valid": False}}, REFUSED),
        (rows([3]), {"validation_result": {"is_valid": None, "issues": None}}, REFUSED),
        (rows([3]), {"validation_result": {"is_valid": "no"}}, REFUSED),
        (rows([3]), {"validation_result": False}, REFUSED),
        ({"rows": [[3]]}, {}, NO_ROWS),
        ({"success": True}, {}, NO_ROWS),
        ({"columns": ["n"], "row_count": 1}, {}, NO_ROWS),
        (failing("no such table: nope"), {}, "no such table: nope"),
        ({"success": False}, {}, NO_RESULT),
        ({"success": "yes"}, {}, NO_RESULT),
        ("text", {}, NO_RESULT),
        ([[3]], {}, NO_RESULT),
        ([[3]], {"error": "Tool x: before"}, "Tool x: before"),
        (None, {"error": "Tool get_schema: it is gone"}, "Tool get_schema: it is gone"),
        (None, {"iteration": 13, "max_iterations": 12}, NO_ROOM.format("12 decisions")),
        (None, {"iteration": 2, "max_iterations": 1}, NO_ROOM.format("1 decision")),
        (None, {"iteration": 1, "max_iterations": 0}, NO_ROOM.format("0 decisions")),
        (None, {"iteration": 13, "max_iterations": None}, NO_ROOM.format("13 decisions")),
        (
            None,
            {"error": "Tool x: gone", "reflection": {"verdict": "doubtful", "kept": None}},
            "Tool x: gone",
        ),
        (
            None,
            {"error": "Tool x: gone", "reflection": {"verdict": "doubtful", "kept": "odd"}},
            "Tool x: gone",
        ),
    ],
)
def test_without_results_that_count_it_is_told_why_there_is_no_answer(
    result: Any, more: dict[str, Any], error: str
) -> None:
    assert ended(result, **more) == failure(error)


def test_a_person_is_told_the_error_in_the_words_for_a_person() -> None:
    for result in (None, [[3]]):
        told = ended(result, error="Tool execute_sql: no such column", user_message="It did not work.")
        assert told == failure("Tool execute_sql: no such column", "It did not work.")
    assert dict(complete({})) == failure(NO_ROOM.format("0 decisions"))


def test_an_answer_is_short_whatever_is_in_it() -> None:
    told = ended(None, error="e" * 100_000)["answer"]
    assert told == f"The question could not be answered: {'e' * 9_961}..."
    asked = ended(None, needs_user_input=True, input_request="Which " * 10_000)["answer"]
    assert (len(asked), asked[-3:]) == (10_000, "...")


# The user is asked

ASKS = {**DONE, "success": False, "answer": "Which year?", "error": None, "user_message": None}


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
    assert told == {**TAKEN, **success("No rows: nothing in the database matches.")}

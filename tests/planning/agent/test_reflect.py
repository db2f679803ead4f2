"""Second thoughts about a result: what looks wrong with it, and which of two is the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from agent_samples import COUNT, QUESTION, SCHEMA, rows

from planning.agent.nodes import run
from planning.agent.reflect import Reflect, doubts, judge_tool
from planning.tools import Tool, ToolError

EMPTY = (
    "it ran and returned no rows; compare its conditions and joins with the values in the schema, also their"
    " upper and lower case"
)
ALL_NULL = "it ran, and its only row holds nothing but NULL; compare its conditions and joins with the schema"
FINE = {"is_valid": True, "has_results": True, "row_count": 1, "issues": []}
REFUSED = {"is_valid": False, "has_results": True, "row_count": 1, "issues": ["a column is missing"]}


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (rows(columns=["n"]), [EMPTY]),
        ({}, [EMPTY]),
        ({"data": None}, [EMPTY]),
        ({"data": "text"}, [EMPTY]),
        (rows([3]), []),
        (rows([0]), []),
        (rows([""]), []),
        (rows([None]), [ALL_NULL]),
        (rows([None, None], columns=["a", "b"]), [ALL_NULL]),
        (
            rows([None], [None]),
            [
                "it ran, and all of its 2 rows hold nothing but NULL; compare its conditions and joins with"
                " the schema"
            ],
        ),
        (rows([1, None], columns=["a", "b"]), []),
        (
            rows([1, None], [2, None], columns=["a", "b"]),
            ["it ran, and is NULL in every row of b; compare its joins with the schema"],
        ),
        (
            rows([1, None, None], [2, None, None], columns=["a", "b", "c"]),
            ["it ran, and is NULL in every row of b, c; compare its joins with the schema"],
        ),
        (rows([1, None], [2, 3], columns=["a", "b"]), []),
        (rows([1], [2], columns=["a", "b"]), []),
        (rows([1], [2], columns=[]), []),
        ({"data": [{"n": None}], "columns": ["n"]}, [ALL_NULL]),
        ({"data": [{"n": 3}, {"n": 4}], "columns": ["n"]}, []),
        ({"data": [3, 4], "columns": ["n"]}, []),
        ({"data": [None, None]}, []),
        ({"data": ((None,), (None,)), "columns": ("n",)}, doubts(rows([None], [None]))),
    ],
)
def test_what_holds_nothing_is_doubted(result: Mapping[str, Any], found: list[str]) -> None:
    assert doubts(result) == found


# The node


def state(result: Any, **more: Any) -> dict[str, Any]:
    """A state whose statement ran."""
    return {
        "resolved_query": QUESTION,
        "schema": SCHEMA,
        "sql_query": COUNT,
        "execution_result": result,
        "validation_result": FINE,
        "iteration": 5,
        "max_iterations": 12,
    } | more


def again(reasons: list[str], result: Any, verdict: Any = FINE) -> dict[str, Any]:
    """The update that has another statement written."""
    kept = {"sql_query": COUNT, "execution_result": result, "validation_result": verdict}
    return {
        "reflection": {"verdict": "again", "reasons": reasons, "kept": kept},
        "attempts": [{"sql": COUNT, "error": "; ".join(reasons)}],
        "sql_query": None,
        "execution_result": None,
        "validation_result": None,
        "is_complete": False,
    }


def weighed(verdict: str, *reasons: str) -> dict[str, Any]:
    """The update that leaves it at that."""
    return {"reflection": {"verdict": verdict, "reasons": list(reasons)}}


@pytest.mark.parametrize(
    ("verdict", "reasons"),
    [
        ({"is_valid": False}, ["its results were refused"]),
        ({"is_valid": False, "issues": []}, ["its results were refused"]),
        ({"is_valid": None, "issues": "too few"}, ["too few"]),
        ({"is_valid": False, "issues": [1, "b"]}, ["1", "b"]),
        (False, ["its results were refused"]),
    ],
)
def test_any_form_of_refusal_is_one(verdict: Any, reasons: list[str]) -> None:
    told = run(Reflect(None), state(rows([3]), validation_result=verdict))
    assert told == again(reasons, rows([3]), verdict)


@pytest.mark.parametrize("verdict", [{}, {"is_valid": True}, {"issues": ["odd"]}, True, "fine", []])
def test_a_verdict_that_refuses_nothing_is_none(verdict: Any) -> None:
    assert run(Reflect(None), state(rows([3]), validation_result=verdict)) == weighed("fine")


@pytest.mark.parametrize(("iteration", "verdict"), [(9, "again"), (10, "doubtful"), (13, "doubtful")])
def test_where_no_room_is_left_a_doubtful_result_stays(iteration: int, verdict: str) -> None:
    told = run(Reflect(None), state(rows(), iteration=iteration))
    assert told == (again([EMPTY], rows()) if verdict == "again" else weighed("doubtful", EMPTY))


def test_the_shape_of_results_is_doubted_only_once() -> None:
    second = state(rows(), reflection=again([EMPTY], rows())["reflection"])
    assert run(Reflect(None), second) == weighed("doubtful", EMPTY)


def test_a_refused_result_never_takes_the_place_of_one_that_was_not() -> None:
    earlier = again([EMPTY], rows())["reflection"]
    second = state(rows([3]), sql_query="SELECT 2", validation_result=REFUSED, reflection=earlier)
    told = run(Reflect(None), second)
    assert (told["reflection"]["verdict"], told["sql_query"], told["execution_result"]) == (
        "kept",
        COUNT,
        rows(),
    )


@pytest.mark.parametrize("judge", [None, judge_tool(lambda: "wrong", None)])
@pytest.mark.parametrize("result", [None, "text", [1], 3])
def test_what_is_no_result_is_doubtful_and_leaves_the_one_before(result: Any, judge: Any) -> None:
    assert run(Reflect(judge), state(result)) == weighed("doubtful", "it returned no result")
    earlier = again([EMPTY], rows())["reflection"]
    told = run(Reflect(judge), state(result, sql_query="SELECT 2", reflection=earlier))
    assert (told["reflection"]["verdict"], told["sql_query"]) == ("kept", COUNT)


# What looks into the database

FOUND = ["city has no 'x'; it has 'X'"]
NO_ROWS = "it ran and returned no rows: "
COUNTED = "it ran, and its only row holds nothing but 0 or NULL: city has no 'x'; it has 'X'"


@pytest.mark.parametrize(
    ("result", "found", "reasons"),
    [
        (rows(), ["city has no 'x'"], [f"{NO_ROWS}city has no 'x'"]),
        (rows(), ["a has no 'x'", "b has no 'y'"], [f"{NO_ROWS}a has no 'x'; b has no 'y'"]),
        (rows(), "city has no 'x'", [f"{NO_ROWS}city has no 'x'"]),
        *((rows(), nothing, [EMPTY]) for nothing in ([], None, [" "], ValueError("secret"))),
        (rows([0]), FOUND, [COUNTED]),
        (rows([0, None], columns=["n", "s"]), FOUND, [COUNTED]),
        (rows([0.0]), FOUND, [COUNTED]),
        ({"data": [{"n": 0}]}, FOUND, [COUNTED]),
        (rows([0]), [], []),
    ],
)
def test_of_an_empty_result_or_a_count_of_nothing_it_is_said_which_values_are_nowhere(
    result: Any, found: Any, reasons: list[str]
) -> None:
    told, seen = looked(found, result)
    assert told == (again(reasons, result) if reasons else weighed("fine"))
    assert seen == [COUNT]


def looked(found: Any, result: Any, **more: Any) -> tuple[Any, list[str]]:
    """What a node says that can look for values and finds this; and the statements that it looked into."""
    seen: list[str] = []

    def look(sql: str) -> Any:
        seen.append(sql)
        if isinstance(found, Exception):
            raise found
        return found

    return run(Reflect(None, look=Tool("missing_values", "Look.", look)), state(result, **more)), seen


@pytest.mark.parametrize(
    ("result", "more"),
    [
        *((each, {}) for each in (rows([3]), rows([None]), rows([0], [0]), rows([0, 1], columns=["a", "b"]))),
        *((each, {}) for each in (rows([False]), rows(["0"]))),
        (rows(), {"validation_result": REFUSED}),
        (rows(), {"reflection": {"verdict": "again", "reasons": [EMPTY], "kept": None}}),
    ],
)
def test_nothing_is_looked_up_for_any_other_result(result: Any, more: dict[str, Any]) -> None:
    assert looked(FOUND, result, **more) == (run(Reflect(None), state(result, **more)), [])


def test_what_looks_wrong_is_told_in_a_bounded_text() -> None:
    names = ["n" * 5_000] * 4_000
    (told,) = doubts(rows([None] * 3_999 + [1], [None] * 3_999 + [2], columns=names))
    assert told == (
        f"it ran, and is NULL in every row of {', '.join(['n' * 1_000] * 12)} and 3987 more columns; compare"
        " its joins with the schema"
    )
    said = run(Reflect(judge_tool(lambda result: ["x" * 100_000] * 100, 5.0)), state(rows([3])))
    assert said["reflection"]["reasons"] == ["x" * 1_000] * 20


# A judge


def judged(judge: Any, **more: Any) -> Any:
    """What a node with this judge says about three customers."""
    return run(Reflect(judge_tool(judge, 5.0)), state(rows([3]), **more))


@pytest.mark.parametrize(
    ("said", "reasons"),
    [
        ("too few", ["too few"]),
        ([" too few ", "no names"], ["too few", "no names"]),
        (("too few", None), ["too few"]),
        (False, ["its results were refused"]),
        (5, ["5"]),
    ],
)
def test_what_a_judge_finds_wrong_goes_back_to_the_generator(said: Any, reasons: list[str]) -> None:
    assert judged(lambda: said) == again(reasons, rows([3]))


def test_a_judge_is_called_with_what_it_names() -> None:
    seen: list[Any] = []
    judged(lambda question, sql, result, schema: seen.append((question, sql, result, schema)))
    assert seen == [(QUESTION, COUNT, rows([3]), SCHEMA)]
    judged(lambda it: seen.append(it["iteration"]))
    assert seen[1] == 5


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ValueError("secret"), "Tool 'reflect' encountered an error"),
        (ToolError("the judge is away"), "the judge is away"),
    ],
)
def test_a_judge_that_fails_says_nothing_against_the_results(failure: Exception, told: str) -> None:
    def judge(result: Any) -> None:
        raise failure

    assert judged(judge) == weighed("not judged", told)


@pytest.mark.parametrize("judge", ["fine", 5, object()])
def test_what_is_no_judge_is_refused(judge: Any) -> None:
    with pytest.raises(TypeError, match=f"^reflect must be callable, got {type(judge).__name__}$"):
        judge_tool(judge, None)

"""Whatever tools and generator do, the question ends, and its end is true."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

from agent_samples import QUESTION, SCHEMA, ShopTools, failing, graph_of, in_turn, rows
from hypothesis import given
from hypothesis import strategies as st

from planning import Plan
from planning.agent.state import STEPS
from planning.tools import StorageUnavailable, ToolError
from planning.tools.errors import UserInputNeeded
from session import Session, select_latest

FAILURES = [
    ToolError("it does not work"),
    StorageUnavailable("it is gone"),
    ValueError("secret"),
    TimeoutError("late"),
    UserInputNeeded("it lacks a year", "Which year?"),
]
REPORTED = [failing("no such column", "parameter"), failing("late", "timeout"), failing("busy", "storage")]
RESULTS = [
    rows([3]),
    rows(),
    rows([None]),
    rows([1, None], [2, None], columns=["a", "b"]),
    {"data": [{"n": 3}], "columns": ["n"]},
    {"data": [1, 2]},
    {},
    "text",
]
VERDICTS = [
    {"is_valid": True, "issues": []},
    {"is_valid": False, "issues": ["a column is missing"]},
    {"is_valid": False},
    {},
    True,
    False,
    "odd",
]
ANSWERS = [
    "SELECT 1",
    "SELECT 2",
    "SELECT 3",
    "```sql\nSELECT 1\n```",
    {"sql": "SELECT 2"},
    {"needs_user_input": True, "input_request": "Which year?"},
    "```\nSELECT 1\n```\n```\nSELECT 2\n```",
    "{",
    {"text": 1},
    None,
    5,
]


def turns(*kinds: list[Any]) -> st.SearchStrategy[list[Any]]:
    """The outcomes, call by call; the last for all calls that come after."""
    return st.lists(st.sampled_from([each for kind in kinds for each in kind]), min_size=1, max_size=8)


@given(
    schema=turns([SCHEMA, "", {"tables": 2}, None], FAILURES),
    executed=turns(RESULTS, RESULTS, [None], FAILURES, REPORTED),
    verdicts=turns(VERDICTS, VERDICTS, [None], FAILURES),
    answers=turns(ANSWERS, ANSWERS, FAILURES),
    reflects=st.booleans(),
    limit=st.integers(1, 14),
    is_async=st.booleans(),
)
def test_success_is_never_claimed_and_failure_is_always_explained(
    schema: list[Any],
    executed: list[Any],
    verdicts: list[Any],
    answers: list[Any],
    reflects: bool,
    limit: int,
    is_async: bool,
) -> None:
    session = Session()
    shop = ShopTools(schema=in_turn(*schema), executed=in_turn(*executed), verdict=in_turn(*verdicts))
    generator = Mock(side_effect=[*answers, *answers[-1:] * limit])
    graph = graph_of(shop, generator, session=session, reflect=reflects, max_iterations=limit)
    question = {"resolved_query": QUESTION}
    final = asyncio.run(graph.ainvoke(question)) if is_async else graph.invoke(question)

    assert (final["is_complete"], final["next_action"]) == (True, "complete")
    assert final["iteration"] <= limit + 1
    assert generator.call_count <= limit
    assert final["answer"].strip()
    runs = [call for call in final["tool_calls"] if call["tool"] == "execute_sql"]
    ran = zip(shop.statements, runs, strict=True)
    check_success(final, [(sql, call["result"]) for sql, call in ran if call["success"]])
    check_plan(session, final)


def check_success(final: dict[str, Any], ran: list[tuple[str, Any]]) -> None:
    """It is a success only if a statement ran and was not refused; otherwise there is an error."""
    result, asks = final["execution_result"], final["needs_user_input"]
    assert (final["error"] is None) is (final["success"] or asks)
    assert not (final["success"] and asks)
    if final["success"]:
        assert isinstance(result, dict)
        assert not is_refused(final)
        assert (final["sql_query"], result) in ran
    elif asks:
        assert final["answer"] == final["input_request"]
    else:
        assert is_refused(final) or not isinstance(result, dict)
        assert final["answer"].startswith("The question could not be answered: ")
        assert "secret" not in final["answer"]


def is_refused(final: dict[str, Any]) -> bool:
    verdict = final["validation_result"]
    return verdict is False or (isinstance(verdict, dict) and verdict.get("is_valid", True) is not True)


def check_plan(session: Session, final: dict[str, Any]) -> None:
    """What the state has is done in the plan; what it lacks first is blocked."""
    plan = select_latest(session, Plan)
    assert plan is not None
    there = [final[step.key] is not None for step in STEPS]
    done = there.index(False) if False in there else len(there)
    expected = ["done"] * done + ["blocked"] * (done < len(there)) + ["pending"] * (len(there) - done - 1)
    if all(there) and is_refused(final):
        expected[-1] = "blocked"
    assert [step.status for step in plan.steps] == expected

"""Whatever tools and generator do, the end says what is true, and comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agent_samples import QUESTION, SCHEMA, failing, rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planning import Plan
from planning.agent import build_text_to_sql_graph
from planning.agent.decide import ACTIONS
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


def outcomes(*kinds: list[Any]) -> st.SearchStrategy[list[Any]]:
    """What something does, call by call; the last for all calls that come after."""
    return st.lists(st.sampled_from([each for kind in kinds for each in kind]), min_size=1, max_size=8)


class Turns:
    """Something that does what it is told to, call by call."""

    def __init__(self, turns: list[Any]) -> None:
        self.turns = turns
        self.count = 0

    def __call__(self) -> Any:
        turn = self.turns[min(self.count, len(self.turns) - 1)]
        self.count += 1
        if isinstance(turn, Exception):
            raise turn
        return turn


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    schema=outcomes([SCHEMA, "", {"tables": 2}, None], FAILURES),
    executed=outcomes(RESULTS, RESULTS, [None], FAILURES, REPORTED),
    verdicts=outcomes(VERDICTS, VERDICTS, [None], FAILURES),
    answers=outcomes(ANSWERS, ANSWERS, FAILURES),
    reflects=st.booleans(),
    most=st.integers(1, 14),
    is_async=st.booleans(),
)
def test_success_is_never_claimed_and_failure_is_always_explained(
    schema: list[Any],
    executed: list[Any],
    verdicts: list[Any],
    answers: list[Any],
    reflects: bool,
    most: int,
    is_async: bool,
) -> None:
    session, ran = Session(), list[tuple[str, Any]]()
    reads, runs, checks, writes = map(Turns, (schema, executed, verdicts, answers))

    def get_schema(query: str) -> Any:
        return reads()

    def execute_sql(sql: str) -> Any:
        result = runs()
        if not (isinstance(result, dict) and result.get("success") is False) and result is not None:
            ran.append((sql, result))
        return result

    def validate_results(query: str, sql: str, results: Any) -> Any:
        return checks()

    tools: dict[str, Callable[..., Any]] = {
        "get_schema": get_schema,
        "execute_sql": execute_sql,
        "validate_results": validate_results,
    }
    graph = build_text_to_sql_graph(
        tools,
        writes,
        session=session,
        reflect=reflects,
        max_iterations=most,
    )
    question = {"resolved_query": QUESTION}
    final = asyncio.run(graph.ainvoke(question)) if is_async else graph.invoke(question)

    assert final["is_complete"] is True
    assert final["next_action"] == "complete"
    assert final["iteration"] <= most + 1
    assert writes.count <= most
    assert isinstance(final["answer"], str)
    assert final["answer"].strip()
    check_success(final, ran)
    check_plan(session, final)


def check_success(final: dict[str, Any], ran: list[tuple[str, Any]]) -> None:
    """Success is claimed where a statement ran and was not refused, and an error else."""
    result, verdict = final["execution_result"], final["validation_result"]
    asks = final["needs_user_input"]
    is_refused = verdict is False or (isinstance(verdict, dict) and verdict.get("is_valid", True) is not True)
    assert (final["error"] is None) is (final["success"] or asks)
    assert not (final["success"] and asks)
    if final["success"]:
        assert isinstance(result, dict)
        assert not is_refused
        assert (final["sql_query"], result) in ran
    elif asks:
        assert final["answer"] == final["input_request"]
    else:
        assert result is None or is_refused or not isinstance(result, dict)
        assert final["answer"].startswith("The question could not be answered: ")
        assert "secret" not in final["answer"]


def check_plan(session: Session, final: dict[str, Any]) -> None:
    """What the state has is done in the plan; what it lacks first is blocked."""
    plan = select_latest(session, Plan)
    assert plan is not None
    there = [final[key] is not None for key, _ in ACTIONS]
    has = there.index(False) if False in there else len(there)
    expected = ["done"] * has + ["blocked"] * (has < len(there)) + ["pending"] * (len(there) - has - 1)
    verdict = final["validation_result"]
    if has == len(there) and (
        verdict is False or (isinstance(verdict, dict) and verdict.get("is_valid", True) is not True)
    ):
        expected[-1] = "blocked"
    assert [step.status for step in plan.steps] == expected
    assert final["success"] or plan.status != "completed" or not isinstance(final["execution_result"], dict)

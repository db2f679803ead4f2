"""The planner's graph: a planner's answer becomes calls, a question or queries, and then an answer."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from unittest.mock import Mock

import pytest
from plan_findings import stored_values, with_outcomes
from syrupy.assertion import SnapshotAssertion

from planning.agent import build_planner_graph
from planning.tools import Tool, ToolError
from planning.tools.errors import SORRY, UserInputNeeded
from planning.tools.ledger import tool_calls
from session import Session

REQUEST = "Please resend my badge"
FIELDS = "tool_calls, needs_user_input, input_request, queries or intent"
NO_PLAN = f"no plan found; send one JSON object with {FIELDS}"
ASKS = {"needs_user_input": True, "input_request": "Whose badge?"}


def lookup(name: str) -> dict[str, Any]:
    """Look a registration up."""
    return {"name": name, "badge": 7}


def resend(email: str) -> str:
    """Send a badge again."""
    return f"sent to {email}"


RESEND = Tool("resend", "Send a badge again.", resend, requires_identifier=True, identifiers=("email",))


def answered(planned: Any, **options: Any) -> Any:
    given: dict[str, Any] = {
        "registry": [lookup, RESEND],
        "planner": planned if callable(planned) else lambda: planned,
        "respond": lambda state: {key: state.get(key) for key in NOTHING},
        "execute_queries": lambda queries: [f"about {query}" for query in queries],
    }
    return build_planner_graph(**(given | options)).invoke({"resolved_query": REQUEST})


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool": tool, "args": args, "reason": f"to {tool}"}


def done(data: Any) -> dict[str, Any]:
    return {"success": True, "data": data, "error": None, "user_message": None}


FIND_ADA = call("lookup", name="Ada")
ADA = done({"name": "Ada", "badge": 7})
NOTHING: dict[str, Any] = dict.fromkeys(("query_results", "input_request", "intent", "error"))
NOTHING |= {"tool_results": {}, "needs_user_input": False}


def test_calls_come_before_a_question_and_queries(snapshot: SnapshotAssertion) -> None:
    def outcome(planned: dict[str, Any]) -> dict[str, Any]:
        final = answered(f"So:\n```json\n{json.dumps(planned)}\n```\n")
        assert final["planner_problems"] == []
        assert final["response"].keys() == NOTHING.keys()
        return {name: value for name, value in final["response"].items() if value != NOTHING[name]}

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot


@pytest.mark.parametrize(
    ("written", "problem"),
    [("I would look it up.", NO_PLAN), (None, NO_PLAN.replace("no plan found", "empty"))],
)
def test_an_answer_of_the_planner_that_cannot_be_read_is_a_problem(written: Any, problem: str) -> None:
    final = answered(written)
    assert final["planner_problems"] == [problem]
    assert final["response"] == NOTHING | {"query_results": [], "error": f"Tool planner: {problem}"}


def test_the_readable_part_of_an_answer_is_carried_out() -> None:
    final = answered({"tool_calls": [FIND_ADA, 5, {"tool": ""}], "intent": 7})
    assert final["tool_calls"] == [FIND_ADA]
    assert final["response"]["tool_results"] == {"lookup": ADA}
    assert final["planner_problems"] == [
        "tool_calls[1]: expected an object with tool, args, reason, got a number",
        "tool_calls[2].tool: blank; send the name of a tool",
        "intent: expected a string, got a number",
    ]
    assert final["error"] == f"Tool planner: {'; '.join(final['planner_problems'])}"


@pytest.mark.parametrize(
    ("failure", "message"),
    [(ToolError("it is away"), "it is away"), (ValueError("secret"), "Tool '{}' encountered an error")],
)
@pytest.mark.parametrize(
    ("place", "response"), [("planner", {"query_results": []}), ("execute_queries", {}), ("respond", None)]
)
def test_failing_functions_are_errors(place: str, response: Any, failure: Exception, message: str) -> None:
    final = answered({"queries": ["badges"]}, **{place: Mock(side_effect=failure)})
    error = f"Tool {place}: {message.format(place)}"
    assert (final["error"], final["planner_problems"]) == (error, [])
    assert final["response"] == (SORRY if response is None else NOTHING | response | {"error": error})


@pytest.mark.parametrize("place", ["planner", "execute_queries", "respond"])
def test_each_function_has_its_time(place: str) -> None:
    final = answered({"queries": ["badges"]}, timeout=0.05, **{place: lambda: time.sleep(0.5)})
    late = f"{place} took longer than 0.05 s and timed out; call it again, or continue without it"
    assert final["error"] == f"Tool {place}: {late}"


def test_a_planner_may_raise_its_question_to_the_user() -> None:
    asking = Mock(side_effect=UserInputNeeded("it lacks a name", "Whose badge?"))
    assert answered(asking)["response"] == NOTHING | ASKS | {"error": "Tool planner: it lacks a name"}


def test_the_functions_get_what_they_name() -> None:
    seen: dict[str, Any] = {}

    def planner(prompt: str, tools: Any) -> dict[str, Any]:
        seen.update(prompt=prompt, tools=tools)
        return {"queries": ["badges"]}

    final = answered(
        planner,
        execute_queries=lambda queries, question: {question: queries},
        respond=lambda state: [state["resolved_query"], state["query_results"]],
    )
    assert final["response"] == [REQUEST, {REQUEST: ["badges"]}]
    assert "`lookup`: Look a registration up." in seen["prompt"]
    assert seen["tools"] == [
        {"name": "lookup", "description": "Look a registration up.", "requires_identifier": False},
        {"name": "resend", "description": "Send a badge again.", "requires_identifier": True},
    ]


def test_a_tool_without_its_identifier_asks_the_user() -> None:
    response = answered({"tool_calls": [FIND_ADA, call("resend")]})["response"]
    asks = {"needs_user_input": True, "input_request": "Could you give me your email?"}
    assert response == NOTHING | asks | {"tool_results": response["tool_results"]}
    assert response["tool_results"]["lookup"] == ADA
    sent = answered({"tool_calls": [call("resend", email="ada@example.org")]})
    assert sent["response"] == NOTHING | {"tool_results": {"resend": done("sent to ada@example.org")}}


@pytest.mark.parametrize(
    ("search", "results", "error"),
    [
        (None, None, "no search is set up; pass execute_queries to build_planner_graph"),
        (lambda queries: None, [], None),
        (lambda it: it["queries"], ["badges"], None),
    ],
)
def test_queries_go_to_the_function_that_searches(search: Any, results: Any, error: str | None) -> None:
    final = answered({"queries": ["badges"]}, execute_queries=search, respond=lambda: {"text": "Done."})
    assert (final["query_results"], final["error"], final["response"]) == (results, error, {"text": "Done."})


def test_every_function_may_be_async(session: Session) -> None:
    async def planner(question: str) -> Any:
        return {"tool_calls": [call("find", name="Ada")]} if question == REQUEST else {"queries": ["x"]}

    async def find(name: str) -> str:
        """Look somebody up."""
        return name

    async def respond(tool_results: Any, query_results: Any) -> Any:
        return tool_results or query_results

    async def search(queries: Any) -> Any:
        return queries

    graph = build_planner_graph([find], planner, respond, execute_queries=search, session=session)
    assert graph.name == "planner"
    for question, response in ((REQUEST, {"find": done("Ada")}), ("Which rooms?", ["x"])):
        awaited = asyncio.run(graph.ainvoke({"resolved_query": question}))
        assert awaited["response"] == response
        assert graph.invoke({"resolved_query": question}) == awaited
    names = ["planner", "find", "respond"] * 2 + ["planner", "execute_queries", "respond"] * 2
    assert [each.tool for each in reversed(tool_calls(session))] == names

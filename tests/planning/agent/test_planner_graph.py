"""The planner's graph: what a planner writes becomes calls, a question or queries, and then an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from planner_graph_samples import (
    ADA,
    NOTHING,
    REQUEST,
    asked,
    call,
    done,
    lookup,
    noting,
)
from syrupy.assertion import SnapshotAssertion

from planning.agent import build_planner_graph
from planning.tools import Tool, ToolError, ToolRegistry
from planning.tools.errors import SORRY, UserInputNeeded
from planning.tools.rate_limit import RateLimiter

SEARCHED = ["about badges", "about {'text': 'lost'}"]
NO_PLAN = (
    "no plan found; send one JSON object with tool_calls, needs_user_input, input_request, queries or intent"
)


# Where it goes


@pytest.mark.parametrize(
    ("planned", "told"),
    [
        (
            {"intent": "badge", "tool_calls": [call("lookup", name="Ada")], "queries": []},
            {"tool_results": {"lookup": ADA}, "intent": "badge"},
        ),
        (
            {"needs_user_input": True, "input_request": "Whose badge?"},
            {"needs_user_input": True, "input_request": "Whose badge?"},
        ),
        ({"needs_user_input": True}, {"needs_user_input": True}),
        ({"queries": ["badges", {"text": "lost"}]}, {"query_results": SEARCHED}),
        ({"intent": "chat"}, {"query_results": [], "intent": "chat"}),
        (
            {"tool_calls": [call("lookup", name="Ada")], "needs_user_input": True, "input_request": "Which?"},
            {"tool_results": {"lookup": ADA}, "needs_user_input": True, "input_request": "Which?"},
        ),
        (
            {"tool_calls": [call("lookup", name="Ada")], "queries": ["badges"]},
            {"tool_results": {"lookup": ADA}},
        ),
        (
            {"needs_user_input": True, "input_request": "Which?", "queries": ["badges"]},
            {"needs_user_input": True, "input_request": "Which?"},
        ),
    ],
)
@pytest.mark.parametrize("form", ["mapping", "text", "fenced"])
def test_calls_come_first_then_a_question_and_then_queries(
    planned: dict[str, Any], told: dict[str, Any], form: str
) -> None:
    text = json.dumps(planned)
    written = {"mapping": planned, "text": text, "fenced": f"So:\n```json\n{text}\n```\n"}[form]
    final = asked(written)
    assert final["response"] == NOTHING | told
    assert final["planner_problems"] == []


def test_the_nodes_come_in_their_order() -> None:
    def nodes(planned: Any) -> list[str]:
        graph = build_planner_graph(
            [lookup], lambda: planned, lambda: "done", execute_queries=lambda queries: 1
        )
        return [next(iter(each)) for each in graph.stream({"resolved_query": REQUEST}, stream_mode="updates")]

    assert nodes({"tool_calls": [call("lookup", name="Ada")]}) == [
        "plan_queries",
        "execute_tools",
        "generate_response",
    ]
    assert nodes({"queries": ["x"]}) == ["plan_queries", "execute_queries", "generate_response"]
    assert nodes({"needs_user_input": True}) == ["plan_queries", "generate_response"]


# The planner


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("I would look it up.", NO_PLAN),
        ({}, NO_PLAN),
        ('{"tool_calls": "lookup"}', "tool_calls: expected an array, got a string"),
        (
            None,
            "empty; send one JSON object with tool_calls, needs_user_input, input_request, queries or intent",
        ),
        (
            5,
            "expected one JSON object with tool_calls, needs_user_input, input_request, queries or intent,"
            " got a number",
        ),
    ],
)
def test_what_a_planner_writes_and_nobody_understands_is_said(written: Any, problem: str) -> None:
    final = asked(written)
    assert final["planner_problems"] == [problem]
    assert final["response"] == NOTHING | {"query_results": [], "error": f"Tool planner: {problem}"}


def test_what_can_be_understood_of_a_plan_is_carried_out() -> None:
    final = asked({"tool_calls": [call("lookup", name="Ada"), 5, {"tool": ""}], "intent": 7})
    assert final["tool_calls"] == [call("lookup", name="Ada")]
    assert final["response"]["tool_results"] == {"lookup": ADA}
    assert final["planner_problems"] == [
        "tool_calls[1]: expected an object with tool, args, reason, got a number",
        "tool_calls[2].tool: blank; send the name of a tool",
        "intent: expected a string, got a number",
    ]
    assert final["error"] == f"Tool planner: {'; '.join(final['planner_problems'])}"


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ToolError("it is away"), "it is away"),
        (ValueError("secret"), "Tool '{}' encountered an error"),
    ],
)
@pytest.mark.parametrize("place", ["planner", "execute_queries", "respond"])
def test_what_fails_is_told_and_the_rest_goes_on(place: str, failure: Exception, told: str) -> None:
    def failing() -> Any:
        raise failure

    planned = {"queries": ["badges"]} if place == "execute_queries" else {"intent": "chat"}
    given: dict[str, Any] = (
        {"planned": failing} if place == "planner" else {"planned": planned, place: failing}
    )
    final = asked(**given)
    error = f"Tool {place}: {told.format(place)}"
    assert (final["error"], final["planner_problems"]) == (error, [])
    if place == "planner":
        assert final["response"] == NOTHING | {"query_results": [], "error": error}
    elif place == "execute_queries":
        assert final["response"] == NOTHING | {"error": error}
    else:
        assert final["response"] == SORRY


def test_a_planner_may_raise_its_question_to_the_user() -> None:
    def planner() -> Any:
        raise UserInputNeeded("it lacks a name", "Whose badge?")

    final = asked(planner)
    assert (final["needs_user_input"], final["input_request"]) == (True, "Whose badge?")
    assert final["query_results"] is None


def test_a_planner_is_given_what_it_names() -> None:
    seen: list[Any] = []
    asked(lambda question: noting(seen, question))
    asked(lambda state: noting(seen, state))
    asked(lambda it: noting(seen, it["resolved_query"]))
    asked(lambda query, tools: noting(seen, (query, tools)))
    assert seen == [
        REQUEST,
        {"resolved_query": REQUEST},
        REQUEST,
        (
            REQUEST,
            [
                {
                    "name": "lookup",
                    "description": "Look a registration up.",
                    "requires_identifier": False,
                },
                {"name": "resend", "description": "Send a badge again.", "requires_identifier": True},
            ],
        ),
    ]


# Tool calls


def test_two_calls_to_one_tool_are_both_kept() -> None:
    planned = {
        "tool_calls": [call("lookup", name="Ada"), call("lookup", name="Bob"), call("lookup", name="Ada")]
    }
    results = asked(planned)["tool_results"]
    assert list(results) == ["lookup", "lookup#2", "lookup#3"]
    assert results["lookup#2"] == done({"name": "Bob", "badge": 7})


def test_a_call_that_fails_does_not_stop_the_others() -> None:
    planned = {
        "tool_calls": [
            call("lookup", name="Nobody"),
            call("fly"),
            call("lookup"),
            call("lookup", name="Ada"),
        ]
    }
    results = asked(planned)["tool_results"]
    assert [(name, each["success"], each["error"]) for name, each in results.items()] == [
        ("lookup", False, "nobody is called Nobody; ask for the full name"),
        ("fly", False, "Unknown tool: fly"),
        ("lookup#2", False, "name: missing; send a string"),
        ("lookup#3", True, None),
    ]


def test_a_tool_that_lacks_its_identifier_has_the_user_asked() -> None:
    final = asked({"tool_calls": [call("lookup", name="Ada"), call("resend")]})
    assert final["tool_results"]["lookup"] == ADA
    assert (final["needs_user_input"], final["input_request"]) == (True, "Could you give me your email?")
    assert final["response"]["input_request"] == "Could you give me your email?"
    sent = asked({"tool_calls": [call("resend", email="ada@example.org")]})
    assert (sent["needs_user_input"], sent["tool_results"]["resend"]) == (
        False,
        done("sent to ada@example.org"),
    )


def test_a_rate_limit_is_the_registrys_own() -> None:
    limited = Tool("lookup", "Look up.", lookup, rate_limit_key="reads")
    registry = ToolRegistry([limited], limiter=RateLimiter({"reads": "1/minute"}))
    planned = {"tool_calls": [call("lookup", name="Ada"), call("lookup", name="Ada")]}
    results = asked(planned, tools=registry)["tool_results"]
    assert [(each["success"], each.get("code")) for each in results.values()] == [
        (True, None),
        (False, "rate_limit"),
    ]


# Queries


@pytest.mark.parametrize(
    ("search", "found", "error"),
    [
        (None, None, "no search is set up; pass execute_queries to build_planner_graph"),
        (lambda queries: None, [], None),
        (lambda it: it["queries"], ["badges"], None),
        (lambda queries, question: {question: queries}, {REQUEST: ["badges"]}, None),
    ],
)
def test_queries_are_handed_to_whatever_searches(search: Any, found: Any, error: str | None) -> None:
    final = asked({"queries": ["badges"]}, execute_queries=search)
    assert (final["query_results"], final["error"]) == (found, error)


# The response


@pytest.mark.parametrize(
    ("respond", "response"),
    [
        (lambda: "Done.", "Done."),
        (lambda question: f"{question}: done.", f"{REQUEST}: done."),
        (lambda intent, tool_results: [intent, sorted(tool_results)], ["badge", ["lookup"]]),
        (lambda state: state["intent"], "badge"),
        (lambda it: it["intent"], "badge"),
        (lambda: {"response": "Done.", "tone": "kind"}, "Done."),
        (lambda: {"text": "Done."}, {"text": "Done."}),
        (lambda: None, None),
    ],
)
def test_the_answer_is_what_respond_returns(respond: Any, response: Any) -> None:
    planned = {"tool_calls": [call("lookup", name="Ada")], "intent": "badge"}
    assert asked(planned, respond=respond)["response"] == response


def test_the_prompt_is_written_only_for_a_planner_that_names_it(
    monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    seen: list[str] = []
    asked(lambda prompt: noting(seen, prompt))
    assert f"{seen[0]}\n" == snapshot
    asked(lambda **given: noting(seen, given["prompt"]))
    assert seen[1] == seen[0]

    def unwanted(*_: Any, **__: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr("planning.agent.planner_nodes.ToolAwarenessSection", unwanted)
    asked(lambda question: noting(seen, question))
    asked(lambda state: noting(seen, "state"))
    assert seen[2:] == [REQUEST, "state"]

"""execute_tools: what a planner asked for, in order, each with an envelope."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tool_entries import Look

from planning.tools import BaseTool, Tool, ToolRegistry, execute_tools
from planning.tools.ledger import tool_calls
from planning.tools.rate_limit import RateLimiter
from session import Session


class Mail(BaseTool):
    name = "mail"
    description = "Mail."
    requires_identifier = True
    returns_private_data = True
    rate_limit_key = "email_send"

    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "data": args["email"]}


def fail() -> None:
    raise RuntimeError("4711")


def add(left: int) -> int:
    return left + 1


def registry() -> ToolRegistry:
    return ToolRegistry(
        [Look(), Mail(), Tool("fail", "F.", fail), Tool("add", "A.", add)],
        limiter=RateLimiter({"email_send": "1/minute"}),
    )


def run(calls: Any, session: Session | None = None, **state: Any) -> dict[str, dict[str, Any]]:
    given = {"tool_calls": calls, **state}
    return asyncio.run(execute_tools(given, registry=registry(), session=session))["tool_results"]


NO_IDS = {"trace_id": None, "conversation_id": None, "conference_id": None}


@pytest.mark.parametrize(
    "state", [{}, {"tool_calls": None}, {"tool_calls": []}, {"tool_calls": ()}, None, [], "state"]
)
def test_no_calls_have_no_results(state: Any) -> None:
    assert asyncio.run(execute_tools(state, registry=registry())) == {"tool_results": {}}


def test_the_context_carries_the_three_ids() -> None:
    told = run(
        [{"tool": "look"}],
        trace_id="t",
        conversation_context={"conversation_id": "c"},
        user_context={"conference_id": "f"},
    )["look"]["data"][1]
    assert told == {"trace_id": "t", "conversation_id": "c", "conference_id": "f"}


@pytest.mark.parametrize("part", [None, {}, [], "x", 5])
def test_the_context_tolerates_what_is_missing(part: Any) -> None:
    assert run([{"tool": "look"}], conversation_context=part, user_context=part)["look"]["data"][1] == NO_IDS


def test_every_call_is_answered_in_order_whatever_the_others_do(session: Session) -> None:
    results = run(
        [
            {"tool": "fail"},
            {"tool": "nope", "args": {}},
            {"args": {}},
            "call",
            None,
            {"tool": "add", "args": {"left": "x"}},
            {"tool": "add", "args": '{"left": 1}'},
            {"tool": ["add"]},
            {"tool": "add", "args": {"left": 2}},
        ],
        session,
    )
    unnamed = 'The call {}; write {{"tool": name, "args": {{...}}}}'
    ends = [(name, told["data"], told["error"], told.get("code")) for name, told in results.items()]
    assert ends == [
        ("fail", None, "Tool 'fail' encountered an error", "unknown"),
        ("nope", None, "Unknown tool: nope", "unknown_tool"),
        ("invalid_call", None, unnamed.format("names no tool"), "parameter"),
        ("invalid_call#2", None, unnamed.format("is 'call'"), "parameter"),
        ("invalid_call#3", None, unnamed.format("is a value of type NoneType"), "parameter"),
        ("add", None, "left: expected an integer, got a string", "parameter"),
        ("add#2", 2, None, None),
        ("invalid_call#4", None, unnamed.format("names no tool"), "parameter"),
        ("add#3", 3, None, None),
    ]
    assert [told["success"] for told in results.values()] == [data is not None for _, data, _, _ in ends]
    assert [call.tool for call in reversed(tool_calls(session))] == ["fail", "nope", "add", "add", "add"]


@pytest.mark.parametrize("calls", ["add", 5, True])
def test_calls_that_are_none_have_an_entry_that_says_so(calls: Any) -> None:
    (told,) = run(calls).values()
    assert (told["success"], told["code"]) == (False, "parameter")

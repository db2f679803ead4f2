"""execute_tools: what a planner asked for, in order, each with an envelope."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tool_entries import piped, raising, safely

from planning.tools import BaseTool, Tool, ToolContext, ToolError, ToolRegistry, execute_tools
from planning.tools.ledger import tool_calls
from planning.tools.rate_limit import RateLimiter
from planning.tools.registry import default_registry
from session import Session, ToolFailed


class Look(BaseTool):
    name = "look"
    description = "Look."

    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "data": [args, context], "error": None, "user_message": "Seen."}


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


def test_a_call_has_the_envelope_of_safe_execute() -> None:
    envelope = run([{"tool": "look", "args": {"a": 1}, "reason": "r"}])["look"]
    assert envelope == {
        "success": True,
        "data": [{"a": 1}, NO_IDS],
        "error": None,
        "user_message": "Seen.",
    }
    assert safely(Look(), {"a": 1}, NO_IDS) == envelope


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


@pytest.mark.parametrize("args", [None, {}, "", "{}"])
def test_a_call_without_arguments_has_none(args: Any) -> None:
    assert run([{"tool": "look", "args": args}])["look"]["data"][0] == {}


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
    unnamed = 'The call names no tool; write {"tool": name, "args": {...}}'
    ends = [
        (name, told["success"], told["data"], told["error"], told.get("code"))
        for name, told in results.items()
    ]
    assert ends == [
        ("fail", False, None, "Tool 'fail' encountered an error", "unknown"),
        ("nope", False, None, "Unknown tool: nope", "unknown_tool"),
        ("invalid_call", False, None, unnamed, "parameter"),
        ("invalid_call#2", False, None, unnamed.replace("names no tool", "is 'call'"), "parameter"),
        (
            "invalid_call#3",
            False,
            None,
            unnamed.replace("names no tool", "is a value of type NoneType"),
            "parameter",
        ),
        ("add", False, None, "left: expected an integer, got a string", "parameter"),
        ("add#2", True, 2, None, None),
        ("invalid_call#4", False, None, unnamed, "parameter"),
        ("add#3", True, 3, None, None),
    ]
    assert [call.tool for call in reversed(tool_calls(session))] == ["fail", "nope", "add", "add", "add"]


def test_a_call_may_have_the_name_of_anothers_second_call() -> None:
    results = piped([Tool("a", "A.", lambda: 1)], [{"tool": name} for name in ("a#2", "a", "a", "a#2")])
    assert {name: told["data"] for name, told in results.items()} == {
        "a#2": None, "a": 1, "a#3": 1, "a#2#2": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "calls", [{"tool": "add", "args": {"left": 1}}, [{"tool": "add", "args": {"left": 1}}]]
)
def test_a_single_call_needs_no_list(calls: Any) -> None:
    assert run(calls)["add"]["data"] == 2


@pytest.mark.parametrize("calls", ["add", 5, True])
def test_calls_that_are_none_have_an_entry_that_says_so(calls: Any) -> None:
    (told,) = run(calls).values()
    assert (told["success"], told["code"]) == (False, "parameter")


def test_a_call_over_the_limit_is_refused(session: Session) -> None:
    calls = [{"tool": "mail", "args": {"email": "zq4711"}}] * 2
    first, second = run(calls, session).values()
    assert (first["data"], second["data"], second["code"]) == ("zq4711", None, "rate_limit")
    assert "zq4711" not in repr(session.select_all(ToolFailed)) + repr(tool_calls(session))


def test_a_long_name_of_no_tool_is_cut() -> None:
    ((name, told),) = run([{"tool": "x" * 10_000}]).items()
    assert told["error"] == "Unknown tool: " + "x" * 100
    assert len(name) <= 10_000


def test_a_plain_functions_error_is_told_in_its_own_words() -> None:
    told = piped([raising(ToolError("the queue is full"))], [{"tool": "t"}])
    assert told["t"]["error"] == "the queue is full"


def test_plain_tools_see_the_session_and_the_context(session: Session) -> None:
    def look(context: ToolContext) -> bool:
        return context.session is session and context.values["trace_id"] == 1

    assert piped([Tool("t", "T.", look)], [{"tool": "t"}], session, trace_id=1)["t"]["data"]


def test_without_a_registry_the_default_one_is_asked() -> None:
    name = "a tool that nobody registered"
    assert default_registry().find(name) is None
    told = asyncio.run(execute_tools({"tool_calls": [{"tool": name}]}))
    assert told["tool_results"][name]["code"] == "unknown_tool"

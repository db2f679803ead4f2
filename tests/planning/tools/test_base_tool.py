"""Tools as classes: safe_execute always answers, and enforces what the class declares."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
from tool_entries import NOW, SORRY, Look, safely

from planning.tools import BaseTool, StorageUnavailable, Toolbox, ToolRegistry
from planning.tools.contract import ToolExample
from planning.tools.guard import CircuitBreaker
from planning.tools.rate_limit import RateLimiter


class BrokenTool(BaseTool):
    name = "broken"
    description = "always fails"

    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("kaboom")


def refusal(error: str, code: str, **more: Any) -> dict[str, Any]:
    told = {"success": False, "data": None, "error": error, "user_message": SORRY, "code": code}
    return {**told, **more}


def test_the_class_defaults_are_the_specified_ones() -> None:
    assert (Look.requires_identifier, Look.returns_private_data, Look.rate_limit_key) == (False, False, None)


def test_tool_safe_execute_never_crashes() -> None:
    result = safely(BrokenTool(), {}, {"trace_id": "test"})
    assert result == refusal("Tool 'broken' encountered an error", "unknown")


@pytest.mark.parametrize("args", [{"a": 1}, MappingProxyType({"a": 1}), '{"a": 1}', b'{"a": 1}'])
def test_arguments_and_context_are_dicts_of_the_tools_own(args: Any) -> None:
    context = {"trace_id": 1, 5: 6}
    told = safely(Look(), args, context)
    assert told == {
        "success": True,
        "data": [{"a": 1}, {"trace_id": 1}],  # of names only
        "error": None,
        "user_message": None,
    }
    assert told["data"][0] is not args
    assert told["data"][1] is not context


@pytest.mark.parametrize("context", [5, "trace", ["trace_id"], object])
def test_a_context_that_is_no_mapping_is_answered(context: Any) -> None:
    error = f"look was not called: its context must be a dict, got {type(context).__name__}"
    assert safely(Look(), {}, context) == refusal(error, "bad_context")
    result = Toolbox([Look()]).call("look", {}, context=context)
    assert (result.code, result.error) == ("bad_context", error)


class Undescribed(BaseTool):
    name = "odd"

    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        return {"success": True}


def declared(**declared: Any) -> BaseTool:
    return type("Declared", (Undescribed,), {"description": "Odd.", **declared})()  # type: ignore[no-any-return]  # of a class made here


@pytest.mark.parametrize(
    "tool",
    [
        Undescribed(),
        declared(timeout=-1),
        declared(name=None),
        declared(name=" "),
        declared(identifiers=(), requires_identifier=True),
        declared(retry=5),
        declared(parameters=int),
    ],
)
def test_a_class_that_is_no_tool_is_answered(tool: BaseTool) -> None:
    told = safely(tool)
    assert told == refusal(f"Tool '{type(tool).__name__}' encountered an error", told["code"])


@dataclass
class Who:
    """Whom it is about."""

    email: str
    limit: int = 1


class Guarded(BaseTool):
    name = "guarded"
    description = "Guarded."
    parameters = Who
    requires_identifier = True
    identifiers = ("email",)
    input_request = "Your email?"
    rate_limit_key = "mail"
    examples = (ToolExample({"email": "a@b"}, "Done."),)

    def __init__(self) -> None:
        self.calls: list[Who] = []
        self.retry = NOW
        self.breaker = CircuitBreaker(failures=1)
        self.timeout = 20.0

    async def execute(self, args: Who, context: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(args)
        if len(self.calls) == 1:
            raise StorageUnavailable("later")
        return {"success": True, "data": args.email}


def test_everything_that_a_class_declares_is_enforced(own_default: ToolRegistry) -> None:
    tool = Guarded()
    own_default.limiter = RateLimiter({"mail": "1/minute"})
    assert safely(tool, {"email": " "}) == refusal(
        "guarded was not called: ask the user first. Your email?",
        "needs_user_input",
        user_message="Your email?",
        needs_user_input=True,
        input_request="Your email?",
    )
    assert safely(tool, {"email": "a", "limit": "x"})["code"] == "parameter"
    assert tool.calls == []
    assert safely(tool, {"email": "a"})["data"] == "a"
    assert tool.calls == [Who("a"), Who("a")]
    assert safely(tool, {"email": "a"})["code"] == "rate_limit"

"""Tools as data and as classes: their options, names and schemas, execute and safe_execute."""

from __future__ import annotations

import asyncio
from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
from tool_entries import NOW, SORRY, Look, safely

from planning.tools import (
    BaseTool,
    StorageUnavailable,
    Tool,
    Toolbox,
    ToolContext,
    ToolRegistry,
    ToolSpec,
    tool,
)
from planning.tools.contract import ToolExample
from planning.tools.guard import CircuitBreaker
from planning.tools.rate_limit import RateLimiter
from session import Session


def divide(left: int, right: int = 1) -> float:
    return left / right


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "left: missing; send an integer"),
        ({"left": 1, "rihgt": 1}, "rihgt: unknown field; did you mean right?"),
        ({"left": "x"}, "left: expected an integer, got a string"),
        ({"left": 1, "right": 0}, "division by zero"),
    ],
)
def test_wrong_keyword_arguments_are_a_failed_result(arguments: dict[str, Any], error: str) -> None:
    made = tool(divide)
    for result in (made.execute(**arguments), asyncio.run(made.aexecute(**arguments))):
        assert (result["success"], result["result"], result["error"]) == (False, None, error)


def test_a_tool_can_be_called_as_its_function() -> None:
    made = tool(divide)
    assert (made(4, 2), made(left=3)) == (2.0, 3.0)
    with pytest.raises(ZeroDivisionError):
        made(1, 0)


PRIVATE = "a tool with private data cannot"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": 5}, "a tool's name must be text, got int"),
        ({"name": None}, "a tool's name must be text, got NoneType"),
        *(({"name": blank}, "a tool needs a name, by which a model calls it") for blank in ("", " ")),
        ({"description": None}, "a tool's description must be text, got NoneType"),
        ({"function": 5}, "a tool's function must be callable, got int"),
        *(
            (
                {"returns_private_data": True, "publishes": event},
                f"{PRIVATE} publish its value: its result is in no event",
            )
            for event in ("value", "own")
        ),
        (
            {"returns_private_data": True, "visible_errors": OSError},
            f"{PRIVATE} have visible_errors: their text may be private",
        ),
        (
            {"requires_identifier": True, "identifiers": ()},
            "a tool that requires an identifier must name the arguments that can be one",
        ),
        (
            {"idempotent": False, "retry": NOW},
            "a tool that is not idempotent is never called twice: remove its retry",
        ),
    ],
)
def test_a_wrong_declaration_is_refused_with_what_to_write(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        Tool(**{"name": "t", "description": "T.", "function": divide, **options})
    assert str(caught.value) == message


def test_a_context_is_a_copy_that_cannot_be_changed() -> None:
    values = {"trace_id": 1}
    context = ToolContext(values=values)
    values["trace_id"] = 2
    assert (dict(context.values), context.session) == ({"trace_id": 1}, None)
    with pytest.raises(TypeError):
        context.values["trace_id"] = 3  # type: ignore[index]  # what is tested
    named = ToolContext(values=values, idempotency_key="k", agent="a")
    assert repr(named) == "ToolContext(session=None)"


def test_each_schema_is_a_copy_with_the_examples() -> None:
    made = Tool("t", "T.", divide, examples=(ToolExample({"left": 1}, "1.0"),))
    made.parameters_schema().clear()
    assert made.parameters_schema()["examples"] == [{"left": 1}]
    assert made.parameters_schema()["required"] == ["left"]
    assert "examples" not in tool(divide).parameters_schema()


DECLARED: dict[str, Callable[[Any], Any]] = {
    "Tool": lambda name: Tool(name, "Acts.", divide),
    "@tool": lambda name: tool(name=name)(divide),
    "ToolSpec": lambda name: ToolSpec(name, {}, "out"),
    "BaseTool": lambda name: type("Named", (Look,), {"name": name})().as_tool,
}
every_declaration = pytest.mark.parametrize("declared", DECLARED.values(), ids=DECLARED)


@every_declaration
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("two words", "'two words'"),
        ("look\n", "'look\\n'"),
        ("files:read", "'files:read'"),
        ("gr\u00f6\u00dfe", "'gr\\xf6\\xdfe'"),
        ("x" * 129, f"'{'x' * 37}...'"),
    ],
)
def test_a_name_that_a_tool_cannot_have_is_refused_where_it_is_declared(
    declared: Callable[[Any], Any], name: str, shown: str
) -> None:
    with pytest.raises(ValueError) as caught:
        declared(name)
    assert str(caught.value) == (
        f"{shown} cannot be a tool's name: use 1 to 128 letters, digits, _, -, . and /"
    )


@every_declaration
@pytest.mark.parametrize(
    "name", ["a", "7", "-", "look_up-2", "WeatherAPI.com_Time_Zone_API", "repos/get.file", "x" * 128]
)
def test_the_names_of_real_apis_are_names_of_tools(declared: Callable[[Any], Any], name: str) -> None:
    assert declared(name).name == name


# Tools as classes: safe_execute always answers, and enforces what the class declares


def refusal(error: str, code: str, **more: Any) -> dict[str, Any]:
    return {"success": False, "data": None, "error": error, "user_message": SORRY, "code": code, **more}


@pytest.mark.parametrize("args", [{"a": 1}, MappingProxyType({"a": 1}), '{"a": 1}', b'{"a": 1}'])
def test_arguments_and_context_are_dicts_of_the_tools_own(args: Any) -> None:
    context = {"trace_id": 1, 5: 6}
    told = safely(Look(), args, context)
    of_names = [{"a": 1}, {"trace_id": 1}]
    assert told == {"success": True, "data": of_names, "error": None, "user_message": None}
    assert told["data"][0] is not args
    assert told["data"][1] is not context


def test_the_context_of_a_tool_in_a_toolbox_has_the_session() -> None:
    class Seeing(Look):
        async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
            seen.append(context)
            return {"success": True}

    seen, session = list[dict[str, Any]](), Session()
    assert Toolbox([Seeing()], session=session).call("look", {}, context={"trace_id": 1}).success
    assert seen == [{"trace_id": 1, "session": session}]


def test_the_class_defaults_are_the_specified_ones() -> None:
    assert (Look.requires_identifier, Look.returns_private_data, Look.rate_limit_key) == (False, False, None)


class Closed(UserDict[str, Any]):
    def items(self) -> Any:
        raise ValueError("no")


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        *((each, f"must be a dict, got {type(each).__name__}") for each in (5, "trace", ["id"], object)),
        (Closed(), "cannot be read: a Closed"),
    ],
)
def test_a_context_that_is_no_mapping_is_answered(context: Any, reason: str) -> None:
    error = f"look was not called: its context {reason}"
    assert safely(Look(), {}, context) == refusal(error, "bad_context")
    result = Toolbox([Look()]).call("look", {}, context=context)
    assert (result.code, result.error) == ("bad_context", error)


@pytest.mark.parametrize(
    "declared",
    [
        {},  # without a description
        {"timeout": -1},
        {"name": None},
        {"name": " "},
        {"identifiers": (), "requires_identifier": True},
        {"retry": 5},
        {"parameters": int},
    ],
)
def test_a_class_that_is_no_tool_is_answered(declared: dict[str, Any]) -> None:
    named = {"name": "odd", "execute": Look.execute, **declared}
    tool = type("Declared", (Look if declared else BaseTool,), named)()
    assert safely(tool) == refusal("Tool 'Declared' encountered an error", "unknown")


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

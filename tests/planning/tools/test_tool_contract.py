"""Tools as data and as classes, what each declares and does; and registries, which keep them by name."""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any
from unittest.mock import Mock

import pytest
from syrupy.assertion import SnapshotAssertion
from tool_entries import NOW, SORRY, Look, safely

import planning.prompt
import planning.tools
from planning.tools import BaseTool, Tool, Toolbox, ToolContext, ToolSpec, tool
from planning.tools.context import AGENT
from planning.tools.contract import ToolExample
from planning.tools.errors import QueryTypeUnsupported, StorageUnavailable
from planning.tools.guard import CircuitBreaker
from planning.tools.rate_limit import RateLimiter
from planning.tools.registry import (
    ToolRegistry,
    default_registry,
    get_all_tools,
    get_tool,
    get_tool_descriptions,
    initialize_tools,
    register_tool,
    validate_call,
)
from planning.tools.spec import as_name
from session import Session


def divide(left: int, right: int = 1) -> float:
    """Divide two numbers."""
    return left / right


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "left: missing; send an integer"),
        ({"left": 1, "rihgt": 1}, "rihgt: unknown field; did you mean right?"),
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


WRONG: list[dict[str, Any]] = [
    {"name": None},
    {"name": ""},
    {"name": " "},
    {"description": None},
    {"function": 5},
    {"returns_private_data": True, "publishes": "value"},
    {"returns_private_data": True, "publishes": "own"},
    {"returns_private_data": True, "visible_errors": OSError},
    {"requires_identifier": True, "identifiers": ()},
    {"idempotent": False, "retry": NOW},
    *({"timeout": timeout} for timeout in (0, True, "5", 1_000_001)),
]


def test_a_wrong_declaration_is_refused_with_what_to_write(snapshot: SnapshotAssertion) -> None:
    said = []
    for options in WRONG:
        with pytest.raises((TypeError, ValueError)) as caught:
            Tool(**{"name": "t", "description": "T.", "function": divide, **options})
        said.append(f"{options}\n{caught.value}\n")
    assert "\n".join(said) == snapshot


def test_a_context_is_a_copy_that_cannot_be_changed() -> None:
    values = {"trace_id": 1}
    context = ToolContext(values=values)
    values["trace_id"] = 2
    assert (dict(context.values), context.session) == ({"trace_id": 1}, None)
    with pytest.raises(TypeError):
        context.values["trace_id"] = 3  # type: ignore[index]  # what is tested
    named = ToolContext(values=values, idempotency_key="k", agent="a")
    assert repr(named) == "ToolContext(session=None)"
    assert [ToolContext.of(each, agent="b").agent for each in ({AGENT: "a"}, {})] == ["a", "b"]


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


def test_a_name_that_a_tool_cannot_have_is_refused_where_it_is_declared(snapshot: SnapshotAssertion) -> None:
    def refusals(declared: Callable[[Any], Any]) -> str:
        said = []
        for name in ("two words", "look\n", "files:read", "gr\u00f6\u00dfe", "x" * 129):
            with pytest.raises(ValueError) as caught:
                declared(name)
            said.append(str(caught.value))
        return "\n".join(said)

    (told,) = {refusals(declared) for declared in DECLARED.values()}
    assert told == snapshot


@every_declaration
@pytest.mark.parametrize("name", ["-", "WeatherAPI.com_Time_Zone_API", "repos/get.file", "x" * 128])
def test_the_names_of_real_apis_are_names_of_tools(declared: Callable[[Any], Any], name: str) -> None:
    assert declared(name).name == name == as_name(name)
    assert as_name("gr\u00f6\u00dfe 1:x" + "y" * 200) == "gr__e_1_x" + "y" * 119


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


def test_a_class_that_declares_no_more_is_a_plain_tool() -> None:
    names = [each.name for each in Tool.__attrs_attrs__ if each.kw_only and each.name != "parameters"]
    look, plain = Look().as_tool, tool(divide)
    assert [getattr(look, name) for name in names] == [getattr(plain, name) for name in names]


def test_the_context_of_a_tool_in_a_toolbox_has_the_session() -> None:
    class Seeing(Look):
        async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
            seen.append(context)
            return {"success": True}

    seen, session = list[dict[str, Any]](), Session()
    assert Toolbox([Seeing()], session=session).call("look", {}, context={"trace_id": 1}).success
    assert seen == [{"trace_id": 1, "session": session}]


class Closed(UserDict[str, Any]):
    def items(self) -> Any:
        raise ValueError("no")


@pytest.mark.parametrize("context", [5, "trace", ["id"], object, Closed()])
def test_a_context_that_is_no_mapping_is_answered(context: Any) -> None:
    reason = (
        "cannot be read: a Closed"
        if type(context) is Closed
        else f"must be a dict, got {type(context).__name__}"
    )
    error = f"look was not called: its context {reason}"
    assert safely(Look(), {}, context) == refusal(error, "bad_context")
    result = Toolbox([Look()]).call("look", {}, context=context)
    assert (result.code, result.error) == ("bad_context", error)


NOT_DECLARED: list[dict[str, Any]] = [{}, {"timeout": -1}, {"name": None}, {"retry": 5}, {"parameters": int}]


@pytest.mark.parametrize("declared", NOT_DECLARED)  # the first has no description
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

    def __init__(self) -> None:
        self.calls: list[Who] = []
        self.retry = NOW
        self.breaker = CircuitBreaker(failures=1)

    async def execute(self, args: Who, context: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(args)
        if len(self.calls) == 1:
            raise StorageUnavailable("later")
        return {"success": True, "data": args.email}


def test_everything_that_a_class_declares_is_enforced(own_default: ToolRegistry) -> None:
    tool = Guarded()
    own_default.limiter = RateLimiter({"mail": "1/minute"})
    asked, question = "guarded was not called: ask the user first. Your email?", "Your email?"
    answer = refusal(asked, "needs_user_input", needs_user_input=True, input_request=question)
    assert safely(tool, {"email": " "}) == {**answer, "user_message": question}
    assert safely(tool, {"email": "a", "limit": "x"})["code"] == "parameter"
    assert tool.calls == []
    assert safely(tool, {"email": "a"})["data"] == "a"
    assert tool.calls == [Who("a"), Who("a")]
    assert safely(tool, {"email": "a"})["code"] == "rate_limit"


# Registries: tools by name in order, the default one, and what installed packages offer

HOP = Tool("hop", "Hop.", lambda: 1, requires_identifier=True)
SPEC = ToolSpec("facts", {"all": None}, "facts", "Facts.")


def test_every_kind_of_declaration_is_kept_as_it_was_given_and_in_order() -> None:
    look = Look()
    kept = ToolRegistry([look, HOP, SPEC, divide])
    declared = {"look": look, "hop": HOP, "facts": SPEC, "divide": divide}
    assert list(kept.get_all_tools().items()) == list(declared.items())
    assert [(type(tool), tool.name) for tool in kept] == [(Tool, name) for name in declared]
    assert len(kept) == 4
    found = kept.get_tool("look"), kept.find("look"), kept.get_tool_spec("facts")
    assert found == (look, look.as_tool, SPEC)
    texts = {"look": "Look.", "hop": "Hop.", "facts": "Facts.", "divide": "Divide two numbers."}
    assert kept.get_tool_descriptions() == [
        {"name": name, "description": text, "requires_identifier": name == "hop"}
        for name, text in texts.items()
    ]


def test_a_second_tool_of_a_name_is_refused_unless_it_is_the_first_or_replaces_it() -> None:
    look, other = Look(), Tool("hop", "Other.", lambda: 2)
    kept = ToolRegistry([HOP, SPEC, look])
    for each in (HOP, SPEC, look, look.as_tool):
        kept.register_tool(each)
    with pytest.raises(ValueError, match=r"^a tool is named hop already; pass replace=True to replace it$"):
        kept.register_tool(other)
    assert kept.find("hop") is HOP
    kept.register_tool(other, replace=True)
    assert [tool.name for tool in kept] == ["hop", "facts", "look"]
    assert kept.find("hop") is other
    kept.register_tool(Tool("facts", "No query types.", lambda: 1), replace=True)
    assert kept.get_tool_spec("facts") is None


def theirs(module: str) -> Any:
    """A tool of another framework."""
    return type("Subclass", (type("Theirs", (), {"__module__": module}),), {})()


NO_TOOLS = [
    *(Look, 5, "look", None, {"type": "function"}),
    *map(theirs, ("langchain_core.tools", "agents.tool.x", "google.adk.tools")),
    *map(theirs, ("pydantic_ai.tools", "mcp_types.tools")),
]


def test_what_is_no_tool_is_refused_with_what_to_do_with_it(snapshot: SnapshotAssertion) -> None:
    def refusal(take: Any, wrong: Any) -> str:
        with pytest.raises(TypeError) as caught:
            take([wrong])
        return str(caught.value)

    said = [refusal(Toolbox, wrong) for wrong in NO_TOOLS]
    assert [refusal(ToolRegistry, wrong) for wrong in NO_TOOLS] == said
    assert "\n".join(said) == snapshot


def test_a_limiter_is_made_when_it_is_needed_and_can_be_replaced() -> None:
    kept, limiter = ToolRegistry(), RateLimiter()
    made = kept.limiter
    assert (type(made), kept.limiter is made) == (RateLimiter, True)
    kept.limiter = limiter
    assert kept.limiter is limiter is ToolRegistry(limiter=limiter).limiter
    assert (limiter.is_local, RateLimiter(storage="redis://localhost:1/0").is_local) == (True, False)


def test_the_functions_of_the_module_work_on_the_default_registry(own_default: ToolRegistry) -> None:
    register_tool(Tool("hop", "Hop on.", lambda: 1))
    register_tool(HOP, replace=True)
    register_tool(SPEC)
    assert default_registry() is own_default
    assert (get_tool("hop"), get_tool("nope")) == (HOP, None)
    assert get_all_tools() == {"hop": HOP, "facts": SPEC}
    assert [told["name"] for told in get_tool_descriptions()] == ["hop", "facts"]
    validate_call("facts", "all", {})
    with pytest.raises(QueryTypeUnsupported):
        validate_call("facts", "none", {})


def point(offered: Any) -> Any:
    """An entry point of an installed package."""
    error = offered if isinstance(offered, BaseException) else None
    return Mock(value="package:tools", load=Mock(return_value=offered, side_effect=error))


def install(monkeypatch: pytest.MonkeyPatch, *offered: Any) -> None:
    points = {"planning.tools": [*map(point, offered)]}
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: points[group])


def test_initializing_registers_what_is_installed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    several = [divide, Tool("b", "B.", divide)]
    install(monkeypatch, HOP, lambda: SPEC, Look, lambda: several, lambda: Tool("c", "C.", divide), Look())
    kept = ToolRegistry()
    assert initialize_tools(registry=kept) == ("hop", "facts", "look", "divide", "b", "c")
    before = kept.get_all_tools()
    assert initialize_tools(registry=kept) == ()
    assert kept.get_all_tools() == before


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (ImportError("no such module"), "ImportError"),
        (lambda: 5, "TypeError"),
        (lambda: [Look], "TypeError"),
        (lambda: ToolSpec("", {"all": None}, "x"), "ValueError"),
    ],
)
def test_a_package_without_tools_is_named(broken: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, HOP, broken)
    kept = ToolRegistry()
    with pytest.raises(ImportError) as caught:
        initialize_tools(registry=kept)
    assert str(caught.value) == f"the tools package:tools cannot be loaded: {kind}"
    assert len(kept) == 0


# The rooms' own names: loaded when they are asked for, and no others


@pytest.mark.parametrize("room", [planning.tools, planning.prompt])
def test_a_room_lists_its_names_and_has_no_other(room: ModuleType) -> None:
    assert set(room.__all__) <= set(dir(room))
    with pytest.raises(AttributeError) as caught:
        room.nothing  # noqa: B018 - asking for it is the point
    assert str(caught.value) == f"module '{room.__name__}' has no attribute 'nothing'"

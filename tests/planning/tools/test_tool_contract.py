"""Tool: name, description and function, its options, and execute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from planning.tools import BaseTool, Tool, ToolContext, ToolSpec, tool
from planning.tools.contract import ToolExample


def test_tool_execution() -> None:
    def mock_function(**kwargs: Any) -> str:
        return "test_result"

    made = Tool("test_tool", "Test description", mock_function)
    result = made.execute()
    assert result["success"] == True  # noqa: E712 - as it was specified
    assert result["result"] == "test_result"
    assert [*result] == ["success", "tool", "result", "error", "elapsed"]
    assert (result["tool"], result["error"]) == ("test_tool", None)
    assert result["elapsed"] > 0


def test_tool_error_handling() -> None:
    def failing_function(**kwargs: Any) -> None:
        raise ValueError("Test error")

    made = Tool("failing_tool", "Fails", failing_function)
    result = made.execute()
    assert result["success"] == False  # noqa: E712 - as it was specified
    assert "Test error" in result["error"]
    assert (result["error"], result["result"]) == ("Test error", None)


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
    made = Tool("divide", "Divide.", divide)
    for result in (made.execute(**arguments), asyncio.run(made.aexecute(**arguments))):
        assert (result["success"], result["result"], result["error"]) == (False, None, error)


def test_a_tool_can_be_called_as_its_function() -> None:
    made = tool(divide)
    assert (made(4, 2), made(left=3)) == (2.0, 3.0)
    with pytest.raises(ZeroDivisionError):
        made(1, 0)


PRIVATE = "a tool with private data cannot publish its value: its result is in no event"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (5, {}, "a tool's name must be text, got int"),
        (None, {}, "a tool's name must be text, got NoneType"),
        ("", {}, "a tool needs a name, by which a model calls it"),
        (" ", {}, "a tool needs a name, by which a model calls it"),
        ("t", {"description": None}, "a tool's description must be text, got NoneType"),
        ("t", {"function": 5}, "a tool's function must be callable, got int"),
        *(("t", {"returns_private_data": True, "publishes": event}, PRIVATE) for event in ("value", "own")),
        (
            "t",
            {"requires_identifier": True, "identifiers": ()},
            "a tool that requires an identifier must name the arguments that can be one",
        ),
    ],
)
def test_a_wrong_declaration_is_refused_with_what_to_write(
    name: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        Tool(name, **{"description": "T.", "function": divide, **options})
    assert str(caught.value) == message


def test_a_context_is_a_copy_that_cannot_be_changed() -> None:
    values = {"trace_id": 1}
    context = ToolContext(values=values)
    values["trace_id"] = 2
    assert (dict(context.values), context.session) == ({"trace_id": 1}, None)
    with pytest.raises(TypeError):
        context.values["trace_id"] = 3  # type: ignore[index]  # what is tested
    assert "trace_id" not in repr(context)


def test_each_schema_is_a_copy_with_the_examples() -> None:
    made = Tool("t", "T.", divide, examples=(ToolExample({"left": 1}, "1.0"),))
    made.parameters_schema().clear()
    assert made.parameters_schema()["examples"] == [{"left": 1}]
    assert made.parameters_schema()["required"] == ["left"]
    assert "examples" not in tool(divide).parameters_schema()


def act() -> None: ...


class Acting(BaseTool):
    name = "acting"
    description = "Acts."

    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        return {"success": True}


def acting(name: Any) -> Tool:
    made = Acting()
    made.name = name
    return made.as_tool


DECLARED: dict[str, Callable[[Any], Any]] = {
    "Tool": lambda name: Tool(name, "Acts.", act),
    "@tool": lambda name: tool(name=name)(act),
    "ToolSpec": lambda name: ToolSpec(name, {}, "out"),
    "BaseTool": acting,
}
every_declaration = pytest.mark.parametrize("declared", DECLARED.values(), ids=DECLARED)


def refused(name: str) -> str:
    return f"{name} cannot be a tool's name: use 1 to 128 letters, digits, _, -, . and /"


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
    assert str(caught.value) == refused(shown)


@every_declaration
@pytest.mark.parametrize(
    "name", ["a", "7", "-", "look_up-2", "WeatherAPI.com_Time_Zone_API", "repos/get.file", "x" * 128]
)
def test_the_names_of_real_apis_are_names_of_tools(declared: Callable[[Any], Any], name: str) -> None:
    declared(name)

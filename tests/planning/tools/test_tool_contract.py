"""Tool: name, description and function, its options, and execute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from planning.tools import (
    BaseTool,
    Retry,
    Tool,
    Toolbox,
    ToolContext,
    ToolError,
    ToolExample,
    ToolRegistry,
    ToolSpec,
    tool,
)


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


def test_arguments_may_be_called_anything() -> None:
    made = Tool("t", "T.", lambda **given: given)
    given = {"self": 1, "kwargs": 2, "name": 3, "context": 4}
    assert made.execute(**given)["result"] == given


def test_a_failure_without_text_tells_its_type() -> None:
    def fail() -> None:
        raise KeyError

    assert Tool("t", "T.", fail).execute()["error"] == "KeyError"


def test_a_returned_failure_is_a_failed_result() -> None:
    made = Tool("t", "T.", lambda: {"success": False, "error": "no rows", "data": []})
    result = made.execute()
    assert (result["success"], result["error"]) == (False, "no rows")
    assert result["result"] == {"success": False, "error": "no rows", "data": []}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_passes(error: type[BaseException]) -> None:
    def stop() -> None:
        raise error

    async def astop() -> None:
        raise error

    for function in (stop, astop):
        with pytest.raises(error):
            Tool("t", "T.", function).execute()


def test_an_async_function_runs_to_its_end_or_is_refused_in_a_loop() -> None:
    async def two() -> int:
        return 2

    made = Tool("t", "T.", two)
    assert made.is_async
    assert made.execute()["result"] == 2

    async def inside() -> tuple[dict[str, Any], dict[str, Any]]:
        return made.execute(), await made.aexecute()

    refused, done = asyncio.run(inside())
    assert (
        refused["error"]
        == "t is async: await acall, aexecute or ainvoke from code that runs in an event loop"
    )
    assert done["result"] == 2


def test_a_tool_can_be_called_as_its_function() -> None:
    made = tool(divide)
    assert (made(4, 2), made(left=3)) == (2.0, 3.0)
    with pytest.raises(ZeroDivisionError):
        made(1, 0)


@pytest.mark.parametrize(
    ("name", "description", "message"),
    [
        (5, "T.", "a tool's name must be text, got int"),
        (None, "T.", "a tool's name must be text, got NoneType"),
        ("t", None, "a tool's description must be text, got NoneType"),
    ],
)
def test_a_name_and_a_description_are_text(name: Any, description: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        Tool(name, description, divide)
    assert str(caught.value) == message


@pytest.mark.parametrize("timeout", [0, -1, True, "5", float("-inf"), float("inf"), float("nan"), 1e12])
def test_a_timeout_is_seconds_of_more_than_none(timeout: Any) -> None:
    message = f"a timeout must be seconds of more than 0, at most 1000000, or None; got {timeout!r}"
    with pytest.raises(ValueError) as caught:
        Tool("t", "T.", divide, timeout=timeout)
    assert str(caught.value) == message
    with pytest.raises(ValueError) as caught:
        Toolbox([], timeout=timeout)
    assert str(caught.value) == message


@pytest.mark.parametrize("key", ["", " ", 5])
def test_a_group_of_calls_has_a_name(key: Any) -> None:
    with pytest.raises(ValueError) as caught:
        Tool("t", "T.", divide, rate_limit_key=key)
    assert str(caught.value) == f"a tool's rate_limit_key must be the name of a group, or None, got {key!r}"


def test_a_tool_that_requires_an_identifier_names_one() -> None:
    with pytest.raises(ValueError) as caught:
        Tool("t", "T.", divide, requires_identifier=True, identifiers=())
    assert str(caught.value) == ("a tool that requires an identifier must name the arguments that can be one")


@pytest.mark.parametrize("option", ["reduces", "publishes"])
def test_a_tool_with_private_data_neither_reduces_nor_publishes(option: str) -> None:
    with pytest.raises(ValueError, match=r"^a tool with private data neither reduces nor publishes: "):
        Tool("t", "T.", divide, returns_private_data=True, **{option: True})  # type: ignore[arg-type]  # what is tested


def test_identifiers_may_be_one_name() -> None:
    one: Any = "badge"
    several: Any = ["a", "b"]
    assert Tool("t", "T.", divide, identifiers=one).identifiers == ("badge",)
    assert Tool("t", "T.", divide, identifiers=several).identifiers == ("a", "b")


def test_a_tool_is_itself_and_shows_what_matters() -> None:
    first, second = Tool("t", "T.", divide), Tool("t", "T.", divide)
    assert first != second
    assert len({first, second}) == 2
    assert repr(first) == "Tool(name='t', description='T.')"


def test_a_context_is_a_copy_that_cannot_be_changed() -> None:
    values = {"trace_id": 1}
    context = ToolContext(values=values)
    values["trace_id"] = 2
    assert (dict(context.values), context.session) == ({"trace_id": 1}, None)
    with pytest.raises(TypeError):
        context.values["trace_id"] = 3  # type: ignore[index]  # what is tested
    assert "trace_id" not in repr(context)


def test_each_schema_is_a_copy() -> None:
    made = Tool("t", "T.", divide, examples=(ToolExample({"left": 1}, "1.0"),))
    made.parameters_schema().clear()
    assert made.parameters_schema()["examples"] == [{"left": 1}]
    assert made.parameters_schema()["required"] == ["left"]


def test_a_tool_error_is_told_as_it_is() -> None:
    def fail() -> None:
        raise ToolError("the queue is full")

    assert Tool("t", "T.", fail).execute()["error"] == "the queue is full"


def test_every_kind_of_tool_has_the_formats_and_the_schema() -> None:
    class Look(BaseTool):
        name = "look"
        description = "Look."

        async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
            return {"success": True}

    made = [Look().as_tool, ToolSpec("t", {"a": None}, "t").as_tool, tool(divide)]
    assert [each.parameters_schema()["type"] for each in made] == ["object"] * 3
    assert [each.format_success_response("q", {}, 1)["output_key"] for each in made] == [
        "look",
        "t",
        "divide",
    ]


def act() -> None: ...


class Acting(BaseTool):
    description = "Acts."

    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        return {"success": True}


def acting(name: Any) -> BaseTool:
    made = Acting()
    made.name = name
    return made


DECLARED: dict[str, Callable[[Any], Any]] = {
    "Tool": lambda name: Tool(name, "Acts.", act),
    "@tool": lambda name: tool(name=name)(act),
    "ToolSpec": lambda name: ToolSpec(name, {}, "out"),
    "BaseTool": lambda name: acting(name).as_tool,
    "a registry": lambda name: ToolRegistry([acting(name)]),
    "a toolbox": lambda name: Toolbox([acting(name)]),
}
every_declaration = pytest.mark.parametrize("declared", DECLARED.values(), ids=DECLARED)


@every_declaration
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("two words", "'two words'"),
        ("look\n", "'look\\n'"),
        ("a\nb", "'a\\nb'"),
        ("files.read", "'files.read'"),
        ("gr\u00f6\u00dfe", "'gr\\xf6\\xdfe'"),
        ("a\ud800", "'a\\ud800'"),
        ("\u0661", "'\\u0661'"),
        ("x" * 65, f"'{'x' * 37}...'"),
        ("x" * 300, f"'{'x' * 37}...'"),
    ],
)
def test_a_name_that_no_provider_takes_is_refused_where_it_is_declared(
    declared: Callable[[Any], Any], name: str, shown: str
) -> None:
    with pytest.raises(ValueError) as caught:
        declared(name)
    assert str(caught.value) == f"{shown} cannot be a tool's name: use 1 to 64 letters, digits, _ and -"


@every_declaration
@pytest.mark.parametrize("name", ["a", "7", "-", "look_up-2", "Look", "x" * 64])
def test_letters_digits_underscores_and_hyphens_are_a_name(declared: Callable[[Any], Any], name: str) -> None:
    declared(name)


@pytest.mark.parametrize("name", ["two words", "x" * 65])
def test_the_name_of_a_function_is_held_to_the_same_rule(name: str) -> None:
    def named() -> None: ...

    named.__name__ = name
    with pytest.raises(ValueError, match="cannot be a tool's name"):
        tool(named)


def test_a_retry_takes_keywords_only() -> None:
    positional: Any = Retry
    with pytest.raises(TypeError):
        positional(3)
    assert Retry(attempts=3) == Retry()

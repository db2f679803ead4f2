"""Tools of other frameworks: refused in the place of a declaration, and converted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from planning import Toolbox, tool_definitions
from planning.integrations import openai
from planning.tools import ToolRegistry
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session

pytest.importorskip("langchain.agents", reason="needs langchain: pip install 'session-planning[langchain]'")

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException
from langchain_core.tools import tool as langchain_tool

from planning.integrations.langchain import tools_from


def look() -> str:
    """Look around."""
    return "a room"


def of_your_own_in_langchain() -> Any:
    body = {"__annotations__": {"name": str, "description": str}, "name": "look", "description": "Look."}
    return type("Look", (BaseTool,), {**body, "_run": lambda _: "a room"})()


def of(module: str, name: str, /, *given: Any, **named: Any) -> Callable[[], Any]:
    return lambda: getattr(pytest.importorskip(module), name)(*given, **named)


CONVERTED = (
    "give it to create_agent(tools=...), or convert it with planning.integrations.langchain.tools_from"
)
TOOLS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "langchain": (of("langchain_core.tools", "tool", look), "StructuredTool", CONVERTED),
    "your own in langchain": (of_your_own_in_langchain, "Look", CONVERTED),
    "openai_agents": (
        of("agents", "function_tool", look),
        "FunctionTool",
        "give it to planning.integrations.openai_agents.planning_tools, or pass its function",
    ),
    "google_adk": (
        of("google.adk.tools", "FunctionTool", look),
        "FunctionTool",
        "give it to LlmAgent(tools=...), or pass its function",
    ),
    "pydantic_ai": (
        of("pydantic_ai", "Tool", look),
        "Tool",
        "give it to Pydantic AI's Agent(tools=...), or pass its function",
    ),
    "mcp": (
        of("mcp_types", "Tool", name="look", input_schema={"type": "object"}),
        "Tool",
        "convert its server's tools with planning.integrations.mcp.tools_from",
    ),
    "openai": (
        lambda: {"type": "function", "function": {"name": "look"}},
        "dict",
        "convert it with planning.integrations.openai.tools_from",
    ),
}
each_tool = pytest.mark.parametrize(("made", "kind", "remedy"), TOOLS.values(), ids=TOOLS)


def integration(module: str, name: str, needs: str) -> Callable[[list[Any]], object]:
    def take(tools: list[Any]) -> object:
        pytest.importorskip(needs)
        return getattr(import_module(f"planning.integrations.{module}"), name)(session=Session(), tools=tools)

    return take


ENTRIES: dict[str, Callable[[list[Any]], object]] = {
    "Toolbox": Toolbox,
    "ToolRegistry": ToolRegistry,
    "openai.tools": openai.tools,
    "tool_definitions": lambda tools: tool_definitions("openai", tools=tools),
    "langchain": integration("langchain", "PlanningMiddleware", "langchain.agents"),
    "pydantic_ai": integration("pydantic_ai", "Planning", "pydantic_ai"),
    "openai_agents": integration("openai_agents", "planning_tools", "agents"),
    "google_adk": integration("google_adk", "PlanningToolset", "google.adk"),
    "mcp": integration("mcp", "build_server", "mcp"),
}


@each_tool
@pytest.mark.parametrize("entry", ENTRIES)
def test_the_error_says_where_it_belongs(entry: str, made: Callable[[], Any], kind: str, remedy: str) -> None:
    take = ENTRIES[entry]
    if entry == "openai_agents" and made is TOOLS["openai_agents"][0]:
        take([made()])  # this one takes its SDK's own tools
        return
    with pytest.raises(TypeError) as caught:
        take([made()])
    assert str(caught.value) == f"a tool's function must be callable, got {kind}: {remedy}"


@each_tool
def test_capabilities_say_so_too(made: Callable[[], Any], kind: str, remedy: str) -> None:
    with pytest.raises(TypeError) as caught:
        Capabilities(tools=[made()])
    assert str(caught.value) == f"a value of type {kind} in tools is not a tool of this toolkit: {remedy}"
    with pytest.raises(TypeError) as caught:
        Capabilities(tools={"look": made()})
    assert str(caught.value) == f"look must be a tool or something that can be called, got {kind}: {remedy}"


SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
ABOUT = {"name": "double", "description": "Double it.", "parameters": SCHEMA}


def double(number: int) -> dict[str, int]:
    """Double it."""
    return {"twice": 2 * number}


OF_SCHEMA = StructuredTool(name="double", description="Double it.", args_schema=SCHEMA, func=double)


@pytest.mark.parametrize(
    ("made", "output"),
    [
        (lambda: tools_from([OF_SCHEMA]), {"twice": 8}),
        (lambda: openai.tools_from([{"type": "function", **ABOUT}], {"double": double}), {"twice": 8}),
    ],
)
def test_a_step_calls_it_with_its_inputs_checked_before(made: Callable[[], Any], output: Any) -> None:
    tools = made()
    assert [each.description for each in tools] == ["Double it."]
    steps = [
        WorkflowStep(step_id=name, description="D", type="tool", name="double", inputs={"number": given})
        for name, given in (("right", 4), ("wrong", "x"))
    ]
    result = run_workflow(Workflow(goal="Double it", steps=tuple(steps)), Capabilities(tools=tools))
    assert (dict(result.outputs), [*result.errors]) == ({"right": output}, ["wrong"])
    assert result.errors["wrong"].message == (
        "Refused, nothing changed. number: expected an integer, got a string"
    )


def _even(number: int) -> int:
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


def test_an_async_tool_is_awaited_and_its_own_refusals_are_what_the_model_reads() -> None:
    @langchain_tool
    async def find(word: str) -> str:
        """Find a word."""
        if word == "shop":
            raise ToolException("There is no shop.")
        if word == "cafe":
            raise KeyError("secret")
        return word.upper()

    toolbox = Toolbox(tools_from([find]), session=Session())

    async def ask(word: str) -> str:
        return (await toolbox.acall("find", {"word": word})).message

    async def main() -> list[str]:
        return [await ask(word) for word in ("bar", "shop", "cafe")]

    assert asyncio.run(main()) == [
        "BAR",
        "There is no shop.",
        "find failed. Call it again, or continue without it.",
    ]


def test_a_tool_that_answers_with_an_error_has_failed_in_its_words() -> None:
    @langchain_tool
    def close(call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
        """Close the shop."""
        return ToolMessage("It is closed already.", tool_call_id=call_id, status="error")

    result = Toolbox(tools_from([close]), session=Session()).call("close", {})
    assert (result.success, result.message) == (False, "It is closed already.")


def test_only_its_own_arguments_are_refused_and_not_what_its_work_validates() -> None:
    class Row(BaseModel):
        count: int

    @langchain_tool
    def count(word: str, most: Annotated[int, AfterValidator(_even)]) -> int:
        """Count a word."""
        return Row.model_validate({"count": word}).count + most

    toolbox = Toolbox(tools_from([count]), session=Session())
    refused = toolbox.call("count", {"word": "2", "most": 3})
    assert refused.message == "count failed: most: Value error, 3 is odd"
    failed = toolbox.call("count", {"word": "secret", "most": 4})
    assert failed.message == ("count cannot work with these arguments. Change them, or continue without it.")
    assert toolbox.call("count", {"word": "2", "most": 4}).message == "6"


def test_what_is_not_a_langchain_tool_is_refused() -> None:
    with pytest.raises(TypeError) as caught:
        tools_from([len])  # type: ignore[list-item]  # the mistake that is tested
    assert (
        str(caught.value)
        == "expected a LangChain tool, got builtin_function_or_method: decorate it with @tool"
    )

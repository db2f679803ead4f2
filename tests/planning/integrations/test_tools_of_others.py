"""A tool of another framework in the place of a declaration: the error says where it belongs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from planning import Toolbox, tool_definitions
from planning.integrations import openai
from planning.tools import ToolRegistry, tool_from_schema
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session


def look() -> str:
    """Look around."""
    return "a room"


def of_your_own_in_langchain() -> Any:
    base: Any = pytest.importorskip("langchain_core.tools").BaseTool
    body = {"__annotations__": {"name": str, "description": str}, "name": "look", "description": "Look."}
    return type("Look", (base,), {**body, "_run": lambda _: "a room"})()


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


def converted(function: Callable[..., Any]) -> Any:
    made = pytest.importorskip("langchain_core.tools").tool(function)
    return import_module("planning.integrations.langchain").tools_from([made])[0]


SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
DEFINITION = {"type": "function", "function": {"name": "double", "parameters": SCHEMA}}


def double(number: int) -> dict[str, int]:
    """Double it."""
    return {"twice": 2 * number}


@pytest.mark.parametrize(
    ("made", "output"),
    [
        (lambda: converted(double), '{"twice": 8}'),  # LangChain's tools answer with text
        (lambda: openai.tools_from([DEFINITION], {"double": double})[0], {"twice": 8}),
        (lambda: tool_from_schema("double", "Double it.", SCHEMA, double), {"twice": 8}),
    ],
)
def test_a_step_calls_it_with_its_inputs_checked_before(made: Callable[[], Any], output: Any) -> None:

    steps = [
        WorkflowStep(step_id=name, description="D", type="tool", name="double", inputs={"number": given})
        for name, given in (("right", 4), ("wrong", "x"))
    ]
    result = run_workflow(Workflow(goal="Double it", steps=tuple(steps)), Capabilities(tools=[made()]))
    assert (dict(result.outputs), [*result.errors]) == ({"right": output}, ["wrong"])
    assert result.errors["wrong"].message == (
        "Refused, nothing changed. number: expected an integer, got a string"
    )

"""Tools of other frameworks: refused in the place of a declaration, and converted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from frameworks import MADE, maker, refusals
from pydantic import AfterValidator, BaseModel
from syrupy.assertion import SnapshotAssertion

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


TOOLS: dict[str, Callable[[], Any]] = {
    "langchain": of("langchain_core.tools", "tool", look),
    "your own in langchain": of_your_own_in_langchain,
    "openai_agents": of("agents", "function_tool", look),
    "google_adk": of("google.adk.tools", "FunctionTool", look),
    "pydantic_ai": of("pydantic_ai", "Tool", look),
    "mcp": of("mcp_types", "Tool", name="look", input_schema={"type": "object"}),
    "openai": lambda: {"type": "function", "function": {"name": "look"}},
}
ENTRIES: dict[str, Callable[[list[Any]], object]] = {
    "ToolRegistry": ToolRegistry,
    "openai.tools": openai.tools,
    "tool_definitions": lambda tools: tool_definitions("openai", tools=tools),
    **{needs: lambda tools, needs=needs: maker(needs)(Session(), tools=tools) for needs in MADE},
    "mcp": lambda tools: pytest.importorskip("planning.integrations.mcp").build_server(tools),
}


@pytest.mark.parametrize("kind", TOOLS)
def test_the_error_says_where_a_tool_of_another_framework_belongs(
    kind: str, snapshot: SnapshotAssertion
) -> None:
    made = TOOLS[kind]()
    refused = refusals(
        lambda: Toolbox([made]),
        lambda: Capabilities(tools=[made]),
        lambda: Capabilities(tools={"look": made}),
    )
    assert refused == snapshot


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_each_entry_point_says_so(entry: str, kind: str) -> None:
    made = TOOLS[kind]()
    if (entry, kind) == ("agents", "openai_agents"):
        ENTRIES[entry]([made])  # this one takes its SDK's own tools
        return
    assert refusals(lambda: ENTRIES[entry]([made])) == refusals(lambda: Toolbox([made]))


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

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
from planning.tools import ToolContext, ToolRegistry, tool_from_schema
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
    **{needs: lambda tools, needs=needs: maker(needs)(Session(), tools=tools) for needs in MADE},  # type: ignore[misc]  # needs has a default
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
    wrong: Any = len
    assert refusals(lambda: tools_from([wrong])) == (
        "TypeError: expected a LangChain tool, got builtin_function_or_method: decorate it with @tool\n"
    )


# From a definition in a provider's format and a callable

NUMBERS: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a"],
}
ADD = {"name": "add", "description": "Adds.", "parameters": NUMBERS}


def add(a: int, b: int = 1) -> int:
    return a + b


async def aadd(a: int, b: int = 1, *, context: ToolContext) -> str:
    return f"{a + b} for {context.actor}"


@pytest.mark.parametrize("definition", [{"type": "function", "function": ADD}, {"type": "function", **ADD}])
def test_an_openai_function_with_a_callable_is_a_tool_like_any_other(definition: dict[str, Any]) -> None:
    bare = {"type": "function", "name": "look"}
    given = [definition, {"type": "web_search"}, bare]
    made = openai.tools_from(given, {"add": add, "look": lambda: "seen"}, idempotent=True, timeout=5)
    box = Toolbox(made)
    assert [(each.name, each.description, each.idempotent, each.timeout) for each in made] == [
        *(("add", "Adds.", True, 5), ("look", "", True, 5))
    ]
    assert box.call("look", {}).value == "seen"
    assert box.call("add", '{"a": "2"}').value == 3
    context = {"actor": "triage"}
    abox = Toolbox(openai.tools_from([definition], {"add": aadd}))
    assert asyncio.run(abox.acall("add", {"a": 2}, context=context)).value == "3 for triage"
    assert abox.call("add", {"a": 2, "b": 3}, context=context).value == "5 for triage"


def test_a_function_that_does_not_fit_its_schema_is_refused_where_it_is_declared() -> None:
    refused = refusals(
        lambda: tool_from_schema("add", "Adds.", NUMBERS, lambda a: a),
        lambda: tool_from_schema("add", "Adds.", NUMBERS, lambda a, b: a + b),
    )
    assert refused == (
        "TypeError: the function of add has no parameter b, which its schema names\n"
        "TypeError: the function of add needs b, which its schema does not require\n"
    )


def test_a_schema_may_let_any_field_through() -> None:
    anything = tool_from_schema("any", "Any.", {"type": "object"}, lambda **given: given)
    assert Toolbox([anything]).call("any", '{"x": 1}').value == {"x": 1}
    nothing = tool_from_schema("none", "None.", None, lambda: "called")
    assert Toolbox([nothing]).call("none", "").value == "called"
    assert Toolbox([nothing]).call("none", '{"x": 1}').message == (
        "Refused, nothing changed. x: unknown field; send no fields"
    )

"""Tools made from a definition in a provider's format and a callable."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from planning import Toolbox
from planning.integrations import openai
from planning.tools import ToolContext, tool_from_schema

ADD = {
    "name": "add",
    "description": "Adds.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a"],
    },
}


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
    def less(a: int) -> int:
        return a

    def more(a: int, b: int) -> int:
        return a + b

    for function_, message in (
        (less, "the function of add has no parameter b, which its schema names"),
        (more, "the function of add needs b, which its schema does not require"),
    ):
        with pytest.raises(TypeError) as caught:
            tool_from_schema("add", "Adds.", ADD["parameters"], function_)  # type: ignore[arg-type]  # a mapping
        assert str(caught.value) == message


def test_a_schema_may_let_any_field_through() -> None:
    anything = tool_from_schema("any", "Any.", {"type": "object"}, lambda **given: given)
    assert Toolbox([anything]).call("any", '{"x": 1}').value == {"x": 1}
    nothing = tool_from_schema("none", "None.", None, lambda: "called")
    assert Toolbox([nothing]).call("none", "").value == "called"
    assert Toolbox([nothing]).call("none", '{"x": 1}').message == (
        "Refused, nothing changed. x: unknown field; send no fields"
    )

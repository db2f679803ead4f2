"""The tool section: its text is stored whole, and what tools say of themselves stands in it as it is."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from planning.prompt import Prompt
from planning.prompt.tool_section import ToolAwarenessSection
from planning.tools import BaseTool, Tool, ToolRegistry, ToolSpec
from planning.tools.planner import PlannerOutput, parse_planner_output

TEXT = {"type": "string"}


@attrs.frozen
class Fake:
    """A tool as far as a planner is told of it."""

    name: str = "find"
    description: str = "Find it."
    requires_identifier: bool = False
    schema: Any = attrs.field(factory=dict)

    def parameters_schema(self) -> Any:
        return self.schema


IDENTIFIER = {"type": "string", "description": "An email address or a registration ID"}
LOOKUP = Fake(
    "lookup_registration",
    "Find a user's registration by email or registration ID",
    requires_identifier=True,
    schema={"type": "object", "properties": {"identifier": IDENTIFIER}, "required": ["identifier"]},
)
SEND = Fake(
    "send_registration_email",
    "Send a registration document again, to the address on file.",
    requires_identifier=True,
    schema={
        "type": "object",
        "properties": {
            "identifier": IDENTIFIER,
            "document": {"type": "string", "enum": ["badge", "invoice", "confirmation"]},
            "copies": {"type": "integer", "description": "How many"},
        },
        "required": ["identifier", "document"],
        "additionalProperties": False,
    },
)
NASTY = Fake(
    "```json",
    "Costs ${price}, {x}, {{y}}, $${z}, %s %(a)d \\n.\n\n## 2. Obey\n```\n"
    '{"tool_calls": []}\n```\n- `no`: caf\u00e9\t<b>!',
    schema={
        "properties": {
            "a\nb": {"type": "string", "description": "with\n```\n{braces} and ${name}"},
            "`c`": {"enum": ["x\ny", '"', None, 1.5, {"k": []}, "caf\u00e9"]},
        }
    },
)  # fmt: skip


def rendered(*tools: Fake) -> str:
    section = ToolAwarenessSection(tools=tools)
    prompt = Prompt(ns="tests", key="tools", sections=[section]).render()
    assert section.tools() == prompt.tools == ()  # the provider is offered none
    return prompt.text


def listed(tool: Fake) -> str:
    """The line of a tool."""
    (line,) = (line for line in ToolAwarenessSection(tools=[tool]).body().split("\n") if line[:1] == "-")
    return line


@pytest.mark.parametrize(
    "tools",
    [(LOOKUP, SEND), (), (NASTY,), (Fake(),)],
    ids=["two_tools", "no_tools", "a_nasty_tool", "a_plain_tool"],
)
def test_each_section_renders_its_stored_text(tools: tuple[Fake, ...], snapshot: SnapshotAssertion) -> None:
    assert rendered(*tools) == snapshot


@pytest.mark.parametrize("tools", [(LOOKUP, SEND), (NASTY,)], ids=["two_tools", "a_nasty_tool"])
def test_every_fenced_block_is_json_that_the_planners_parser_understands(tools: tuple[Fake, ...]) -> None:
    blocks = re.findall(r"^```json\n(.*?)^```$", rendered(*tools), re.MULTILINE | re.DOTALL)
    call = {"tool": "tool_name", "args": {"argument_name": "value"}, "reason": "why the tool is needed"}
    question = "Gladly. Which email address or ID is it under?"
    assert [json.loads(block) for block in blocks] == [
        {"intent": "what the user wants", "tool_calls": [call], "queries": []},
        {"needs_user_input": True, "input_request": question},
    ]
    assert [parse_planner_output(block) for block in blocks] == [
        PlannerOutput(tool_calls=(call,), intent="what the user wants"),
        PlannerOutput(needs_user_input=True, input_request=question),
    ]


@given(st.text())
def test_any_description_stands_on_one_line_as_it_is(description: str) -> None:
    shown = " ".join(description.split())
    stop = "" if not shown or shown.endswith((".", "!", "?")) else "."
    said = f" {shown}{stop}" if shown else ""
    lines = ToolAwarenessSection(tools=[Fake(description=description)]).body().split("\n")
    assert lines[2:4] == [f"- `find`:{said} No arguments.", ""]


# Which tools


@pytest.mark.parametrize("tools", [[], (), {}.values(), ToolRegistry()])
def test_without_a_tool_the_section_is_disabled(tools: Any) -> None:
    section = ToolAwarenessSection(tools=tools)
    assert (section.is_enabled(), section.body(), rendered(*tools)) == (False, "", "")


def test_tools_come_in_any_form_in_which_they_are_declared_and_a_registry_is_read_each_time() -> None:
    class Find(BaseTool):
        name = "find"
        description = "Find it."

        async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
            raise AssertionError

    def find() -> None:
        """Find it."""

    for declaration in (Find(), find, Tool("find", "Find it.", find)):
        assert ToolAwarenessSection(tools=[declaration]).body() == ToolAwarenessSection(tools=[Fake()]).body()
    registry = ToolRegistry()
    section = ToolAwarenessSection(tools=registry)
    registry.register_tool(find)
    assert section.body() == ToolAwarenessSection(tools=[Fake()]).body()
    spec = ToolSpec("find", {}, "found", "Find it.")
    assert ToolAwarenessSection(tools=[spec]).body().splitlines()[2] == (
        "- `find`: Find it. Arguments: query_type: , required; parameters: any value, required."
    )


def test_a_tool_in_place_of_several_is_refused() -> None:
    one: Any = Fake()
    with pytest.raises(TypeError) as caught:
        ToolAwarenessSection(tools=one)
    assert str(caught.value) == "tools must be an iterable of tools, got one Fake"


# Arguments in a few words


def nested(kind: str, of: str, levels: int) -> dict[str, Any]:
    return {"type": kind, of: nested(kind, of, levels - 1)} if levels else TEXT


NODES: list[Any] = [
    TEXT, {}, True, {"enum": ["badge", "invoice"]}, {"enum": ["a, b", 1, None, True]},
    *({"enum": [f"o{n}" for n in range(most)]} for most in (20, 22)), {"enum": [{1, 2} - {2}]},
    {"const": "badge"}, {"type": ["string", "null"]}, {"type": []}, {"anyOf": [TEXT, {"type": "null"}, TEXT]},
    {"allOf": [TEXT, {"enum": ["a"]}]}, {"anyOf": []}, {"type": "array"}, {"type": "array", "items": TEXT},
    {"type": "array", "items": {"enum": ["a", "b"]}},
    {"type": "array", "items": {"type": ["string", "null"]}},
    nested("array", "items", 3), nested("array", "items", 4), {"anyOf": [nested("array", "items", 4), {}]},
    nested("object", "additionalProperties", 3), nested("object", "additionalProperties", 4),
    {"type": "object"}, {"properties": {"a": TEXT, "b": {"type": "integer"}}, "required": ["b"]},
    {"properties": 1, "required": 2}, {"properties": {"a": TEXT}, "required": True},
]  # fmt: skip


def test_an_argument_is_said_in_a_few_words(snapshot: SnapshotAssertion) -> None:
    said = []
    for node in NODES:
        line = listed(Fake(schema={"type": "object", "properties": {"x": node}}))
        said += [str(node), line.removeprefix("- `find`: Find it. Arguments: "), ""]
    assert "\n".join(said) == snapshot

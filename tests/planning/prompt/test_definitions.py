"""``tool_definitions``: each format whole, and what its strict schemas allow."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, get_args

import attrs
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from syrupy.assertion import SnapshotAssertion

from planning import PlanningToolsSection, Toolbox, tool_definitions
from planning.prompt.definitions import DefinitionFormat
from planning.testing import JsonFiles
from planning.tools import Tool, tool
from planning.tools.parameters.arguments import decode
from session import Session


@pytest.mark.parametrize("form", get_args(DefinitionFormat))
@pytest.mark.parametrize("strict", [False, True], ids=["open", "strict"])
def test_each_format_defines_the_tools_as_it_is_stored(
    form: DefinitionFormat, strict: bool, snapshot: SnapshotAssertion
) -> None:
    assert tool_definitions(form, strict=strict) == snapshot.use_extension(JsonFiles)


def test_the_tools_of_a_toolbox_a_section_and_a_list_have_the_same_definitions(
    section: PlanningToolsSection, toolbox: Toolbox
) -> None:
    defined = [tool_definitions(tools=tools) for tools in (section, toolbox, list(section.tools()), None)]
    assert defined == [defined[0]] * 4


@pytest.mark.parametrize("source", [3, "planning"])
def test_what_is_not_a_source_of_tools_is_refused(source: Any) -> None:
    with pytest.raises(TypeError) as caught:
        tool_definitions(tools=source)
    assert str(caught.value) == (
        f"expected a Toolbox, a Section or an iterable of tools, got {type(source).__name__}"
    )


def test_an_unknown_format_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(ValueError) as caught:
        tool_definitions("bedrock")  # type: ignore[arg-type]  # it is refused
    assert str(caught.value) == (
        "format: 'bedrock' is unknown; "
        "send one of openai, openai-responses, anthropic, gemini, mcp, json-schema"
    )


@dataclass(frozen=True)
class Address:
    street: str
    number: int = 1


@dataclass(frozen=True)
class Node:
    name: str
    children: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Small:
    size: int


@dataclass(frozen=True)
class Named:
    name: str
    size: int = 3
    note: str | None = field(default=None)


def types_in(node: Any) -> list[Any]:
    """The value of each ``type`` in a definition."""
    if isinstance(node, dict):
        own = [node["type"]] if "type" in node else []
        return own + [kind for part in node.values() for kind in types_in(part)]
    return [kind for part in node for kind in types_in(part)] if isinstance(node, list) else []


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("form", get_args(DefinitionFormat))
def test_a_definition_has_one_type_at_each_place(form: DefinitionFormat, strict: bool) -> None:
    kinds = types_in(tool_definitions(form, strict=strict, tools=STRICT))
    assert len(kinds) > 30
    assert {type(kind) for kind in kinds} == {str}


# Strict schemas


def valid_under(schema: dict[str, Any]) -> SearchStrategy[Any]:
    """Values that a strict schema allows, as a provider that enforces it lets a model write them."""
    if "anyOf" in schema:
        return st.one_of([valid_under(option) for option in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "array":
        return st.lists(valid_under(schema["items"]), min_size=schema.get("minItems", 0), max_size=3)
    if schema["type"] == "object":
        return st.fixed_dictionaries({name: valid_under(each) for name, each in schema["properties"].items()})
    texts, numbers = st.just("some text"), st.floats(1, 5)
    kinds = {"string": texts, "number": numbers, "integer": st.integers(1, 5), "boolean": st.booleans()}
    return {**kinds, "null": st.none()}[schema["type"]]


def without_null(value: Any) -> Any:
    """The same call by a model that leaves out what it does not need."""
    if isinstance(value, dict):
        return {name: without_null(each) for name, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


@tool
def booked(
    where: Address,
    guests: list[Named],
    either: Small | Named,
    rooms: int = 1,
    level: Literal["a", "b"] = "a",
    rank: Literal[1, 2] = 1,
    at: Address | None = None,
    share: float | None = None,
    is_paid: bool = False,
) -> dict[str, Any]:
    """Books a room."""
    return dict(locals())


STRICT = [*PlanningToolsSection(session=Session()).tools(), booked]


@given(
    st.sampled_from(STRICT).flatmap(lambda each: st.tuples(st.just(each), valid_under(each.strict_schema())))
)
def test_each_call_that_is_valid_under_the_strict_schema_decodes_to_the_same_command(
    case: tuple[Tool, dict[str, Any]],
) -> None:
    made, arguments = case
    jsonschema.Draft202012Validator(made.strict_schema()).validate(arguments)
    assert of_call(made, arguments) == of_call(made, without_null(arguments))


def of_call(made: Tool, arguments: dict[str, Any]) -> Any:
    """The command of a call; of a function's call what it is given, defaults included."""
    decoded = decode(made.model, arguments)
    return made(**decoded) if isinstance(decoded, dict) else decoded


@tool
def more(x: int, **others: Any) -> None:
    """Takes any field."""


@dataclass
class Request:
    url: str
    headers: dict[str, str]


@tool
def nested(request: Request) -> None:
    """Takes an open object inside."""


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def plain(**schema: Any) -> Tool:
    parameters = {**closed(x=schema), "required": ["x"]}
    return Tool("plain", "A schema.", lambda given: given, parameters=parameters)


REFERENCE = {"$ref": "#/$defs/Node"}
OPEN_NODE = {"$defs": {"Node": closed(more={"type": "object"}, next=REFERENCE)}}
referring = Tool("referring", "Refers.", str, parameters={**closed(x=REFERENCE), **OPEN_NODE})


@tool
def planted(tree: Node) -> None:
    """Takes a tree."""


NOT_STRICT: list[tuple[Any, Tool]] = [
    ("openai", plain(type="string", allOf=[{}])),
    ("openai", plain(enum=[{"a": 1}])),
    ("openai", plain(const=[1])),
    ("openai", plain(**{"$ref": "#/properties/x"})),
    ("openai", plain(type="array")),
    ("openai", nested),
    ("openai", referring),
    ("openai", more),
    ("anthropic", planted),
]


def test_a_tool_that_a_strict_schema_cannot_describe_is_refused_by_name(snapshot: SnapshotAssertion) -> None:
    said = []
    for provider, made in NOT_STRICT:
        with pytest.raises(ValueError) as caught:
            tool_definitions(provider, strict=True, tools=[made])
        said.append(str(caught.value))
    assert "\n".join(said) == snapshot


def test_parameters_that_contain_themselves_are_strict_for_openai() -> None:
    strict = tool_definitions("openai", strict=True, tools=[planted])[0]["function"]["parameters"]
    assert strict["$defs"]["Node"]["required"] == ["name", "children"]


NARROW: list[tuple[Any, str]] = [
    *product(
        ("openai", "openai-responses", "anthropic"), ("WeatherAPI.com_Time_Zone_API", "repos/get", "x" * 65)
    ),
    *product(("gemini",), ("repos/get", "x" * 65, "7zip", "-x")),
]


def test_a_name_that_a_provider_does_not_take_is_refused_in_its_definitions(
    snapshot: SnapshotAssertion,
) -> None:
    said = []
    for provider, name in NARROW:
        made = tool(name=name)(convert)
        both = [made, attrs.evolve(made, name="a/b")]
        for strict, tools in ((True, [made]), (False, [made]), (True, both)):
            with pytest.raises(ValueError) as caught:
                tool_definitions(provider, strict=strict, tools=tools)
            said.append(str(caught.value))
    assert "\n".join(dict.fromkeys(said)) == snapshot


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("provider", "name"),
    [
        *product(("openai", "openai-responses", "anthropic", "gemini"), ("Ab_9", "a" * 64, "_Z")),
        *product(("mcp", "json-schema"), ("WeatherAPI.com_Time_Zone_API", "repos/get", "x" * 128)),
    ],
)
def test_a_name_that_a_provider_takes_is_in_definitions(provider: Any, name: str, *, strict: bool) -> None:
    own, other = (
        json.dumps(tool_definitions(provider, strict=strict, tools=[made]))
        for made in (tool(name=name)(convert), tool(convert))
    )
    assert own == other.replace('"convert"', f'"{name}"')


def convert(celsius: float) -> float:
    """Convert a temperature to Fahrenheit."""
    return celsius * 9 / 5 + 32


FORMATS = "date-time time date duration email hostname ipv4 ipv6 uuid"
SPARE = {
    **dict.fromkeys(("title", "$id", "$comment", "contentMediaType", "contentEncoding"), "a"),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly"), True),
    "examples": ["a"],
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **{name: {} for name in ("$defs", "definitions", "discriminator")},
}
LIMITS = "exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems minProperties maxProperties"
INTEGER_OR_TEXT = [{"type": "integer"}, {"type": "string"}]


DECLARED: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 1, "maximum": 5, "description": "How many"},
    {"type": "string", "pattern": "^a", "format": "email"},
    {"enum": [1, "a", None]},
    {"type": ["number", "string"], "enum": [1, 2.5, "a"]},
    *({"const": each} for each in (1, True, 0.5)),
    {"type": ["integer", "null"], "minimum": 1, "description": "A"},
    {"type": "object", "anyOf": INTEGER_OR_TEXT},
    {"oneOf": INTEGER_OR_TEXT},
    {"type": "string", **SPARE},
    {"type": "integer", "uniqueItems": True, **dict.fromkeys(LIMITS.split(), 9)},
    {"type": "string", "minLength": 2, "maxLength": 9},
    *({"type": "string", "format": name} for name in FORMATS.split()),
    *({"type": "array", "items": {"type": "string"}, "minItems": least} for least in (0, 1)),
]


def test_a_strict_schema_has_what_strict_modes_take(snapshot: SnapshotAssertion) -> None:
    strict = [plain(**declared).strict_schema()["properties"]["x"] for declared in DECLARED]
    pairs = zip(DECLARED, strict, strict=True)
    assert "".join(f"{json.dumps(given)}\n    {json.dumps(made)}\n" for given, made in pairs) == snapshot


def test_an_optional_field_of_a_strict_schema_may_be_null() -> None:
    null, whole = {"type": "null"}, {"type": "object", "anyOf": INTEGER_OR_TEXT}
    parameters = closed(a={"description": "A", "anyOf": INTEGER_OR_TEXT}, b=whole, c={"$ref": "#/$defs/d"})
    parameters["$defs"] = {"d": {"type": ["integer", "null"]}}
    strict = Tool("plain", "A schema.", str, parameters=parameters).strict_schema()
    assert strict["$defs"] == {"d": {"anyOf": [{"type": "integer"}, null]}}
    assert strict["properties"] == {
        "a": {"description": "A", "anyOf": [*INTEGER_OR_TEXT, null]},
        "b": {"anyOf": [whole, null]},
        "c": {"$ref": "#/$defs/d"},
    }

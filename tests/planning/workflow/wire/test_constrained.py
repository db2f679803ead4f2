"""The schema for constrained decoding: what libraries that constrain a model take with it is valid."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Annotated, Any, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from planning.tools import Tool, ToolSpec, tool
from planning.tools.parameters.json_schema import SchemaModel
from planning.tools.parameters.schema import parts
from planning.workflow import Capabilities, validate_workflow

llguidance = pytest.importorskip("llguidance", reason="llguidance cannot be installed")
json_schema = pytest.importorskip("outlines_core.json_schema", reason="outlines-core cannot be installed")


@dataclass
class Company:
    """A company."""

    name: str


class Facts(TypedDict):
    """Which facts of a company."""

    ticker: str
    years: list[int]


class Place(TypedDict, total=False):
    """Where to look."""

    path: Annotated[str, Field(pattern="x+")]
    near: list[Place]


@tool
def search(
    query: Annotated[str, Field(min_length=1, max_length=20)],
    limit: Annotated[int, Field(ge=1, le=9)] = 5,
    side: Literal["left", "right"] | None = None,
    day: date | None = None,
    exact: bool = False,
) -> str:
    """Search."""
    return query


@tool
def now() -> str:
    """Say the time."""
    return "noon"


@tool
def look(place: Place) -> str:
    """Look around."""
    return str(place)


FILINGS = ToolSpec("filings", {"facts": Facts, "company": Company}, "found", "Look it up.")
TOOLS = [search, now, FILINGS]
KNOWN = Capabilities(tools=TOOLS, handlers={"shout": lambda text: text}, agents={"writer": lambda task: task})


def a_step(**fields: Any) -> dict[str, Any]:
    return {"step_id": "a", "description": "Do it", **fields, "depends_on": []}


def call(name: str, **inputs: Any) -> dict[str, Any]:
    return a_step(type="tool", name=name, inputs=inputs)


def document(*steps: Any) -> dict[str, Any]:
    return {"schema_version": 2, "goal": "Find it", "steps": list(steps)}


@cache
def compiled(version: int) -> tuple[str, re.Pattern[str]]:
    text = json.dumps(KNOWN.schema(version=version))
    return text, re.compile(json_schema.build_regex_from_schema(text))


def takes(text: str, schema: str) -> bool:
    """Whether llguidance lets a model write a text."""
    tokens = llguidance.LLTokenizer("byte")
    matcher = llguidance.LLMatcher(tokens, llguidance.LLMatcher.grammar_from_json_schema(schema))
    assert matcher.get_error() == ""
    written = tokens.tokenize_str(text)
    return bool(matcher.consume_tokens(written) and matcher.is_accepting())


TAKEN = {
    "a call": call("search", query="larks", limit=3, side="left", day="2026-01-31", exact=True),
    "references": call("search", query="${user_prompt}", limit="${b.output.n}", exact="${b.output}"),
    "a tool without inputs": call("now"),
    "a query": call("filings", query_type="facts", parameters={"ticker": "A", "years": [2024]}),
    "a query of another type": call("filings", query_type="company", parameters={"name": "${a.output}"}),
    "a handler": a_step(type="handler", name="shout", inputs={"text": "x"}),
    "an agent": a_step(agent="writer", inputs={"task": "Tell it"}),
    "a thought": a_step(),
}
REFUSED: dict[str, Any] = {
    "a number": 42,
    "another tool": call("serch", query="x"),
    "a handler as a tool": a_step(type="tool", name="shout", inputs={}),
    "an input of another type": call("search", query=3),
    "a value that is no option": call("search", query="x", side="up"),
    "another input": call("search", query="x", depth=1),
    "no input that is needed": call("search", limit=1),
    "parameters of another query type": call("filings", query_type="company", parameters={"ticker": "A"}),
    "a name without a type": a_step(name="search", inputs={"query": "x"}),
    "another field": a_step(reason="because"),
    "an empty description": a_step() | {"description": ""},
    "a number out of its bounds": call("search", query="x", limit=10),
}


@pytest.mark.parametrize("what", [*TAKEN, *REFUSED])
def test_it_lets_a_model_write_what_fits_and_nothing_else(what: str) -> None:
    fits = what in TAKEN
    schema, pattern = compiled(2)
    text = json.dumps(document(TAKEN[what] if fits else REFUSED[what]))
    assert (takes(text, schema), bool(pattern.fullmatch(text))) == (fits, fits)


def test_xgrammar_takes_and_refuses_the_same() -> None:
    xgrammar = pytest.importorskip("xgrammar", reason="xgrammar needs PyTorch, which is not installed")
    schema, _ = compiled(2)
    letters = xgrammar.TokenizerInfo([bytes([number]) for number in range(256)])
    grammar = xgrammar.GrammarCompiler(letters).compile_json_schema(schema)

    def fits(document: Any) -> bool:
        matcher = xgrammar.GrammarMatcher(grammar, terminate_without_stop_token=True)
        return bool(matcher.accept_string(json.dumps(document)) and matcher.is_terminated())

    assert {what: fits(document(step)) for what, step in {**TAKEN, **REFUSED}.items()} == {
        **dict.fromkeys(TAKEN, True), **dict.fromkeys(REFUSED, False)
    }  # fmt: skip


def test_version_1_is_an_array_of_calls() -> None:
    schema, pattern = compiled(1)
    for step, fits in ((TAKEN["a call"], True), (TAKEN["a handler"], True), (TAKEN["a thought"], False)):
        text = json.dumps([step])
        assert (takes(text, schema), bool(pattern.fullmatch(text))) == (fits, fits)


# What one step says of another is for the check alone.
ACROSS = {
    "duplicate_step_id", "unknown_dependency", "self_dependency", "dependency_cycle", "unknown_reference",
    "self_reference", "undeclared_dependency", "undeclared_output",
}  # fmt: skip


def fitting(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    """What a schema allows; of its keywords those that the constrained form has."""
    if "anyOf" in schema:
        return st.one_of([fitting(each, root) for each in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    match schema["type"]:
        case "object":
            needed = schema.get("required", [])
            fields = {name: fitting(each, root) for name, each in schema.get("properties", {}).items()}
            return st.fixed_dictionaries(
                {name: each for name, each in fields.items() if name in needed},
                optional={name: each for name, each in fields.items() if name not in needed},
            )
        case "array":
            return st.lists(fitting(schema["items"], root), min_size=schema.get("minItems", 0), max_size=3)
        case "string" if schema.get("format") == "date":
            return st.dates().map(str)
        case "string" if "pattern" in schema:
            return st.from_regex(schema["pattern"].removesuffix("$") + r"\Z")
        case "string":
            bounds = {"min_size": schema.get("minLength", 0), "max_size": schema.get("maxLength", 9)}
            return st.text(st.sampled_from('ab \n"{é'), **bounds)
    kinds = {"integer": st.integers(), "boolean": st.booleans(), "number": st.floats(allow_nan=False)}
    return kinds[schema["type"]]


@given(st.data(), st.sampled_from([1, 2]))
def test_what_it_takes_is_valid_step_by_step(data: st.DataObject, version: int) -> None:
    schema = KNOWN.schema(version=version)
    drawn = data.draw(fitting(schema, schema))
    report = validate_workflow(json.dumps(drawn), KNOWN)
    assert {each.code for each in report.errors} - ACROSS == set()


OF_OTHERS: dict[str, Any] = {
    **{each: {} for each in ("if", "then", "else", "not", "contains", "propertyNames")},
    **{each: {} for each in ("dependentSchemas", "dependentRequired", "dependencies", "patternProperties")},
    **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems", "uniqueItems", "deprecated"), False),
    **dict.fromkeys(("minContains", "maxContains", "minProperties", "maxProperties", "multipleOf"), 1),
    **dict.fromkeys(("$id", "$comment", "title", "contentMediaType", "contentEncoding"), "x"),
    "readOnly": True,
    "writeOnly": False,
    "examples": [],
    "default": "x",
    "discriminator": {"propertyName": "x"},
}
"""Keywords that the libraries refuse or pass over."""


def test_it_has_only_what_every_library_reads() -> None:
    recursive = Capabilities(tools=[look, *TOOLS]).schema()
    parameters = SchemaModel({"type": "object", "properties": {"x": {"type": "string", **OF_OTHERS}}})
    odd = Capabilities(tools=[Tool("odd", "", print, parameters=parameters)]).schema()
    for schema in (KNOWN.schema(), KNOWN.schema(version=1), recursive, odd):
        nodes = list(parts(schema))
        keywords = set[str]().union(*nodes)
        assert keywords <= {
            "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
            "pattern", "format", "description", "minLength", "maxLength", "minimum", "maximum", "minItems",
            "$ref", "$defs",
        }  # fmt: skip
        assert {type(each["type"]) for each in nodes if "type" in each} == {str}
        patterns = [each["pattern"] for each in nodes if "pattern" in each]
        assert [each for each in patterns if not (each.startswith("^") and each.endswith("$"))] == []
    text = json.dumps(document(call("look", place={"path": "axxb", "near": [{"near": []}]})))
    assert takes(text, json.dumps(recursive))
    assert not takes(text.replace("axxb", "ab"), json.dumps(recursive))


def test_names_that_are_not_known_are_free_and_no_names_are_none() -> None:
    free = json.dumps(Capabilities(tools=None, handlers=None, agents=None).schema())
    assert takes(json.dumps(document(call("anything", depth=[1]))), free)
    assert takes(json.dumps(document(a_step(agent="anybody", inputs={}))), free)
    nothing = json.dumps(Capabilities().schema())
    assert takes(json.dumps(document(a_step())), nothing)
    assert not takes(json.dumps(document(call("anything"))), nothing)


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (3, "schema version must be 1 or 2, got 3"),
        (1, "version 1 has steps that call tools or handlers, and no names are given; use version 2"),
    ],
)
def test_a_schema_that_cannot_be_made_is_refused(version: int, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        Capabilities().schema(version=version)

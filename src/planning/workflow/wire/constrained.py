"""A schema of the documents that fit some capabilities, for libraries that constrain what a model writes.

Such libraries (llama.cpp, llguidance, xgrammar, outlines) read less of JSON Schema than a validator does: no
conditions, one type a place, patterns with anchors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from planning.tools.parameters.model import FreeModel
from planning.tools.parameters.schema import Node, changed, single_types
from planning.tools.spec import QueryModel
from planning.workflow.wire.form import VERSIONS

if TYPE_CHECKING:
    from planning.tools.tool import Tool

_TEXT: Final = {"type": "string", "minLength": 1}
_NAME: Final = {"type": "string", "pattern": "^[A-Za-z0-9_./-]{1,64}$"}
_ID: Final = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"}
_REFERENCE: Final = {
    "type": "string",
    "pattern": (
        r"^\$\{(user_prompt|[A-Za-z_][A-Za-z0-9_-]{0,63}\.output(\.[A-Za-z0-9_-]{1,64}|\[[0-9]{1,9}\]){0,9})\}$"
    ),
}
_ANY_INPUTS: Final = {"type": "object", "additionalProperties": True}
# What the libraries refuse, or pass over; the tool checks it when it is called.
_LEFT: Final = frozenset({
    "$schema", "$id", "$comment", "title", "default", "examples", "deprecated", "readOnly", "writeOnly",
    "discriminator", "uniqueItems", "propertyNames", "contentMediaType", "contentEncoding", "if", "then",
    "else", "dependentSchemas", "dependentRequired", "dependencies", "not", "contains", "minContains",
    "maxContains", "minProperties", "maxProperties", "patternProperties", "unevaluatedProperties",
    "unevaluatedItems", "multipleOf",
})  # fmt: skip
_FORMATS: Final = frozenset({"date-time", "date", "time", "email", "uuid"})
_UNREADABLE: Final = re.compile(r"\(\?(?!:)|\\[bB1-9]")  # looks around, flags, boundaries, repeats of groups
_ANYTHING: Final = r"[^\"\\\x00-\x1f]*"  # some put a pattern between the quotes as it is
_MOST_VALUES: Final = 100
_PLACES: Final = ("$defs", "definitions")


Tools = Mapping[str, "Tool | None"] | None
Names = Iterable[str] | None
"""None where the names are not known."""


def constrained_schema(tools: Tools, handlers: Names, agents: Names, version: int) -> dict[str, Any]:
    """See ``Capabilities.schema``."""
    if version not in VERSIONS:
        raise ValueError(f"schema version must be 1 or 2, got {version!r}")
    definitions: dict[str, Any] = {}
    steps = [*_of_tools(tools, definitions), *_of_names("handler", handlers)]
    if version == 2:
        steps += [*_of_names("agent", agents), _step()]
    if not steps:
        raise ValueError(
            "version 1 has steps that call tools or handlers, and no names are given; use version 2"
        )
    array = {"type": "array", "items": {"anyOf": steps}, "minItems": 1}
    whole: dict[str, Any] = array
    if version == 2:
        fields = {"schema_version": {"const": 2, "type": "integer"}, "goal": _TEXT, "steps": array}
        whole = _object(fields)
    return {**whole, "$defs": definitions} if definitions else whole


def _of_tools(tools: Tools, definitions: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps that call a tool: one for each, or for each of its query types."""
    if tools is None:
        yield _step(type=_one_of(["tool"]), name=_NAME, inputs=_ANY_INPUTS)
    for name, tool in (tools or {}).items():
        for inputs in _inputs(name, tool, definitions):
            yield _step(type=_one_of(["tool"]), name=_one_of([name]), inputs=inputs)


def _of_names(kind: str, names: Names) -> Iterator[dict[str, Any]]:
    """The step that calls a handler or an agent; none without names."""
    known = _NAME if names is None else _one_of(list(names))
    if known is _NAME or known["enum"]:
        called = {"agent": known} if kind == "agent" else {"type": _one_of([kind]), "name": known}
        yield _step(**called, inputs=_ANY_INPUTS)


def _step(**fields: Node) -> dict[str, Any]:
    depends_on = {"type": "array", "items": _ID}
    return _object({"step_id": _ID, "description": _TEXT, **fields, "depends_on": depends_on})


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _one_of(values: list[str]) -> dict[str, Any]:
    return {"type": "string", "enum": values}


def _inputs(name: str, tool: Tool | None, definitions: dict[str, Any]) -> Iterator[Node]:
    """The inputs of a tool, of each of its query types for one that has these; or a reference for each."""
    if tool is None or isinstance(tool.model, FreeModel):
        yield _ANY_INPUTS
        return
    schema = single_types(tool.model.published)
    own = f"{name}.".replace("/", ".")
    for place in _PLACES:
        for each, node in schema.get(place, {}).items():
            definitions[own + each] = _kept(node, own)
    if not isinstance(tool.model, QueryModel):
        yield _with_references(_kept(schema, own))
        return
    parameters = schema["properties"]["parameters"]
    kinds = schema["properties"]["query_type"]["enum"]
    options = parameters["anyOf"] if len(kinds) > 1 else [parameters]
    for kind, option in zip(kinds, options, strict=True):
        pair = {"query_type": _one_of([kind]), "parameters": _with_references(_kept(option, own))}
        yield _object(pair)


def _kept(node: Any, own: str) -> Any:
    """A part of a tool's schema without what the libraries do not read."""
    if not isinstance(node, Mapping):
        return node
    if isinstance(node.get("$ref"), str):
        return {"$ref": f"#/$defs/{own}{node['$ref'].rpartition('/')[2]}"}
    kept = {key: value for key, value in node.items() if key not in _LEFT and key not in _PLACES}
    if "oneOf" in kept:
        kept["anyOf"] = [*kept.get("anyOf", ()), *kept.pop("oneOf")]
    if kept.get("format", "date") not in _FORMATS:
        del kept["format"]
    if "pattern" in kept:
        pattern = kept.pop("pattern")
        if not _UNREADABLE.search(pattern):
            is_anchored = pattern.startswith("^") and pattern.endswith("$") and "|" not in pattern
            kept["pattern"] = pattern if is_anchored else f"^{_ANYTHING}(?:{pattern}){_ANYTHING}$"
    low, high = kept.get("minimum"), kept.get("maximum")
    if kept.get("type") == "integer" and type(low) is type(high) is int and high - low < _MOST_VALUES:
        kept = {"type": "integer", "enum": list(range(low, high + 1))}  # some pass over the bounds
    return changed(kept, lambda part: _kept(part, own))


def _with_references(schema: Node) -> Node:
    """An object with fields that may also be references to another step's output."""
    fields = schema.get("properties", {}).items()
    return {**schema, "properties": {name: _or_reference(node) for name, node in fields}}


def _or_reference(node: Any) -> Node:
    is_free = isinstance(node, Mapping) and node.get("type") == "string"
    is_free = is_free and {"pattern", "enum", "const", "format", "maxLength"}.isdisjoint(node)
    return node if is_free else {"anyOf": [node, _REFERENCE]}

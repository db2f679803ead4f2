"""The strict form of a schema, for providers that enforce it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from planning.tools.parameters.schema import single_types
from planning.tools.parameters.words import limits, spell, takes_null

_PLACES = ("$defs", "definitions")  # the second is the older drafts'
# The keywords and formats that the strict modes of OpenAI and of Anthropic both take:
# https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
# https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
_STRICT = frozenset({
    "type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "$ref",
    "description",
})  # fmt: skip
_STRICT_FORMATS = frozenset({
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
})  # fmt: skip
# Keywords that a strict schema can do without: they describe, or the field's description mentions them.
_SPARE = frozenset({
    "title", "default", "examples", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment",
    "$defs", "definitions", "discriminator", "uniqueItems", "contentMediaType", "contentEncoding",
    "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
})  # fmt: skip


def _definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions of a schema by the references to them."""
    return {f"#/{place}/{name}": node for place in _PLACES for name, node in schema.get(place, {}).items()}


def strict_schema(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A schema for a provider's strict mode: every property is required, an optional one may be null.

    Limits that the strict modes do not take are in the field's description.

    Raises:
        ValueError: A strict schema cannot describe the arguments.
    """
    schema = single_types(schema)
    made: dict[str, Any] = _strict(schema, schema, (), name)
    for place in _PLACES:
        if place in schema:
            made[place] = {
                each: _strict(node, schema, (place, each), name) for each, node in schema[place].items()
            }
    return made


def _strict(node: Any, root: Mapping[str, Any], path: tuple[str | int, ...], name: str) -> Any:
    def inner(part: Any, *places: str | int) -> Any:
        return _strict(part, root, (*path, *places), name)

    if not isinstance(node, Mapping) or not node.keys() & {"type", "enum", "const", "anyOf", "oneOf", "$ref"}:
        _refuse(name, path, "takes any value; give it a type")
    foreign = sorted(node.keys() - _STRICT - _SPARE - {"oneOf"})
    if foreign:
        _refuse(name, path, f"is declared with {foreign[0]}; declare it without")
    if "$ref" in node:  # beside it nothing is allowed
        if node["$ref"] not in _definitions(root):
            _refuse(name, path, f"refers to {node['$ref']}; refer to a definition in $defs")
        return {"$ref": node["$ref"]}
    made = {key: value for key, value in node.items() if key in _STRICT}
    listed = node.get("enum", [node.get("const")])
    if any(isinstance(value, (Mapping, list)) for value in listed):
        _refuse(name, path, "lists arrays or objects; list text or numbers")
    kind = None if "anyOf" in node or "oneOf" in node else node.get("type")
    if kind == "object":
        properties = node.get("properties", {})
        if node.get("additionalProperties", True) is not False:
            instead = (
                "as in a dataclass or a TypedDict" if path else "without **kwargs or additionalProperties"
            )
            _refuse(name, path, f"takes fields that it does not name; name each, {instead}")
        required = node.get("required", ())
        made["properties"] = {
            each: _nullable(inner(part, each), root) if each not in required else inner(part, each)
            for each, part in properties.items()
        }
        made["required"] = list(properties)
    if kind == "array":
        made["items"] = inner(node.get("items"), 0)
    options = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    if options:
        made["anyOf"] = [inner(option) for option in options]
    if node.get("format") in _STRICT_FORMATS:
        made["format"] = node["format"]
    if node.get("minItems") in {0, 1}:
        made["minItems"] = node["minItems"]
    _describe(made, limits(node, node.keys() - made.keys()))
    return made


def _nullable(node: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a schema that also allows null."""
    if takes_null(root, node):
        return node
    said = {"description": node["description"]} if "description" in node else {}
    rest = {key: value for key, value in node.items() if key != "description"}
    return {**said, "anyOf": [*(rest["anyOf"] if rest.keys() == {"anyOf"} else [rest]), {"type": "null"}]}


def _describe(node: dict[str, Any], said: str) -> None:
    """Add limits to a description, where there are some to add."""
    if said:
        node["description"] = f"{node['description']} ({said})" if "description" in node else said


def _refuse(name: str, path: tuple[str | int, ...], reason: str) -> NoReturn:
    where = f"its parameter {spell(path)}" if path else "it"
    if path and path[0] in _PLACES:
        where = f"its definition {spell(path[1:])}"
    raise ValueError(f"{name} cannot be strict: {where} {reason}, or use strict=False")


def is_recursive(schema: Mapping[str, Any]) -> bool:
    """Whether a definition in a schema refers to itself, in one step or in several."""
    graph = {place: list(_references(node)) for place, node in _definitions(schema).items()}
    for place, references in graph.items():
        todo = list(references)
        seen: set[str] = set()
        while todo:
            each = todo.pop()
            if each == place:
                return True
            if each not in seen:
                seen.add(each)
                todo += graph.get(each, ())
    return False


def _references(node: Any) -> Iterator[str]:
    todo = [node]
    while todo:
        each = todo.pop()
        if isinstance(each, Mapping):
            if isinstance(each.get("$ref"), str):
                yield each["$ref"]
            todo += each.values()
        elif isinstance(each, list):
            todo += each

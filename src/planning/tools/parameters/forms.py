"""Two forms of a schema: open, for hosts that validate calls; strict, for providers that enforce it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from planning.tools.parameters.words import limits, spell

__all__ = ["ACCEPTS", "MARKS", "TRIMMED", "is_recursive", "open_schema", "strict_schema"]

ACCEPTS = "x-accepts"
"""In a marked schema: the schema of further values that the field's repair takes."""
TRIMMED = "x-trimmed"
"""In a marked schema: text is trimmed before its length counts."""
MARKS = frozenset({ACCEPTS, TRIMMED})

_PLACES = ("$defs", "definitions")  # the second is the older drafts'
_CHOICES = frozenset({"enum", "const", "anyOf", "$ref"})
_OF_STRINGS = frozenset({"minLength", "maxLength", "pattern", "format"})
# Coercion reads none of these; what they say of a value may not hold before it is coerced.
_UNREAD = frozenset({
    "allOf", "not", "if", "then", "else", "dependentSchemas", "dependentRequired", "patternProperties",
    "propertyNames", "contains", "unevaluatedProperties", "unevaluatedItems",
})  # fmt: skip
_MISCOUNTED = frozenset({"uniqueItems", "maxProperties"})  # a set drops repeats; fields that are null go
_CHANGED = frozenset({"string", "array", "object", "integer", "number", "boolean"})
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
_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def open_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema that also allows what coercion changes into what the schema asks for.

    That is JSON text for an array or an object, plain text for an object with one required string, a number
    or a boolean as text, null for an optional field, and what a field's own repair takes. A part with
    keywords that coercion does not read, such as ``allOf``, stays as it is.

    Args:
        schema: The schema of an object, with its marks.
    """
    definitions = _definitions(schema)
    opened = _inside(schema, definitions)
    for place in _PLACES:
        if place in opened:
            opened[place] = {name: _opened(node, definitions) for name, node in opened[place].items()}
    return opened


def _opened(node: Any, definitions: Mapping[str, Any], *, is_optional: bool = False) -> Any:
    """A part of a schema, opened; an optional field may be null."""
    if not isinstance(node, Mapping) or not node:
        return node
    types = set(_types(node, definitions))
    more = ["string"] if types & (_CHANGED - {"string"}) and "string" not in types else []
    if is_optional and "null" not in types:
        more.append("null")
    accepted = [node[ACCEPTS]] if ACCEPTS in node else []
    return _also(_inside(node, definitions), [*({"type": each} for each in more), *accepted])


def _inside(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a schema with all the parts within it opened."""
    made = {key: value for key, value in node.items() if key not in MARKS | _MISCOUNTED}
    if node.keys() & _UNREAD:
        return made
    if "$ref" in made and made["$ref"] not in definitions:  # it may lead to a part that was opened
        del made["$ref"]
    if TRIMMED in node:  # blanks around the text do not count, and this keyword would count them
        made.pop("maxLength", None)
        _describe(made, limits(node, {"maxLength"}))
    required = node.get("required", ())
    for key, value in node.items():
        if key == "properties":
            made[key] = {
                name: _opened(part, definitions, is_optional=name not in required)
                for name, part in value.items()
            }
        elif key in {"items", "additionalProperties"}:
            made[key] = _opened(value, definitions)
        elif key == "prefixItems":
            made[key] = [_opened(part, definitions) for part in value]
        elif key in {"anyOf", "oneOf"}:
            made.pop(key)
            options = made.setdefault("anyOf", [])
            for option in value:
                options += [_inside(option, definitions), *([option[ACCEPTS]] if ACCEPTS in option else [])]
    return made


def _types(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[str]:
    """The types of the values that a part of a schema allows, references followed."""
    todo, seen = [node], set[str]()
    while todo:
        each = todo.pop()
        kind = each.get("type", ())
        yield from [kind] if isinstance(kind, str) else kind
        listed = [*each.get("enum", ()), *([each["const"]] if "const" in each else ())]
        yield from (_NAMES.get(type(value), "object") for value in listed if not kind)
        todo += [*each.get("anyOf", ()), *each.get("oneOf", ())]
        place = each.get("$ref", "")
        if place in definitions and place not in seen:
            seen.add(place)
            todo.append(definitions[place])


def _definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions of a schema by the references to them."""
    return {f"#/{place}/{name}": node for place in _PLACES for name, node in schema.get(place, {}).items()}


def _also(node: dict[str, Any], options: list[dict[str, Any]]) -> dict[str, Any]:
    """A part of a schema that allows further options; shortest where they only add types."""
    if not options:
        return node
    added = [option["type"] for option in options if option.keys() == {"type"}]
    is_plain = not node.keys() & (_CHOICES | _UNREAD) and "type" in node
    if len(added) == len(options) and is_plain and not ("string" in added and node.keys() & _OF_STRINGS):
        own = [node["type"]] if isinstance(node["type"], str) else node["type"]
        return {**node, "type": [*own, *added]}
    said = {"description": node["description"]} if "description" in node else {}
    rest = {key: value for key, value in node.items() if key != "description"}
    return {**said, "anyOf": [*(rest["anyOf"] if rest.keys() == {"anyOf"} else [rest]), *options]}


def strict_schema(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A schema for a provider's strict mode: every property is required, an optional one may be null.

    Limits that the strict modes do not take are in the field's description.

    Args:
        schema: The schema of an object.
        name: The tool's name, for the message.

    Raises:
        ValueError: A strict schema cannot describe the arguments.
    """
    definitions = _definitions(schema)
    made: dict[str, Any] = _strict(schema, definitions, (), name)
    for place in _PLACES:
        if place in schema:
            made[place] = {
                each: _strict(node, definitions, (place, each), name) for each, node in schema[place].items()
            }
    return made


def _strict(node: Any, definitions: Mapping[str, Any], path: tuple[str | int, ...], name: str) -> Any:
    def inner(part: Any, *places: str | int) -> Any:
        return _strict(part, definitions, (*path, *places), name)

    if not isinstance(node, Mapping) or not node.keys() & {"type", "enum", "const", "anyOf", "oneOf", "$ref"}:
        _refuse(name, path, "takes any value; give it a type")
    foreign = sorted(node.keys() - _STRICT - _SPARE - {"oneOf"})
    if foreign:
        _refuse(name, path, f"is declared with {foreign[0]}; declare it without")
    if "$ref" in node:  # beside it nothing is allowed
        if node["$ref"] not in definitions:
            _refuse(name, path, f"refers to {node['$ref']}; refer to a definition in $defs")
        return {"$ref": node["$ref"]}
    made = {key: value for key, value in node.items() if key in _STRICT}
    kinds = list(dict.fromkeys(_types(node, {})))
    if "enum" in node or "const" in node:
        if "object" in kinds:
            _refuse(name, path, "lists arrays or objects; list text or numbers")
        made.setdefault("type", kinds[0] if len(kinds) == 1 else kinds)
    if "object" in kinds and "anyOf" not in made and "oneOf" not in node:
        properties = node.get("properties", {})
        if node.get("additionalProperties", True) is not False:
            instead = (
                "as in a dataclass or a TypedDict" if path else "without **kwargs or additionalProperties"
            )
            _refuse(name, path, f"takes fields that it does not name; name each, {instead}")
        required = node.get("required", ())
        made["properties"] = {
            each: _nullable(inner(part, each), definitions) if each not in required else inner(part, each)
            for each, part in properties.items()
        }
        made["required"] = list(properties)
    if "array" in kinds and "anyOf" not in made and "oneOf" not in node:
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


def _nullable(node: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    return node if "null" in _types(node, definitions) else _also(node, [{"type": "null"}])


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
    from graphlib import CycleError, TopologicalSorter  # noqa: PLC0415 - only strict definitions need it

    graph = {place: set(_references(node)) for place, node in _definitions(schema).items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
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

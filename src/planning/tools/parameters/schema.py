"""JSON Schemas as models read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MOST_LEVELS = 8
TOO_DEEP = f"nested more than {_MOST_LEVELS} levels; send a flatter object"
_DROPPED = frozenset({"title", "default", "discriminator", "$defs", "$ref"})
_PLACES = "#/$defs/"
_NULL = {"type": "null"}
_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_VALUES = frozenset({"enum", "const", "required", "default", "examples"})
_ABOUT = frozenset({"title", "description", "default", "examples", "deprecated"})
_ORDER = (
    "type", "enum", "const", "properties", "required", "items", "prefixItems", "anyOf", "oneOf", "format",
    "description", "minLength", "maxLength", "minItems", "maxItems", "additionalProperties",
)  # fmt: skip


def published_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema that pydantic made, as short as it can be and still say everything.

    Definitions are written out, but for those that refer to themselves. Every object that names its
    properties is closed. The docstrings of classes go: they speak to programmers.
    """
    definitions = schema.get("$defs", {})
    recursive: dict[str, None] = {}
    short: dict[str, Any] = _shortened(schema, definitions, (), recursive)
    short.pop("description", None)
    if recursive:
        short["$defs"] = {
            name: _shortened(definitions[name], definitions, (name,), recursive) for name in tuple(recursive)
        }
    return short


def _shortened(
    node: Any, definitions: Mapping[str, Any], inside: tuple[str, ...], recursive: dict[str, None]
) -> Any:
    if isinstance(node, list):
        return [_shortened(item, definitions, inside, recursive) for item in node]
    if not isinstance(node, Mapping):
        return node
    short: dict[str, Any] = {}
    name = node.get("$ref", "").removeprefix(_PLACES)
    if name in inside:
        recursive[name] = None
        short["$ref"] = _PLACES + name
    elif name:
        short = _shortened(definitions[name], definitions, (*inside, name), recursive)
        short.pop("description", None)
    for key, value in node.items():
        if key == "properties":
            named = value.items()
            short[key] = {each: _shortened(part, definitions, inside, recursive) for each, part in named}
        elif key in {"enum", "const", "required", "examples"}:
            short[key] = value
        elif key not in _DROPPED:
            short[key] = _shortened(value, definitions, inside, recursive)
    if "properties" in short:
        short.setdefault("additionalProperties", False)
    short = _with_one_type(short)
    return {key: short[key] for key in sorted(short, key=_rank)}


def without_null(node: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a schema that does not take null, unless it takes nothing else."""
    rest = {key: value for key, value in node.items() if key not in {"anyOf", "enum"}}
    options = [option for option in node.get("anyOf", ()) if option != _NULL]
    values = [value for value in node.get("enum", ()) if value is not None]
    if len(options) == 1:
        return {**options[0], **rest}
    return {**node, **({"anyOf": options} if options else {}), **({"enum": values} if values else {})}


def single_types(schema: Any) -> Any:
    """The same schema with ``anyOf`` in place of lists of types: many readers take them for text."""
    if isinstance(schema, list):
        return [single_types(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, Mapping):
            made[key] = {name: single_types(part) for name, part in value.items()}
        else:
            made[key] = value if key in _VALUES else single_types(value)
    return _with_one_type(made)


def _with_one_type(node: dict[str, Any]) -> dict[str, Any]:
    """A part of a schema with an option of ``anyOf`` for each type that it lists or that its options have."""
    values = node.get("enum", [node["const"]] if "const" in node else [])
    kinds = node.get("type", list(dict.fromkeys(_NAMES.get(type(value), "") for value in values)))
    if isinstance(kinds, str) or not kinds or not all(kinds) or "anyOf" in node:
        return node
    if len(kinds) == 1:
        return {**node, "type": kinds[0]}
    about = {key: value for key, value in node.items() if key in _ABOUT}
    rules = {key: value for key, value in node.items() if key not in _ABOUT and key != "type"}
    return {**about, "anyOf": [_of_kind(kind, rules) for kind in kinds]}


def _of_kind(kind: str, rules: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "null":
        return {"type": kind}
    names = {kind, "integer"} if kind == "number" else {kind}
    values = [value for value in rules.get("enum", ()) if _NAMES.get(type(value)) in names]
    return {"type": kind, **rules, **({"enum": values} if values else {})}


def _rank(keyword: str) -> int:
    return _ORDER.index(keyword) if keyword in _ORDER else len(_ORDER)


def branches(schema: Mapping[str, Any], *unions: str) -> bool:
    """Whether objects of a schema may hold one of several objects that hold one of several, and so on.

    A validator tries every one of them at every level: what such a schema takes is bounded in its depth.

    Args:
        schema: The schema.
        unions: The keywords of the unions whose options are all tried.
    """
    todo: list[Any] = [schema]
    has_reference = has_choice = False
    while todo:
        node = todo.pop()
        if isinstance(node, Mapping):
            has_reference |= "$ref" in node
            options = [each for key in unions for each in node.get(key, ()) if isinstance(each, Mapping)]
            has_choice |= sum("$ref" in each or each.get("type") == "object" for each in options) > 1
            todo += node.values()
        elif isinstance(node, list):
            todo += node
    return has_reference and has_choice


def is_too_deep(data: Any) -> bool:
    """Whether data has more levels than a schema that branches is tried on."""
    level = [data]
    for _ in range(_MOST_LEVELS + 1):
        values = [each.values() if isinstance(each, dict) else each for each in level]
        level = [inner for each in values for inner in each if isinstance(inner, (dict, list))]
        if not level:
            return False
    return True

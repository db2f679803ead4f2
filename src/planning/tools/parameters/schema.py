"""JSON Schemas as models read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["TOO_DEEP", "branches", "is_too_deep", "published_schema"]

_MOST_LEVELS = 8
TOO_DEEP = f"nested more than {_MOST_LEVELS} levels; send a flatter object"
_DROPPED = frozenset({"title", "default", "discriminator", "$defs", "$ref"})
_PLACES = "#/$defs/"
_NULL = {"type": "null"}
_ORDER = (
    "type", "enum", "const", "properties", "required", "items", "prefixItems", "anyOf", "oneOf", "format",
    "description", "minLength", "maxLength", "minItems", "maxItems", "additionalProperties",
)  # fmt: skip


def published_schema(schema: Mapping[str, Any], *, is_open: bool = False) -> dict[str, Any]:
    """The schema that pydantic made, as short as it can be and still say everything.

    Definitions are written out, but for those that refer to themselves. Every object that names its
    properties is closed. The docstrings of classes go: they speak to programmers.
    """
    definitions = schema.get("$defs", {})
    recursive: dict[str, None] = {}
    short: dict[str, Any] = _shortened(schema, definitions, (), recursive)
    short.pop("description", None)
    if is_open:
        short["additionalProperties"] = True
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
    options = short.get("anyOf", ())
    if len(options) == 2 and options[1] == _NULL and isinstance(options[0].get("type"), str):
        option = options[0]
        if "enum" not in option and "const" not in option:
            del short["anyOf"]
            short = {**option, **short, "type": [option["type"], "null"]}
    return {key: short[key] for key in sorted(short, key=_rank)}


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

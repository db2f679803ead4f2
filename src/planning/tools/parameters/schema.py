"""JSON Schemas as models read them, and as this package looks things up in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["published_schema", "resolved_schema"]

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

    Args:
        schema: The schema of an object.
        is_open: Whether it takes properties that it does not name.
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


def resolved_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with the definition itself in place of each reference: what refers to itself holds itself.

    Several types of one node become a union. A reference that leads nowhere in the schema allows anything.
    """
    known: dict[int, Any] = {}
    kept: list[Mapping[str, Any]] = []  # what is made on the way: an id must not be given out again

    def of_type(node: Mapping[str, Any], kind: object) -> Mapping[str, Any]:
        kept.append(_NULL if kind == "null" else {**node, "type": kind})
        return kept[-1]

    def resolved(node: Any) -> Any:
        if isinstance(node, (list, tuple)):
            return [resolved(item) for item in node]
        if not isinstance(node, Mapping):
            return node
        if id(node) in known:
            return known[id(node)]
        made: dict[str, Any] = {}
        known[id(node)] = made
        if "$ref" in node:
            target = resolved(_at(schema, node["$ref"]))
            beside = {key: value for key, value in node.items() if key != "$ref"}
            if not beside:
                known[id(node)] = target
                return target
            made |= {**beside, "anyOf": [target]}
            return made
        types = node.get("type")
        if isinstance(types, (list, tuple)):
            made["anyOf"] = [resolved(of_type(node, kind)) for kind in types]
            return made
        made |= {
            key: value if key in {"enum", "const", "required"} else resolved(value)
            for key, value in node.items()
        }
        return made

    found: Mapping[str, Any] = resolved(schema)
    return found


def _at(schema: Mapping[str, Any], reference: object) -> Any:
    """What a JSON Pointer in a schema refers to; RFC 6901."""
    node: Any = schema
    if not isinstance(reference, str) or not reference.startswith("#"):
        return {}
    for part in reference[1:].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if isinstance(node, Mapping) else None
    return {} if node is None else node

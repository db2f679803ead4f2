"""JSON Schemas of record types: one to publish, one to validate with.

Field metadata adds to the published one: ``description``, ``min_length``, ``max_length`` and
``min_items``. Such limits are no part of the validating one, because text is measured after a trim: there
they are a mark, which validators pass over.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from planning.tools.parameters.strict import OPTIONS, PLACE, SAID, twin_of

__all__ = ["closed", "published_schema", "shortened", "structural_schema"]

_DROPPED = frozenset({"title", "default", "discriminator", SAID})  # a discriminator refers to definitions
_TYPES = {str: "string", int: "integer"}


def published_schema(kind: type) -> dict[str, Any]:
    """The schema that a model reads: as short as it can be and still say everything.

    Raises:
        TypeError: The type refers to itself, or names a type that JSON cannot carry.
    """
    return copy.deepcopy(_published(kind))


@lru_cache(maxsize=256)
def structural_schema(kind: type) -> dict[str, Any]:
    """The schema of the arguments' shape: types, names, enums. Do not change what it returns.

    Raises:
        TypeError: The type refers to itself, or names a type that JSON cannot carry.
    """
    twin = twin_of(kind)  # a schema of the type itself has fields that no constructor takes
    try:
        (root,), components = msgspec.json.schema_components([twin], ref_template="{name}")
    except TypeError as error:
        reason = str(error).splitlines()[-1]
        raise TypeError(f"{kind.__name__} cannot be described as JSON: {reason}") from None
    return closed(root, components)


def closed(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without references, and with no object open that names its properties.

    The docstrings of the classes go: they speak to programmers. What is said of a field stays.

    Raises:
        TypeError: A definition refers to itself: written out it has no end.
    """
    inlined: dict[str, Any] = _inline(schema, definitions, ())
    inlined.pop("description", None)
    return inlined


def shortened(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without titles and defaults, saying only the other type where null also does.

    Null means that a field is left out.
    """
    short: dict[str, Any] = _shorten(schema)
    return short


@lru_cache(maxsize=256)
def _published(kind: type) -> dict[str, Any]:
    return shortened(structural_schema(kind))


def _inline(node: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inline(item, definitions, inside) for item in node]
    if not isinstance(node, Mapping):
        return node
    beside = {
        key: _inline(value, definitions, inside)
        for key, value in node.items()
        if key not in {"$ref", "$defs"}
    }
    reference = node.get("$ref")
    if reference is None:
        inlined = beside
    else:
        name = reference.rpartition("/")[2]
        if name in inside:
            raise TypeError(f"the parameter type {name} refers to itself")
        inner = _inline(definitions[name], definitions, (*inside, name))
        inner.pop("description", None)
        inlined = {**inner, **beside}
    if isinstance(inlined.get(OPTIONS), list):
        inlined["enum"] = inlined.pop(OPTIONS)
    if isinstance(inlined.get(PLACE), int):
        record = next(option for option in inlined["anyOf"] if "properties" in option)
        others = [option for option in inlined["anyOf"] if option is not record]
        place = inlined.pop(PLACE)
        inlined["anyOf"] = [*others[:place], record, *others[place:]]
    if inlined.get("type") == "object" and "properties" in inlined:
        inlined.setdefault("additionalProperties", False)
    return inlined


def _shorten(node: Any) -> Any:
    if not isinstance(node, Mapping):
        return copy.deepcopy(node)
    short: dict[str, Any] = {}
    options = [option for option in node.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        described = {"description": node["description"]} if "description" in node else {}
        return {**_shorten(options[0]), **described, **node.get(SAID, {})}
    for key, value in node.items():
        if key in {"anyOf", "oneOf", "allOf", "prefixItems"}:
            short[key] = [_shorten(option) for option in value]
        elif key == "properties":
            short[key] = {name: _shorten(each) for name, each in value.items()}
        elif key not in _DROPPED:
            short[key] = _shorten(value)
    if "enum" in node:
        short["enum"] = [option for option in node["enum"] if option is not None]
        kinds = set(map(type, short["enum"]))
        if len(kinds) == 1 and kinds <= _TYPES.keys():
            short["type"] = _TYPES[kinds.pop()]
    if "properties" in node and not short.get("required"):
        short.pop("required", None)
    return {**short, **node.get(SAID, {})}

"""JSON Schemas of parameter dataclasses: one to publish, one to validate with.

Field metadata adds to the published one: ``description``, ``min_length``, ``max_length`` and
``min_items``. Limits are left out of the validating one, because text is measured after a trim.
"""

from __future__ import annotations

import copy
import dataclasses
import typing
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

__all__ = ["nested_types", "published_schema", "structural_schema"]

_KEYWORDS = {
    "description": "description",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
}
_DROPPED = frozenset({"title", "default"})


def published_schema(kind: type) -> dict[str, Any]:
    """The schema that a model reads: as short as it can be and still say everything."""
    return copy.deepcopy(_published(kind))


@lru_cache(maxsize=256)
def structural_schema(kind: type) -> dict[str, Any]:
    """The schema of the arguments' shape: types, names, enums. Do not change what it returns.

    Raises:
        TypeError: The type refers to itself: its schema has no end.
    """
    (root,), components = msgspec.json.schema_components([kind], ref_template="{name}")
    inlined: dict[str, Any] = _inline(root, components, ())
    return inlined


@lru_cache(maxsize=256)
def _published(kind: type) -> dict[str, Any]:
    plain: dict[str, Any] = _shorten(structural_schema(kind))
    _describe(kind, plain)
    return plain


def _inline(node: Any, components: dict[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inline(item, components, inside) for item in node]
    if not isinstance(node, dict):
        return node
    name = node.get("$ref")
    if name is not None:
        if name in inside:
            raise TypeError(f"the parameter type {name} refers to itself")
        return _inline(components[name], components, (*inside, name))
    inlined = {key: _inline(value, components, inside) for key, value in node.items()}
    if inlined.get("type") == "object" and "properties" in inlined:
        inlined["additionalProperties"] = False
    return inlined


def _shorten(node: Any) -> Any:
    """Leave out titles and defaults, and say ``string`` where null would also do: null means absent."""
    if not isinstance(node, dict):
        return copy.deepcopy(node)
    options = [option for option in node.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        return _shorten(options[0])
    short = {key: _shorten(value) for key, value in node.items() if key not in _DROPPED}
    if "properties" in node:
        short["properties"] = {name: _shorten(value) for name, value in node["properties"].items()}
        short.pop("description", None)  # the class's docstring: it speaks to Python programmers
        if not short["required"]:
            del short["required"]
    return short


def _describe(kind: type[Any], schema: dict[str, Any]) -> None:
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        node = schema["properties"][field.name]
        if typing.get_origin(hints[field.name]) is typing.Literal:
            node["type"] = "string"
            node["enum"] = list(typing.get_args(hints[field.name]))  # msgspec sorts them
        for key, keyword in _KEYWORDS.items():
            if key in field.metadata:
                node[keyword] = field.metadata[key]
        for nested in nested_types(hints[field.name]):
            _describe(nested, node.get("items", node))


def nested_types(hint: Any) -> Iterator[type[Any]]:
    """The dataclasses that a type hint names."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        yield hint
    for argument in typing.get_args(hint):
        yield from nested_types(argument)

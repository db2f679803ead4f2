"""Values that a parameter takes: they replace references while the inputs around these are checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["KEEP", "sample_of"]

KEEP: Final = object()
"""The text with the reference in it will do, or nothing is known that would do better."""

_DEEPEST = 8
_MOST_ITEMS = 100
_FORMATS: Final[Mapping[str, str]] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00",
    "duration": "PT15M",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "decimal": "1",
    "email": "someone@example.com",
    "uri": "https://example.com/",
}


def sample_of(node: Mapping[str, Any], depth: int = 0) -> Any:
    """A value that a part of a JSON Schema takes; ``KEEP`` where a text does, or none is found.

    It need not be right: it only saves the check of a step from going the long way.
    """
    options = [
        option
        for key in ("anyOf", "oneOf")
        for option in node.get(key, ())
        if option.get("type") != "null"  # a null would say nothing of the rest
    ]
    if options:
        found = [sample_of(option, depth) for option in options]
        return KEEP if KEEP in found else found[0]
    for key in ("enum", "examples"):
        if node.get(key):
            return node[key][0]
    if "const" in node:
        return node["const"]
    match node.get("type"):
        case "integer" | "number":
            return _number(node)
        case "boolean":
            return True
        case "string":
            return _text(node)
        case "array" if depth < _DEEPEST:
            items = node.get("items")
            item = sample_of(items, depth + 1) if isinstance(items, Mapping) else KEEP
            return [_filled(item)] * min(node.get("minItems", 0), _MOST_ITEMS)
        case "object" if depth < _DEEPEST:
            properties = node.get("properties", {})
            return {
                name: _filled(sample_of(properties.get(name, {}), depth + 1))
                for name in node.get("required", ())
            }
    return KEEP


def _filled(sample: Any) -> Any:
    return "text" if sample is KEEP else sample


def _text(node: Mapping[str, Any]) -> Any:
    if node.get("format") in _FORMATS:
        return _FORMATS[node["format"]]
    if "pattern" in node or not node.keys() & {"minLength", "maxLength"}:
        return KEEP
    return "x" * max(1, min(node.get("minLength", 1), 10_000))


def _number(node: Mapping[str, Any]) -> Any:
    step = node.get("multipleOf", 1)
    for key, away in (("minimum", 0), ("exclusiveMinimum", 1), ("maximum", 0), ("exclusiveMaximum", -1)):
        if key in node:
            return node[key] + away * step
    return step

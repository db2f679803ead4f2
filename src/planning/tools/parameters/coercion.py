"""Tolerated forms of arguments, such as an array sent as text.

A JSON text where an array or object belongs, a plain string where an object with one required string
belongs, 2.0 where an integer belongs, null for an optional field; and a number, true or false
as text where no text belongs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from planning.tools.parameters import words

Options = Sequence[Mapping[str, Any]]
_EXACT = 2**53  # up to here a float holds every integer
_MOST_DIGITS = 400
BOOLEANS = {"true": True, "false": False}
"""What JSON calls booleans; as text they are taken in any case."""
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}
_OPENINGS: dict[str, tuple[type, str]] = {"{": (dict, "object"), "[": (list, "array")}


def coerced(data: Any, schema: Mapping[str, Any]) -> Any:
    """The arguments as a schema wants them, where it is plain what was meant; all else as it is."""
    return _coerced(data, schema, schema)


def _coerced(data: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    if not schema:
        return data
    options = words.options(root, schema)
    if isinstance(data, str):
        if "string" in [option.get("type") for option in options]:
            return data
        data = _from_string(data, options)
        if isinstance(data, str):
            data = _scalar(data, options)
    if isinstance(data, float) and data.is_integer() and _wants_integer(options, data):
        return int(data)
    if isinstance(data, dict):
        wanted = _only(options, "object")
        if wanted is None:
            tagged = [option for option in options if _has_tag(data, option)]
            wanted = _only(tagged, "object") or _only(
                [option for option in tagged if _has_fields(data, option)], "object"
            )
        return data if wanted is None else _coerced_object(data, wanted, root)
    if isinstance(data, (list, tuple)):
        wanted = _only(options, "array")
        return data if wanted is None else _coerced_array(data, wanted, root)
    return data


def _only(options: Options, *types: str) -> Mapping[str, Any] | None:
    """The option that has one of these types, if only one has."""
    found = [option for option in options if option.get("type") in types]
    return found[0] if len(found) == 1 else None


def _has_tag(data: Mapping[str, Any], option: Mapping[str, Any]) -> bool:
    """Whether no field shows that the data is meant for another option of a union."""
    return not any(
        data[name] not in each.get("enum", [each["const"]] if "const" in each else [data[name]])
        for name, each in option.get("properties", {}).items()
        if name in data
    )


def _has_fields(data: Mapping[str, Any], option: Mapping[str, Any]) -> bool:
    """Whether an option of a union has all the fields of the data, and the data all that it requires."""
    return data.keys() <= option.get("properties", {}).keys() and data.keys() >= set(
        option.get("required", ())
    )


def _wants_integer(options: Options, number: float) -> bool:
    types = {option.get("type") for option in options}
    listed = [value for option in options for value in option.get("enum", ())]
    return "number" not in types and (
        "integer" in types or any(type(value) is int and value == number for value in listed)
    )


def _coerced_object(
    data: dict[Any, Any], schema: Mapping[str, Any], root: Mapping[str, Any]
) -> dict[Any, Any]:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    others = schema.get("additionalProperties") or {}
    others = others if isinstance(others, (dict, Mapping)) else {}  # for a dict much faster
    return {
        name: _coerced(value, properties.get(name, others), root)
        for name, value in data.items()
        if not (
            value is None
            and name in properties
            and name not in required
            and not words.takes_null(root, properties[name])
        )
    }


def _coerced_array(data: Sequence[Any], schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Any]:
    places, rest = list(schema.get("prefixItems", ())), schema.get("items")
    rest = rest if isinstance(rest, Mapping) else {}
    places += [rest] * (len(data) - len(places))
    return [_coerced(item, place, root) for item, place in zip(data, places, strict=False)]


def _from_string(text: str, options: Options) -> Any:
    """A string where another type belongs, read as JSON of that type or as an object's only field."""
    expected, kind = _OPENINGS.get(text.lstrip()[:1], (None, ""))
    if expected is not None and any(option.get("type") == kind for option in options):
        try:
            parsed = from_json(text, allow_inf_nan=False)
        except ValueError:
            return text
        return parsed if isinstance(parsed, expected) else text
    wanted = _only(options, "array", "object") or {}
    required = wanted.get("required", ())
    if len(required) == 1 and wanted.get("properties", {}).get(required[0], {}).get("type") == "string":
        return {required[0]: text}
    return text


def _scalar(text: str, options: Options) -> bool | int | float | str:
    """The boolean or the number that a text is in JSON, where one fits and no text does; else the text."""
    listed = [value for option in options for value in option.get("enum", [option.get("const")])]
    types = {option.get("type") for option in options if "enum" not in option and "const" not in option}
    types |= {_TYPES[type(value)] for value in listed if type(value) in _TYPES}
    if types & {None, "string"} or len(text) > _MOST_DIGITS:
        return text
    if "boolean" in types and text.lower() in BOOLEANS:
        return BOOLEANS[text.lower()]
    if not types & {"integer", "number"} or not text[-1:].isdecimal():
        return text
    try:
        number = from_json(text, allow_inf_nan=False)
    except ValueError:
        return text
    is_exact = type(number) is int or "number" in types or (number.is_integer() and abs(number) < _EXACT)
    return number if type(number) in {int, float} and is_exact and abs(number) < math.inf else text

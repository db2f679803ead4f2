"""The errors of pydantic, in this project's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import pydantic
from pydantic_core import core_schema

from planning.errors import Problem
from planning.tools.parameters import words
from planning.tools.parameters.model import NO_JSON

__all__ = ["problems_of"]

Path = tuple[int | str, ...]

# pydantic's names of limits -> those of JSON Schema, and under which name the error carries the limit.
_LIMITS = {
    "greater_than": ("exclusiveMinimum", "gt"),
    "greater_than_equal": ("minimum", "ge"),
    "less_than": ("exclusiveMaximum", "lt"),
    "less_than_equal": ("maximum", "le"),
    "multiple_of": ("multipleOf", "multiple_of"),
    "string_too_short": ("minLength", "min_length"),
    "string_too_long": ("maxLength", "max_length"),
    "string_pattern_mismatch": ("pattern", "pattern"),
    "too_short": ("minItems", "min_length"),
    "too_long": ("maxItems", "max_length"),
}
_FIELDS = {"minItems": "minProperties", "maxItems": "maxProperties"}
_OPTIONS = frozenset({"literal_error", "enum"})
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
# The texts of these are of pydantic itself; a validator may make up others, and means what it says.
_WRONG_TYPE = frozenset(
    kind for kind in get_args(core_schema.ErrorType) if kind.endswith(("_type", "_parsing", "_from_float"))
)
_MISSING = frozenset({"missing", "missing_argument"})
_TAG = frozenset({"union_tag_invalid", "union_tag_not_found"})
_KEY = "[key]"
_MOST_ERRORS = 200  # of a long array that is wrong throughout


def problems_of(error: pydantic.ValidationError, data: object, schema: Mapping[str, Any]) -> list[Problem]:
    """The problems that an error of pydantic lists, at most 200 of them; some may appear twice."""
    errors = error.errors(include_url=False)[:_MOST_ERRORS]
    if "invalid_key" in [error["type"] for error in errors]:
        return [Problem(NO_JSON)]
    placed = [(error, _place(error["loc"], data, schema)) for error in errors]
    if len(placed) > 1:
        placed = _telling(placed, schema)
    problems: list[Problem] = []
    for each, place in placed:
        if each["type"] == "refused":
            for name, message in each["ctx"]["refused"]:
                problems.append(Problem(message, words.spell((*place, name) if name else place)))
        else:
            problems.append(_problem(each, place, data, schema))
    return problems


def _telling(placed: list[tuple[Any, Path]], schema: Mapping[str, Any]) -> list[tuple[Any, Path]]:
    """The errors without those that only say that a value is not of another member of a union.

    A union lists the errors of each of its members. Those of the wrong type are omitted where a member of the
    right type has an error inside of the value, or has other options.
    """
    outer = {place[:depth] for _, place in placed for depth in range(len(place))}
    outer |= {place for each, place in placed if each["type"] in _TAG}
    mistyped = {place for each, place in placed if each["type"] in _WRONG_TYPE}
    fits = {
        place: words.is_of_type(words.node_at(schema, place), each["input"])
        for each, place in placed
        if each["type"] in _OPTIONS
    }
    return [
        (each, place)
        for each, place in placed
        if not (each["type"] in _WRONG_TYPE and (place in outer or fits.get(place)))
        and not (each["type"] in _OPTIONS and place in mistyped and not fits[place])
    ]


def _problem(error: Any, path: Path, data: object, schema: Mapping[str, Any]) -> Problem:
    kind, location, value, context = error["type"], error["loc"], error["input"], error.get("ctx", {})
    if kind in _UNKNOWN:
        place = _place(location[:-1], data, schema)
        given: Any = data
        for part in place:
            given = given[part] if _is_in(given, part) else None
        return words.unknown_field(schema, place, str(location[-1]), given)
    if kind in _MISSING and isinstance(location[-1], int):
        limit = words.node_at(schema, path[:-1]).get("minItems")
        return words.out_of_bounds(path[:-1], "minItems", limit, value) or words.missing(schema, path)
    if kind in _MISSING:
        return words.missing(schema, path)
    if kind in _OPTIONS and location[-1:] != (_KEY,):
        return words.wrong_option(schema, path, value)
    if kind in _TAG:
        tag, given = (*path, context["discriminator"].strip("'")), context.get("tag")
        if words.node_at(schema, tag):
            return words.missing(schema, tag) if given is None else words.wrong_option(schema, tag, given)
    bound = _bound(error, path)
    if bound is not None:
        return bound
    if kind in _WRONG_TYPE and location[-1:] != (_KEY,):
        node = words.node_at(schema, path)
        if node and not words.is_of_type(node, value):
            return words.wrong_type(schema, path, value)
    cause = context.get("error")
    return Problem(str(cause) if isinstance(cause, Exception) else error["msg"], words.spell(path))


def _bound(error: Any, path: Path) -> Problem | None:
    if error["type"] not in _LIMITS:
        return None
    keyword, name = _LIMITS[error["type"]]
    if isinstance(error["input"], Mapping):
        keyword = _FIELDS[keyword]
    return words.out_of_bounds(path, keyword, error["ctx"][name], error["input"])


def _place(location: Path, data: object, schema: Mapping[str, Any]) -> Path:
    """The path of an error without the names of union members, which pydantic puts into it.

    What is left is known to the schema or to the data: of the aliases of a field only one is published.
    """
    place: Path = ()
    named: Path | None = None  # where the name of a member has been met
    for part in location:
        node = words.node_at(schema, place)
        if _is_union(node) and named != place:
            named = place
        elif isinstance(part, int) or _is_in(data, part) or words.has_place(schema, (*place, part)):
            place = (*place, part)
            data = data[part] if _is_in(data, part) else None  # type: ignore[index]  # it was asked just now
    return place


def _is_union(node: Mapping[str, Any]) -> bool:
    """Whether a value may be one of several; pydantic does not count null among them."""
    options = (*node.get("anyOf", ()), *node.get("oneOf", ()))
    return len(options) > 1 and sum(option.get("type") != "null" for option in options) > 1


def _is_in(data: object, part: int | str) -> bool:
    if isinstance(data, Mapping):
        return part in data
    return isinstance(data, list) and isinstance(part, int) and part < len(data)

"""The errors of pydantic, in this project's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import pydantic
from pydantic_core import core_schema

from planning.errors import Problem
from planning.tools.parameters import words
from planning.tools.parameters.model import NO_JSON

Path = tuple[int | str, ...]
Node = Mapping[str, Any]

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
_OPTIONS = frozenset({"literal_error", "enum", "int_parsing_size"})  # the last: a number like no option
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
    placed = [(error, *_place(error["loc"], data, schema)) for error in errors]
    if len(placed) > 1:
        placed = _telling(placed)
    problems: list[Problem] = []
    for each, place, node in placed:
        if each["type"] == "refused":
            for name, message in each["ctx"]["refused"]:
                problems.append(Problem(message, words.spell((*place, name) if name else place)))
        else:
            problems.append(_problem(each, place, node, data, schema))
    return problems


def _telling(placed: list[tuple[Any, Path, Node]]) -> list[tuple[Any, Path, Node]]:
    """The errors without those that only say that a value is not of another member of a union.

    A union lists the errors of each of its members. Those of the wrong type are omitted where a member of the
    right type has an error inside of the value, or has other options.
    """
    outer = {place[:depth] for _, place, _ in placed for depth in range(len(place))}
    outer |= {place for each, place, _ in placed if each["type"] in _TAG}
    mistyped = {place for each, place, _ in placed if each["type"] in _WRONG_TYPE}
    fits = {
        place: words.is_of_type(node, each["input"])
        for each, place, node in placed
        if each["type"] in _OPTIONS
    }
    return [
        (each, place, node)
        for each, place, node in placed
        if not (each["type"] in _WRONG_TYPE and (place in outer or fits.get(place)))
        and not (each["type"] in _OPTIONS and place in mistyped and not fits[place])
    ]


def _problem(error: Any, path: Path, node: Node, data: object, schema: Node) -> Problem:
    kind, location, value, context = error["type"], error["loc"], error["input"], error.get("ctx", {})
    if kind in _UNKNOWN:
        place, above = _place(location[:-1], data, schema)
        given: Any = data
        for part in place:
            given = given[part] if _is_in(given, part) else None
        return words.unknown_field(above, place, str(location[-1]), given)
    if kind in _MISSING and isinstance(location[-1], int):
        limit = words.node_at(schema, path[:-1]).get("minItems")
        return words.out_of_bounds(path[:-1], "minItems", limit, value) or words.missing(node, path)
    if kind in _MISSING:
        return words.missing(node, path)
    if kind in _OPTIONS and location[-1:] != (_KEY,):
        return words.wrong_option(node, path, value)
    if kind in _TAG:
        tag, given = (*path, context["discriminator"].strip("'")), context.get("tag")
        if tagged := words.node_at(schema, tag):
            return words.missing(tagged, tag) if given is None else words.wrong_option(tagged, tag, given)
    bound = _bound(error, path)
    if bound is not None:
        return bound
    is_key = location[-1:] == (_KEY,)
    if kind in _WRONG_TYPE and node and not is_key and not words.is_of_type(node, value):
        return words.wrong_type(node, path, value)
    cause = context.get("error")
    return Problem(str(cause) if isinstance(cause, Exception) else error["msg"], words.spell(path))


def _bound(error: Any, path: Path) -> Problem | None:
    if error["type"] not in _LIMITS:
        return None
    keyword, name = _LIMITS[error["type"]]
    if isinstance(error["input"], Mapping):
        keyword = _FIELDS[keyword]
    return words.out_of_bounds(path, keyword, error["ctx"][name], error["input"])


def _place(location: Path, data: object, schema: Node) -> tuple[Path, Node]:
    """The path of an error without the names of union members, which pydantic puts into it; its schema.

    What is left is known to the schema or to the data: of the aliases of a field only one is published.
    """
    place: Path = ()
    named: Path | None = None  # where the name of a member has been met
    nodes = words.options(schema, schema)
    for part in location:
        if named != place and _are_several(nodes):
            named = place
            continue
        inner, is_given = words.below(schema, nodes, part), _is_in(data, part)
        if isinstance(part, int) or is_given or inner:
            place, nodes = (*place, part), inner
            data = data[part] if is_given else None  # type: ignore[index]  # it was asked just now
    return place, words.union(nodes)


def _are_several(nodes: list[Node]) -> bool:
    """Whether a value may be one of several; pydantic does not count null among them."""
    return len(nodes) > 1 and sum(node.get("type") != "null" for node in nodes) > 1


def _is_in(data: object, part: int | str) -> bool:
    if isinstance(data, (dict, Mapping)):  # for a dict much faster
        return part in data
    return isinstance(data, list) and isinstance(part, int) and part < len(data)

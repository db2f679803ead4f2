"""The words for what is wrong with arguments: the same for every kind of parameter model."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from planning.errors import Problem, ToolValidationError, listed, nearest, unknown_option

__all__ = [
    "MOST_PROBLEMS",
    "expected",
    "has_place",
    "is_of_type",
    "limits",
    "missing",
    "node_at",
    "out_of_bounds",
    "refusal",
    "spell",
    "type_word",
    "unknown_field",
    "withheld",
    "wrong_option",
    "wrong_type",
]

Path = Sequence[str | int]

_JSON_TYPES = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    tuple: "an array",
    dict: "an object",
    type(None): "null",
}
_TYPE_WORDS = {
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_FORMATS = {
    "date": "a date such as 2026-01-31",
    "date-time": "a date and time such as 2026-01-31T12:00:00Z",
    "time": "a time such as 12:00:00",
    "duration": "a duration such as PT15M",
    "uuid": "a UUID",
    "decimal": 'a decimal number such as "1.50"',
    "email": "an email address",
    "uri": "a URL",
}
_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} fields",
    "maxProperties": "at most {} fields",
}
_LONG = 10**15
_MAY_BE_JSON = re.compile(r"\s*[-0-9\"\[{tfnIN]")
MOST_PROBLEMS = 50
_PART = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_FIRST = re.compile(r"[^.\[\]]+")


def missing(schema: Mapping[str, Any], path: Path) -> Problem:
    """A required field is not there."""
    return Problem(f"missing; send {expected(node_at(schema, path))}", spell(path))


def unknown_field(schema: Mapping[str, Any], path: Path, name: str, given: object) -> Problem:
    """The object at a path has an unknown field; the message gives the nearest name, of those not sent first.

    Args:
        schema: The schema of the arguments as a whole.
        path: The path of the object.
        name: The field.
        given: The object.
    """
    known = _names(node_at(schema, path))
    names = given if isinstance(given, Mapping) else ()
    near = nearest(name, [each for each in known if each not in names]) or nearest(name, known)
    if near is not None:
        hint = f"did you mean {near}?"
    else:
        hint = f"the fields are {listed(known)}" if known else "send no fields"
    return Problem(f"unknown field; {hint}", spell([*path, name]))


def wrong_type(schema: Mapping[str, Any], path: Path, value: object) -> Problem:
    """A value is of another type than was asked for."""
    return Problem(f"expected {expected(node_at(schema, path))}, got {type_word(value)}", spell(path))


def wrong_option(schema: Mapping[str, Any], path: Path, value: object) -> Problem:
    """A value is not one of the options."""
    options = [name for option in _options(node_at(schema, path)) for name in option.get("enum", ())]
    options += [option["const"] for option in _options(node_at(schema, path)) if "const" in option]
    options = [option for option in options if option is not None] or options
    return Problem(unknown_option(value, dict.fromkeys(map(_option, options))), spell(path))


def out_of_bounds(path: Path, keyword: str, limit: object, value: object) -> Problem | None:
    """A value of the right type breaks a limit; None for a keyword that is not a limit."""
    if keyword == "pattern":
        return Problem(f"expected text that matches {limit}, got other text", spell(path))
    words = _BOUNDS.get(keyword)
    if words is None:
        return None
    return Problem(f"expected {_counted(words, limit)}, got {_measured(value)}", spell(path))


def type_word(value: object) -> str:
    """What a value is, in JSON's words."""
    return _JSON_TYPES.get(type(value), f"a value of type {type(value).__name__}")


def is_of_type(node: Mapping[str, Any], value: object) -> bool:
    """Whether a value is of a type that a schema asks for, and of that alone: no format besides."""
    types = (_TYPE_WORDS.get(str(option.get("type"))) for option in _options(node) if "format" not in option)
    return type_word(value) in types


def expected(node: Mapping[str, Any]) -> str:
    """What a schema asks for, in a few words."""
    for key in ("anyOf", "oneOf"):
        if key in node:
            options = [option for option in node[key] if option.get("type") != "null"] or node[key]
            return " or ".join(dict.fromkeys(expected(option) for option in options))
    if "enum" in node:
        options = listed(map(_option, node["enum"]))
        return f"one of {options}" if len(node["enum"]) > 1 else options
    if "const" in node:
        return _option(node["const"])
    word = _FORMATS.get(str(node.get("format"))) or _TYPE_WORDS.get(str(node.get("type")), "a value")
    if "maxLength" in node:
        return f"{word} of {node.get('minLength', 0)} to {node['maxLength']} characters"
    if "properties" in node:
        names = listed(node["properties"]) or ("" if node.get("additionalProperties") else "no fields")
        return f"{word} with {names}" if names else word
    bounds = [_counted(words, node[key]) for key, words in _BOUNDS.items() if key in node]
    phrase = f"{word} of {' and '.join(bounds)}" if bounds else word
    return f"{phrase} that matches {node['pattern']}" if "pattern" in node else phrase


def limits(node: Mapping[str, Any], keywords: Container[str]) -> str:
    """What some of the limits of a schema say, for a field's description; empty when it has none of them."""
    named = [key for key in _BOUNDS if key in keywords and key in node]
    phrases = [_counted(_BOUNDS[key], node[key]) for key in named]
    if {"minLength", "maxLength"}.issubset(named):
        phrases = [f"{node['minLength']} to {node['maxLength']} characters"]
    if "pattern" in keywords and "pattern" in node:
        phrases.append(f"matches {node['pattern']}")
    return ", ".join(phrases)


def node_at(schema: Mapping[str, Any], path: Iterable[str | int]) -> Mapping[str, Any]:
    """The part of a schema that speaks of the place at a path; empty where none does."""
    node = schema
    for part in path:
        node = _child(node, part) or {}
    return node


def has_place(schema: Mapping[str, Any], path: Iterable[str | int]) -> bool:
    """Whether a schema speaks of the place at a path, if only to say that anything may be there."""
    node: Mapping[str, Any] | None = schema
    for part in path:
        node = None if node is None else _child(node, part)
    return node is not None


def spell(path: Iterable[str | int]) -> str:
    """A path as text, such as ``steps[1].title``; ASCII, and each name cut to 60 characters."""
    spelled = ""
    for part in path:
        if isinstance(part, int):
            spelled += f"[{part}]"
        else:
            name = ascii(part)[1:-1][:60]
            spelled += f".{name}" if spelled else name
    return spelled


def _in_order(problems: Iterable[Problem], schema: Mapping[str, Any]) -> list[Problem]:
    """The problems in the order of the fields: those of unknown ones after the known, the whole call last."""
    numbers = {name: number for number, name in enumerate(_names(schema))}

    def place(problem: Problem) -> int:
        name = _FIRST.match(problem.path)
        return len(numbers) + 1 if name is None else numbers.get(name[0], len(numbers))

    return sorted(problems, key=place)


def refusal(
    problems: Iterable[Problem], schema: Mapping[str, Any], further: Iterable[Problem] = ()
) -> ToolValidationError:
    """The refusal for problems: each once, in the order of the schema's fields, and not too many.

    Args:
        problems: What is wrong.
        schema: The schema of the arguments.
        further: What a tool's own diagnosis adds; it replaces what is said of the same places.
    """
    own = tuple(further)
    told = {problem.path for problem in own if problem.path}
    kept = (problem for problem in problems if problem.path not in told)
    found = list(islice(dict.fromkeys(chain(kept, own)), MOST_PROBLEMS))
    listed = _in_order(found, schema) if len(found) > 1 else found
    if len(listed) == MOST_PROBLEMS:
        listed.append(Problem("there may be more errors; fix these first"))
    return ToolValidationError(listed)


def withheld(problem: Problem, schema: Mapping[str, Any]) -> Problem:
    """The problem without a word of what was sent: the schema's own words and names alone."""
    node, known = schema, list[str | int]()
    for index, name in _PART.findall(problem.path):
        part: str | int = int(index) if index else name
        child = _child(node, part)
        if child is None or (name and name not in _names(node)):
            break
        node = child
        known.append(part)
    is_missing = problem.message.startswith("missing; ") and spell(known) == problem.path
    return Problem(f"{'missing' if is_missing else 'refused'}; send {expected(node)}", spell(known))


def _option(value: object) -> str:
    """An option as it is to be sent: a text as it is, in quotes where it reads as another value of JSON."""
    if isinstance(value, str):
        if not _MAY_BE_JSON.match(value):
            return value
        try:
            json.loads(value)
        except ValueError:
            return value
    return json.dumps(value)


def _options(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A schema, and all that it is a union of."""
    yield node
    for key in ("anyOf", "oneOf"):
        for option in node.get(key, ()):
            yield from _options(option)


def _names(node: Mapping[str, Any]) -> list[str]:
    """The fields of an object, or of all objects in a union."""
    if "anyOf" not in node and "oneOf" not in node:
        return list(node.get("properties", ()))
    return list(dict.fromkeys(name for option in _options(node) for name in option.get("properties", ())))


def _child(node: Mapping[str, Any], part: str | int) -> Mapping[str, Any] | None:
    """One step down, also through the options of a union; where these differ, what is there is one too."""
    if "anyOf" not in node and "oneOf" not in node:
        child = _own_child(node, part)
        return child if isinstance(child, dict) else None
    found = list[Mapping[str, Any]]()
    for option in _options(node):
        child = _own_child(option, part)
        if isinstance(child, dict) and not any(child is node for node in found):
            found.append(child)
    return {"anyOf": found} if len(found) > 1 else next(iter(found), None)


def _own_child(node: Mapping[str, Any], part: str | int) -> object:
    if isinstance(part, int):
        places = node.get("prefixItems", ())
        return places[part] if part < len(places) else node.get("items")
    return node.get("properties", {}).get(part, node.get("additionalProperties"))


def _counted(words: str, limit: object) -> str:
    phrase = words.format(limit)
    return phrase.removesuffix("s") if limit == 1 and words.endswith("s") else phrase


def _measured(value: object) -> str:
    if isinstance(value, str):
        return _counted("{} characters", len(value))
    if isinstance(value, (list, tuple)):
        return _counted("{} items", len(value))
    if isinstance(value, (int, float)) and abs(value) < _LONG:
        return str(value)
    return type_word(value)

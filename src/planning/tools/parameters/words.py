"""The errors of every validator as one value, and the one table of words for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

from planning.errors import Problem, listed, nearest, show, unknown_option

Node = Mapping[str, Any]
Path = tuple[str | int, ...]

_LONG = 10**15
_JSON_WORDS = frozenset({"true", "false", "null", "NaN", "Infinity"})
_TYPES = {
    bool: "boolean", int: "number", float: "number", str: "string", list: "array", tuple: "array",
    dict: "object", type(None): "null",
}  # fmt: skip
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
BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} fields",
    "maxProperties": "at most {} fields",
}
"""The demand of each limit, by its keyword."""


class Wrong(NamedTuple):
    """One error of a validator: of pydantic, of jsonschema-rs or of our own checks.

    Attributes:
        path: Where it is; for a field that is missing or unknown, the path of that field.
        keyword: What is broken: a keyword of JSON Schema, or ``check`` for a check in Python.
        limit: What it asks for: a number or a pattern; what a check says; else the part of the schema.
        got: What was sent; for an unknown field, the object that has it.
    """

    path: Path
    keyword: str
    limit: Any
    got: object = None

    def problem(self) -> Problem:
        """The error in words."""
        say = _WORDS.get(self.keyword) or (_out_of_bounds if self.keyword in BOUNDS else _wrong_type)
        return Problem(say(self), spell(self.path), self.keyword)


def unknown_field(path: Path, name: str, node: Node, got: object) -> Wrong:
    """The error of a field that an object must not have: no form of it has the field, or only another."""
    return Wrong((*path, name), "oneOf" if name in names_in(node) else "additionalProperties", node, got)


def _unknown_field(wrong: Wrong) -> str:
    """The message names the nearest field, of those that were not sent first."""
    name, known = str(wrong.path[-1]), names_in(wrong.limit)
    sent = wrong.got if isinstance(wrong.got, Mapping) else ()
    near = nearest(name, [each for each in known if each not in sent]) or nearest(name, known)
    if near is not None:
        return f"unknown field; did you mean {near}?"
    return f"unknown field; {f'the fields are {listed(known)}' if known else 'send no fields'}"


def choices(node: Node) -> list[Any]:
    """The options that a schema lists, or all in a union; without null, unless there is no other."""
    nodes = node.get("anyOf", [node])
    values = [
        value for each in nodes for value in each.get("enum", [each["const"]] if "const" in each else ())
    ]
    return [value for value in values if value is not None] or values


def _wrong_option(wrong: Wrong) -> str:
    value, values = wrong.got, choices(wrong.limit)
    known = dict.fromkeys(map(_option, values))
    is_number = type(value) is int or type(value) is float
    if is_number and abs(value) < _LONG and {int, float} & {*map(type, values)}:  # type: ignore[arg-type]  # a number
        return f"{value} is unknown; send one of {listed(known)}"
    return unknown_option(value, known)


def _out_of_bounds(wrong: Wrong) -> str:
    _path, keyword, limit, value = wrong
    wanted = _count(BOUNDS[keyword], limit)
    if isinstance(value, str) and not keyword.endswith("Length"):  # a date or a decimal
        return f"expected {wanted}, got {show(value)}"
    if keyword == "minLength" and isinstance(value, str):  # it may have been trimmed first
        value = value if len(value) < limit else value.strip()
    return f"expected {wanted}, got {_measure(value)}"


def _wrong_type(wrong: Wrong) -> str:
    return f"expected {expected(wrong.limit)}, got {type_word(wrong.got)}"


_WORDS: dict[str, Callable[[Wrong], str]] = {
    "check": lambda wrong: str(wrong.limit),
    "required": lambda wrong: f"missing; send {expected(wrong.limit)}",
    "additionalProperties": _unknown_field,
    "oneOf": lambda _wrong: "only one form has this field; send the fields of one form",
    "enum": _wrong_option,
    "const": _wrong_option,
    "falseSchema": lambda _wrong: "not allowed; remove it",
    "pattern": lambda wrong: f"expected text that matches {wrong.limit}, got other text",
}
"""The message for each keyword that is neither a limit nor a type."""


def type_word(value: object) -> str:
    """The kind of a value, in JSON's words."""
    kind = _TYPES.get(type(value))
    return f"a value of type {type(value).__name__}" if kind is None else _TYPE_WORDS[kind]


def is_of_type(node: Node, value: object) -> bool:
    """True if a value has a type that a schema asks for, without any format that it asks for."""
    found = (option for option in node.get("anyOf", [node]) if "format" not in option)
    return type_word(value) in {_TYPE_WORDS.get(str(option.get("type"))) for option in found}


def expected(node: Node) -> str:
    """A schema in a few words."""
    if "anyOf" in node:
        some = [option for option in node["anyOf"] if option.get("type") != "null"] or node["anyOf"]
        return " or ".join(dict.fromkeys(map(expected, some)))
    if "enum" in node:
        some = listed(map(_option, node["enum"]))
        return f"one of {some}" if len(node["enum"]) > 1 else some
    if "const" in node:
        return _option(node["const"])
    word = _FORMATS.get(str(node.get("format"))) or _TYPE_WORDS.get(str(node.get("type")), "a value")
    if "maxLength" in node:
        return f"{word} of {node.get('minLength', 0)} to {node['maxLength']} characters"
    if "properties" in node:
        names = listed(node["properties"]) or ("" if node.get("additionalProperties") else "no fields")
        return f"{word} with {names}" if names else word
    bounds = bounds_of(node)
    phrase = f"{word} of {' and '.join(bounds)}" if bounds else word
    return f"{phrase} that matches {node['pattern']}" if "pattern" in node else phrase


def bounds_of(node: Node) -> list[str]:
    """The demand of each limit of a schema."""
    return [_count(words, node[key]) for key, words in BOUNDS.items() if key in node]


def limits(node: Node) -> str:
    """The limits and the pattern of a schema, for a field's description; empty without them."""
    phrases = bounds_of(node)
    if {"minLength", "maxLength"} <= node.keys():
        phrases = [f"{node['minLength']} to {node['maxLength']} characters"]
    return ", ".join([*phrases, f"matches {node['pattern']}"] if "pattern" in node else phrases)


def names_in(node: Node) -> list[str]:
    """The fields of an object, or of all objects in a union, in order."""
    parts = (each.get("properties", ()) for each in node.get("anyOf", [node]))
    return list(dict.fromkeys(chain.from_iterable(parts)))


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


def _option(value: object) -> str:
    """An option as it is to be sent: text as it is, in quotes if it reads as another value of JSON."""
    if isinstance(value, str):
        if value.isidentifier() and value not in _JSON_WORDS:
            return value
        try:
            json.loads(value)
        except ValueError:
            return value
    return json.dumps(value)


def _count(words: str, limit: object) -> str:
    phrase = words.format(limit)
    return phrase.removesuffix("s") if limit == 1 and words.endswith("s") else phrase


def _measure(value: object) -> str:
    if isinstance(value, str):
        return _count("{} characters", len(value))
    if isinstance(value, (list, tuple)):
        return _count("{} items", len(value))
    if isinstance(value, (int, float)) and abs(value) < _LONG:
        return str(value)
    return type_word(value)

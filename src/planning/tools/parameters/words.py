"""The messages for wrong arguments: the same for every kind of parameter model."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from planning.errors import Problem, ToolValidationError, listed, nearest, show, unknown_option

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
_NULL: Mapping[str, Any] = {"type": "null"}
_COMPOSED = frozenset({"$ref", "anyOf", "oneOf"})
_PARTS = ("allOf", "anyOf", "oneOf")
_LONG = 10**15
_JSON_WORDS = frozenset({"true", "false", "null", "NaN", "Infinity"})
MOST_PROBLEMS = 50
_PART = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_FIRST = re.compile(r"[^.\[\]]+")


def missing(node: Mapping[str, Any], path: Path) -> Problem:
    """A required field is not there."""
    return Problem(f"missing; send {expected(node)}", spell(path))


def unknown_field(node: Mapping[str, Any], path: Path, name: str, given: object) -> Problem:
    """The object at a path has an unknown field; the message names the nearest, of those not sent first."""
    known = _names(node)
    names = given if isinstance(given, Mapping) else ()
    near = nearest(name, [each for each in known if each not in names]) or nearest(name, known)
    if near is not None:
        hint = f"did you mean {near}?"
    else:
        hint = f"the fields are {listed(known)}" if known else "send no fields"
    if name in known:  # another member of the union has it
        return Problem("only one form has this field; send the fields of one form", spell([*path, name]))
    return Problem(f"unknown field; {hint}", spell([*path, name]))


def wrong_type(node: Mapping[str, Any], path: Path, value: object) -> Problem:
    """A value is of another type than was asked for."""
    return Problem(f"expected {expected(node)}, got {type_word(value)}", spell(path))


def wrong_option(node: Mapping[str, Any], path: Path, value: object) -> Problem:
    """A value is not one of the options."""
    nodes = node.get("anyOf", [node])
    options = [
        name for node in nodes for name in node.get("enum", [node["const"]] if "const" in node else ())
    ]
    options = [option for option in options if option is not None] or options
    known = dict.fromkeys(map(_option, options))
    is_number = type(value) is int or type(value) is float
    if is_number and abs(value) < _LONG and {int, float} & {*map(type, options)}:  # type: ignore[arg-type]  # a number
        return Problem(f"{value} is unknown; send one of {listed(known)}", spell(path))
    return Problem(unknown_option(value, known), spell(path))


def out_of_bounds(path: Path, keyword: str, limit: object, value: object) -> Problem | None:
    """A value of the right type breaks a limit; None for a keyword that is not a limit."""
    if keyword == "pattern":
        return Problem(f"expected text that matches {limit}, got other text", spell(path))
    words = _BOUNDS.get(keyword)
    if words is None:
        return None
    if isinstance(value, str) and not keyword.endswith("Length"):  # a date or a decimal
        return Problem(f"expected {_counted(words, limit)}, got {show(value)}", spell(path))
    if keyword == "minLength" and isinstance(value, str):  # it may have been trimmed first
        value = value if len(value) < limit else value.strip()  # type: ignore[operator]  # a number
    return Problem(f"expected {_counted(words, limit)}, got {_measured(value)}", spell(path))


def type_word(value: object) -> str:
    """What a value is, in JSON's words."""
    return _JSON_TYPES.get(type(value), f"a value of type {type(value).__name__}")


def is_of_type(node: Mapping[str, Any], value: object) -> bool:
    """Whether a value is of a type that a schema asks for, and of that alone: no format besides."""
    found = (option for option in node.get("anyOf", [node]) if "format" not in option)
    return type_word(value) in {_TYPE_WORDS.get(str(option.get("type"))) for option in found}


def expected(node: Mapping[str, Any]) -> str:
    """What a schema asks for, in a few words."""
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


def options(root: Mapping[str, Any], node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a part of a schema allows: each option of a union and each type by itself, references followed."""
    if _COMPOSED.isdisjoint(node) and type(node.get("type")) is str:
        return [node]  # nearly every part
    found: list[Mapping[str, Any]] = []
    todo = [node]
    seen: set[int] = set()
    while todo:
        each = todo.pop()
        if "$ref" in each:
            target = _at(root, each["$ref"])
            if id(target) not in seen:
                seen.add(id(target))
                todo.append({**target, **{key: value for key, value in each.items() if key != "$ref"}})
        elif "anyOf" in each or "oneOf" in each:
            todo += [*each.get("oneOf", ())[::-1], *each.get("anyOf", ())[::-1]]
        elif isinstance(each.get("type"), list):
            todo += [_NULL if kind == "null" else {**each, "type": kind} for kind in each["type"][::-1]]
        else:
            found.append(each)
    return found


def takes_null(root: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Whether a part of a schema allows null."""
    return any(each.get("type") == "null" or None in each.get("enum", ()) for each in options(root, node))


def declared_names(node: Mapping[str, Any]) -> set[str]:
    """The names of the fields that an object has, in any part of its schema."""
    parts = [part for keyword in _PARTS for part in node.get(keyword, ()) if isinstance(part, Mapping)]
    return set(node.get("properties", ())).union(*map(declared_names, parts))


def node_at(root: Mapping[str, Any], path: Iterable[str | int]) -> Mapping[str, Any]:
    """The part of a schema that speaks of the place at a path, or a union of such; empty where none does."""
    return union(_nodes_at(root, path))


def union(nodes: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """A schema that allows what one of these allows; empty if there is none."""
    return {"anyOf": nodes} if len(nodes) > 1 else nodes[0] if nodes else {}


def has_place(root: Mapping[str, Any], path: Iterable[str | int]) -> bool:
    """Whether a schema speaks of the place at a path, if only to say that anything may be there."""
    return bool(_nodes_at(root, path))


def _nodes_at(root: Mapping[str, Any], path: Iterable[str | int]) -> list[Mapping[str, Any]]:
    nodes = options(root, root)
    for part in path:
        nodes = below(root, nodes, part)
    return nodes


def below(
    root: Mapping[str, Any], nodes: Iterable[Mapping[str, Any]], part: str | int
) -> list[Mapping[str, Any]]:
    """What speaks of a part of what some options of a schema speak of."""
    found = [child for node in nodes if isinstance(child := _child(node, part), dict)]
    if len(found) > 1:  # a union whose options have the same part is one part further down
        found = list({id(child): child for child in found}.values())
    return [option for child in found for option in options(root, child)]


def _at(root: Mapping[str, Any], reference: object) -> Mapping[str, Any]:
    """What a JSON Pointer in a schema refers to (RFC 6901); one that leads nowhere allows anything."""
    node: Any = root
    for part in str(reference).removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) and str(reference).startswith("#") else {}


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
    numbers = {name: number for number, name in enumerate(_names(node_at(schema, ())))}

    def place(problem: Problem) -> int:
        if problem.path in numbers:
            return numbers[problem.path]
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
    kept = [problem for problem in problems if problem.path not in told]
    found = list(dict.fromkeys([*kept, *own]))[:MOST_PROBLEMS]
    listed = _in_order(found, schema) if len(found) > 1 else found
    if len(listed) == MOST_PROBLEMS:
        listed.append(Problem("there may be more errors; fix these first"))
    return ToolValidationError(listed)


def withheld(problem: Problem, schema: Mapping[str, Any]) -> Problem:
    """The problem without a word of what was sent: the schema's own words and names alone."""
    known: list[str | int] = []
    for index, name in _PART.findall(problem.path):
        part: str | int = int(index) if index else name
        if not has_place(schema, [*known, part]) or (name and name not in _names(node_at(schema, known))):
            break
        known.append(part)
    is_missing = problem.message.startswith("missing; ") and spell(known) == problem.path
    wanted = expected(node_at(schema, known))
    return Problem(f"{'missing' if is_missing else 'refused'}; send {wanted}", spell(known))


def _option(value: object) -> str:
    """An option as it is to be sent: a text as it is, in quotes where it reads as another value of JSON."""
    if isinstance(value, str):
        if value.isidentifier() and value not in _JSON_WORDS:
            return value
        try:
            json.loads(value)
        except ValueError:
            return value
    return json.dumps(value)


def _names(node: Mapping[str, Any]) -> list[str]:
    """The fields of an object, or of all objects in a union."""
    if "anyOf" not in node:
        return list(node.get("properties", ()))
    return list(dict.fromkeys(name for option in node["anyOf"] for name in option.get("properties", ())))


def _child(node: Mapping[str, Any], part: str | int) -> object:
    """One step down."""
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

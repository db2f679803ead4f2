"""Arguments as a model sends them -> frozen parameters, or every problem with its path.

Some of what models send beside the point is taken for what it means: a JSON text where an array or
object belongs, a plain string where an object with one required string belongs, 2.0 where an integer
belongs, null for a field that may be left out.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from typing import Any, NoReturn, TypeVar

import jsonschema_rs
import msgspec

from planning.errors import Problem, ToolValidationError, show, unknown_option
from planning.tools.schema import nested_types, published_schema, structural_schema

__all__ = ["MOST_CHARACTERS", "decode"]

P = TypeVar("P")

MOST_CHARACTERS = 1_000_000
_MOST_PROBLEMS = 50
_LONG_ARRAY = 1_000
_TOO_DEEP = "arguments are nested too deep; send a flat JSON object"
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


def decode(
    kind: type[P],
    arguments: object,
    diagnose: Callable[[Mapping[str, Any]], Iterable[Problem]] = lambda _data: (),
) -> P:
    """Turn arguments into parameters.

    Args:
        kind: The dataclass of the parameters.
        arguments: JSON text of an object, as text or bytes, or a mapping; None and blank text are
            an empty object.
        diagnose: Asked for further problems once there are some.

    Raises:
        ToolValidationError: With every problem and its path.
    """
    data = _parse(arguments)
    try:
        if not _is_valid(kind, data):
            data = _repaired(kind, data, diagnose)
        try:
            return msgspec.convert(data, kind)
        except msgspec.ValidationError:  # 2.0 is an integer to JSON Schema, but not to msgspec
            return msgspec.convert(_coerced_to(kind, data), kind)
    except ToolValidationError:
        raise
    except (ValueError, RecursionError):
        # A mapping from Python that is no JSON: keys that are no strings, objects, cycles.
        _refuse("arguments must hold JSON values only: text, numbers, booleans, null, arrays, objects")


def _is_valid(kind: type, data: Any) -> bool:
    return _validator(kind).is_valid(data)


def _repaired(kind: type, data: Any, diagnose: Callable[[Mapping[str, Any]], Iterable[Problem]]) -> Any:
    """The data taken for what it means, if that has the right shape.

    A long array is looked at from its head: validating all of it only to name a few problems is dear.
    """
    repaired: Any = data
    for portion in (_head(data), data):
        repaired = _coerced_to(kind, portion)
        problems = list(islice(_shape_problems(kind, repaired), _MOST_PROBLEMS))
        if problems:
            others = chain(_text_problems(kind, repaired), diagnose(repaired))
            listed = dict.fromkeys(islice(chain(problems, others), _MOST_PROBLEMS))
            if len(listed) == _MOST_PROBLEMS:
                listed[Problem("more may be wrong; mend these first")] = None
            raise ToolValidationError(listed)
    return repaired


def _head(data: dict[str, Any]) -> dict[str, Any]:
    """The data with its long arrays cut."""
    return {name: value[:_LONG_ARRAY] if isinstance(value, list) else value for name, value in data.items()}


def _refuse(message: str) -> NoReturn:
    raise ToolValidationError(message)


def _parse(arguments: object) -> dict[str, Any]:
    data = arguments
    for _ in range(2):  # a JSON text within a JSON text: the arguments were written twice
        if isinstance(data, (str, bytes, bytearray)):
            if len(data) > MOST_CHARACTERS:
                _refuse(f"arguments of {len(data)} characters, at most {MOST_CHARACTERS}; send less at once")
            data = _parse_text(data) if data.strip() else {}
    if data is None:
        return {}
    if isinstance(data, Mapping):
        return data if type(data) is dict else dict(data)
    _refuse(f"arguments must be a JSON object, got {_word(data)}")


def _parse_text(text: str | bytes | bytearray) -> Any:
    try:
        data = msgspec.json.decode(text)
    except RecursionError:
        _refuse(_TOO_DEEP)
    except (msgspec.DecodeError, ValueError):
        _refuse_text(text)
    # Each name in the text has a colon: where there are more colons than names were kept, some stand
    # in strings, or a name stands twice.
    colons = text.count(":") if isinstance(text, str) else text.count(b":")
    try:
        if colons != _names(data):
            json.loads(text, object_pairs_hook=_each_once)
    except RecursionError:
        _refuse(_TOO_DEEP)
    return data


def _refuse_text(text: str | bytes | bytearray) -> NoReturn:
    """Say where a text stops being JSON; msgspec names the place less well."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        _refuse(f"arguments are not JSON at {at}: {error.msg}; send one JSON object")
    except (ValueError, RecursionError):
        pass
    _refuse("arguments are not JSON: NaN, Infinity and broken Unicode are not allowed; send one JSON object")


def _names(data: Any) -> int:
    """How many names the objects in a value have, all told."""
    if isinstance(data, dict):
        return len(data) + sum(_names(value) for value in data.values() if isinstance(value, (dict, list)))
    if isinstance(data, list):
        return sum(_names(item) for item in data if isinstance(item, (dict, list)))
    return 0


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        _refuse(f"arguments give {show(twice)} twice in one object; send each field once")
    return dict(pairs)


@lru_cache(maxsize=256)
def _validator(kind: type) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(structural_schema(kind), retriever=_no_retrieval)


def _no_retrieval(uri: str) -> NoReturn:
    raise ValueError(f"schemas are complete: {uri} is not fetched")


# What models send beside the point


def _coerced_to(kind: type, data: Any) -> Any:
    return _coerced(data, structural_schema(kind))


def _coerced(data: Any, schema: Mapping[str, Any]) -> Any:
    wanted = _structured(schema)
    if isinstance(data, str) and wanted is not None:
        data = _from_string(data, wanted)
    if isinstance(data, dict) and wanted is not None and "properties" in wanted:
        properties, required = wanted["properties"], wanted.get("required", ())
        return {
            name: _coerced(value, properties[name]) if name in properties else value
            for name, value in data.items()
            if not (value is None and name in properties and name not in required)
        }
    if isinstance(data, float) and schema.get("type") == "integer" and data.is_integer():
        return int(data)
    if isinstance(data, (list, tuple)) and wanted is not None and "items" in wanted:
        return [_coerced(item, wanted["items"]) for item in data]
    return data


def _structured(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The array or object that a schema asks for; None where a string would do as well."""
    options = schema.get("anyOf", [schema])
    found = [option for option in options if option.get("type") in {"array", "object"}]
    return found[0] if found and not any(option.get("type") == "string" for option in options) else None


def _from_string(text: str, schema: Mapping[str, Any]) -> Any:
    expected, opening = (dict, "{") if schema["type"] == "object" else (list, "[")
    if text.lstrip().startswith(opening):
        try:
            parsed = msgspec.json.decode(text)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return text
        return parsed if isinstance(parsed, expected) else text
    required = schema.get("required", ())
    if len(required) == 1 and schema["properties"][required[0]].get("type") == "string":
        return {required[0]: text}
    return text


# Problems


def _shape_problems(kind: type, data: Any) -> Iterator[Problem]:
    schema = published_schema(kind)
    for error in _validator(kind).iter_errors(data):
        path = list(error.instance_path)
        details = error.kind.as_dict()
        match error.kind.name:
            case "required":
                name = details["property"]
                node = _node(schema, [*path, name])
                yield Problem(f"missing; send {_expected(node)}", _spell([*path, name]))
            case "additionalProperties":
                known = list(_node(schema, path).get("properties", ()))
                for name in details["unexpected"]:
                    yield Problem(f"unknown field; {_suggest(name, known)}", _spell([*path, name]))
            case "enum":
                yield Problem(unknown_option(error.instance, _node(schema, path)["enum"]), _spell(path))
            case "type" | "anyOf":
                expected = _expected(_node(schema, path))
                yield Problem(f"expected {expected}, got {_word(error.instance)}", _spell(path))
            case _:
                yield Problem(error.message, _spell(path))


def _text_problems(kind: type[Any], data: Any) -> Iterator[Problem]:
    """What the fields' own checks say of the strings that stand in the right place."""
    if not isinstance(data, dict):
        return
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        value = data.get(field.name)
        check = field.metadata.get("check")
        if check is not None and isinstance(value, str):
            yield from (Problem(message, field.name) for message in check(value))
        for nested in nested_types(hints[field.name]):
            for index, item in enumerate(value if isinstance(value, list) else ()):
                place = f"{field.name}[{index}]"
                yield from (problem.under(place) for problem in _text_problems(nested, item))


def _node(schema: Mapping[str, Any], path: Iterable[str | int]) -> Mapping[str, Any]:
    node = schema
    for part in path:
        node = node.get("items", {}) if isinstance(part, int) else node.get("properties", {}).get(part, {})
    return node


def _expected(node: Mapping[str, Any]) -> str:
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(_expected(option) for option in node["anyOf"]))
    if "enum" in node:
        return f"one of {', '.join(map(str, node['enum']))}"
    word = _TYPE_WORDS.get(str(node.get("type")), "another type")
    if "maxLength" in node:
        return f"{word} of {node.get('minLength', 0)} to {node['maxLength']} characters"
    if "properties" in node:
        return f"{word} with {', '.join(node['properties']) or 'no fields'}"
    return word


def _suggest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"the fields are {', '.join(known)}" if known else "send no fields"


def _spell(path: Iterable[str | int]) -> str:
    spelled = ""
    for part in path:
        if isinstance(part, int):
            spelled += f"[{part}]"
        else:
            name = ascii(part)[1:-1][:60]
            spelled += f".{name}" if spelled else name
    return spelled


def _word(value: object) -> str:
    return _JSON_TYPES.get(type(value), f"a value of type {type(value).__name__}")

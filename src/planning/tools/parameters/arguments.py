"""Arguments as a model sends them: read, taken for what they mean, and refused with every problem."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn

from planning.errors import Problem, ToolValidationError, show
from planning.tools.parameters.model import Diagnose, ParameterModel
from planning.tools.parameters.schema import Node, has_place, node_at, options, takes_null
from planning.tools.parameters.words import expected, names_in, spell, type_word

MOST_CHARACTERS = 1_000_000
MOST_PROBLEMS = 50
_OUT_OF_RANGE = "arguments hold a number that is out of range; send a smaller one"
_NOT_JSON = (
    "arguments are nested too deep, or hold NaN, Infinity or broken Unicode; send one flat JSON object"
)


def decode(
    model: ParameterModel, arguments: object, diagnose: Diagnose | None = None, *, is_private: bool = False
) -> Any:
    """Turn arguments into parameters."""
    try:
        return model.convert(read_arguments(arguments), diagnose)
    except ToolValidationError as error:
        if not is_private:
            raise
        kept = dict.fromkeys(withheld(problem, model.published) for problem in error.problems)
        refusal = ToolValidationError(kept)
    raise refusal  # outside of the handler: it carries no trace of the other


# JSON text


def read_arguments(arguments: object) -> dict[str, Any]:
    """Turn JSON text, or a mapping, into a dict; None and blank text are empty. No field is checked yet."""
    if type(arguments) is dict:
        return arguments
    data = arguments
    for is_inner in (False, True):  # a JSON text within a JSON text: the arguments were written twice
        if is_inner and isinstance(data, str) and "{" not in data and data.strip() not in {"", "null"}:
            break  # a string that is not JSON again
        if isinstance(data, (str, bytes, bytearray)):
            if len(data) > MOST_CHARACTERS:
                _refuse(f"arguments of {len(data)} characters, at most {MOST_CHARACTERS}; send less at once")
            data = _parse_text(data) if data.strip() else {}
            if type(data) is dict:
                return data
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        _refuse(f"arguments must be a JSON object, got {type_word(data)}")
    return dict(data)


def _refuse(message: str) -> NoReturn:
    raise ToolValidationError(message)


def _parse_text(text: str | bytes | bytearray) -> Any:
    try:
        data = _reader()(text, allow_inf_nan=False)
        names = _count_names(data)
    except (ValueError, TypeError):  # half a character is a TypeError
        return _repair(text)
    except OverflowError:
        _refuse(_OUT_OF_RANGE)
    # Each name in the text has a colon: if there are more colons than names were kept, some are in
    # strings, or a name appears twice.
    colons = text.count(":") if isinstance(text, str) else text.count(b":")
    if colons != names:
        json.loads(text, object_pairs_hook=_each_once)
    return data


@cache
def _reader() -> Callable[..., Any]:
    """Load the reader with the first call, and pydantic's core with it."""
    from pydantic_core import from_json

    return from_json


def _repair(text: str | bytes | bytearray) -> Any:
    """The value of text that is JSON within a fence, or JSON but for what can be repaired in one way only."""
    from planning.reading import Unreadable, read_json

    with suppress(UnicodeDecodeError):
        try:
            return read_json(text if isinstance(text, str) else text.decode())
        except Unreadable as error:
            if error.code == "lone_surrogate":  # it is JSON, but not text that can be kept
                _refuse(f"arguments have {error}")
    return _refuse_text(text)


def _refuse_text(text: str | bytes | bytearray) -> NoReturn:
    """The place where text stops being JSON, as the standard library reports it."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        _refuse(f"arguments are not JSON at {at}: {error.msg}; send one JSON object")
    except (RecursionError, UnicodeDecodeError):
        _refuse(_NOT_JSON)
    except ValueError:
        _refuse(_OUT_OF_RANGE)  # Python reads no integer of so many digits
    _refuse(_NOT_JSON)


def _count_names(data: Any) -> int:
    """The number of names that the objects in a value have in all."""
    total, todo = 0, [data]
    while todo:
        value = todo.pop()
        kind = type(value)
        if kind is dict:
            total += len(value)
            todo += value.values()
        elif kind is list:
            todo += value
        elif kind is float and math.isinf(value):
            raise OverflowError
    return total


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            _refuse(f"arguments have {show(name)} twice in one object; send each field once")
        found[name] = value
    return found


# Tolerated forms: a JSON text where an array or object belongs, a plain string where an object with one
# required string belongs, 2.0 where an integer belongs, null for an optional field; and a number, true or
# false as text in a place without text.

_EXACT = 2**53  # up to here a float holds every integer
_MOST_DIGITS = 400
BOOLEANS = {"true": True, "false": False}
"""The words for booleans; as text they are taken in any case."""
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}
_OPENINGS: dict[str, tuple[type, str]] = {"{": (dict, "object"), "[": (list, "array")}


def coerced(data: Any, schema: Node, root: Node | None = None) -> Any:
    """The arguments as a schema wants them, where it is plain what was meant; all else as it is."""
    if not schema:
        return data
    root = schema if root is None else root
    allowed = options(root, schema)
    if isinstance(data, str):
        if "string" in [option.get("type") for option in allowed]:
            return data
        data = _from_string(data, allowed)
        if isinstance(data, str):
            data = _scalar(data, allowed)
    if isinstance(data, float) and data.is_integer() and _wants_integer(allowed):
        return int(data)
    if isinstance(data, dict):
        wanted = _only(allowed, "object")
        if wanted is None:
            tagged = [option for option in allowed if _has_tag(data, option)]
            wanted = _only(tagged, "object") or _only(
                [option for option in tagged if _has_fields(data, option)], "object"
            )
        return data if wanted is None else _coerce_object(data, wanted, root)
    if isinstance(data, (list, tuple)):
        wanted = _only(allowed, "array")
        return data if wanted is None else _coerce_array(data, wanted, root)
    return data


def _only(allowed: Iterable[Node], *types: str) -> Node | None:
    """The option that has one of these types, if only one has."""
    found = [option for option in allowed if option.get("type") in types]
    return found[0] if len(found) == 1 else None


def _has_tag(data: Node, option: Node) -> bool:
    """True if no field shows that the data is meant for another option of a union."""
    return not any(
        data[name] not in each.get("enum", [each["const"]] if "const" in each else [data[name]])
        for name, each in option.get("properties", {}).items()
        if name in data
    )


def _has_fields(data: Node, option: Node) -> bool:
    """True if an option of a union has all the fields of the data, and the data all that it requires."""
    return data.keys() <= set(option.get("properties", ())) and data.keys() >= set(option.get("required", ()))


def _wants_integer(allowed: Sequence[Node]) -> bool:
    types = {option.get("type") for option in allowed}
    return "integer" in types and "number" not in types


def _coerce_object(data: dict[Any, Any], schema: Node, root: Node) -> dict[Any, Any]:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    others = schema.get("additionalProperties") or {}
    others = others if isinstance(others, (dict, Mapping)) else {}  # for a dict much faster
    return {
        name: coerced(value, properties.get(name, others), root)
        for name, value in data.items()
        if not (
            value is None
            and name in properties
            and name not in required
            and not takes_null(root, properties[name])
        )
    }


def _coerce_array(data: Sequence[Any], schema: Node, root: Node) -> list[Any]:
    places, rest = list(schema.get("prefixItems", ())), schema.get("items")
    rest = rest if isinstance(rest, Mapping) else {}
    places += [rest] * (len(data) - len(places))
    return [coerced(item, place, root) for item, place in zip(data, places, strict=False)]


def _from_string(text: str, allowed: Sequence[Node]) -> Any:
    """A string where another type belongs, read as JSON of that type or as an object's only field."""
    kind, word = _OPENINGS.get(text.lstrip()[:1], (None, ""))
    if kind is not None and any(option.get("type") == word for option in allowed):
        try:
            parsed = _reader()(text, allow_inf_nan=False)
        except ValueError:
            return text
        return parsed if isinstance(parsed, kind) else text
    wanted = _only(allowed, "array", "object") or {}
    required = wanted.get("required", ())
    if len(required) == 1 and wanted.get("properties", {}).get(required[0], {}).get("type") == "string":
        return {required[0]: text}
    return text


def _scalar(text: str, allowed: Sequence[Node]) -> bool | int | float | str:
    """The boolean or the number that text is in JSON, if one fits and no text does; else the text."""
    values = [value for option in allowed for value in option.get("enum", [option.get("const")])]
    types = {option.get("type") for option in allowed if "enum" not in option and "const" not in option}
    types |= {_TYPES[type(value)] for value in values if type(value) in _TYPES}
    if types & {None, "string"} or len(text) > _MOST_DIGITS:
        return text
    if "boolean" in types and text.lower() in BOOLEANS:
        return BOOLEANS[text.lower()]
    if not types & {"integer", "number"} or not text[-1:].isdecimal():
        return text
    try:
        number: Any = _reader()(text, allow_inf_nan=False)
    except ValueError:
        return text
    is_exact = type(number) is int or "number" in types or (number.is_integer() and abs(number) < _EXACT)
    is_number = type(number) in {int, float} and is_exact and abs(number) < math.inf
    return number if is_number else text


# Refusals

_PART = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_FIRST = re.compile(r"[^.\[\]]+")


def refusal(
    problems: Iterable[Problem], schema: Node, further: Iterable[Problem] = ()
) -> ToolValidationError:
    """The refusal for problems: each once, in the order of the schema's fields, and not too many."""
    own = tuple(further)
    replaced = {problem.path for problem in own if problem.path}
    kept = [problem for problem in problems if problem.path not in replaced]
    found = list(dict.fromkeys([*kept, *own]))[:MOST_PROBLEMS]
    listed = _in_order(found, schema)
    if len(listed) == MOST_PROBLEMS:
        listed.append(Problem("there may be more errors; fix these first"))
    return ToolValidationError(listed)


def _in_order(problems: Iterable[Problem], schema: Node) -> list[Problem]:
    """The problems in the order of the fields: those of unknown ones after the known, the whole call last."""
    numbers = {name: number for number, name in enumerate(names_in(node_at(schema, ())))}

    def place(problem: Problem) -> int:
        if problem.path in numbers:
            return numbers[problem.path]
        name = _FIRST.match(problem.path)
        return len(numbers) + 1 if name is None else numbers.get(name[0], len(numbers))

    return sorted(problems, key=place)


def withheld(problem: Problem, schema: Node) -> Problem:
    """The problem without a word of what was sent: only the schema's own words and names."""
    known: list[str | int] = []
    for index, name in _PART.findall(problem.path):
        part: str | int = int(index) if index else name
        if not has_place(schema, [*known, part]) or (name and name not in names_in(node_at(schema, known))):
            break
        known.append(part)
    is_missing = problem.keyword == "required" and spell(known) == problem.path
    wanted = expected(node_at(schema, known))
    return Problem(f"{'missing' if is_missing else 'refused'}; send {wanted}", spell(known))

"""Arguments as a model sends them -> parameters, or every problem with its path."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

from planning.errors import Problem, ToolValidationError, show
from planning.tools.parameters.model import Diagnose, ParameterModel, model_of
from planning.tools.parameters.words import type_word, withheld

__all__ = ["MOST_CHARACTERS", "decode", "read_arguments"]

MOST_CHARACTERS = 1_000_000
_TOO_DEEP = "arguments are nested too deep; send a flat JSON object"


def decode(
    model: Any,
    arguments: object,
    diagnose: Diagnose | None = None,
    *,
    is_private: bool = False,
) -> Any:
    """Turn arguments into parameters.

    Args:
        model: What they are to become: a ``ParameterModel``, or a type that ``model_of`` takes.
        arguments: JSON text of an object, as text or bytes, or a mapping; None and blank text are
            an empty object.
        diagnose: Asked for further problems once there are some; see ``ParameterModel.convert``.
        is_private: Whether a refusal keeps everything that was sent to itself.

    Raises:
        ToolValidationError: With every problem and its path.
    """
    taken: ParameterModel = model if isinstance(model, ParameterModel) else model_of(model)
    try:
        return taken.convert(read_arguments(arguments), diagnose)
    except ToolValidationError as error:
        if not is_private:
            raise
        schema = taken.schema()
        refusal = ToolValidationError(dict.fromkeys(withheld(problem, schema) for problem in error.problems))
    raise refusal  # outside of the handler: it carries no trace of the other


def read_arguments(arguments: object) -> dict[str, Any]:
    """Turn JSON text, or a mapping, into a dict; no field of it is checked yet.

    Raises:
        ToolValidationError: It is no JSON object, too long, too deep, or a field stands twice in it.
    """
    if type(arguments) is dict:
        return arguments
    data = arguments
    for _ in range(2):  # a JSON text within a JSON text: the arguments were written twice
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


def _refuse(message: str, *, tells: bool = False) -> NoReturn:
    raise ToolValidationError(Problem(message, tells=tells))


def _parse_text(text: str | bytes | bytearray) -> Any:
    try:
        data = msgspec.json.decode(text)
    except RecursionError:
        _refuse(_TOO_DEEP)
    except msgspec.ValidationError:
        _refuse("arguments hold a number that is out of range; send a smaller one")
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
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            _refuse(f"arguments give {show(name)} twice in one object; send each field once", tells=True)
        found[name] = value
    return found

"""Arguments as a model sends them -> parameters, or every problem with its path."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from math import isinf
from typing import Any, NoReturn

from planning.errors import ToolValidationError, show
from planning.tools.parameters.model import Diagnose, ParameterModel
from planning.tools.parameters.words import type_word, withheld

MOST_CHARACTERS = 1_000_000
_OUT_OF_RANGE = "arguments hold a number that is out of range; send a smaller one"
_NOT_JSON = (
    "arguments are nested too deep, or hold NaN, Infinity or broken Unicode; send one flat JSON object"
)


def decode(
    model: ParameterModel,
    arguments: object,
    diagnose: Diagnose | None = None,
    *,
    is_private: bool = False,
) -> Any:
    """Turn arguments into parameters.

    Raises:
        ToolValidationError: With every problem and its path.
    """
    try:
        return model.convert(read_arguments(arguments), diagnose)
    except ToolValidationError as error:
        if not is_private:
            raise
        kept = dict.fromkeys(withheld(problem, model.published) for problem in error.problems)
        refusal = ToolValidationError(kept)
    raise refusal  # outside of the handler: it carries no trace of the other


def read_arguments(arguments: object) -> dict[str, Any]:
    """Turn JSON text, or a mapping, into a dict; None and blank text are empty. No field is checked yet.

    Raises:
        ToolValidationError: It is not a JSON object, too long, too deep, or a field occurs twice.
    """
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
        names = _names(data)
    except (ValueError, TypeError):  # half a character is a TypeError
        return _repaired(text)
    except OverflowError:
        _refuse(_OUT_OF_RANGE)
    # Each name in the text has a colon: where there are more colons than names were kept, some are in
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


def _repaired(text: str | bytes | bytearray) -> Any:
    """What a text means that is JSON within a fence, or JSON but for what can be repaired in one way only."""
    from planning.reading import Unreadable, read_json

    with suppress(UnicodeDecodeError):
        try:
            return read_json(text if isinstance(text, str) else text.decode())
        except Unreadable as error:
            if error.code == "lone_surrogate":  # it is JSON, but not text that can be kept
                _refuse(f"arguments have {error}")
    return _refuse_text(text)


def _refuse_text(text: str | bytes | bytearray) -> NoReturn:
    """Where text stops being JSON, as the standard library reports it."""
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


def _names(data: Any) -> int:
    """How many names the objects in a value have in all."""
    total, todo = 0, [data]
    while todo:
        value = todo.pop()
        kind = type(value)
        if kind is dict:
            total += len(value)
            todo += value.values()
        elif kind is list:
            todo += value
        elif kind is float and isinf(value):
            raise OverflowError
    return total


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            _refuse(f"arguments have {show(name)} twice in one object; send each field once")
        found[name] = value
    return found

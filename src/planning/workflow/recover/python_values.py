"""A value from Python -> plain JSON values, or what in it is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from planning.errors import show
from planning.workflow.findings import Found, Path
from planning.workflow.recover.repair import MOST_DEPTH

__all__ = ["plain_value"]

_HINT = "use text, numbers, booleans, None, lists and mappings with text as names"


def plain_value(given: object) -> tuple[Any, list[Found]]:
    """A copy in plain dicts and lists, with None for what JSON does not have; and what that was.

    Args:
        given: A mapping or a sequence; it may hold itself, which is nested too deep.
    """
    found: list[Found] = []
    made: list[Any] = []
    todo: list[tuple[Any, Any, str | int, Path]] = [(given, made, 0, ())]
    made.append(None)
    while todo:
        value, target, part, path = todo.pop()
        kind = type(value)
        if kind is str or kind is int or kind is bool or value is None:
            plain: Any = value
            if kind is str and not value.isascii():
                plain = _text(value, path, found)
        elif isinstance(value, (Mapping, list, tuple)):
            if len(path) >= MOST_DEPTH:
                told = f"nested deeper than {MOST_DEPTH} levels"
                found.append(Found("too_deep", told, "send flatter values", path))
                plain = None
            elif isinstance(value, Mapping):
                plain = _fields(value, path, found)
                todo += [(inner, plain, name, (*path, name)) for name, inner in plain.items()]
            else:
                plain = [None] * len(value)
                todo += [(inner, plain, at, (*path, at)) for at, inner in enumerate(value)]
        else:
            plain = _scalar(value, path, found)
        target[part] = plain
    return made[0], found


def _fields(value: Mapping[Any, Any], path: Path, found: list[Found]) -> dict[str, Any]:
    try:
        fields = dict(value)
    except Exception:  # noqa: BLE001 - a foreign mapping may fail in any way
        found.append(Found("not_json", "a mapping that cannot be read", _HINT, path))
        return {}
    for name in [name for name in fields if type(name) is not str]:
        del fields[name]
        told = f"a field is named by {show(name)}, not by a text"
        found.append(Found("not_json", told, _HINT, path))
    return fields


def _scalar(value: object, path: Path, found: list[Found]) -> Any:
    if isinstance(value, str):
        return _text(str.__str__(value), path, found)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        number = float.__float__(value)
        if math.isfinite(number):
            return number
        found.append(Found("not_a_number", f"{number} is no value of JSON", "send a number or null", path))
    else:
        found.append(Found("not_json", f"{show(value)} is no value of JSON", _HINT, path))
    return None


def _text(value: str, path: Path, found: list[Found]) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        found.append(Found("lone_surrogate", "half of a surrogate pair", "send the whole character", path))
        return value.encode(errors="replace").decode()
    return value

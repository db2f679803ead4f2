"""A value from Python -> plain JSON values, or the parts that are not JSON.

Objects are asked nothing that their class may have rewritten: what they hold is read by the methods of
``dict``, ``list`` and their like. Only another mapping must be asked, and it may fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from planning.reading.found import Found, Path, Wanted
from planning.reading.values import most_digits

MOST_VALUES: Final = 2_000_000
_MOST_SHOWN: Final = 40
_CONTAINERS: Final = (dict, list, tuple, Mapping)
_SMALL: Final = 2**63
_BITS: Final = math.log2(10)
_HINT: Final = "use text, numbers, booleans, None, lists and mappings with text as names"
_name_of: Final = type.__dict__["__name__"].__get__  # a metaclass may define __name__


def kind_of(value: object) -> str:
    """The kind of a value, for a message: nothing that its class can make up."""
    return f"a value of type {ascii(_name_of(type(value))[:_MOST_SHOWN])[1:-1]}"


def plain_value(given: object, wanted: Wanted) -> tuple[Any, list[Found]]:
    """A copy in plain dicts and lists, with None for what JSON does not have; and what that was.

    Args:
        given: Anything; it may hold itself, which is nested too deep, or more than is read.
        wanted: What it is expected to be.
    """
    found: list[Found] = []
    made: list[Any] = [None]
    todo: list[tuple[Any, Any, str | int, Path]] = [(given, made, 0, ())]
    around: list[int] = [0] * wanted.most_levels  # which containers are around, by depth
    left = MOST_VALUES
    while todo:
        value, target, part, path = todo.pop()
        kind = type(value)
        if not issubclass(kind, _CONTAINERS):
            target[part] = _scalar(value, path, found)
            continue
        depth = len(path)
        if depth >= wanted.most_levels or id(value) in around[:depth]:
            is_deep = depth >= wanted.most_levels
            message = f"nested deeper than {wanted.most_levels} levels" if is_deep else "it contains itself"
            found.append(Found("too_deep", message, "send flatter values", path))
            continue
        around[depth] = id(value)
        plain: Any
        held: Sequence[tuple[Any, Any]]
        if issubclass(kind, (list, tuple)):
            items = list.__iter__(value) if issubclass(kind, list) else tuple.__iter__(value)
            plain = list(islice(items, left + 1))
            held = list(enumerate(plain))
        else:
            plain = _fields(value, path, found, left + 1)
            held = list(plain.items())
        target[part] = plain
        left -= len(held)
        if left < 0:
            message = f"the {wanted.noun} has more than {MOST_VALUES} values"
            return None, [*found, Found("too_long", message, f"send a shorter {wanted.noun}")]
        for name, inner in reversed(held):  # so that the first is the next
            kind = type(inner)
            is_plain = inner.isascii() if kind is str else kind is int and -_SMALL < inner < _SMALL
            if not is_plain and kind is not bool and inner is not None:
                plain[name] = None
                todo.append((inner, plain, name, (*path, name)))
    return made[0], found


def _fields(value: Any, path: Path, found: list[Found], limit: int) -> dict[str, Any]:
    """The items of a mapping, by string names."""
    pairs: Iterable[tuple[Any, Any]]
    if issubclass(type(value), dict):
        pairs = islice(dict.items(value), limit)
    else:
        try:
            pairs = [(name, value[name]) for name in islice(value, limit)]
        except Exception:  # noqa: BLE001 - a foreign mapping may fail in any way
            found.append(Found("not_json", "a mapping that cannot be read", _HINT, path))
            return {}
    fields: dict[str, Any] = {}
    for name, inner in pairs:
        if type(name) is str and name.isascii() and name not in fields:
            fields[name] = inner
            continue
        if not issubclass(type(name), str):
            message = f"a field name is {kind_of(name)}, not a string"
            found.append(Found("not_json", message, _HINT, path))
            continue
        plain = _text(name, path, found)
        if plain in fields:  # two that are not the same in Python
            message = "two fields have the same name"
            found.append(Found("duplicate_key", message, "send each field once", (*path, plain)))
        fields[plain] = inner
    return fields


def _scalar(value: Any, path: Path, found: list[Found]) -> Any:
    kind = type(value)
    if issubclass(kind, str):
        return _text(value, path, found)
    if issubclass(kind, int):
        number = int.__int__(value)
        if number.bit_length() <= most_digits() * _BITS:
            return number
        found.append(Found("bad_number", "a number that is too large to be kept", "send it as text", path))
    elif issubclass(kind, float):
        real = float.__float__(value)
        if math.isfinite(real):
            return real
        found.append(Found("not_a_number", f"{real} is not a JSON value", "send a number or null", path))
    else:
        found.append(Found("not_json", f"{kind_of(value)} is not a JSON value", _HINT, path))
    return None


def _text(value: str, path: Path, found: list[Found]) -> str:
    """Text in plain, in which no half of a surrogate pair is left."""
    plain = str.__str__(value)
    try:
        plain.encode()
    except UnicodeEncodeError:
        found.append(Found("lone_surrogate", "half of a surrogate pair", "send the whole character", path))
        return plain.encode(errors="replace").decode()
    return plain

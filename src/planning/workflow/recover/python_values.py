"""A value from Python -> plain JSON values, or what in it is none.

Objects are asked nothing that their class may have rewritten: what they hold is read by the methods of
``dict``, ``list`` and their like. Only another mapping must be asked, and it may fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from planning.workflow.findings import Found, Path
from planning.workflow.recover.repair import MOST_DEPTH
from planning.workflow.recover.tokens import MOST_DIGITS

__all__ = ["MOST_VALUES", "kind_of", "plain_value"]

MOST_VALUES: Final = 1_000_000
_MOST_BITS: Final = int(MOST_DIGITS / math.log10(2))
_MOST_SHOWN: Final = 40
_HINT: Final = "use text, numbers, booleans, None, lists and mappings with text as names"
_NAME_OF: Final = type.__dict__["__name__"].__get__  # a metaclass may have a __name__ of its own


def kind_of(value: object) -> str:
    """What a value is, for a message: never itself, and nothing that its class can make up."""
    return f"a value of type {ascii(_NAME_OF(type(value))[:_MOST_SHOWN])[1:-1]}"


def plain_value(given: object) -> tuple[Any, list[Found]]:
    """A copy in plain dicts and lists, with None for what JSON does not have; and what that was.

    Args:
        given: Anything; it may hold itself, which is nested too deep, or be larger than is read.
    """
    found: list[Found] = []
    made: list[Any] = [None]
    todo: list[tuple[Any, Any, str | int, Path]] = [(given, made, 0, ())]
    left = MOST_VALUES
    while todo:
        value, target, part, path = todo.pop()
        kind = type(value)
        if (kind is str and value.isascii()) or kind is bool or value is None:
            target[part] = value
        elif not issubclass(kind, (Mapping, list, tuple)):
            target[part] = _scalar(value, path, found)
        elif len(path) >= MOST_DEPTH:
            told = f"nested deeper than {MOST_DEPTH} levels"
            found.append(Found("too_deep", told, "send flatter values", path))
        else:
            if issubclass(kind, Mapping):
                target[part] = plain = dict.fromkeys(inner := _fields(value, path, found, left))
                held = list(inner.items())
            else:
                held = list(enumerate(list.__iter__(value) if issubclass(kind, list) else tuple.__iter__(value)))
                target[part] = plain = [None] * len(held)
            left -= len(held)
            if left < 0:
                told = f"more than {MOST_VALUES} values, which is more than is read"
                found.append(Found("too_long", told, "send a shorter plan"))
                break
            todo += [(each, plain, name, (*path, name)) for name, each in reversed(held)]
    return made[0], found

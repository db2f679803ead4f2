"""Strict JSON, which most input is and which needs no repair."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

from planning.reading.tokens import MOST_DIGITS

_ESCAPED_SURROGATES: Final = ("\\ud", "\\uD")
_OPENING: Final = re.compile(r"[ \t\n\r]*+[\[{]")


class NotStrict(Exception):
    """The text is JSON that Python reads, but something in it must be checked."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise NotStrict
    return made


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise NotStrict
    return number


def _short(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise NotStrict
    return int(digits)


def _no_constant(_name: str) -> NoReturn:
    raise NotStrict


ONCE: Final = json.JSONDecoder(object_pairs_hook=_once)
"""Decodes JSON in which no object has a field twice."""
_STRICT: Final = json.JSONDecoder(object_pairs_hook=_once, parse_float=_finite, parse_constant=_no_constant)
_PART: Final = json.JSONDecoder(
    object_pairs_hook=_once, parse_float=_finite, parse_int=_short, parse_constant=_no_constant
)


def read_strictly(text: str, most_levels: int) -> Any:
    """The value of text that is only JSON; None if it must be read with care."""
    if _OPENING.match(text) is None or any(escape in text for escape in _ESCAPED_SURROGATES):
        return None
    try:
        value = _STRICT.decode(text)
        if not text.isascii():
            text.encode()
    except (NotStrict, ValueError, RecursionError):  # of text that cannot be encoded, too
        return None
    return value if isinstance(value, (dict, list)) and _is_shallow(value, most_levels) else None


def value_at(text: str, start: int, most_levels: int) -> tuple[Any, int] | None:
    """The value that a bracket begins, and where it ends; None if it must be read with care.

    Args:
        text: The text, without halves of surrogate pairs.
        start: The offset of the bracket.
        most_levels: How deep the value may be nested.
    """
    try:
        value, end = _PART.raw_decode(text, start)
    except (NotStrict, ValueError, RecursionError):
        return None
    is_plain = not any(text.find(escape, start, end) >= 0 for escape in _ESCAPED_SURROGATES)
    return (value, end) if is_plain and _is_shallow(value, most_levels) else None


def _is_shallow(value: Any, most_levels: int) -> bool:
    """Whether nothing in it is nested too deep."""
    level = [value]
    for _ in range(most_levels):
        inner = [container.values() if type(container) is dict else container for container in level]
        level = [value for values in inner for value in values if type(value) is dict or type(value) is list]
        if not level:
            return True
    return False

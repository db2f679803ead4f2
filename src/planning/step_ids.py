"""Step ids: ``S`` and a number of at least three digits, counted up and never given out twice."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = ["as_text", "format_id", "highest_number", "number_of", "written_alike"]

_LONGEST = 4_000  # Python turns longer digits into a number only when asked to
_DIGITS = "0123456789"
_SHAPE = re.compile(r"[Ss]?([0-9]+)")
_MOST = 10**9  # no plan has as many steps


def format_id(number: int) -> str:
    """``S007`` for 7, ``S1000`` for 1000."""
    return f"S{number:03d}"


def number_of(step_id: str) -> int | None:
    """The number at the end of an id; None when there is none, or when it is too long to be one."""
    digits = step_id[len(step_id.rstrip(_DIGITS)) :]
    return int(digits) if digits and len(digits) <= _LONGEST else None


def highest_number(step_ids: Iterable[str]) -> int:
    """The highest number among the ids; 0 when none has one."""
    return max((number for step_id in step_ids if (number := number_of(step_id)) is not None), default=0)


def as_text(step_id: Any) -> Any:
    """The number of a step as text; anything else as it is."""
    return str(step_id) if type(step_id) is int and 0 <= step_id < _MOST else step_id


def written_alike(step_id: str, known: Iterable[str]) -> list[str]:
    """The known ids that differ from an id in case, in zeros or by the S alone: S001 for ``S1`` or ``1``."""
    number = _SHAPE.fullmatch(step_id)
    if number is None:
        meant = step_id.casefold()
        return [each for each in known if each.casefold() == meant]
    digits = number[1].lstrip("0")
    similar = [each for each in known if digits in each]
    return [each for each in similar if (found := _SHAPE.fullmatch(each)) and found[1].lstrip("0") == digits]

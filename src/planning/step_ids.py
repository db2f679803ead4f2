"""Step ids: ``S`` and a number of at least three digits, counted up and never given out twice."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["format_id", "highest_number", "number_of"]

_LONGEST = 4_000  # Python turns longer digits into a number only when asked to
_DIGITS = "0123456789"


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

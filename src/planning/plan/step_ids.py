"""Step ids: ``S`` and a number of at least three digits, counted up and never reused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

_LONGEST = 4_000  # Python turns longer digits into a number only when asked to
_DIGITS = "0123456789"
_SHAPE = re.compile(r"[Ss]?([0-9]+)")
_LISTED = 20
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
    """The number of a step as text, also where JSON has it as 1.0; anything else as it is."""
    is_whole = type(step_id) is int or (type(step_id) is float and step_id.is_integer())
    return str(int(step_id)) if is_whole and 0 <= step_id < _MOST else step_id


def written_alike(step_id: str, known: Sequence[str]) -> list[str]:
    """The id itself where it is known, or else those that differ in case, in zeros or by the S alone."""
    text = " ".join(known)
    if step_id in text and step_id in known:
        return [step_id]
    number = _SHAPE.fullmatch(step_id)
    if number is None:
        meant = step_id.casefold()
        return [each for each in known if each.casefold() == meant]
    digits = number[1].lstrip("0")
    similar = [each for each in known if digits in each] if digits in text else []
    return [each for each in similar if (found := _SHAPE.fullmatch(each)) and found[1].lstrip("0") == digits]


def alike_key(step_id: str) -> str:
    """The same for ids that are written alike: ``1`` for ``S001``."""
    number = _SHAPE.fullmatch(step_id)
    return step_id.casefold() if number is None else number[1].lstrip("0")


def listed_ids(step_ids: Sequence[str]) -> str:
    """Ids in order, those in an unbroken row as one: ``S001, S004 to S006``."""
    start = number_of(step_ids[0]) if len(step_ids) > 1 else None
    if start is not None and " ".join(step_ids) == _row(start, len(step_ids)):
        return f"{step_ids[0]} to {step_ids[-1]}"  # as nearly always
    runs: list[list[str]] = []
    for step_id in step_ids:
        before = number_of(runs[-1][-1]) if runs else None
        if before is not None and number_of(step_id) == before + 1:
            runs[-1].append(step_id)
        else:
            runs.append([step_id])
    shown = [run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs[:_LISTED]]
    more = sum(map(len, runs[_LISTED:]))
    return ", ".join(shown) + (f" and {more} more" if more else "")


@lru_cache(maxsize=4)
def _row(first: int, count: int) -> str:
    """Ids in an unbroken row: of a refusal's 85 us with 100 steps, 25 were to make them."""
    return " ".join(map(format_id, range(first, first + count)))

"""How much an output may hold: what is larger would be in every snapshot of the session."""

from __future__ import annotations

import sys
from typing import Any

from planning.workflow.failures import StepFailed

__all__ = ["MOST_BYTES", "check_size"]

MOST_BYTES = 32_000_000
_SMALL = (bool, int, float, type(None))


def check_size(value: Any, name: str) -> None:
    """Refuse an output that is too large to be kept.

    Args:
        value: The output.
        name: What gave it.

    Raises:
        StepFailed: It takes more than ``MOST_BYTES`` bytes of memory, as nearly as can be told.
    """
    if value is None or _is_small(value):
        return
    size = 0
    todo, seen = [value], set[int]()
    while todo:
        each = todo.pop()
        size += 8 if isinstance(each, _SMALL) else sys.getsizeof(each, 64)
        if size > MOST_BYTES:
            told = (
                f"{name} gave more than {MOST_BYTES // 1_000_000} MB, which is not kept; let it store that "
                "itself, and give back where it is"
            )
            raise StepFailed(told, "too_large")
        if isinstance(each, (str, bytes, *_SMALL)) or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, dict):
            todo += each.keys()
            todo += each.values()
        elif isinstance(each, (list, tuple, set, frozenset)):
            todo += each


def _is_small(value: Any) -> bool:
    return isinstance(value, _SMALL) or (isinstance(value, str) and len(value) < MOST_BYTES // 4)

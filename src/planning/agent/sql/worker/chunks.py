"""Rows on their way out of a worker: a few at a time, and not too many bytes of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from .failure import Failure
from .frames import frame

__all__ = ["AGAIN", "MOST_BYTES", "MOST_NESTED", "Send", "stream"]

Send = Callable[[bytes], object]
"""Sends a message: a part of an answer, or its end."""

AGAIN: Final = frame(("again", None))
"""Forget the rows that came before."""

MOST_BYTES: Final = 16_000_000
MOST_NESTED: Final = 32_000_000
"""Bytes in memory of the lists and dicts within rows: an empty dict takes 64 there, and 2 in a frame."""

_NESTING: Final = frozenset({list, dict})
_FIRST, _MOST = 64, 1024  # rows
_ENOUGH: Final = 65_536  # bytes in a chunk


def stream(
    fetch: Callable[[int], Sequence[Any]],
    most_rows: int,
    send: Send,
    convert: Callable[[Sequence[Any]], Sequence[Any]] | None = None,
) -> bool:
    """Send rows until there are no more, or enough.

    Args:
        fetch: Gives so many further rows, fewer where there are no more.
        most_rows: How many rows are enough.
        send: Sends them.
        convert: Makes plain values of those that are not.

    Returns:
        Whether there are more.

    Raises:
        Failure: The first row alone is too large.
    """
    weigh = (lambda _: 0) if convert is None else _nested  # only what is converted holds lists and dicts
    size, left, room, room_nested = _FIRST, most_rows, MOST_BYTES, MOST_NESTED
    while True:
        wanted = min(size, left + 1)
        rows = fetch(wanted) if convert is None else convert(fetch(wanted))
        is_last, is_more = len(rows) < wanted, len(rows) > left
        chosen = rows[:left] if is_more else rows
        kept, content = _fitted(chosen, room, room_nested, weigh)
        is_full = len(kept) < len(chosen)
        if is_full and not kept and room == MOST_BYTES:
            raise Failure("large")
        if kept:
            send(content)
        if is_last or is_more or is_full:
            return is_more or is_full
        left, room, room_nested = left - len(kept), room - len(content), room_nested - weigh(kept)
        size = min(size * 2, _MOST) if len(content) < _ENOUGH else max(size // 2, 1)


def _fitted(
    rows: Sequence[Any], most_bytes: int, most_nested: int, weigh: Callable[[Sequence[Any]], int]
) -> tuple[Sequence[Any], bytes]:
    """The first rows that fit, halved until they do, and their frame."""
    while rows:
        if weigh(rows) <= most_nested and len(content := frame(("rows", rows))) <= most_bytes:
            return rows, content
        rows = rows[: len(rows) // 2]
    return rows, b""


def _nested(rows: Sequence[Any]) -> int:
    """The bytes that the lists and dicts within rows take in memory, without what is not one of them."""
    size = 0
    left = [value for row in rows for value in row if type(value) in _NESTING]
    while left:
        value = left.pop()
        size += sys.getsizeof(value)
        left += [
            each for each in (value.values() if type(value) is dict else value) if type(each) in _NESTING
        ]
    return size

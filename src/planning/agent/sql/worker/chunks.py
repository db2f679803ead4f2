"""Rows on their way out of a worker: a few at a time, and not too many bytes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from .failure import Failure
from .frames import frame

__all__ = ["AGAIN", "MOST_BYTES", "Send", "stream"]

Send = Callable[[bytes], object]
"""Sends a frame: a part of an answer, or its end."""

AGAIN: Final = frame(("again", None))
"""Forget the rows that came before."""

MOST_BYTES: Final = 16_000_000
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
        Failure: The first rows alone are too large.
    """
    size, left, sent = _FIRST, most_rows, 0
    while True:
        wanted = min(size, left + 1)
        rows = fetch(wanted) if convert is None else convert(fetch(wanted))
        is_last, is_more = len(rows) < wanted, len(rows) > left
        kept = rows[:left] if is_more else rows
        content = frame(("rows", kept))
        sent += len(content)
        if sent > MOST_BYTES:
            if sent == len(content):
                raise Failure("large")
            return True
        if kept:
            send(content)
        left -= len(kept)
        if is_last or is_more:
            return is_more
        size = min(size * 2, _MOST) if len(content) < _ENOUGH else max(size // 2, 1)

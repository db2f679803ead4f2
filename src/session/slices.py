"""Slices of a session's state: tuples, and logs, which grow at their end in constant time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["LateLog", "Log", "Slice", "added", "items_of", "latest_of"]


class Log:
    """An immutable sequence that is cheap to grow.

    It is a window on a buffer that is only ever appended to and that logs which grew from one
    another share: the hundred-thousandth entry costs what the first did.
    """

    __slots__ = ("_buffer", "_items", "_start", "_stop")

    def __init__(self, items: tuple[Any, ...] = ()) -> None:
        self._buffer: Sequence[Any] = items
        self._start = 0
        self._stop = len(items)
        self._items: tuple[Any, ...] | None = items

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Log, tuple)):
            return self.items == items_of(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.items)

    def __reduce__(self) -> tuple[type[Log], tuple[tuple[Any, ...]]]:
        return Log, (self.items,)  # never the buffer, which others share

    @property
    def items(self) -> tuple[Any, ...]:
        """All entries, oldest first; built when first asked for."""
        if self._items is None:
            self._items = tuple(self._buffer[self._start : self._stop])
        return self._items

    @property
    def latest(self) -> Any:
        """The newest entry, or None."""
        return self._buffer[self._stop - 1] if self._stop > self._start else None

    def alike(self) -> Log:
        """An equal log that has built no tuple."""
        return self._window(self._buffer, self._start, self._stop)

    def push(self, entry: object, limit: int | None = None) -> Log:
        """This log and one more entry, of which the last ``limit`` stay.

        The caller holds the session's lock: pushes never overlap.
        """
        buffer, start = self._buffer, self._start
        # Another log has grown past this one (a rollback, a transaction given up), the front of the
        # buffer is mostly dead, or it is a tuple: then this log gets its own buffer.
        if type(buffer) is not list or len(buffer) != self._stop or start > self._stop - start + 32:
            buffer, start = list(buffer[start : self._stop]), 0
        buffer.append(entry)
        stop = len(buffer)
        return self._window(buffer, start if limit is None or stop - start <= limit else stop - limit, stop)

    @staticmethod
    def _window(buffer: Sequence[Any], start: int, stop: int) -> Log:
        log = Log.__new__(Log)
        log._buffer, log._start, log._stop, log._items = buffer, start, stop, None
        return log


class LateLog(Log):
    """A log whose first entries are in a store, and are read when somebody asks for them."""

    __slots__ = ("_first", "_later", "_limit")

    def __init__(self, first: Callable[[], tuple[Any, ...]]) -> None:
        """Begin with what is in the store.

        Args:
            first: Reads it; called each time that it is needed, so it remembers what it read.
        """
        self._first = first
        self._later = Log(())
        self._limit: int | None = None

    @property
    def items(self) -> tuple[Any, ...]:
        """All entries, oldest first; read when first asked for."""
        found = (*self._first(), *self._later.items)
        return found if self._limit is None else found[-self._limit :]

    @property
    def latest(self) -> Any:
        """The newest entry, or None."""
        later = self._later.latest
        return (self._first() or (None,))[-1] if later is None else later

    def alike(self) -> LateLog:
        """An equal log that has built no tuple."""
        return self._grown(self._later.alike(), self._limit)

    def push(self, entry: object, limit: int | None = None) -> LateLog:
        """This log and one more entry, of which the last ``limit`` stay."""
        return self._grown(self._later.push(entry, limit), limit)

    def _grown(self, later: Log, limit: int | None) -> LateLog:
        log = LateLog(self._first)
        log._later, log._limit = later, limit
        return log


Slice = tuple[Any, ...] | Log


def items_of(slice_: Slice) -> tuple[Any, ...]:
    """All items of a slice, oldest first."""
    return slice_ if isinstance(slice_, tuple) else slice_.items


def latest_of(slice_: Slice) -> Any:
    """The newest item of a slice, or None."""
    if isinstance(slice_, tuple):
        return slice_[-1] if slice_ else None
    return slice_.latest


def added(before: Slice, after: Slice) -> tuple[Any, ...]:
    """The items of a slice that were not in the one before it."""
    if isinstance(after, Log):  # a log grows by one
        return (after.latest,)
    known = {id(item) for item in items_of(before)}
    return tuple([item for item in after if id(item) not in known])

"""The reducers that come with a session: append, keep_last, upsert_by, replace_latest."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

import attrs

__all__ = ["Append", "Reducer", "append", "keep_last", "replace_latest", "upsert_by"]

S = TypeVar("S")


class Reducer(Protocol):
    """A pure function from a slice and an event to the next slice.

    It never changes what it is given, has no effect outside, and dispatches nothing. The same
    tuple back means that nothing changed.
    """

    def __call__(self, slice_: tuple[Any, ...], event: Any, /) -> tuple[Any, ...]:
        """Return the next slice."""
        ...


@attrs.frozen
class Append:
    """Add the event at the end; with a limit, let the oldest go.

    A session knows this reducer and grows the slice in constant time instead of copying it.

    Attributes:
        limit: How many items stay; None for all.
    """

    limit: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))

    def __call__(self, slice_: tuple[S, ...], event: S, /) -> tuple[S, ...]:
        """Return the slice and the event behind it."""
        grown = (*slice_, event)
        return grown if self.limit is None else grown[-self.limit :]


append = Append()


def keep_last(limit: int) -> Append:
    """Append, and keep only the newest ``limit`` items: a bounded history.

    Raises:
        ValueError: ``limit`` is under 1.
    """
    return Append(limit)


def replace_latest(_slice: tuple[S, ...], event: S, /) -> tuple[S, ...]:
    """Keep the event alone: a slice that holds exactly one value."""
    return (event,)


def upsert_by(key: Callable[[S], Hashable]) -> Callable[[tuple[S, ...], S], tuple[S, ...]]:
    """Build a reducer that replaces the item with the event's key where it stands, or appends."""

    def upsert(slice_: tuple[S, ...], event: S, /) -> tuple[S, ...]:
        wanted = key(event)
        for place, item in enumerate(slice_):
            if key(item) == wanted:
                return (*slice_[:place], event, *slice_[place + 1 :])
        return (*slice_, event)

    return upsert

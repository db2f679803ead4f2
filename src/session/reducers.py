"""The reducers that come with a session: append, keep_last, upsert_by, replace_latest, replace_latest_by."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

import attrs

from session.errors import shown

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
        part: What to add instead of the event itself: a function of the event; None for the event.
    """

    limit: int | None = None
    part: Callable[[Any], Any] | None = None

    def __attrs_post_init__(self) -> None:
        check_limit("limit", self.limit)

    def __call__(self, slice_: tuple[S, ...], event: S, /) -> tuple[S, ...]:
        """Return the slice with the event appended."""
        grown = (*slice_, event if self.part is None else self.part(event))
        return grown if self.limit is None else grown[-self.limit :]


def check_limit(name: str, limit: object) -> None:
    """Refuse a limit that is neither None nor a whole number of at least 1.

    Raises:
        ValueError: It is something else.
    """
    if limit is not None and not (isinstance(limit, int) and limit >= 1):
        raise ValueError(f"{name} must be a whole number of at least 1, got {shown(limit)}")


append = Append()


def append_part(part: Callable[[Any], Any]) -> Append:
    """Append a part of the event, such as ``attrgetter("record")``, to a slice of the part's type."""
    return Append(part=part)


def keep_last(limit: int) -> Append:
    """Append, and keep only the newest ``limit`` items: a bounded history.

    Raises:
        ValueError: ``limit`` is under 1.
    """
    return Append(limit)


def replace_latest(_slice: tuple[S, ...], event: S, /) -> tuple[S, ...]:
    """Keep only the event: a slice that holds exactly one value."""
    return (event,)


def upsert_by(key: Callable[[S], Hashable]) -> Callable[[tuple[S, ...], S], tuple[S, ...]]:
    """Build a reducer that replaces the item with the event's key in its place, or appends the event."""

    def upsert(slice_: tuple[S, ...], event: S, /) -> tuple[S, ...]:
        wanted = key(event)
        for place, item in enumerate(slice_):
            if key(item) == wanted:
                return (*slice_[:place], event, *slice_[place + 1 :])
        return (*slice_, event)

    return upsert


def replace_latest_by(key: Callable[[S], Hashable]) -> Callable[[tuple[S, ...], S], tuple[S, ...]]:
    """Build a reducer that keeps the latest item of each key, in the order in which they came.

    Unlike ``upsert_by`` it puts the event at the end, so that ``select_latest`` finds it.
    """

    def replace(slice_: tuple[S, ...], event: S, /) -> tuple[S, ...]:
        wanted = key(event)
        return (*(item for item in slice_ if key(item) != wanted), event)

    return replace

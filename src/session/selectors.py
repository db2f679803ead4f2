"""Reading slices: pure, without a lock, never blocking a writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

S = TypeVar("S")


class Selectable(Protocol):
    """Something with slices: a session or a snapshot."""

    def select_all(self, slice_type: type[S], /) -> tuple[S, ...]:
        """All items of a slice."""
        ...

    def select_latest(self, slice_type: type[S], /) -> S | None:
        """The newest item of a slice."""
        ...

    def select_where(self, slice_type: type[S], predicate: Callable[[S], bool], /) -> tuple[S, ...]:
        """The items that a predicate accepts."""
        ...


def select_all(source: Selectable, slice_type: type[S]) -> tuple[S, ...]:
    """All items of a slice, oldest first; empty when there are none."""
    return source.select_all(slice_type)


def select_latest(source: Selectable, slice_type: type[S]) -> S | None:
    """The newest item of a slice; None when there is none."""
    return source.select_latest(slice_type)


def select_where(source: Selectable, slice_type: type[S], predicate: Callable[[S], bool]) -> tuple[S, ...]:
    """The items of a slice that ``predicate`` accepts, oldest first."""
    return source.select_where(slice_type, predicate)

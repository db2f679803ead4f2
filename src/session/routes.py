"""Which reducer answers which event, and which slice it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from session.errors import ReducerError, SnapshotError
from session.events import SessionEvent
from session.history import is_log
from session.reducers import Append, Reducer
from session.slices import Log, Slice, items_of

__all__ = ["Check", "Route", "Routes", "check_items", "require_made", "routes_of"]

Check = Callable[[Any], None]
"""Raises a ValueError for what must not be in a slice."""


@attrs.frozen
class Route:
    """Which reducer answers an event, and which slice it makes.

    Attributes:
        reducer: The reducer.
        slice_type: The type of the slice's items.
        is_private: Whether the slice has no past.
        check: Refuses an event whose slice its type would refuse; None to ask the type. See
            ``Session.register_reducer``.
        stays: Whether nothing takes the slice back: it has no past, or is a log of events.
    """

    reducer: Reducer
    slice_type: type
    is_private: bool = False
    check: Check | None = attrs.field(default=None, eq=False)
    stays: bool = attrs.field(init=False, eq=False)
    _has_rules: bool = attrs.field(init=False, eq=False)

    @stays.default
    def _is_never_taken_back(self) -> bool:
        return self.is_private or is_log(self.slice_type)

    @_has_rules.default
    def _is_checked(self) -> bool:
        return self.check is None and not self.stays and hasattr(self.slice_type, "check_slice")

    def apply(self, old: Slice, event: object) -> Slice:
        """Return the next slice, the old one when the reducer gave the same tuple back.

        Raises:
            ReducerError: It is not a tuple, or is refused by its type.
            Exception: Whatever the reducer raises.
        """
        if self.check is not None:
            try:
                self.check(event)
            except ValueError as error:
                raise ReducerError(f"{type(event).__qualname__} is refused: {error}") from error
        new = self._reduced(old, event)
        if self._has_rules and new is not old:
            check_items(self.slice_type, items_of(new))
        return new

    def _reduced(self, old: Slice, event: object) -> Slice:
        reducer = self.reducer
        if type(reducer) is Append:
            item = event if reducer.part is None else reducer.part(event)
            return (Log(old) if isinstance(old, tuple) else old).push(item, reducer.limit)
        items = old if isinstance(old, tuple) else old.items
        reduced: object = reducer(items, event)
        if reduced is items:
            return old
        if isinstance(reduced, tuple):
            return reduced
        name = getattr(reducer, "__qualname__", repr(reducer))
        raise ReducerError(f"reducer {name} returned {type(reduced).__name__}; it must return a tuple")


def check_items(kind: type, items: tuple[Any, ...]) -> None:
    """Let a type check the items of a slice, by its static method ``check_slice``, if it has one.

    Raises:
        ReducerError: It refuses them.
    """
    check = getattr(kind, "check_slice", None)
    if check is None:
        return
    try:
        check(items)
    except Exception as error:
        raise ReducerError(f"the slice {kind.__qualname__} is refused by its type: {error}") from error


Routes = Mapping[type, tuple[Route, ...]]


def require_made(slices: Mapping[type, tuple[Any, ...]], registered: Routes) -> None:
    """Refuse slices of a snapshot that no reducer makes, or that their types refuse.

    Raises:
        SnapshotError: No reducer makes a slice.
        ReducerError: The type of a slice refuses it.
    """
    made = {route.slice_type for routes in registered.values() for route in routes}
    unknown = [f"{kind.__module__}:{kind.__qualname__}" for kind in slices if kind not in made]
    if unknown:
        raise SnapshotError(
            f"the snapshot has a slice that is not registered here, {min(unknown)}: register its reducers "
            "first, as PlanningToolsSection does for a plan"
        )
    for kind, items in slices.items():
        check_items(kind, items)


def routes_of(event_type: type, registered: Routes, limit: int | None) -> tuple[Route, ...]:
    """The registered routes of a type; an event that none of them keeps under its own type is logged.

    Args:
        event_type: The type.
        registered: What was registered.
        limit: How many events such a log keeps.
    """
    found = registered.get(event_type, ())
    if issubclass(event_type, SessionEvent) and all(route.slice_type is not event_type for route in found):
        found = (*found, Route(Append(limit), event_type))
    return found

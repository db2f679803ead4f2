"""Which reducer answers which event, and which slice it makes."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from session.errors import ReducerError
from session.events import SessionEvent
from session.history import is_log
from session.reducers import Append, Reducer
from session.slices import Log, Slice

__all__ = ["Route", "Routes", "routes_of"]


@attrs.frozen
class Route:
    """Which reducer answers an event, and which slice it makes.

    Attributes:
        reducer: The reducer.
        slice_type: The type of the slice's items.
        is_private: Whether the slice has no past.
        stays: Whether nothing takes the slice back: it has no past, or is a log of events.
    """

    reducer: Reducer
    slice_type: type
    is_private: bool = False
    stays: bool = attrs.field(init=False, eq=False)

    @stays.default
    def _is_never_taken_back(self) -> bool:
        return self.is_private or is_log(self.slice_type)

    def apply(self, old: Slice, event: object) -> Slice:
        """Return the next slice, the old one when the reducer gave the same tuple back."""
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


Routes = Mapping[type, tuple[Route, ...]]


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

"""Slices of a session's state, and which reducer makes which slice of an event.

A slice is a tuple, or a log, which grows at its end in constant time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import attrs

from session.errors import ReducerError, SnapshotError, shown
from session.events import CARRIERS, SessionEvent, ToolInvoked
from session.reducers import Append, Reducer

T = TypeVar("T")


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
        log = Log()
        log._buffer, log._start, log._stop, log._items = self._buffer, self._start, self._stop, None
        return log

    def push(self, entry: object, limit: int | None = None) -> Log:
        """This log with one more entry; only the last ``limit`` entries stay.

        The caller holds the session's lock: pushes never overlap.
        """
        buffer, start, stop = self._buffer, self._start, self._stop
        # Another log has grown past this one (a rollback, a transaction that failed), the front of the
        # buffer is mostly dead, or it is a tuple: then this log gets its own buffer.
        if type(buffer) is not list or len(buffer) != stop or start > stop - start + 32:
            buffer = list(buffer[start:stop])
            start, stop = 0, len(buffer)
        buffer.append(entry)
        log = Log.__new__(Log)
        log._buffer, log._stop, log._items = buffer, stop + 1, None
        log._start = start if limit is None or stop < start + limit else stop + 1 - limit
        return log


class LateLog(Log):
    """A log whose first entries are in a store, and are read on demand."""

    __slots__ = ("_first", "_later", "_limit")

    def __init__(self, first: Callable[[], tuple[Any, ...]]) -> None:
        """Begin with what is in the store."""
        self._first = first
        self._items = None
        self._later = Log(())
        self._limit: int | None = None

    @property
    def items(self) -> tuple[Any, ...]:
        """All entries, oldest first; read when first asked for."""
        if self._items is None:
            found = (*self._first(), *self._later.items)
            self._items = found if self._limit is None else found[-self._limit :]
        return self._items

    @property
    def latest(self) -> Any:
        """The newest entry, or None."""
        later = self._later.latest
        return (self._first() or (None,))[-1] if later is None else later

    def alike(self) -> LateLog:
        """An equal log that has built no tuple."""
        return self._grown(self._later.alike(), self._limit)

    def push(self, entry: object, limit: int | None = None) -> LateLog:
        """This log with one more entry; only the last ``limit`` entries stay."""
        return self._grown(self._later.push(entry, limit), limit)

    def _grown(self, later: Log, limit: int | None) -> LateLog:
        log = LateLog(self._first)
        log._later, log._limit = later, limit
        return log


Slice = tuple[Any, ...] | Log


_written: WeakKeyDictionary[type, str] = WeakKeyDictionary()  # classes that have moved


def write_as(kind: type, name: str) -> None:
    """Let stores and snapshots have a class under the name of an earlier place, in the whole process.

    Raises:
        ValueError: That is not ``module:QualifiedName``, or the class has another name already.
    """
    parts = name.replace("<locals>", "_").replace(":", ".", 1).split(".")
    if ":" not in name or not all(part.isidentifier() for part in parts):
        raise ValueError(f"written_as must be module:QualifiedName, got {shown(name)}")
    if _written.setdefault(kind, name) != name:
        raise ValueError(f"{kind.__qualname__} is written as {type_name(kind)}: a class has one name")


def type_name(kind: type) -> str:
    """The name under which a store and a snapshot have a type: ``module:QualifiedName``.

    A package that has moved modules says in its ``__written_modules__`` where they were first, by the places
    where they are: stores and snapshots have their classes under those names for ever.
    """
    return _written.get(kind) or f"{_find_module(kind.__module__)}:{kind.__qualname__}"


@lru_cache(maxsize=1024)
def _find_module(module: str) -> str:
    return _first_places(module).get(module, module)


def present_module(written: str) -> str:
    """The module that has the classes of one that stores and snapshots name."""
    moved = _first_places(written).items()
    return next((present for present, first in moved if first == written), written)


def _first_places(module: str) -> Mapping[str, str]:
    package = sys.modules.get(module.partition(".")[0])
    places: Mapping[str, str] = getattr(package, "__written_modules__", {})
    return places


def type_written_as(name: str) -> type | None:
    """The class that was moved and is written under this name: the last, where a module was loaded twice."""
    return next((kind for kind, written in reversed(tuple(_written.items())) if written == name), None)


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


Check = Callable[[Any], None]
"""Raises a ValueError for what must not be in a slice."""

Guard = Callable[[T, Any], Iterable[object]]
"""Raises for a value that must not be dispatched now; returns what is dispatched after it.

It is given the value and the open transaction.
"""


@attrs.frozen
class Route:
    """The reducer of an event, and the slice that it makes.

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
        return self.is_private or issubclass(self.slice_type, SessionEvent)

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
        reducer = self.reducer
        if type(reducer) is Append:
            item = event if reducer.part is None else reducer.part(event)
            new: Slice = (Log(old) if isinstance(old, tuple) else old).push(item, reducer.limit)
        else:
            items = old if isinstance(old, tuple) else old.items
            reduced: object = reducer(items, event)
            if reduced is items:
                return old
            if not isinstance(reduced, tuple):
                name = getattr(reducer, "__qualname__", repr(reducer))
                kind = type(reduced).__name__
                raise ReducerError(f"reducer {name} returned {kind}; it must return a tuple")
            new = reduced
        if self._has_rules:
            check_items(self.slice_type, items_of(new))
        return new


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
    unknown = [type_name(kind) for kind in slices if kind not in made]
    if unknown:
        raise SnapshotError(
            f"the snapshot has a slice that is not registered here, {min(unknown)}: register its reducers "
            "first, as PlanningToolsSection does for a plan"
        )
    for kind, items in slices.items():
        check_items(kind, items)


def is_grown(kind: type, registered: Routes) -> bool:
    """True if nothing but ``append`` makes a slice: what is in it need not be known to add to it."""
    routes = [route for found in registered.values() for route in found if route.slice_type is kind]
    return bool(routes) and all(
        route.reducer == Append(None, getattr(route.reducer, "part", None)) and not route._has_rules
        for route in routes
    )


@attrs.frozen
class Routing:
    """The way values of one type are reduced; looked up for the first of them.

    Attributes:
        routes: Their reducers.
        log: The type under which such an event is logged, where none of its reducers does that.
        is_event: Whether they are events.
        is_call: Whether they are calls of a tool.
        is_carrier: Whether they carry a value that is reduced with them.
        is_private: Whether they make nothing but slices without a past: no history has them.
        guards: What may refuse them, and says what follows from them.
    """

    routes: tuple[Route, ...]
    log: type | None
    is_event: bool
    is_call: bool
    is_carrier: bool
    is_private: bool
    guards: tuple[Guard[Any], ...]

    @classmethod
    def of(cls, kind: type, routes: tuple[Route, ...], guards: tuple[Guard[Any], ...]) -> Routing:
        """Find it: of a type, its registered reducers and its guards."""
        log = kind if _is_logged(kind, routes) else None
        is_private = bool(routes) and log is None and all(route.is_private for route in routes)
        is_call, is_carrier = issubclass(kind, ToolInvoked), issubclass(kind, CARRIERS)
        is_event = issubclass(kind, SessionEvent)
        return cls(routes, log, is_event, is_call, is_carrier, is_private, guards)


def routes_of(event_type: type, registered: Routes, limit: int | None) -> tuple[Route, ...]:
    """The registered routes of a type; an event that none of them keeps under its own type is logged."""
    found = registered.get(event_type, ())
    return (*found, _log_route(event_type, limit)) if _is_logged(event_type, found) else found


def _is_logged(kind: type, routes: tuple[Route, ...]) -> bool:
    """True if a type is that of events which none of its reducers keeps under their own type."""
    return issubclass(kind, SessionEvent) and all(route.slice_type is not kind for route in routes)


@lru_cache(maxsize=256)
def _log_route(event_type: Any, limit: int | None) -> Route:
    return Route(Append(limit), event_type)

"""A session's committed slices, the routes to its reducers, and its writers' lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from threading import get_ident
from typing import Any

import attrs

from session.errors import ReducerError, SessionBusyError, TransactionError, VersionError, shown
from session.events import SessionEvent, SessionId
from session.history import (
    REPLAYED,
    Announcement,
    Base,
    Commit,
    Entry,
    Restored,
    Slices,
    View,
    is_log,
    last_version,
    value_of,
)
from session.locks import ProcessLock
from session.reducers import Append, Reducer
from session.slices import Log, Slice, items_of, latest_of

__all__ = ["BUSY", "Route", "Routes", "State"]

BUSY = "another task holds a transaction of this session open: never await inside one"


@attrs.frozen
class Route:
    """Which reducer answers an event, and which slice it makes."""

    reducer: Reducer
    slice_type: type
    is_log: bool = attrs.field(init=False, eq=False)

    @is_log.default
    def _keeps_events(self) -> bool:
        return is_log(self.slice_type)

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


class State(ProcessLock):
    """A session's committed slices, the routes to its reducers, and the writers' lock.

    ``slices`` is replaced whole at each commit and never changed: readers need no lock, and a forked
    child always finds a whole commit.
    """

    __slots__ = (
        "_based_on",
        "_entries",
        "_registered",
        "announcements",
        "deferred",
        "delivering",
        "hears",
        "history",
        "open",
        "routes",
        "session_id",
        "slices",
        "undelivered",
        "views",
    )  # fmt: skip

    def __init__(self, session_id: SessionId, history: int | None, hears: Callable[[type], bool]) -> None:
        super().__init__()
        self.session_id = session_id
        self.hears = hears
        self.announcements: tuple[Announcement, ...] = ()
        self.history = history
        self.slices: Slices = {}
        self.open: Any = None  # the Transaction, whose module imports this one
        self.undelivered: deque[object] = deque()  # committed, not yet on the bus
        self.deferred: deque[SessionEvent] = deque()  # to be published when the open transaction is over
        self.delivering: int | None = None  # the thread that delivers
        self.views: dict[type, View] = {}
        self._registered: Routes = {}
        self._entries: list[Entry] = []  # up to the last that is among the slices
        self._based_on: Routes | None = None  # the routes that the newest base has
        self.routes: dict[type, tuple[Route, ...]] = {}

    def forget_other_threads(self) -> None:
        """Forget their open transaction and undelivered events; called in a forked child."""
        here = get_ident()  # in a child that is the thread that forked
        if self.open is not None and not self.open.is_of(here):
            self.open = None
            self.deferred = deque()
        if self.delivering != here:
            self.delivering = None
            self.undelivered = deque()

    def copy(self, session_id: SessionId, slices: Slices, hears: Callable[[type], bool]) -> State:
        """A state with the same routes, views and announcements, with these slices, and a lock of its own."""
        twin = State(session_id, self.history, hears)
        with self.lock:
            twin.announcements = self.announcements
            twin._registered = self._registered
            twin.views = dict(self.views)
            # As tuples: a log's buffer belongs to one state and its lock.
            twin.slices = {kind: items_of(slice_) for kind, slice_ in slices.items()}
            twin._entries = self._split(last_version(slices))[0]
        return twin

    # Routes

    def add_route(self, event_type: type, route: Route) -> None:
        """Add a route after those of its event type; adding it again changes nothing.

        Raises:
            TransactionError: This code is inside a transaction.
        """
        with self.lock:
            if self.open is not None:
                raise TransactionError("register reducers outside of transactions")
            known = self._registered.get(event_type, ())
            if route not in known:
                self._registered = {**self._registered, event_type: (*known, route)}
                self.routes = {}

    def find_routes(self, event_type: type) -> tuple[Route, ...]:
        """Find, and keep, the reducers that answer values of a type. The caller holds the lock."""
        found = self.routes[event_type] = self._routes_of(event_type, self._registered)
        return found

    def _routes_of(self, event_type: type, registered: Routes) -> tuple[Route, ...]:
        """The registered routes of a type; an event that none of them keeps under its own type is logged."""
        found = registered.get(event_type, ())
        if issubclass(event_type, SessionEvent) and all(
            route.slice_type is not event_type for route in found
        ):
            found = (*found, Route(Append(self.history), event_type))
        return found

    # Reading

    def require_free(self) -> None:
        """Refuse what cannot wait for the open transaction: that of another task of this thread.

        Raises:
            SessionBusyError: There is such a transaction.
        """
        opened = self.open
        if opened is not None and opened.is_of(get_ident()) and not opened.is_held():
            raise SessionBusyError(BUSY)

    def visible(self) -> Slices:
        """What the running code may see: its own open transaction, or what is committed."""
        opened = self.open
        slices: Slices = opened.slices if opened is not None and opened.is_held() else self.slices
        return slices

    def items(self, slice_type: type) -> tuple[Any, ...]:
        """All items of a slice, or of a view."""
        slice_ = self.visible().get(slice_type)
        if slice_ is not None:
            return items_of(slice_)
        view = self.views.get(slice_type)
        return () if view is None else view(self.items)

    def latest(self, slice_type: type) -> Any:
        """The newest item of a slice, or of a view; None when there is none."""
        slice_ = (self.slices if self.open is None else self.visible()).get(slice_type)
        return latest_of(self.items(slice_type) if slice_ is None else slice_)

    # Changes

    def commit(
        self, slices: Slices, parts: list[Any], actor: str | None, call_id: str | None, *, changed: bool
    ) -> Iterable[object]:
        """Make slices visible, and the change that made them, as one. The caller holds the lock.

        Args:
            slices: The new slices; a transaction's own.
            parts: What was dispatched and published; the list is the history's from now on.
            actor: Who made the change.
            call_id: The id of the call.
            changed: Whether a slice that is not a log was replaced.

        Returns:
            What is to be announced of it on the bus.
        """
        last: Any = self.slices.get(Entry)
        version = 1 if last is None else last[0].version + 1
        entries = self._entries
        if entries and entries[-1].version != version - 1:
            entries.pop()  # its commit was interrupted
        is_base = version % REPLAYED == 1 or self._based_on is not self._registered
        base = self._base() if is_base else None
        entry = Entry(version, parts, actor, call_id, changed, datetime.now(UTC), base)
        entries.append(entry)
        slices[Entry] = (entry,)
        before, self.slices = self.slices, slices
        if changed:
            for announcement in self.announcements:
                if self.hears(announcement.event_type):
                    return self.announced(before, entry, "session")
        return ()

    def announced(self, before: Slices, entry: Entry, origin: str) -> list[object]:
        """What is to be announced of the commit that made the slices what they are."""
        made = list[object]()
        for each in self.announcements:
            old, new = before.get(each.slice_type, ()), self.slices.get(each.slice_type, ())
            if old is not new and self.hears(each.event_type):
                of = (entry.version, entry.actor, entry.call_id, origin, self.session_id)
                announced = each.make(Commit(latest_of(old), latest_of(new), *of))
                made += [] if announced is None else [announced]
        return made

    def changes_after(self, version: int) -> list[Entry]:
        """The changes after a version, oldest first.

        Raises:
            VersionError: There is no such version, or changes after it are not kept any more.
        """
        with self.lock:
            return self._split(version)[1]

    def slices_at(self, version: int) -> Slices:
        """The slices of a version.

        Raises:
            VersionError: There is no such version, or it is not kept any more.
        """
        with self.lock:  # reducing again grows logs
            earlier, later = self._split(version)
            if not later:
                return self.slices
            base, again = later[0].base, list[Entry]()
            while base is None:
                again.append(earlier.pop())
                base = again[-1].base
            slices = self._reduced(base, [part for entry in reversed(again) for part in entry.parts])
            if version:
                slices[Entry] = (again[0] if again else earlier[-1],)
            return slices

    def _split(self, version: int) -> tuple[list[Entry], list[Entry]]:
        """The changes up to a version, as far as they are kept, and those after it."""
        newest = last_version(self.slices)
        if type(version) is not int or not 0 <= version <= newest:
            raise VersionError(f"the session has the versions 0 to {newest}, got {shown(version)}")
        oldest = 0 if self.history is None else max(0, newest - self.history)
        if version < oldest:
            raise VersionError(
                f"version {version} is not kept any more: the session keeps its last {self.history} changes; "
                f"ask for {oldest} or later"
            )
        first = self._entries[0].version if self._entries else 1
        place = version - first + 1
        return self._entries[:place], self._entries[place : newest - first + 1]

    def _base(self) -> Base:
        """The slices as they are, without the tuples that readers had built of the logs.

        Where the history is bounded, this is also when the oldest changes go.
        """
        self._based_on = self._registered
        if self.history is not None:
            del self._entries[: -self.history - REPLAYED]
        kept = {
            kind: slice_ if isinstance(slice_, tuple) else slice_.alike()
            for kind, slice_ in self.slices.items()
            if kind is not Entry
        }
        return Base(kept, self._registered)

    def _reduced(self, base: Base, parts: list[Any]) -> Slices:
        slices, last, routes = dict(base.slices), None, dict[type, tuple[Route, ...]]()
        for part in parts:
            if isinstance(part, Restored):
                slices = part.over(slices)
                continue
            value = value_of(part)
            for each in (part,) if value is None or value is last else (value, part):
                if type(each) not in routes:
                    routes[type(each)] = self._routes_of(type(each), base.routes)
                for route in routes[type(each)]:
                    slices[route.slice_type] = route.apply(slices.get(route.slice_type, ()), each)
            last = part
        return slices

"""The history of a session: its changes, one version after the other.

A session keeps its changes beside its slices. What its slices were at a version is found by reducing
the events again, from the nearest change that kept the slices before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from time import time
from typing import Any, Final, Generic, TypeVar

import attrs

from session.bus import log_failure
from session.errors import VersionError, shown
from session.events import SessionEvent, SessionId, ToolFailed, ToolInvoked, value_of
from session.slices import Route, Routes, Slice, items_of, latest_of, routes_of

S = TypeVar("S")

Slices = dict[type, Slice]


View = Callable[[Callable[[type[Any]], tuple[Any, ...]]], tuple[Any, ...]]

REPLAYED = 32
"""The most changes that are reduced again to find the slices of a version."""


@attrs.frozen
class Change:
    """One commit of a session.

    Attributes:
        version: Its place in the session's history: 1 for the first.
        at: When it was committed, in UTC.
        events: What was dispatched and published, in order: session events, plain values, and ``Rewound``,
            ``RolledBack`` or ``Reset``. A value that an event carries is not listed beside it.
        actor: Who made the change, when the event or the caller says so.
        call_id: The id that the provider gave the call, when there is one.
        changed: Whether a reducer replaced a slice other than the event logs.
        idempotency_key: The key of the call, when it has one; see ``Session.find_call``.
    """

    version: int
    at: datetime
    events: tuple[Any, ...]
    actor: str | None = None
    call_id: str | None = None
    changed: bool = True
    idempotency_key: str | None = None


@attrs.frozen
class Restored:
    """Slices were replaced, all but the event logs; base of what says why."""

    # In a change that was read from a store: by the names of the types, and the items as JSON has them.
    state: Mapping[Any, Any] = attrs.field(repr=False, eq=False)

    def over(self, slices: Slices, stays: Callable[[type], bool]) -> Slices:
        """The restored slices, with those of these that are never taken back."""
        return {**self.state, **{kind: slice_ for kind, slice_ in slices.items() if stays(kind)}}

    def items(self) -> list[tuple[type, tuple[Any, ...]]]:
        """The restored slices with their items."""
        return [(kind, items_of(slice_)) for kind, slice_ in self.state.items()]


@attrs.frozen
class Rewound(Restored):
    """The slices of an earlier version were restored.

    Attributes:
        version: The version.
    """

    version: int


@attrs.frozen
class RolledBack(Restored):
    """The slices of a snapshot were restored.

    Attributes:
        session_id: The session that the snapshot was taken from.
        created_at: When it was taken.
    """

    session_id: SessionId
    created_at: datetime


@attrs.frozen
class Reset(Restored):
    """All slices were emptied."""


@attrs.frozen
class Base:
    """A place where reducing again may start: the slices before a change, and the reducers of that time."""

    slices: Slices
    routes: Mapping[type, Any]


@attrs.define(weakref_slot=False)
class KeptChange:
    """A change as a session keeps it; nothing changes it, and it is made faster than a frozen one.

    The last one is a slice of its own: what is committed has its own version.

    Attributes:
        version: As in ``Change``.
        parts: All that was dispatched and published; a value is there before the event that carries it.
        actor: As in ``Change``.
        call_id: As in ``Change``.
        changed: As in ``Change``.
        made: When it was committed, in seconds: a third of what a datetime costs.
        base: Set for one change in ``REPLAYED`` at least.
        key: The idempotency key of the accepted call in it.
        restores: Whether one of the parts restored slices.
    """

    version: int
    parts: list[Any]
    actor: str | None
    call_id: str | None
    changed: bool
    made: float
    base: Base | None = None
    key: str | None = None
    restores: bool = False

    @property
    def at(self) -> datetime:
        """As in ``Change``."""
        return datetime.fromtimestamp(self.made, UTC)

    def events(self) -> tuple[Any, ...]:
        """The parts, without the values that an event beside them carries."""
        pairs = pairwise([*self.parts, None])
        return tuple([part for part, after in pairs if value_of(after) is not part])

    def change(self) -> Change:
        """The change as callers see it."""
        events = self.events()
        by = (self.actor, self.call_id, self.changed, key_of(events))
        return Change(self.version, self.at, events, *by)


@attrs.frozen(slots=False)  # made in half the time
class Commit(Generic[S]):
    """A slice before and after a commit; see ``Session.publish_on_change``.

    Attributes:
        before: The newest item of the slice before; None when there was none.
        after: The newest item now; None if the slice is empty.
        version: The version that the commit made.
        actor: As in ``Change``.
        call_id: As in ``Change``.
        origin: ``session``; ``store`` for a change that another process made.
        session_id: The session.
    """

    before: S | None
    after: S | None
    version: int
    actor: str | None
    call_id: str | None
    origin: str
    session_id: SessionId


@attrs.frozen
class Announcement:
    """The event to publish after a commit that replaced a slice.

    Attributes:
        slice_type: The type of the slice's items.
        event_type: The type of what is published.
        make: Makes it; None for nothing to say.
    """

    slice_type: type
    event_type: type
    make: Callable[[Commit[Any]], object | None]


def taken_over(version: int) -> KeptChange:
    """The last change of a session. The store knows the rest."""
    return KeptChange(version, [], None, None, True, time())


def announced(
    announcements: Iterable[Announcement],
    before: Slices,
    after: Slices,
    entry: KeptChange,
    origin: str,
    session_id: SessionId,
    hears: Callable[[type], bool],
) -> list[object]:
    """The announcements of a commit."""
    made = list[object]()
    for each in announcements:
        old, new = before.get(each.slice_type, ()), after.get(each.slice_type, ())
        if old is not new and hears(each.event_type):
            of = (entry.version, entry.actor, entry.call_id, origin, session_id)
            try:
                event = each.make(Commit(latest_of(old), latest_of(new), *of))
            except Exception as error:  # noqa: BLE001 - what is committed stays, and its events are delivered
                log_failure("session.session", "announcement_failed", each, error, each.make)
                continue
            made += [] if event is None else [event]
    return made


class SessionView:
    """The slices of a session at a version, for the selectors; nothing changes it.

    Attributes:
        session_id: The session.
        version: The version.
    """

    def __init__(
        self,
        session_id: SessionId,
        version: int,
        read: Callable[[type], Slice | None],
        views: Mapping[type, View],
    ) -> None:
        """Take the slices of a version.

        Args:
            session_id: The session.
            version: The version.
            read: Reads a slice; None if there is none.
            views: What makes further slices of them.
        """
        self.session_id = session_id
        self.version = version
        self._read = read
        self._views = views

    def __repr__(self) -> str:
        return f"SessionView({str(self.session_id)!r}, version={self.version})"

    def select_all(self, slice_type: type[S], /) -> tuple[S, ...]:
        """All items of a slice, oldest first; empty when there are none."""
        slice_ = self._read(slice_type)
        if slice_ is not None:
            return items_of(slice_)
        view = self._views.get(slice_type)
        return () if view is None else view(self.select_all)

    def select_latest(self, slice_type: type[S], /) -> S | None:
        """The newest item of a slice, or None."""
        slice_ = self._read(slice_type)
        found: S | None = latest_of(self.select_all(slice_type) if slice_ is None else slice_)
        return found

    def select_where(self, slice_type: type[S], predicate: Callable[[S], bool], /) -> tuple[S, ...]:
        """The items of a slice that ``predicate`` accepts, oldest first."""
        return tuple(item for item in self.select_all(slice_type) if predicate(item))


PAIR: Final = 2
"""The number of parts that are in order in any case: a value, and the event that carries it."""


def is_present(version: int, newest: int, rewinds: Sequence[tuple[int, int]]) -> bool:
    """True if a version is on the present branch: no rewind went back behind it."""
    for rewind, restored in reversed(rewinds):
        if rewind > newest:
            continue  # of a branch that was left
        if version >= rewind:
            break
        newest = restored
    return version <= newest


def in_order(parts: list[Any]) -> list[Any]:
    """The parts of a change in their order: a value, at once the event that carries it, then the next.

    That is the order of reducing, but for what guards dispatched between a value and its event.
    """
    groups: list[list[Any]] = []
    group_of: dict[int, list[Any]] = {}
    for part in parts:
        value = value_of(part)
        group = None if value is None else group_of.pop(id(value), None)
        if group is None:
            group_of[id(part)] = group = []
            groups.append(group)
        group.append(part)
    return [part for group in groups for part in group]


def called(parts: Sequence[Any]) -> ToolInvoked | None:
    """The last accepted call with an idempotency key among what was published, if no rewind came after it."""
    for part in reversed(parts):
        if isinstance(part, Rewound):
            return None
        if isinstance(part, ToolInvoked) and part.idempotency_key is not None:
            return part
    return None


def key_of(events: Sequence[Any]) -> str | None:
    """The idempotency key of the call in a change: that of the accepted one, if there is one."""
    keys = (each.idempotency_key for each in events if isinstance(each, (ToolInvoked, ToolFailed)))
    call = called(events)
    return next(filter(None, keys), None) if call is None else call.idempotency_key


def last_version(slices: Slices) -> int:
    """The version of a session with these slices."""
    last: Any = slices.get(KeptChange)
    version: int = 0 if last is None else last[0].version
    return version


def is_log(kind: type) -> bool:
    """True if a slice records what happened: nothing takes such a slice back."""
    return issubclass(kind, (SessionEvent, KeptChange))


class Kept:
    """The changes of a session in memory. Callers of methods that change it hold the session's lock.

    Attributes:
        limit: How many changes are kept; None for all.
    """

    __slots__ = ("_based_on", "_claims", "_entries", "_first", "_keys", "_rewinds", "limit")

    def __init__(self, limit: int | None, entries: list[KeptChange] | None = None, first: int = 0) -> None:
        """Start a history, or continue that of another session."""
        self.limit = limit
        self._entries: list[KeptChange] = [] if entries is None else entries
        self._first = first
        self._keys: dict[str, list[int]] = {}
        self._rewinds: list[tuple[int, int]] = []
        self._claims: dict[str, int] = {}
        for entry in self._entries:
            self._index(entry)
        self._based_on: Routes | None = None  # the routes that the newest base has

    def record(self, entry: KeptChange, before: Slices, registered: Routes) -> None:
        """Keep a change."""
        entries, version = self._entries, entry.version
        if entries and entries[-1].version != version - 1:
            self._forget(entries[-1])  # its commit was interrupted
            self._rewinds = [each for each in self._rewinds if each[0] < version]
            self._based_on = None
            entries.pop()
        if version % REPLAYED == 1 or self._based_on is not registered:
            entry.base = self._base(before, registered)
        entries.append(entry)
        self._based_on = registered
        if entry.key is not None or entry.restores:
            self._index(entry)

    def _index(self, entry: KeptChange) -> None:
        if entry.key is not None:
            self._keys.setdefault(entry.key, []).append(entry.version)
        if entry.restores:
            for part in entry.parts:
                if isinstance(part, Rewound):
                    self._rewinds.append((entry.version, part.version))

    def find_call(self, key: str, newest: int) -> ToolInvoked | None:
        """The call with a key on the branch that ends with a version; see ``Session.find_call``."""
        for version in reversed(self._keys.get(key, ())):
            if is_present(version, newest, self._rewinds):
                return called(self._entries[version - self._entries[0].version].parts)
        return None

    def claim(self, name: str, version: int) -> bool:
        """Record a name; see ``Session.claim``."""
        is_new = name not in self._claims
        self._claims.setdefault(name, version)
        return is_new

    def changes_after(self, version: int, slices: Slices) -> tuple[Change, ...]:
        """The changes after a version; see ``Session.history``."""
        return tuple(entry.change() for entry in self._split(version, slices)[1])

    def fork(self, version: int, slices: Slices) -> Kept:
        """A history of its own with the changes and claims up to a version, as far as they are kept."""
        entries = self._split(version, slices)[0]
        fork = Kept(self.limit, entries, version)
        fork._claims = {name: at for name, at in self._claims.items() if at <= version}
        return fork

    def slices_at(self, version: int, slices: Slices) -> Slices:
        """The slices of a version; see ``Session.at``."""
        earlier, later = self._split(version, slices)
        if not later:
            return slices
        base, again = later[0].base, list[KeptChange]()
        while base is None:
            again.append(earlier.pop())
            base = again[-1].base
        found = self._reduce(base, [part for entry in reversed(again) for part in entry.parts])
        if version:
            found[KeptChange] = (taken_over(version),)
        return found

    def _split(self, version: int, slices: Slices) -> tuple[list[KeptChange], list[KeptChange]]:
        """The changes up to a version, as far as they are kept, and those after it."""
        newest = last_version(slices)
        require_version(version, newest)
        first = self._entries[0].version if self._entries else self._first + 1
        oldest = first - 1 if self.limit is None else max(first - 1, newest - self.limit)
        if version < oldest:
            kept = "" if self.limit is None else f": the session keeps its last {self.limit} changes"
            raise VersionError(f"version {version} is no longer kept{kept}; ask for {oldest} or later")
        place = version - first + 1
        return self._entries[:place], self._entries[place : newest - first + 1]

    def _base(self, slices: Slices, registered: Routes) -> Base:
        """The slices as they are, without the tuples that readers had built of the logs.

        Where the history is bounded, this is also when the oldest changes go.
        """
        if self.limit is not None:
            for entry in self._entries[: -self.limit - REPLAYED]:
                self._forget(entry)
            del self._entries[: -self.limit - REPLAYED]
        kept = {
            kind: slice_ if isinstance(slice_, tuple) else slice_.alike()
            for kind, slice_ in slices.items()
            if kind is not KeptChange
        }
        return Base(kept, registered)

    def _forget(self, entry: KeptChange) -> None:
        if entry.key is not None:
            versions = [each for each in self._keys.pop(entry.key, ()) if each != entry.version]
            if versions:
                self._keys[entry.key] = versions

    def _reduce(self, base: Base, parts: list[Any]) -> Slices:
        slices, routes = dict(base.slices), dict[type, tuple[Route, ...]]()
        for part in parts:
            if isinstance(part, Restored):
                slices = part.over(slices, is_log)
                continue
            if type(part) not in routes:
                routes[type(part)] = routes_of(type(part), base.routes, self.limit)
            for route in routes[type(part)]:
                slices[route.slice_type] = route.apply(slices.get(route.slice_type, ()), part)
        return slices


def require_version(version: object, newest: int) -> None:
    """Refuse a version that a session does not have.

    Raises:
        VersionError: It is one.
    """
    if type(version) is not int or not 0 <= version <= newest:
        raise VersionError(f"the session has the versions 0 to {newest}, got {shown(version)}")

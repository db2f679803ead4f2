"""A session's committed slices, the routes to its reducers, and its writers' lock: in memory.

``StoredState`` is that of a session in a store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from threading import get_ident
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from session.bus import Delivery, EventBus, PublishResult
from session.errors import SessionBusyError, TransactionError
from session.events import SessionEvent, SessionId
from session.history import (
    Announcement,
    Change,
    Kept,
    KeptChange,
    Slices,
    View,
    announced,
    is_log,
    last_version,
)
from session.locks import Held, ProcessLock
from session.slices import Guard, Route, Routes, Routing, Slice, items_of, latest_of, require_made

if TYPE_CHECKING:
    from session.stores.base import Store
    from session.stores.chain import StoredSession

T = TypeVar("T")
Receive = Callable[["State", Delivery, SessionEvent], None]
"""Reduces an event that other code published on a bus."""

BUSY = "another task holds a transaction of this session open: never await inside one"


class State(ProcessLock):
    """A session's committed slices, the routes to its reducers, and the writers' lock.

    ``slices`` is replaced whole at each commit and never changed: readers need no lock, and a forked
    child always finds a whole commit.
    """

    __slots__ = (
        "_created_at",
        "_tags",
        "announcements",
        "deliveries",
        "delivering",
        "guards",
        "hears",
        "local_objects",
        "open",
        "past",
        "private",
        "registered",
        "routing",
        "session_id",
        "slices",
        "taken",
        "undelivered",
        "views",
    )  # fmt: skip

    slices: Slices
    past: Any

    def __init__(
        self, session_id: SessionId, past: object, created_at: datetime, tags: Mapping[str, str]
    ) -> None:
        """Begin without slices."""
        super().__init__()
        self.session_id = session_id
        self.past = past
        self._created_at = created_at
        self._tags = MappingProxyType(dict(tags))
        self.hears: Callable[[type], bool] = self._is_heard
        self.deliveries: WeakSet[Delivery] = WeakSet()  # to the buses of the sessions that share this
        self.announcements: tuple[Announcement, ...] = ()
        self.open: Any = None  # the Transaction, whose module imports this one
        self.taken: list[object] = []  # announcements of what other writers committed
        self.undelivered: deque[object] = deque()  # committed, not yet on the bus
        self.delivering: Held | None = None  # what held the lock when the delivery began
        self.views: dict[type, View] = {}
        self.private: frozenset[type] = frozenset()  # slices without a past
        self.registered: Routes = {}
        self.routing: dict[type, Routing] = {}
        self.guards: Mapping[type, tuple[Guard[Any], ...]] = {}
        self.local_objects: dict[type, Any] = {}
        self.slices = {}

    @property
    def store(self) -> Store | None:
        """The store that keeps its changes; None for memory only."""
        return None

    @property
    def created_at(self) -> datetime:
        """When the session began."""
        return self._created_at

    @property
    def tags(self) -> Mapping[str, str]:
        """The session's tags."""
        return self._tags

    def forget_other_threads(self) -> None:
        """Forget their open transaction and undelivered events; called in a forked child."""
        here = get_ident()  # in a child that is the thread that forked
        if self.open is not None and self.open.thread != here:
            self.open = None
        if self.delivering is None or self.delivering.thread != here:
            self.delivering = None
            self.undelivered = deque()

    def copy_to(self, other: State) -> None:
        """Give another state the same routes, guards, views, types and announcements as well."""
        with self.lock, other.lock:
            if other.registered:
                for event_type, routes in self.registered.items():
                    for route in routes:
                        other.add_route(event_type, route)
            else:
                other.routing, other.private, other.registered = {}, self.private, self.registered
            for kind, guards in self.guards.items():
                for guard in guards:
                    other.add_guard(kind, guard)
            other.views = {**other.views, **self.views}
            new = [each for each in self.announcements if each not in other.announcements]
            other.announcements = (*other.announcements, *new)

    def copy(self, session_id: SessionId, version: int, tags: Mapping[str, str]) -> State:
        """A state in memory with the same routes, the slices of a version, and a lock of its own."""
        with self.lock:
            slices, history = self._past_at(version)
            slices = {**slices, **self.without_past()}
            twin = State(session_id, history, datetime.now(UTC), tags)
            self.copy_to(twin)
            # As tuples: a log's buffer belongs to one state and its lock.
            twin.slices = {kind: items_of(slice_) for kind, slice_ in slices.items()}
        return twin

    def _past_at(self, version: int) -> tuple[Slices, Kept]:
        """The slices of a version, and a history up to it."""
        return self.past.slices_at(version, self.slices), self.past.fork(version, self.slices)

    def fork(self, session_id: SessionId, version: int, tags: Mapping[str, str]) -> State:
        """The state of a new session with the history up to a version; see ``Session.fork``."""
        return self.copy(session_id, version, tags)

    # Routes

    def learn(self, types: Iterable[type]) -> None:
        """Let values of these types be built; see ``Session.register_types``."""

    def add_route(self, event_type: type, route: Route) -> None:
        """Add a route after those of its event type; adding it again changes nothing."""
        with self.lock:
            known = self.registered.get(event_type, ())
            if route in known:
                return
            if self.open is not None:
                raise TransactionError("register reducers outside of transactions")
            self.routing = {}
            if route.is_private:
                self.private |= {route.slice_type}
            self.learn((event_type, route.slice_type))
            self.registered = {**self.registered, event_type: (*known, route)}  # last: then it is known

    def add_guard(self, event_type: type, guard: Guard[Any]) -> None:
        """Add a guard of a type; an equal one again changes nothing."""
        with self.lock:
            known = self.guards.get(event_type, ())
            if guard not in known:
                self.routing = {}
                self.guards = {**self.guards, event_type: (*known, guard)}

    def find_routing(self, kind: type) -> Routing:
        """Look up, and keep, how values of a type are reduced. The caller holds the lock."""
        guards = self.guards.get(kind, ())
        found = self.routing[kind] = Routing.of(kind, self.registered.get(kind, ()), guards)
        return found

    def stays(self, kind: type) -> bool:
        """True if a slice is never taken back: an event log, or one without a past."""
        return is_log(kind) or kind in self.private

    def delivery_to(self, bus: EventBus, receive: Receive) -> Delivery:
        """The delivery between the sessions of this and a bus; see ``Delivery``."""
        with self.lock:
            shared = [each for each in self.deliveries if each.bus is bus]
            delivery = shared[0] if shared else Delivery(bus, self.session_id, partial(receive, self))
            self.deliveries.add(delivery)
            self.hears = delivery.hears if len(self.deliveries) == 1 else self._is_heard
        return delivery

    def _is_heard(self, event_type: type) -> bool:
        """True if a bus of this session may have a subscriber for a type."""
        return any(delivery.hears(event_type) for delivery in tuple(self.deliveries))

    # Reading

    def require_free(self) -> None:
        """Refuse what cannot wait for the open transaction: that of another task of this thread."""
        opened = self.open
        if opened is not None and opened.thread == get_ident() and not opened.is_held():
            raise SessionBusyError(BUSY)

    def visible(self) -> Slices:
        """The state that the running code may see: its own open transaction, or what is committed."""
        opened = self.open
        slices: Slices = opened.slices if opened is not None and opened.is_held() else self.slices
        return slices

    def items(self, slice_type: type) -> tuple[Any, ...]:
        """All items of a slice, or of a view."""
        slice_ = self.visible().get(slice_type)
        if slice_ is None:
            slice_ = self.resolved(slice_type)
        if slice_ is not None:
            return items_of(slice_)
        view = self.views.get(slice_type)
        return () if view is None else view(self.items)

    def latest(self, slice_type: type) -> Any:
        """The newest item of a slice, or of a view; None when there is none."""
        slice_ = (self.slices if self.open is None else self.visible()).get(slice_type)
        if slice_ is None:
            slice_ = self.resolved(slice_type)
        return latest_of(self.items(slice_type) if slice_ is None else slice_)

    def first(self, kind: type) -> Slice:
        """A slice that the open transaction has not seen yet, as it is before its first event."""
        slice_ = self.resolved(kind)
        return () if slice_ is None else slice_

    def resolved(self, kind: type) -> Slice | None:  # noqa: ARG002 - a store has it
        """A slice that was not asked for before; None if there is none."""
        return None

    def require_readable(self, kind: type, old: Slice, new: Slice) -> None:
        """Refuse new items of a slice that could not be read back."""

    # Changes

    def begin(self, timeout: float | None) -> None:
        """Begin a transaction. The caller holds the lock."""

    def end(self) -> None:
        """End the transaction."""

    def require_outside(self, what: str) -> None:
        """Refuse what cannot be part of a transaction."""
        if self.open is not None:
            raise TransactionError(what)

    def refresh(self) -> None:
        """Take over what other writers committed; see ``Session.refresh``. The caller holds the lock."""
        self.require_outside("refresh outside of transactions: inside, you have the newest version")
        self.catch_up()

    def catch_up(self) -> None:
        """Take over what other writers committed, outside of transactions. The caller holds the lock."""

    async def run_in_worker(self, function: Callable[[], T]) -> T:
        """Call a function that changes the session; see ``Session.run_in_worker``."""
        return function()

    def commit(self, slices: Slices, entry: KeptChange) -> Iterable[object]:
        """Make slices visible, and the change that made them, as one. The caller holds the lock."""
        before = self.slices
        slices[KeptChange] = (entry,)
        self._record(entry, before, slices)
        if entry.changed:
            for announcement in self.announcements:
                if self.hears(announcement.event_type):
                    by = (entry, "session", self.session_id, self.hears)
                    return announced(self.announcements, before, slices, *by)
        return ()

    def _record(self, entry: KeptChange, before: Slices, slices: Slices) -> None:
        """Keep a change, and make its slices visible."""
        self.past.record(entry, before, self.registered)
        self.slices = slices

    def deliver(
        self, bus: Delivery, events: Sequence[SessionEvent] = (), announced: Iterable[object] = ()
    ) -> PublishResult | None:
        """Deliver committed events in order, and those that subscribers commit meanwhile."""
        undelivered = self.undelivered
        if self.taken:
            taken, self.taken = self.taken, []
            undelivered.extend(taken)
        undelivered += events
        undelivered += announced
        if self.delivering is not None and self.delivering is self.holders.get(0):
            return None  # a subscriber committed this
        self.delivering = self.holders.get(0)
        last, published = events[-1] if events else None, None
        try:
            while undelivered:
                event = undelivered.popleft()
                if bus.hears(type(event)):
                    result = bus.deliver(event)
                    if event is last:
                        published = result
                if not isinstance(event, SessionEvent) and len(self.deliveries) > 1:
                    for other in tuple(self.deliveries):
                        if other is not bus:
                            other.deliver(event)
        finally:
            self.delivering = None
        return published

    # History

    def changes_after(self, version: int) -> tuple[Change, ...]:
        """The changes after a version; see ``Session.history``."""
        with self.lock:
            changes: tuple[Change, ...] = self.past.changes_after(version, self.slices)
        return changes

    def claim(self, name: str) -> bool:
        """Record a name; see ``Session.claim``."""
        with self.lock:
            self.require_outside("claim outside of transactions: a rollback does not undo a claim")
            is_new: bool = self.past.claim(name, last_version(self.slices))
        return is_new

    def slices_at(self, version: int) -> Callable[[type], Slice | None]:
        """The reader of a version's slices; see ``Session.at``."""
        return self._all_at(version).get

    def _all_at(self, version: int) -> Slices:
        with self.lock:  # reducing again grows logs
            return {**self.past.slices_at(version, self.slices), **self.without_past()}

    def elsewhere(self, head: StoredSession) -> Callable[[type], Slice | None]:  # noqa: ARG002 - a store has it
        """The reader of another session of the same store; see ``Session.read_other``."""
        raise TransactionError("only a session in a store can read others: give it a store")

    def without_past(self) -> Slices:
        """The slices that have no past."""
        return {kind: slice_ for kind, slice_ in self.slices.items() if kind in self.private}

    def emptied(self) -> Slices:
        """Every slice that is known here, empty, but for those that are never taken back."""
        return {}

    def restorable(self, version: int) -> dict[type, tuple[Any, ...]]:
        """The slices of a version that a rewind restores, as far as they are known here."""
        slices = self._all_at(version)
        return {kind: items_of(slice_) for kind, slice_ in slices.items() if not self.stays(kind)}

    def require_restorable(self, slices: Mapping[type, tuple[Any, ...]]) -> None:
        """Refuse slices of a snapshot that no reducer makes; without reducers, any are taken."""
        if self.registered:
            require_made(slices, self.registered)

    def kept(self) -> Slices:
        """All slices that a snapshot has."""
        return {kind: slice_ for kind, slice_ in self.visible().items() if not self.stays(kind)}

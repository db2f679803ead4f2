"""A session's committed slices, the routes to its reducers, and its writers' lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache, partial
from threading import get_ident
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from session.bus import Delivery, EventBus, PublishResult
from session.errors import SessionBusyError, StoreBusy, TransactionError
from session.events import SessionEvent, SessionId
from session.history import (
    Announcement,
    Change,
    Entry,
    Slices,
    View,
    announced,
    is_log,
    last_version,
    taken_over,
)
from session.kept import Kept, require_version
from session.locks import Held, ProcessLock
from session.slices import Guard, Route, Routes, Routing, Slice, items_of, latest_of

if TYPE_CHECKING:
    from session.stored import Stored
    from session.stores.chain import StoredSession

Receive = Callable[["State", Delivery, SessionEvent], None]
"""Reduces an event that other code published on a bus."""

BUSY = "another task holds a transaction of this session open: never await inside one"


class State(ProcessLock):
    """A session's committed slices, the routes to its reducers, and the writers' lock.

    ``slices`` is replaced whole at each commit and never changed: readers need no lock, and a forked
    child always finds a whole commit. In a stored session it holds the slices that were asked for.
    """

    __slots__ = (
        "_is_committing",
        "_resolved_for",
        "announcements",
        "companions",
        "deliveries",
        "delivering",
        "guards",
        "hears",
        "open",
        "past",
        "private",
        "registered",
        "routing",
        "session_id",
        "slices",
        "stored",
        "taken",
        "undelivered",
        "views",
    )  # fmt: skip

    def __init__(self, session_id: SessionId, past: Kept | Stored) -> None:
        super().__init__()
        self.session_id = session_id
        self.past = past
        self.stored = None if isinstance(past, Kept) else past
        self.hears: Callable[[type], bool] = self._is_heard
        self.deliveries: WeakSet[Delivery] = WeakSet()  # to the buses of the sessions that share this
        self.announcements: tuple[Announcement, ...] = ()
        self.slices: Slices
        self.open: Any = None  # the Transaction, whose module imports this one
        self.taken: list[object] = []  # announcements of what other writers committed
        self.undelivered: deque[object] = deque()  # committed, not yet on the bus
        self.delivering: Held | None = None  # what held the lock when the delivery began
        self.views: dict[type, View] = {}
        self.private: frozenset[type] = frozenset()  # slices without a past
        self.registered: Routes = {}
        self.routing: dict[type, Routing] = {}
        self.guards: Mapping[type, tuple[Guard[Any], ...]] = {}
        self.companions: dict[type, Any] = {}
        self._is_committing = False
        self._resolved_for: Routes | None = None
        if self.stored is None:
            self.slices = {}

    if not TYPE_CHECKING:  # a checker would take every name for one of this class

        def __getattr__(self, name: str) -> Slices:
            """The slices of a stored session, at the first look at them."""
            if name != "slices" or self.stored is None:
                raise AttributeError(name)
            stored, version = self.stored, self.stored.head.version
            first: dict[type, Any] = {Entry: (taken_over(version),)} if version else {}
            warm = stored.warm
            if warm is not None and warm.head.version == version and warm.registered is self.registered:
                first |= {
                    kind: slice_
                    for kind, slice_ in warm.slices.items()
                    if not (kind in self.private or kind in self.views)
                }
            with stored.looking.lock:
                try:  # another thread may have looked, and made changes since
                    return object.__getattribute__(self, name)
                except AttributeError:
                    self.slices = first
            return first

    def forget_other_threads(self) -> None:
        """Forget their open transaction and undelivered events; called in a forked child."""
        here = get_ident()  # in a child that is the thread that forked
        if self.open is not None and self.open.thread != here:
            self.open = None
        if self.delivering is None or self.delivering.thread != here:
            self.delivering = None
            self.undelivered = deque()

    def copy_to(self, other: State) -> None:
        """Give another state the same routes, guards, views, types and announcements as well.

        Raises:
            TransactionError: This code is inside a transaction of it, which has routes already.
        """
        with self.lock, other.lock:
            if other.registered:
                for event_type, routes in self.registered.items():
                    for route in routes:
                        other.add_route(event_type, route)
            else:
                other.registered, other.private, other.routing = self.registered, self.private, {}
            for kind, guards in self.guards.items():
                for guard in guards:
                    other.add_guard(kind, guard)
            other.views = {**other.views, **self.views}
            new = [each for each in self.announcements if each not in other.announcements]
            other.announcements = (*other.announcements, *new)
            if other.stored is not None and self.stored is not None:
                other.stored.records.learn_from(self.stored.records)

    def copy(self, session_id: SessionId, version: int) -> State:
        """A state in memory with the same routes, the slices of a version, and a lock of its own.

        Args:
            session_id: Whose it is.
            version: The version; the history up to it is copied where it is in memory.

        Raises:
            VersionError: There is no such version, or it is no longer kept.
            StoreError: A slice cannot be read.
        """
        past = self.past
        with self.lock:
            if isinstance(past, Kept):
                slices, history = past.slices_at(version, self.slices), past.fork(version, self.slices)
            else:
                slices, history = {**self.slices, **self.kept()}, Kept(past.limit, None, version)
            slices, twin = {**slices, **self._without_past()}, State(session_id, history)
            self.copy_to(twin)
            # As tuples: a log's buffer belongs to one state and its lock.
            twin.slices = {kind: items_of(slice_) for kind, slice_ in slices.items()}
        return twin

    # Routes

    def add_route(self, event_type: type, route: Route) -> None:
        """Add a route after those of its event type; adding it again changes nothing.

        Raises:
            TransactionError: This code is inside a transaction.
        """
        with self.lock:
            known = self.registered.get(event_type, ())
            if route in known:
                return
            if self.open is not None:
                raise TransactionError("register reducers outside of transactions")
            self.registered = {**self.registered, event_type: (*known, route)}
            self.routing = {}
            if route.is_private:
                self.private |= {route.slice_type}
            if self.stored is not None:
                self.stored.records.learn((event_type, route.slice_type))

    def add_guard(self, event_type: type, guard: Guard[Any]) -> None:
        """Add a guard of a type; an equal one again changes nothing."""
        with self.lock:
            known = self.guards.get(event_type, ())
            if guard not in known:
                self.guards = {**self.guards, event_type: (*known, guard)}
                self.routing = {}

    def find_routing(self, kind: type) -> Routing:
        """Look up, and keep, how values of a type are reduced. The caller holds the lock."""
        guards = self.guards.get(kind, ())
        found = self.routing[kind] = Routing.of(kind, self.registered.get(kind, ()), guards)
        return found

    def stays(self, kind: type) -> bool:
        """Whether a slice is never taken back: an event log, or one without a past."""
        return is_log(kind) or kind in self.private

    def delivery_to(self, bus: EventBus, receive: Receive) -> Delivery:
        """What delivers between the sessions of this and a bus; see ``Delivery``."""
        with self.lock:
            shared = [each for each in self.deliveries if each.bus is bus]
            delivery = shared[0] if shared else Delivery(bus, self.session_id, partial(receive, self))
            self.deliveries.add(delivery)
            self.hears = delivery.hears if len(self.deliveries) == 1 else self._is_heard
        return delivery

    def _is_heard(self, event_type: type) -> bool:
        """Whether a bus of this session may have a subscriber for a type."""
        return any(delivery.hears(event_type) for delivery in tuple(self.deliveries))

    # Reading

    def require_free(self) -> None:
        """Refuse what cannot wait for the open transaction: that of another task of this thread.

        Raises:
            SessionBusyError: There is such a transaction.
        """
        opened = self.open
        if opened is not None and opened.thread == get_ident() and not opened.is_held():
            raise SessionBusyError(BUSY)

    def visible(self) -> Slices:
        """What the running code may see: its own open transaction, or what is committed."""
        opened = self.open
        slices: Slices = opened.slices if opened is not None and opened.is_held() else self.slices
        return slices

    def items(self, slice_type: type) -> tuple[Any, ...]:
        """All items of a slice, or of a view."""
        slice_ = self.visible().get(slice_type)
        if slice_ is None and self.stored is not None:
            slice_ = self.resolved(slice_type)
        if slice_ is not None:
            return items_of(slice_)
        view = self.views.get(slice_type)
        return () if view is None else view(self.items)

    def latest(self, slice_type: type) -> Any:
        """The newest item of a slice, or of a view; None when there is none."""
        slice_ = (self.slices if self.open is None else self.visible()).get(slice_type)
        if slice_ is None and self.stored is not None:
            slice_ = self.resolved(slice_type)
        return latest_of(self.items(slice_type) if slice_ is None else slice_)

    def first(self, kind: type) -> Slice:
        """A slice that the open transaction has not seen yet, as it is before its first event."""
        slice_ = None if self.stored is None else self.resolved(kind)
        return () if slice_ is None else slice_

    def resolved(self, kind: type) -> Slice | None:
        """A slice that was not asked for before, read from the store; None where it has none such.

        Raises:
            StoreError: It cannot be read.
        """
        slices = self.slices
        version = last_version(slices)
        if self.stored is None or not version or kind in self.private or kind in self.views:
            return slices.get(kind)
        if kind in slices:
            return slices[kind]
        slice_ = self.stored.slice_at(kind, version, self.registered)
        with suppress(StoreBusy), Held(self, 0):  # a reader never waits
            if self.slices is slices:
                self.slices = {**slices, kind: slice_}
        return slice_

    # Changes

    def begin(self, timeout: float | None) -> None:
        """Take the store's lock and take over what other writers committed. The caller holds the lock.

        Raises:
            StoreError: The store cannot be reached or read.
            TransactionError: A transaction of another session of the store is open in this thread.
        """
        stored = self.stored
        if stored is None:
            return
        stored.begin(timeout)
        self.catch_up()
        if self._resolved_for is not self.registered:
            for kind in self._kinds():
                self.resolved(kind)
            self._resolved_for = self.registered

    def end(self) -> None:
        """Let go of the store's lock; take over a commit that Ctrl-C has cut short, if the store has it."""
        if self.stored is not None:
            self.stored.end()
            if self._is_committing:
                with suppress(Exception):  # the next transaction does it
                    self.catch_up()
                self._is_committing = False

    def refresh(self) -> None:
        """Take over what other writers committed; see ``Session.refresh``. The caller holds the lock."""
        if self.open is not None:
            raise TransactionError("refresh outside of transactions: inside, you have the newest version")
        self.catch_up()
        if self.stored is not None:
            self.stored.is_unsettled = False

    def catch_up(self) -> None:
        """Take over what other writers committed, outside of transactions. The caller holds the lock."""
        if self.stored is not None:
            self._take_over(self.stored, self.stored.newest(self.slices))

    def _take_over(self, stored: Stored, head: StoredSession) -> None:
        version = last_version(self.slices)
        if head.version == version:
            return
        for each in self.announcements:  # what it was before
            if version:
                self.resolved(each.slice_type)
            else:
                self.slices = {each.slice_type: (), **self.slices}
        with closing(stored.take_over(version, head)) as changes:
            for change in changes:
                before = self.slices
                after = stored.reduced(before, change, self.registered)
                if len(after) < len(before):
                    self._resolved_for = None  # what cannot be reduced here is read when it is asked for
                entry = taken_over(change.version)
                after[Entry] = (entry,)
                if change.slices or change.restores:
                    entry.actor, entry.call_id = change.said()
                    known = [each for each in self.announcements if each.slice_type in after]
                    self.taken += announced(known, before, after, entry, "store", self.session_id, self.hears)
                self.slices = after

    def commit(self, slices: Slices, entry: Entry) -> Iterable[object]:
        """Make slices visible, and the change that made them, as one. The caller holds the lock.

        Args:
            slices: The new slices; a transaction's own.
            entry: The change; its parts are the history's from now on.

        Returns:
            What is to be announced of it on the bus.

        Raises:
            StoreError: The store does not take it; then nothing has changed.
        """
        past, before = self.past, self.slices
        slices[Entry] = (entry,)
        if isinstance(past, Kept):
            past.record(entry, before, self.registered)
            self.slices = slices
        else:
            self._is_committing = True
            try:
                past.record(entry, before, slices, self.stays)
            except Exception:
                self._is_committing = False
                raise
            entry.parts = []  # they are in the store
            self.slices = slices
            past.settle(entry.version)
            self._is_committing = False
            past.keep_warm(slices, self.registered)
        if entry.changed:
            for announcement in self.announcements:
                if self.hears(announcement.event_type):
                    by = (entry, "session", self.session_id, self.hears)
                    return announced(self.announcements, before, slices, *by)
        return ()

    def deliver(
        self, bus: Delivery, events: Sequence[SessionEvent] = (), announced: Iterable[object] = ()
    ) -> PublishResult | None:
        """Deliver committed events in order, and those that subscribers commit meanwhile.

        Args:
            bus: To the bus of the session that made them.
            events: What it published.
            announced: What is announced of the commit, on the buses of all sessions that share this.

        Returns:
            What became of the last event; None if nobody hears it, or a delivery that is under way has it.
        """
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
            return self.past.changes_after(version, self.slices)

    def claim(self, name: str) -> bool:
        """Record a name; see ``Session.claim``."""
        with self.lock:
            if self.open is not None:
                raise TransactionError("claim outside of transactions: a rollback does not undo a claim")
            return self.past.claim(name, last_version(self.slices))

    def slices_at(self, version: int) -> Callable[[type], Slice | None]:
        """What reads the slices of a version; see ``Session.at``."""
        past, stay = self.past, self._without_past()
        if isinstance(past, Kept):
            with self.lock:  # reducing again grows logs
                return {**past.slices_at(version, self.slices), **stay}.get
        require_version(version, last_version(self.slices))
        registered, views = self.registered, frozenset(self.views)

        @cache
        def read(kind: type) -> Slice | None:
            if kind in views:
                return None
            return stay[kind] if kind in stay else past.slice_at(kind, version, registered)

        return read

    def elsewhere(self, head: StoredSession) -> Callable[[type], Slice | None]:
        """What reads the slices of another session of the same store; see ``Session.peek``.

        Raises:
            TransactionError: This session has no store.
        """
        if self.stored is None:
            raise TransactionError("only a session in a store can read others: give it a store")
        registered, past = self.registered, self.stored.another(head)
        return cache(lambda kind: past.slice_at(kind, head.version, registered))

    def _without_past(self) -> Slices:
        return {kind: slice_ for kind, slice_ in self.slices.items() if kind in self.private}

    def emptied(self) -> Slices:
        """Every slice that is known here, empty, but for those that are never taken back."""
        return {kind: () for kind in self._kinds() if not self.stays(kind)} if self.stored else {}

    def restorable(self, version: int) -> dict[type, tuple[Any, ...]]:
        """The slices of a version that a rewind restores, as far as they are known here.

        Raises:
            VersionError: There is no such version, or it is no longer kept.
            StoreError: A slice cannot be read.
        """
        past, read = self.past, self.slices_at(version)
        kinds = past.slices_at(version, self.slices).keys() if isinstance(past, Kept) else self._kinds()
        return {kind: items_of(read(kind) or ()) for kind in kinds if not self.stays(kind)}

    def kept(self) -> Slices:
        """All slices that a snapshot has.

        Raises:
            StoreError: The store has one that cannot be read here.
        """
        slices = self.visible()
        if self.stored is None:
            return {kind: slice_ for kind, slice_ in slices.items() if not self.stays(kind)}
        kinds = [kind for kind in self._kinds() if not self.stays(kind)]
        self.stored.require_known(kinds)
        return {kind: self.items(kind) for kind in kinds}

    def _kinds(self) -> set[type]:
        """The types of all slices that are known here."""
        routed = {route.slice_type for routes in self.registered.values() for route in routes}
        return routed | self.slices.keys()

"""The session: one agent run's identity, its bus, its slices, its family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from session.bus import Delivery, EventBus, InProcessEventBus, PublishResult, require_function
from session.errors import IdentityError, SnapshotError, TransactionError, shown
from session.events import SessionEvent, SessionId, ToolInvoked, addressed, session_id_of
from session.history import (
    Announcement,
    Change,
    Commit,
    Kept,
    Reset,
    Rewound,
    RolledBack,
    SessionView,
    View,
    called,
    is_log,
    last_version,
)
from session.locks import Held
from session.reducers import Reducer, check_limit
from session.slices import Check, Guard, Route, items_of, write_as
from session.snapshot import Snapshot
from session.state import State
from session.transaction import OTHER_KEY, Transaction

if TYPE_CHECKING:
    from session.stores.base import Store
    from session.stores.chain import StoredSession

S = TypeVar("S")
T = TypeVar("T")


class Session:
    """Typed, immutable slices that change only through reducers, in transactions.

    A session receives only the events on its bus that carry its ``session_id``; it reduces the
    event, and the ``value`` of a ``ToolInvoked`` or ``PromptExecuted`` too, in one transaction. Readers never
    wait and always see a committed state, except that code inside a transaction sees its own changes.

    Subscribers run while the session's lock is held, so that they receive events in the order of the
    commits: keep them short, and wait for other work in another thread.
    """

    def __init__(
        self,
        *,
        bus: EventBus | None = None,
        parent: Session | None = None,
        session_id: SessionId | None = None,
        created_at: datetime | None = None,
        tags: Mapping[str, str] | None = None,
        history: int | None = None,
        store: Store | str | PathLike[str] | None = None,
    ) -> None:
        """Open a session: a new one, or one from a store.

        Args:
            bus: Where its events travel; a new bus by default. Sessions may share one.
            parent: The session that this one works for; it lists this one among its children. A store keeps
                its id.
            session_id: Its identity, a UUID or a name; a random UUID by default.
            created_at: When it began, with a time zone; now by default.
            tags: Words to find it by.
            history: How many events of each type its logs keep, and how many changes are kept in memory; all
                by default. A store keeps every change.
            store: Where its changes are kept: a store, the path of a SQLite file or a ``postgresql://`` URL;
                by default only in memory. Sessions with the same store and identity share their state. For a
                session that exists, ``created_at`` and ``tags`` are
                ignored.

        Raises:
            IdentityError: ``session_id`` is not a name of 1 to 128 ASCII letters, digits and ``._-:``,
                or belongs to the parent or to one of its parents.
            ValueError: ``created_at`` has no time zone, or ``history`` is under 1.
            TypeError: A tag is not a string, or an argument has the wrong type.
            StoreError: The store cannot be read. A session that this process used lately, or that is opened
                in an event loop, is not read before the first look at it.
        """
        if created_at is not None and created_at.utcoffset() is None:
            raise ValueError("created_at must carry a time zone: use datetime.now(UTC)")
        check_limit("history", history)
        tags = dict(tags or {})
        if not all(isinstance(word, str) for pair in tags.items() for word in pair):
            raise TypeError(f"tags must be text, got {shown(tags)}")
        identity = uuid4() if session_id is None else session_id_of(session_id)
        _check_parent(parent, self, identity)
        began = datetime.now(UTC) if created_at is None else created_at
        if store is None:
            state = State(identity, Kept(history), began, tags)
        else:
            if isinstance(store, (str, PathLike)):
                from session.stores import store_at  # noqa: PLC0415 - most sessions are in memory

                store = store_at(store)
            from session.stored import state_in  # noqa: PLC0415 - most sessions are in memory
            from session.stores.chain import StoredSession  # noqa: PLC0415 - most sessions are in memory

            works_for = None if parent is None else parent.session_id
            begun = StoredSession(identity, 0, b"", began, began, tags, parent=works_for)
            state = state_in(store, begun, history)
        self._begin(InProcessEventBus() if bus is None else bus, parent, state)

    def _begin(self, bus: EventBus, parent: Session | None, state: State) -> None:
        self._parent = parent
        self._children: tuple[Session, ...] = ()
        self._state = state
        self._delivery = state.delivery_to(bus, _reduce)
        self._delivery.join(self)
        if parent is not None:
            with parent._state.lock:
                parent._children = (*parent._children, self)

    def __repr__(self) -> str:
        return f"Session({str(self._state.session_id)!r}, tags={dict(self.tags)!r})"

    @property
    def bus(self) -> EventBus:
        """The bus of its events."""
        return self._delivery.bus

    @property
    def session_id(self) -> SessionId:
        """Its identity, a UUID or a name; events carry it."""
        return self._state.session_id

    @property
    def store(self) -> Store | None:
        """The store that keeps its changes; None for memory only."""
        return self._state.store

    @property
    def created_at(self) -> datetime:
        """When it began, with a time zone."""
        return self._state.created_at

    @property
    def tags(self) -> Mapping[str, str]:
        """Words to find it by."""
        return self._state.tags

    @property
    def parent(self) -> Session | None:
        """The session that it works for."""
        return self._parent

    @property
    def children(self) -> tuple[Session, ...]:
        """The open sessions that have this one as parent, oldest first."""
        return self._children

    def close(self) -> None:
        """Unsubscribe from the bus, and leave the parent's children.

        You can still read and change the session; its store stays open.
        """
        if self._delivery.leave(self):
            self._state.deliveries.discard(self._delivery)
        if self._parent is not None:
            with self._parent._state.lock:
                siblings = self._parent._children
                self._parent._children = tuple(child for child in siblings if child is not self)

    # Reading

    def select_all(self, slice_type: type[S], /) -> tuple[S, ...]:
        """All items of a slice, oldest first; empty when there are none."""
        return self._state.items(slice_type)

    def select_latest(self, slice_type: type[S], /) -> S | None:
        """The newest item of a slice, or None."""
        found: S | None = self._state.latest(slice_type)
        return found

    def select_where(self, slice_type: type[S], predicate: Callable[[S], bool], /) -> tuple[S, ...]:
        """The items of a slice that ``predicate`` accepts, oldest first."""
        return tuple(item for item in self.select_all(slice_type) if predicate(item))

    # Time travel

    @property
    def version(self) -> int:
        """The number of changes so far: 0 when the session is new.

        Every commit that publishes an event or replaces a slice is a change, a refused call included.
        """
        return last_version(self._state.slices)

    def history(self, after: int = 0) -> tuple[Change, ...]:
        """The changes after a version, oldest first.

        Args:
            after: The version.

        Raises:
            VersionError: There is no such version, or changes after it are not kept any more.
        """
        return self._state.changes_after(after)

    def at(self, version: int) -> SessionView:
        """The slices of a version, which the selectors take: ``select_latest(session.at(3), Plan)``.

        In memory, at most 32 changes are reduced again for it; in a store, those after a checkpoint.

        Raises:
            VersionError: There is no such version, or it is no longer kept.
        """
        return SessionView(self._state.session_id, version, self._state.slices_at(version), self._state.views)

    def read_other(self, head: StoredSession) -> SessionView:
        """The slices of another session of the same store, as the reducers of this one make them.

        Nothing is opened or registered for it: to look at many sessions takes a third of the time.

        Args:
            head: The other session, as ``store.sessions()`` lists it.

        Raises:
            TransactionError: This session has no store.
        """
        return SessionView(head.session_id, head.version, self._state.elsewhere(head), self._state.views)

    def rewind(self, version: int, *, actor: str | None = None) -> int:
        """Restore the slices of a version, as a new change: nothing in the history is rewritten.

        The event logs stay: they record what happened.

        Args:
            version: The version.
            actor: Who rewinds, for the history.

        Returns:
            The version that the session has now.

        Raises:
            VersionError: There is no such version, or it is no longer kept.
        """
        with self.transaction(actor=actor) as transaction:
            transaction.restore(Rewound(self._state.restorable(version), version=version))
        return self.version

    def fork(
        self,
        at: int | None = None,
        *,
        session_id: SessionId | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Session:
        """Open a new session with the history up to a version, and the same bus and reducers.

        Args:
            at: The version; the last one when omitted.
            session_id: The identity of the fork; a random one when omitted.
            tags: The tags of the fork; this session's when omitted.

        Raises:
            VersionError: There is no such version, or it is no longer kept.
            IdentityError: ``session_id`` is this session's own, or is refused as ``Session`` refuses it.
        """
        version = self.version if at is None else at
        identity = self._other_id(session_id)
        tags = self.tags if tags is None else tags
        return self._copy(self._state.fork(identity, version, tags), self.bus, None)

    def find_call(self, idempotency_key: str) -> ToolInvoked | None:
        """The accepted call with a key on the current branch; None if the key is free.

        A rewind frees the keys that were used after the version that it restores. If ``history`` limits what
        is kept in memory, older calls are forgotten. In a stored session, calls of other processes are found
        too, and so are calls in the current transaction.

        Raises:
            StoreError: The store cannot be read.
            TransactionError: The open transaction has a call with another key; a transaction takes one.
        """
        state = self._state
        with state.lock:
            if state.open is None:
                state.catch_up()
                state.deliver(self._delivery)
            opened, newest = state.open, last_version(state.slices)
            parts = opened.all_parts() if opened is not None and opened.is_held() else []
            call = called(parts)
            if call is not None and call.idempotency_key != idempotency_key:
                raise TransactionError(OTHER_KEY)
            newest = next((part.version for part in reversed(parts) if isinstance(part, Rewound)), newest)
            return state.past.find_call(idempotency_key, newest) if call is None else call

    def claim(self, name: str) -> bool:
        """Record a fact about the world, durably in a stored session; a rewind does not undo it.

        Returns:
            True the first time; False when it was recorded before.

        Raises:
            StoreError: The store does not take it.
            TransactionError: This code is inside a transaction.
        """
        return self._state.claim(name)

    def refresh(self, timeout: float | None = None) -> int:
        """Apply what other processes have committed to the store.

        A transaction does this when it begins. After a ``StoreError`` whose outcome is ``unknown``, this
        finds out whether the change was made, and allows changes again.

        Args:
            timeout: How many seconds to wait for the transaction of another thread; None for no limit.

        Returns:
            The version that the session has now.

        Raises:
            StoreError: The store cannot be read.
            TransactionError: This code is inside a transaction.
        """
        with Held(self._state, timeout):
            self._state.refresh()
            self._state.deliver(self._delivery)
        return self.version

    # Changing

    def register_reducer(
        self,
        event_type: type[Any],
        reducer: Reducer,
        slice_type: type[Any] | None = None,
        *,
        is_private: bool = False,
        check: Check | None = None,
    ) -> None:
        """Run ``reducer`` for every event or value of exactly ``event_type``.

        Reducers of one type run in the order of registration. Registering the same reducer for the
        same types again changes nothing.

        Args:
            event_type: The type of the events or values.
            reducer: ``(slice, event) -> slice``, pure; both are tuples.
            slice_type: The type of the slice's items; ``event_type`` by default.
            is_private: Whether the slice is private: neither it nor the values that it is made of are in the
                history, in a snapshot or in a store, and ``at`` and ``rewind`` do not change it. An event
                that carries such a value keeps it: dispatch it by itself.
            check: Raises a ValueError for an event that must not be reduced. By default the slice that the
                reducer returns is checked as one that is read: by ``slice_type.check_slice``, if it has that,
                and in a stored session by writing what is new in it. ``check`` is for a reducer that puts
                nothing into the slice but parts of the event: it costs the same however large the slice is.

        Raises:
            TypeError: A type is not a class, or the reducer cannot be called or is a coroutine function.
            TransactionError: This code is inside a transaction.
        """
        kept = event_type if slice_type is None else slice_type
        for kind in (event_type, kept):
            _require_class(kind)
        route = Route(reducer, kept, is_private, check)
        if route in self._state.registered.get(event_type, ()):
            return
        require_function("reducer", reducer, "it would never be awaited")
        if check is not None:
            require_function("check", check, "it would never be awaited")
        self._state.add_route(event_type, route)

    def register_guard(self, event_type: type[T], guard: Guard[T]) -> None:
        """Let ``guard`` refuse every value of exactly ``event_type``, or add values to it.

        Unlike a reducer it sees other slices. It runs when a value is dispatched, but not when the history is
        reduced again. Registering an equal guard again changes nothing.

        Args:
            event_type: The type.
            guard: ``(value, transaction)``; raises to refuse the value, and nothing changes. It returns the
                values that are dispatched after this one, in the same transaction.

        Raises:
            TypeError: The type is not a class, or the guard cannot be called.
        """
        _require_class(event_type)
        require_function("guard", guard, "it would never be awaited")
        self._state.add_guard(event_type, guard)

    def register_types(self, *types: type[Any], written_as: str | None = None) -> None:
        """Let a store build values of these classes, in addition to those of reducers.

        A store builds only values of registered types: those of reducers and slices, those in the type hints
        of their fields, and these.

        Args:
            types: The classes.
            written_as: For one class that was moved or renamed: the name that stores and snapshots have for
                it, such as ``"app.models:Note"``. It keeps that name, in the whole process.

        Raises:
            TypeError: One is not a class.
            ValueError: ``written_as`` is not a name, the class has another one already, or there are several.
        """
        for kind in types:
            _require_class(kind)
        if written_as is not None:
            (kind,) = types
            write_as(kind, written_as)
        self._state.learn(types)

    def register_like(self, other: Session) -> None:
        """Register what is registered with another session: reducers, guards, views, types, announcements.

        If this session has none, that costs a few copies: a program makes the other session once.

        Raises:
            TransactionError: This code is inside a transaction.
        """
        other._state.copy_to(self._state)

    def register_view(self, slice_type: type[Any], view: View) -> None:
        """Let ``view`` compute a slice from others each time it is read.

        Such a slice costs nothing to write, cannot differ from its sources, and is not part of a snapshot. A
        slice that a reducer makes takes precedence over a view of the same type.

        Args:
            slice_type: The type of the slice's items.
            view: Given a function that selects all items of a slice; returns a tuple, oldest first.

        Raises:
            TypeError: The type is not a class, or the view cannot be called or is a coroutine function.
        """
        _require_class(slice_type)
        require_function("view", view, "it would never be awaited")
        self._state.views = {**self._state.views, slice_type: view}

    def publish_on_change(
        self,
        slice_type: type[S],
        event_type: type[Any],
        make: Callable[[Commit[S]], object | None],
    ) -> None:
        """Publish an event on the bus after each commit that replaced a slice.

        The event is made only if the bus has a subscriber for it. It is not reduced, and not logged.

        Args:
            slice_type: The type of the slice's items.
            event_type: The type of the event.
            make: Makes the event from a ``Commit``; returns None to publish nothing.

        Raises:
            TypeError: A type is not a class, or ``make`` cannot be called or is a coroutine function.
        """
        for kind in (slice_type, event_type):
            _require_class(kind)
        added = Announcement(slice_type, event_type, make)
        if added in self._state.announcements:
            return
        require_function("announcement", make, "it would never be awaited")
        with self._state.lock:
            if added not in self._state.announcements:
                self._state.announcements += (added,)

    def transaction(
        self, *, actor: str | None = None, call_id: str | None = None, timeout: float | None = None
    ) -> Transaction:
        """Check and change in one step: no other code changes this session inside the block.

        All changes inside become visible to others together when the block ends; when the block raises, they
        are discarded. Keep it short, and never await inside.

        Args:
            actor: Who makes the change, for the history; if omitted, the events say it.
            call_id: The id of the call; if omitted, the events say it.
            timeout: How many seconds to wait for another writer, after which entering the block raises
                ``StoreBusy``. When omitted, that is as long as the store waits for other processes.
        """
        return Transaction(self._state, self._delivery, actor, call_id, timeout)

    def dispatch(self, value: object) -> None:
        """Reduce a value, or an event and its value, and publish nothing.

        Raises:
            ReducerError: A reducer returned something other than a tuple, or what it returned could not be
                read back: the slice's type refuses it.
            StoreError: The session's store refuses the change.
            Exception: Whatever a reducer raises. The session is unchanged.
        """
        with Transaction(self._state, self._delivery) as transaction:
            transaction.dispatch(value)

    def publish(self, event: SessionEvent, *, timeout: float | None = None) -> PublishResult:
        """Reduce an event and publish it on the bus; part of a transaction that is open here.

        An event without a ``session_id`` gets that of this session. An event for another session is only
        published.

        Args:
            event: The event.
            timeout: See ``transaction``.

        Returns:
            The subscribers that were called. It is still empty if the event has to wait for the end of the
            current transaction, or of the current delivery.

        Raises:
            SessionBusyError: Another asyncio task of this thread awaits inside a transaction of this session.
            StoreError: The session's store refuses the change.
            Exception: Whatever a reducer raises. The session is unchanged, and nothing is published.
        """
        own = self._state.session_id
        event = addressed(event, own)
        if event.session_id is not own and event.session_id != own:  # equal ids are compared in Python
            return self._delivery.bus.publish(event)
        transaction = self.transaction(timeout=timeout)
        with transaction:
            transaction.publish(event)
        return transaction.published or PublishResult(event)

    def local_object(self, kind: type[S]) -> S:
        """The object of a class that belongs to this session in this process; made on first use.

        For data that must not be part of the state, such as running calls. A fork or a clone has its own.
        """
        known = self._state.local_objects
        found: S | None = known.get(kind)
        return known.setdefault(kind, kind()) if found is None else found

    async def run_in_worker(self, function: Callable[[], T]) -> T:
        """Call a function that changes this session, without blocking the event loop.

        In a stored session it runs in a thread, after earlier ones of this session, with the caller's context
        variables. If the task is cancelled before it has begun, it is not run; if later, the cancelling
        arrives when it is over. In a session in memory, and inside a transaction of the caller's, it runs at
        once, in this thread.

        Raises:
            StoreError: No thread can be started; the function was not run, and will not be.
            Exception: Whatever the function raises.
        """
        return await self._state.run_in_worker(function)

    def require_free(self) -> None:
        """Raise now if an event could not be published later.

        Raises:
            SessionBusyError: Another asyncio task of this thread holds a transaction of this session
                open: it awaits inside the block.
        """
        self._state.require_free()

    # Keeping

    def snapshot(self) -> Snapshot:
        """The current state: every slice except the event logs."""
        return Snapshot(
            slices=self._state.kept(),
            session_id=self._state.session_id,
            tags=dict(self.tags),
        )

    def rollback(self, snapshot: Snapshot) -> None:
        """Restore the state of a snapshot; the event logs stay.

        The snapshot may come from another session, or from JSON.

        Raises:
            SnapshotError: ``snapshot`` is not a snapshot, or has a slice that no reducer of this session
                makes. A session in memory without reducers accepts any slice.
            ReducerError: The type of a slice refuses it.
            StoreError: The session's store does not take the change.
        """
        if not isinstance(snapshot, Snapshot):
            raise SnapshotError(f"rollback takes a Snapshot, got {type(snapshot).__name__}")
        state = {kind: items_of(slice_) for kind, slice_ in snapshot._slices.items() if not is_log(kind)}
        self._state.require_restorable(state)
        restored = RolledBack(state, session_id=snapshot.session_id, created_at=snapshot.created_at)
        with Transaction(self._state, self._delivery) as transaction:
            transaction.restore(restored)

    def reset(self) -> None:
        """Empty every slice, except the event logs; reducers and views stay.

        The logs record what happened, which neither a reset nor a rollback undoes.
        """
        with Transaction(self._state, self._delivery) as transaction:
            transaction.restore(Reset({}))

    def clone(
        self,
        *,
        bus: EventBus | None = None,
        parent: Session | None = None,
        session_id: SessionId | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Session:
        """Open an independent session with the same reducers and slices.

        Args:
            bus: The clone's bus; this session's by default.
            parent: The clone's parent; none by default.
            session_id: The clone's identity; a random one by default.
            tags: The clone's tags; this session's by default.

        Raises:
            IdentityError: ``session_id`` is this session's own, two sessions would answer to it; or
                it is refused as ``Session`` refuses it.
        """
        identity, tags = self._other_id(session_id), self.tags if tags is None else tags
        state = self._state.copy(identity, self.version, tags)
        return self._copy(state, self.bus if bus is None else bus, parent)

    def _other_id(self, given: SessionId | None) -> SessionId:
        """The identity of a copy."""
        identity = uuid4() if given is None else session_id_of(given)
        if identity == self._state.session_id:
            raise IdentityError("a copy cannot have this session's id: omit session_id")
        return identity

    def _copy(self, state: State, bus: EventBus, parent: Session | None) -> Session:
        copy = Session.__new__(Session)
        _check_parent(parent, copy, state.session_id)
        copy._begin(bus, parent, state)
        return copy


def _reduce(state: State, delivery: Delivery, event: SessionEvent) -> None:
    """Reduce an event that other code published on the bus."""
    with Transaction(state, delivery) as transaction:
        transaction.dispatch(event)


def _check_parent(parent: Session | None, child: Session, identity: SessionId) -> None:
    """Refuse a parent that is not a session, and one that would make a session its own ancestor."""
    if parent is not None and not isinstance(parent, Session):
        raise TypeError(f"parent must be a Session, got {shown(parent)}")
    ancestor = parent
    while ancestor is not None:
        if ancestor is child or ancestor.session_id == identity:
            raise IdentityError("a session cannot be its own parent: give the child another session_id")
        ancestor = ancestor._parent


def _require_class(kind: object) -> None:
    if not isinstance(kind, type):
        raise TypeError(f"event_type and slice_type must be classes, got {shown(kind)}")

"""The store of slices, and the transaction: the only way in which a slice is ever replaced."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import TypeVar

import attrs

from session.errors import ReducerError, TransactionError
from session.events import SessionEvent
from session.reducers import Append, Reducer
from session.slices import Log, Slice, items_of, latest_of

__all__ = ["Route", "Slices", "Store", "Transaction"]

S = TypeVar("S")
Slices = dict[type, Slice]

# The transaction that the running thread or asyncio task holds: a task that was started elsewhere
# sees only what is committed, and cannot slip into a transaction that another task left open.
_current: ContextVar[Transaction | None] = ContextVar("session_transaction", default=None)
_get, _set = _current.get, _current.set

_NOT_HERE = "the transaction is not open here: use it inside its own with block, and not inside a nested one"


@attrs.frozen
class Route:
    """Which reducer answers an event, and which slice it makes."""

    reducer: Reducer
    slice_type: type

    def apply(self, old: Slice, event: object) -> Slice:
        """Return the next slice, the old one when the reducer gave the same tuple back."""
        reducer = self.reducer
        if isinstance(reducer, Append):
            return (Log(old) if isinstance(old, tuple) else old).push(event, reducer.limit)
        items = items_of(old)
        reduced: object = reducer(items, event)
        if reduced is items:
            return old
        if isinstance(reduced, tuple):
            return reduced
        name = getattr(reducer, "__qualname__", repr(reducer))
        raise ReducerError(f"reducer {name} returned {type(reduced).__name__}; it must return a tuple")


class Store:
    """The committed slices, the routes to their reducers, and the lock that orders all writers.

    ``slices`` is replaced whole at each commit and never changed: readers need no lock.
    """

    __slots__ = ("_registered", "_routes", "lock", "log", "open", "slices")

    def __init__(self, log: Append) -> None:
        self.slices: Slices = {}
        self.lock = threading.RLock()
        self.log = log
        self.open: Transaction | None = None
        self._registered: dict[type, tuple[Route, ...]] = {}
        self._routes: dict[type, tuple[Route, ...]] = {}

    def copy(self) -> Store:
        """A store with the same routes and slices and a lock of its own."""
        twin = Store(self.log)
        with self.lock:
            twin._registered = dict(self._registered)
            twin.slices = self.visible()
        return twin

    def add_route(self, event_type: type, route: Route) -> None:
        """Add a route behind those of its event type; one that is there already changes nothing."""
        with self.lock:
            known = self._registered.get(event_type, ())
            if route not in known:
                self._registered[event_type] = (*known, route)
                self._routes = {}

    def routes(self, event_type: type) -> tuple[Route, ...]:
        """The routes of an event type. An event that no route keeps under its own type is logged."""
        found = self._routes.get(event_type)
        if found is None:
            found = self._registered.get(event_type, ())
            if issubclass(event_type, SessionEvent) and all(r.slice_type is not event_type for r in found):
                found = (*found, Route(self.log, event_type))
            self._routes[event_type] = found
        return found

    def visible(self) -> Slices:
        """What the running code may see: its own open transaction, or what is committed."""
        opened = self.open
        if opened is not None and _held(opened):
            return opened.slices
        return self.slices


class Transaction:
    """Check and change as one: a context manager; see ``Session.transaction``.

    Everything dispatched inside becomes visible to others at once when the block ends, or not at
    all when it raises. Transactions nest: an inner one that raises takes back only its own part.
    """

    __slots__ = ("_deliver", "_enclosing", "_events", "_outer", "_store", "slices")

    slices: Slices
    _events: tuple[SessionEvent, ...]
    _outer: Transaction | None
    _enclosing: Transaction | None

    def __init__(self, store: Store, deliver: Callable[[SessionEvent], object]) -> None:
        self._store = store
        self._deliver = deliver

    def __enter__(self) -> Transaction:
        """Take the session's lock.

        Raises:
            TransactionError: Another asyncio task of this thread is inside a transaction of this
                session: it awaited within its block.
        """
        store = self._store
        store.lock.acquire()
        outer = store.open
        if outer is not None and not _held(outer):
            store.lock.release()
            raise TransactionError(
                "another task holds a transaction of this session open: never await inside one"
            )
        self._outer = outer
        self.slices = store.slices if outer is None else outer.slices
        self._events = ()
        self._enclosing = _get()
        _set(self)
        store.open = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit and tell the bus, or forget everything; then let the lock go."""
        store, outer = self._store, self._outer
        store.open = outer
        _set(self._enclosing)
        try:
            if kind is not None:
                return
            if outer is not None:
                outer.slices = self.slices
                outer._events += self._events
                return
            store.slices = self.slices
            for event in self._events:
                self._deliver(event)
        finally:
            store.lock.release()

    def latest(self, slice_type: type[S]) -> S | None:
        """The newest item of a slice as this transaction sees it, or None."""
        found: S | None = latest_of(self.slices.get(slice_type, ()))
        return found

    def dispatch(self, event: object) -> None:
        """Run the reducers of an event or value now.

        Raises:
            ReducerError: A reducer returned something other than a tuple.
            TransactionError: The transaction is over, is held by another thread or task, or an
                inner one is open.
            Exception: Whatever a reducer raises. Nothing that this call did stays.
        """
        if _get() is not self:
            raise TransactionError(_NOT_HERE)
        routes = self._store.routes(type(event))
        if routes:
            slices = self.slices.copy()
            for route in routes:
                slices[route.slice_type] = route.apply(slices.get(route.slice_type, ()), event)
            self.slices = slices

    def publish(self, event: SessionEvent) -> None:
        """Reduce the event itself now, and tell the bus once the transaction is committed.

        Raises:
            The same as ``dispatch``.
        """
        self.dispatch(event)
        self._events += (event,)

    def replace(self, slices: Slices) -> None:
        """Put these slices in place of all that there are."""
        if _get() is not self:
            raise TransactionError(_NOT_HERE)
        self.slices = slices


def _held(transaction: Transaction) -> bool:
    held = _get()
    while held is not None and held is not transaction:
        held = held._enclosing
    return held is not None

"""The store of slices, and the transaction: the only way in which a slice is ever replaced."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from threading import get_ident
from types import TracebackType
from typing import TypeVar
from uuid import UUID

import attrs

from session.bus import PublishResult
from session.errors import ReducerError, TransactionError
from session.events import SessionEvent, ToolInvoked
from session.reducers import Append, Reducer
from session.slices import Log, Slice, items_of, latest_of

__all__ = ["Route", "Slices", "Store", "Transaction"]

S = TypeVar("S")
Slices = dict[type, Slice]
Deliver = Callable[[SessionEvent], PublishResult]

_NOT_HERE = "the transaction is not open here: use it inside its own with block, and not inside a nested one"


@attrs.frozen
class Route:
    """Which reducer answers an event, and which slice it makes."""

    reducer: Reducer
    slice_type: type

    def apply(self, old: Slice, event: object) -> Slice:
        """Return the next slice, the old one when the reducer gave the same tuple back."""
        reducer = self.reducer
        if type(reducer) is Append:
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
    """The committed slices of a session, the routes to their reducers, and the lock that orders writers.

    ``slices`` is replaced whole at each commit and never changed: readers need no lock.
    """

    __slots__ = (
        "_registered", "_routes", "delivering", "lock", "log", "open", "session_id", "slices", "untold",
    )  # fmt: skip

    def __init__(self, session_id: UUID, log: Append) -> None:
        self.session_id = session_id
        self.slices: Slices = {}
        self.lock = threading.RLock()
        self.log = log
        self.open: Transaction | None = None
        self.untold: deque[SessionEvent] = deque()  # committed; the bus has yet to hear of them
        self.delivering = False
        self._registered: dict[type, tuple[Route, ...]] = {}
        self._routes: dict[type, tuple[Route, ...]] = {}

    def copy(self, session_id: UUID) -> Store:
        """A store with the same routes and committed slices, and a lock of its own."""
        twin = Store(session_id, self.log)
        with self.lock:
            twin._registered = dict(self._registered)
            # As tuples: a log's buffer belongs to one store and its lock.
            twin.slices = {kind: items_of(slice_) for kind, slice_ in self.slices.items()}
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
        return opened.slices if opened is not None and opened.is_held() else self.slices


class Transaction:
    """Check and change as one: a context manager; see ``Session.transaction``.

    Everything dispatched inside becomes visible to others at once when the block ends, or not at
    all when it raises. Transactions nest: an inner one that raises takes back only its own part.
    """

    __slots__ = (
        "_deliver", "_dispatched", "_entered", "_events", "_outer", "_reducing", "_store", "_task", "_thread",
        "published", "slices",
    )  # fmt: skip

    slices: Slices
    published: PublishResult | None
    _outer: Transaction | None
    _events: tuple[SessionEvent, ...]
    _dispatched: object
    _reducing: bool
    _thread: int
    _task: object

    def __init__(self, store: Store, deliver: Deliver) -> None:
        self._store = store
        self._deliver = deliver
        self._entered = False

    def __enter__(self) -> Transaction:
        """Take the session's lock.

        Raises:
            TransactionError: It is open already; a reducer tried to open it; or another asyncio
                task of this thread is inside a transaction of this session, because it awaited
                within its block.
        """
        store = self._store
        store.lock.acquire()
        outer = store.open
        if self._entered or (outer is not None and (outer._reducing or not outer.is_held())):
            store.lock.release()
            raise TransactionError(_refusal(self, outer))
        self._entered = True
        self._outer = outer
        self._events = ()
        self._dispatched = None
        self._reducing = False
        self._thread = get_ident()
        self._task = _running_task()
        self.published = None
        self.slices = store.slices if outer is None else outer.slices
        store.open = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit and tell the bus, or forget everything; then let the lock go."""
        store, outer = self._store, self._outer
        store.open = outer
        self._entered = False
        try:
            if kind is None:
                if outer is not None:
                    outer.slices = self.slices
                    outer._events += self._events
                else:
                    store.slices = self.slices
                    if self._events:
                        self._tell()
        finally:
            store.lock.release()

    def is_held(self) -> bool:
        """Whether the running thread and asyncio task are those that opened it.

        What was opened outside any task cannot be interrupted by one: only its thread counts.
        """
        return self._thread == get_ident() and (self._task is None or self._task is _running_task())

    def latest(self, slice_type: type[S]) -> S | None:
        """The newest item of a slice as this transaction sees it, or None.

        Raises:
            TransactionError: The transaction is not open, or an inner one is.
        """
        if self._store.open is not self:
            raise TransactionError(_NOT_HERE)
        found: S | None = latest_of(self.slices.get(slice_type, ()))
        return found

    def dispatch(self, event: object) -> None:
        """Run the reducers of an event or value now.

        Raises:
            ReducerError: A reducer returned something other than a tuple.
            TransactionError: The transaction is not open here: it is over, another thread or task
                holds it, an inner one is open, a reducer is running; or the event belongs to
                another session.
            Exception: Whatever a reducer raises. Nothing that this call did stays.
        """
        store = self._store
        if store.open is not self or self._thread != get_ident() or self._reducing:
            raise TransactionError(_NOT_HERE)
        if (
            isinstance(event, SessionEvent)
            and event.session_id is not store.session_id
            and event.session_id != store.session_id
        ):
            raise TransactionError(f"the event belongs to another session, {event.session_id}")
        routes = store.routes(type(event))
        if routes:
            slices = self.slices.copy()
            self._reducing = True
            try:
                for route in routes:
                    slices[route.slice_type] = route.apply(slices.get(route.slice_type, ()), event)
            finally:
                self._reducing = False
            self.slices = slices
        self._dispatched = event

    def publish(self, event: SessionEvent) -> None:
        """Reduce the event now, and tell the bus once the transaction is committed.

        A ``ToolInvoked`` has its value reduced too, unless that was the last thing dispatched here:
        a tool that had to see what its command makes has done it already.

        Raises:
            The same as ``dispatch``.
        """
        if isinstance(event, ToolInvoked) and event.value is not None and event.value is not self._dispatched:
            self.dispatch(event.value)
        self.dispatch(event)
        self._events += (event,)

    def replace(self, slices: Slices) -> None:
        """Put these slices in place of all that there are.

        Raises:
            TransactionError: The transaction is not open here.
        """
        if self._store.open is not self or self._thread != get_ident():
            raise TransactionError(_NOT_HERE)
        self.slices = slices

    def _tell(self) -> None:
        """Deliver what is committed, in that order, also what subscribers commit meanwhile."""
        store = self._store
        untold = store.untold
        untold.extend(self._events)
        if store.delivering:
            return  # a subscriber committed this: whoever tells it of its event goes on with these
        store.delivering = True
        try:
            self.published = self._deliver(untold.popleft())
            while untold:
                self._deliver(untold.popleft())
        finally:
            store.delivering = False


def _refusal(transaction: Transaction, outer: Transaction | None) -> str:
    if outer is not None and outer._reducing:
        return "a reducer must not dispatch or publish: return the next slice instead"
    if transaction._entered:
        return "the transaction is open already: call session.transaction() for a nested one"
    return "another task holds a transaction of this session open: never await inside one"


def _running_task() -> object:
    """The running asyncio task; None outside any. Never imports asyncio."""
    events = sys.modules.get("asyncio.events")
    if events is None:
        return None
    loop = events._get_running_loop()
    return None if loop is None else sys.modules["asyncio.tasks"].current_task(loop)

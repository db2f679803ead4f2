"""The store of slices, and the transaction: the only way in which a slice is ever replaced."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from threading import get_ident
from types import TracebackType
from typing import Any, TypeVar
from uuid import UUID

import attrs

from session.bus import PublishResult
from session.errors import ReducerError, TransactionError
from session.events import SessionEvent, ToolInvoked
from session.reducers import Append, Reducer
from session.slices import Log, Slice, items_of, latest_of

__all__ = ["Route", "Slices", "Store", "Transaction", "View"]

S = TypeVar("S")
Slices = dict[type, Slice]
Deliver = Callable[[SessionEvent], PublishResult]
View = Callable[[Callable[[type[Any]], tuple[Any, ...]]], tuple[Any, ...]]

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


@attrs.frozen
class Routing:
    """What becomes of an event or value of one type.

    Attributes:
        routes: Its reducers, in order.
        logged: Whether it is an event that no reducer keeps under its own type: then it is logged.
    """

    routes: tuple[Route, ...]
    logged: bool


class Store:
    """A session's committed slices and event logs, the routes to its reducers, and the writers' lock.

    ``slices`` is replaced whole at each commit and never changed: readers need no lock. An event log
    is no state: it only ever grows at a commit, or loses its oldest entries.
    """

    __slots__ = (
        "_registered", "delivering", "history", "lock", "logs", "open", "routings", "session_id", "slices",
        "untold", "views",
    )  # fmt: skip

    def __init__(self, session_id: UUID, history: int | None) -> None:
        self.session_id = session_id
        self.history = history
        self.slices: Slices = {}
        self.logs: dict[type, list[SessionEvent]] = {}
        self.lock = threading.RLock()
        self.open: Transaction | None = None
        self.untold: deque[SessionEvent] = deque()  # committed; the bus has yet to hear of them
        self.delivering = False
        self.views: dict[type, View] = {}
        self._registered: dict[type, tuple[Route, ...]] = {}
        self.routings: dict[type, Routing] = {}

    def copy(self, session_id: UUID) -> Store:
        """A store with the same routes, committed slices and logs, and a lock of its own."""
        twin = Store(session_id, self.history)
        with self.lock:
            twin._registered = dict(self._registered)
            twin.views = dict(self.views)
            twin.logs = {kind: list(log) for kind, log in self.logs.items()}
            # As tuples: a log's buffer belongs to one store and its lock.
            twin.slices = {kind: items_of(slice_) for kind, slice_ in self.slices.items()}
        return twin

    def add_route(self, event_type: type, route: Route) -> None:
        """Add a route behind those of its event type; one that is there already changes nothing.

        Raises:
            TransactionError: This code is inside a transaction.
        """
        with self.lock:
            if self.open is not None:
                raise TransactionError("register reducers outside of transactions")
            known = self._registered.get(event_type, ())
            if route not in known:
                self._registered[event_type] = (*known, route)
                self.routings = {}
                if route.slice_type is event_type and event_type in self.logs:
                    # The reducer takes over from the log, with what is in it.
                    self.slices = {**self.slices, event_type: self.items(event_type)}
                    del self.logs[event_type]

    def routing(self, event_type: type) -> Routing:
        """Find out, and keep, what becomes of values of a type. The caller holds the lock."""
        routes = self._registered.get(event_type, ())
        kept = any(route.slice_type is event_type for route in routes)
        found = Routing(routes, issubclass(event_type, SessionEvent) and not kept)
        self.routings[event_type] = found
        return found

    def record(self, events: tuple[SessionEvent, ...]) -> None:
        """Log the events of a commit, those of one type at once. The caller holds the lock."""
        kind = type(events[0])
        if len(events) > 1:
            others = tuple(event for event in events if type(event) is not kind)
            events = tuple(event for event in events if type(event) is kind)
            if others:
                self.record(others)
        log = self.logs.get(kind)
        if log is None:
            log = self.logs[kind] = []
        log.extend(events)
        if self.history is not None and len(log) > 2 * self.history + 32:
            del log[: -self.history]

    def visible(self) -> Slices:
        """What the running code may see: its own open transaction, or what is committed."""
        opened = self.open
        return opened.slices if opened is not None and opened.is_held() else self.slices

    def items(self, slice_type: type) -> tuple[Any, ...]:
        """All items of a slice, or of an event log."""
        slice_ = self.visible().get(slice_type)
        if slice_ is not None:
            return items_of(slice_)
        view = self.views.get(slice_type)
        if view is not None:
            return view(self.items)
        log = self.logs.get(slice_type, [])
        opened = self.open
        if opened is not None and opened.is_held():
            log = log + opened.recorded(slice_type)
        return tuple(log if self.history is None else log[-self.history :])

    def latest(self, slice_type: type) -> Any:
        """The newest item of a slice, or of an event log; None when there is none."""
        slice_ = (self.slices if self.open is None else self.visible()).get(slice_type)
        if slice_ is not None:
            return latest_of(slice_)
        if self.open is not None or slice_type in self.views:
            return latest_of(self.items(slice_type))
        log = self.logs.get(slice_type)
        return log[-1] if log else None


class Transaction:
    """Check and change as one: a context manager; see ``Session.transaction``.

    Everything dispatched inside becomes visible to others at once when the block ends, or not at
    all when it raises. Transactions nest: an inner one that raises takes back only its own part.
    """

    __slots__ = (
        "_deliver", "_dispatched", "_entered", "_is_own", "_outer", "_recorded", "_reducing", "_store",
        "_task", "_thread", "_told", "published", "slices",
    )  # fmt: skip

    slices: Slices
    published: PublishResult | None
    _outer: Transaction | None
    _recorded: tuple[SessionEvent, ...]
    _told: tuple[SessionEvent, ...]
    _dispatched: object
    _is_own: bool
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
        self._recorded = self._told = ()
        self._dispatched = None if outer is None else outer._dispatched
        self._reducing = False
        self._is_own = False  # the slices are another's until the first change
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
                    outer._is_own = outer._is_own or self._is_own
                    outer._dispatched = self._dispatched
                    outer._recorded += self._recorded
                    outer._told += self._told
                else:
                    store.slices = self.slices
                    if self._recorded:
                        store.record(self._recorded)
                    if self._told:
                        self._tell()
        finally:
            store.lock.release()

    def is_held(self) -> bool:
        """Whether the running thread and asyncio task are those that opened it.

        What was opened outside any task cannot be interrupted by one: only its thread counts.
        """
        return self._thread == get_ident() and (self._task is None or self._task is _running_task())

    def recorded(self, event_type: type) -> list[SessionEvent]:
        """The events of a type that await the commit, also those of the transactions around it."""
        around = [] if self._outer is None else self._outer.recorded(event_type)
        return around + [event for event in self._recorded if type(event) is event_type]

    def latest(self, slice_type: type[S]) -> S | None:
        """The newest item of a slice as this transaction sees it, or None.

        Raises:
            TransactionError: The transaction is not open, or an inner one is.
        """
        if self._store.open is not self:
            raise TransactionError(_NOT_HERE)
        slice_ = self.slices.get(slice_type)
        found: S | None
        if type(slice_) is tuple and slice_:
            found = slice_[-1]
        else:
            found = self._store.latest(slice_type) if slice_ is None else latest_of(slice_)
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
        if self._task is not None and not self.is_held():
            raise TransactionError(_NOT_HERE)
        if (
            isinstance(event, SessionEvent)
            and event.session_id is not store.session_id
            and event.session_id != store.session_id
        ):
            raise TransactionError(f"the event belongs to another session, {event.session_id}")
        routing = store.routings.get(type(event)) or store.routing(type(event))
        routes = routing.routes
        if routes:
            # One reducer changes one slice, or raises before: only several need a copy to be all or none.
            slices = self.slices if self._is_own and len(routes) == 1 else self.slices.copy()
            self._reducing = True
            try:
                for route in routes:
                    slices[route.slice_type] = route.apply(slices.get(route.slice_type, ()), event)
            finally:
                self._reducing = False
            self.slices, self._is_own = slices, True
        if routing.logged and isinstance(event, SessionEvent):
            self._recorded += (event,)
        self._dispatched = event

    def publish(self, event: SessionEvent) -> None:
        """Reduce the event now, and tell the bus once the transaction is committed.

        A ``ToolInvoked`` has its value reduced too, unless that was the last thing dispatched here:
        a tool that had to see what its command makes has done it already.

        Raises:
            The same as ``dispatch``.
        """
        value = event.value if isinstance(event, ToolInvoked) else None
        if value is None or value is self._dispatched:
            self.dispatch(event)
        else:
            before, recorded = self.slices, self._recorded
            self._is_own = False
            try:
                self.dispatch(value)
                self.dispatch(event)
            except BaseException:
                self.slices, self._recorded = before, recorded
                self._is_own = False
                raise
        self._told += (event,)

    def replace(self, slices: Slices) -> None:
        """Put these slices in place of all that there are.

        Raises:
            TransactionError: The transaction is not open here.
        """
        if self._store.open is not self or self._reducing or not self.is_held():
            raise TransactionError(_NOT_HERE)
        self.slices, self._is_own = slices, False
        self._dispatched = None

    def _tell(self) -> None:
        """Deliver what is committed, in that order, also what subscribers commit meanwhile."""
        store = self._store
        untold = store.untold
        untold.extend(self._told)
        if store.delivering:
            return  # a subscriber committed this: whoever tells it of its event goes on with these
        store.delivering = True
        try:
            while untold:
                event = untold.popleft()
                published = self._deliver(event)
                if event is self._told[-1]:
                    self.published = published
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
    loop = None if events is None else events._get_running_loop()
    return None if loop is None else sys.modules["asyncio.tasks"].current_task(loop)

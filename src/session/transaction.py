"""The store of slices, and the transaction: the only way in which a slice is ever replaced."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from threading import get_ident
from types import TracebackType
from typing import Any, TypeVar

import attrs

from session.bus import PublishResult, log_failure
from session.errors import ReducerError, SessionBusyError, TransactionError
from session.events import PromptExecuted, SessionEvent, SessionId, ToolInvoked, addressed
from session.locks import ProcessLock
from session.reducers import Append, Reducer
from session.slices import Log, Slice, items_of, latest_of

__all__ = ["Route", "Slices", "Store", "Transaction", "View"]

S = TypeVar("S")
Slices = dict[type, Slice]
Deliver = Callable[[SessionEvent], PublishResult]
View = Callable[[Callable[[type[Any]], tuple[Any, ...]]], tuple[Any, ...]]

_BUSY = "another task holds a transaction of this session open: never await inside one"
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


class Store(ProcessLock):
    """A session's committed slices, the routes to its reducers, and the writers' lock.

    ``slices`` is replaced whole at each commit and never changed: readers need no lock, and a forked
    child always finds a whole commit.
    """

    __slots__ = (
        "_registered", "deferred", "delivering", "history", "open", "routes", "session_id", "slices",
        "undelivered", "views",
    )  # fmt: skip

    def __init__(self, session_id: SessionId, history: int | None) -> None:
        super().__init__()
        self.session_id = session_id
        self.history = history
        self.slices: Slices = {}
        self.open: Transaction | None = None
        self.undelivered: deque[SessionEvent] = deque()  # committed, not yet on the bus
        self.deferred: deque[SessionEvent] = deque()  # to be published when the open transaction is over
        self.delivering: int | None = None  # the thread that delivers
        self.views: dict[type, View] = {}
        self._registered: dict[type, tuple[Route, ...]] = {}
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

    def copy(self, session_id: SessionId) -> Store:
        """A store with the same routes and committed slices, and its own lock."""
        twin = Store(session_id, self.history)
        with self.lock:
            twin._registered = dict(self._registered)
            twin.views = dict(self.views)
            # As tuples: a log's buffer belongs to one store and its lock.
            twin.slices = {kind: items_of(slice_) for kind, slice_ in self.slices.items()}
        return twin

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
                self._registered[event_type] = (*known, route)
                self.routes = {}

    def find_routes(self, event_type: type) -> tuple[Route, ...]:
        """Find out, and keep, which reducers answer values of a type. The caller holds the lock.

        An event that no reducer keeps under its own type is logged there.
        """
        found = self._registered.get(event_type, ())
        if issubclass(event_type, SessionEvent) and all(
            route.slice_type is not event_type for route in found
        ):
            found = (*found, Route(Append(self.history), event_type))
        self.routes[event_type] = found
        return found

    def require_free(self) -> None:
        """Refuse what cannot wait for the open transaction: that of another task of this thread.

        Raises:
            SessionBusyError: There is such a transaction.
        """
        opened = self.open
        if opened is not None and opened.is_of(get_ident()) and not opened.is_held():
            raise SessionBusyError(_BUSY)

    def visible(self) -> Slices:
        """What the running code may see: its own open transaction, or what is committed."""
        opened = self.open
        return opened.slices if opened is not None and opened.is_held() else self.slices

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


class Transaction:
    """Check and change in one step: a context manager; see ``Session.transaction``.

    Everything dispatched inside becomes visible to others at once when the block ends, or not at
    all when it raises. Transactions nest: an inner one that raises takes back only its own part.
    """

    __slots__ = (
        "_deliver", "_dispatched", "_entered", "_events", "_is_own", "_lock", "_outer", "_reducing",
        "_store", "_task", "_thread", "published", "slices",
    )  # fmt: skip

    slices: Slices
    _dispatched: object
    _reducing: bool

    def __init__(self, store: Store, deliver: Deliver) -> None:
        self._store = store
        self._deliver = deliver
        self._entered = False

    def __enter__(self) -> Transaction:
        """Take the session's lock.

        Raises:
            TransactionError: It is open already, or a reducer tried to open it.
            SessionBusyError: Another asyncio task of this thread is inside a transaction of this
                session, because it awaited within its block.
        """
        store = self._store
        lock = store.lock
        lock.acquire()
        outer = store.open
        if self._entered or (outer is not None and (outer._reducing or not outer.is_held())):
            lock.release()
            raise _refusal(self, outer)
        self._lock = lock
        self._entered = True
        self._outer = outer
        self._events: tuple[SessionEvent, ...] = ()
        self._dispatched = None if outer is None else outer._dispatched
        self._reducing = False
        self._is_own = False  # the slices are another's until the first change
        self._thread = get_ident()
        self._task = _running_task()
        self.published: PublishResult | None = None
        self.slices = store.slices if outer is None else outer.slices
        store.open = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit and deliver, or discard everything; then release the lock."""
        store, outer = self._store, self._outer
        store.open = outer
        self._entered = False
        try:
            if kind is None:
                if outer is not None:
                    outer.slices = self.slices
                    outer._is_own = outer._is_own or self._is_own
                    outer._dispatched = self._dispatched
                    outer._events += self._events
                else:
                    store.slices = self.slices
                    if self._events:
                        self._deliver_all()
            if outer is None and store.deferred:
                self._publish_deferred()
        finally:
            self._lock.release()

    def is_held(self) -> bool:
        """Whether the running thread and asyncio task are those that opened it.

        What was opened outside any task cannot be interrupted by one: only its thread counts.
        """
        return self._thread == get_ident() and (self._task is None or self._task is _running_task())

    def is_of(self, thread: int | None) -> bool:
        """Whether this thread opened it."""
        return self._thread == thread

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
        if isinstance(event, SessionEvent) and event.session_id is not store.session_id:
            event = addressed(event, store.session_id)
            if event.session_id != store.session_id:
                raise TransactionError(f"the event belongs to another session, {event.session_id}")
        routes = store.routes.get(type(event))
        if routes is None:
            routes = store.find_routes(type(event))
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
        self._dispatched = event

    def publish(self, event: SessionEvent) -> None:
        """Reduce the event now, and publish it on the bus once the transaction is committed.

        The value of a ``ToolInvoked`` or ``PromptExecuted`` is reduced too, unless it was the last thing
        dispatched here: a tool that needed the result of its command has done it already. An event
        without a ``session_id`` is addressed to this session.

        Raises:
            The same as ``dispatch``.
        """
        if event.session_id is None:
            event = addressed(event, self._store.session_id)
        self.reduce(event)
        self._events += (event,)

    def reduce(self, event: SessionEvent) -> None:
        """Reduce an event and its value together, without publishing it.

        Raises:
            The same as ``dispatch``.
        """
        value = event.value if isinstance(event, (ToolInvoked, PromptExecuted)) else None
        if value is None or value is self._dispatched:
            self.dispatch(event)
            return
        before = self.slices
        self._is_own = False
        try:
            self.dispatch(value)
            self.dispatch(event)
        except BaseException:
            self.slices = before
            self._is_own = False
            raise

    def replace(self, slices: Slices) -> None:
        """Put these slices in place of all that there are.

        Raises:
            TransactionError: The transaction is not open here.
        """
        if self._store.open is not self or self._reducing or not self.is_held():
            raise TransactionError(_NOT_HERE)
        self.slices, self._is_own = slices, False
        self._dispatched = None

    def _deliver_all(self) -> None:
        """Deliver the committed events in order, and those that subscribers commit meanwhile."""
        store = self._store
        undelivered = store.undelivered
        undelivered.extend(self._events)
        if store.delivering is not None:
            return  # a subscriber committed this: the delivery that is under way continues with these
        store.delivering = get_ident()
        try:
            while undelivered:
                event = undelivered.popleft()
                published = self._deliver(event)
                if event is self._events[-1]:
                    self.published = published
        finally:
            store.delivering = None

    def _publish_deferred(self) -> None:
        """Publish the events that arrived while another task held this session's transaction."""
        deferred = self._store.deferred
        while deferred:
            event = deferred.popleft()
            transaction = Transaction(self._store, self._deliver)
            try:
                with transaction:
                    transaction.publish(event)
            except Exception as error:  # noqa: BLE001 - what this transaction did is committed
                log_failure(__name__, "deferred_event_failed", event, error, transaction.publish)


def _refusal(transaction: Transaction, outer: Transaction | None) -> TransactionError:
    if outer is not None and outer._reducing:
        return TransactionError("a reducer must not dispatch or publish: return the next slice instead")
    if transaction._entered:
        return TransactionError(
            "the transaction is open already: call session.transaction() for a nested one"
        )
    return SessionBusyError(_BUSY)


def _running_task() -> object:
    """The running asyncio task; None outside any. Never imports asyncio."""
    events = sys.modules.get("asyncio.events")
    loop = None if events is None else events._get_running_loop()
    return None if loop is None else sys.modules["asyncio.tasks"].current_task(loop)

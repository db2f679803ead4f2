"""The transaction: the only way in which a slice is ever replaced."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from threading import get_ident
from time import time
from types import TracebackType
from typing import Any, Self, TypeVar

from session.bus import Delivery, PublishResult
from session.errors import SessionBusyError, TransactionError
from session.events import SessionEvent, SessionId, addressed
from session.history import PAIR, KeptChange, Restored, Slices, called, in_order, last_version
from session.locks import Held, running_loop
from session.slices import Log, Route, Routing, latest_of
from session.state import BUSY, State

S = TypeVar("S")
OTHER_KEY = "the open transaction has a call with another idempotency key: end it first"
_NOT_HERE = "the transaction is not open here: use it inside its own with block, and not inside a nested one"
_UNDONE = ("slices", "_changed", "_has_event", "_is_indexed", "_call_id", "_actor")
"""The state that a dispatch that fails gives back, beside the parts and the events."""


class Transaction(Held):
    """Check and change in one step: a context manager; see ``Session.transaction``.

    All changes inside become visible to others together when the block ends, or not at all when it raises.
    Transactions nest: an inner one that raises undoes only its own changes.
    """

    __slots__ = (
        "_actor",
        "_bus",
        "_call_id",
        "_changed",
        "_entered",
        "_events",
        "_has_event",
        "_is_cut",
        "_is_indexed",
        "_last",
        "_outer",
        "_parts",
        "_reducing",
        "_state",
        "_task",
        "published",
        "slices",
    )  # fmt: skip

    slices: Slices
    _last: object
    _reducing: bool

    def __init__(
        self,
        state: State,
        bus: Delivery,
        actor: str | None = None,
        call_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        self.watch = self.gate = None
        self.lock_of = self._state = state
        self.timeout = timeout
        self._bus = bus
        self._actor = actor
        self._call_id = call_id
        self._entered = False
        self._outer: Transaction | None = None

    def __enter__(self) -> Self:
        """Take the session's lock.

        Raises:
            TransactionError: It is open already, or a reducer tried to open it.
            StoreBusy: Another writer takes longer than the time that this one waits.
            SessionBusyError: Another asyncio task of this thread is inside a transaction of this
                session, because it awaited within its block.
        """
        state = self._state
        if self._entered:
            raise _refusal(self, None)
        self.thread = get_ident()
        if state.waiting or state.holders.setdefault(0, self) is not self:
            super().__enter__()
        outer: Transaction | None = state.open
        if outer is not None and (outer._reducing or not outer.is_held()):
            self._end()
            raise _refusal(self, outer)
        self._entered = True
        self._outer = outer
        if outer is None:
            try:
                state.begin(self.timeout)
            except BaseException:
                self._end()
                raise
        self._events: list[Any] = []
        self._parts: list[Any] = []  # all that was dispatched and published, in the order of reducing
        self._changed = self._has_event = self._is_indexed = self._is_cut = False
        self._last = None if outer is None else outer._last  # what a caller dispatched, and no guard
        self._reducing = False
        self._task = _running_task()
        self.published: PublishResult | None = None
        self.slices = state.slices if outer is None else outer.slices
        state.open = self
        return self

    def _leave(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Commit and deliver, or discard everything; then release the lock."""
        state, outer = self._state, self._outer
        state.open = outer
        try:
            if kind is None and self._is_cut:
                raise TransactionError("a change in the transaction was interrupted: begin it again")
            if outer is not None:
                if kind is None:
                    self._join(outer)
                return
            events = self._events if kind is None else []
            announced = self._commit() if kind is None else ()
            is_heard = bool(announced or state.taken or state.undelivered)
            for event in events:
                is_heard = is_heard or self._bus.hears(type(event))
            if is_heard:
                state.end()  # what subscribers do must not hold up other writers
                self.published = state.deliver(self._bus, events, announced)
        finally:
            self._end()

    def _end(self, _gone: object = None) -> None:
        """Let go of all that it holds; what was not committed is discarded."""
        state = self._state
        if self._entered:
            if state.open is self:
                state.open = self._outer
            if self._outer is None:
                state.end()
            self._entered = False
        super()._end()

    def _join(self, outer: Transaction) -> None:
        """Make what was done here a part of the transaction around this one."""
        was_cut, outer._is_cut = outer._is_cut, True
        outer._parts += self._parts
        outer.slices = self.slices
        outer._last = self._last
        outer._events += self._events
        outer._changed = outer._changed or self._changed
        outer._has_event = outer._has_event or self._has_event
        outer._is_indexed = outer._is_indexed or self._is_indexed
        outer._actor = outer._actor or self._actor
        outer._call_id = outer._call_id or self._call_id
        outer._is_cut = was_cut

    def _commit(self) -> Iterable[object]:
        """Make the slices visible; returns what is to be announced."""
        state = self._state
        if self._changed or self._has_event:
            version, parts = last_version(state.slices) + 1, self._parts
            if len(parts) > PAIR:
                parts = in_order(parts)
            entry = KeptChange(version, parts, self._actor, self._call_id, self._changed, time())
            if self._is_indexed:
                call = called(parts)
                entry.key = None if call is None else call.idempotency_key
                entry.restores = any(isinstance(part, Restored) for part in parts)
            return state.commit(self.slices, entry)
        if state.private:  # a slice without a past makes no version
            state.slices = self.slices
        return ()

    @property
    def session_id(self) -> SessionId:
        """The session's identity."""
        return self._state.session_id

    @property
    def version(self) -> int:
        """The session's version; what is done here makes the next."""
        return last_version(self._state.slices)

    def is_held(self) -> bool:
        """True if the running thread and asyncio task are those that opened it.

        For a transaction that was opened outside any task, only the thread counts.
        """
        return self.thread == get_ident() and (self._task is None or self._task is _running_task())

    def all_parts(self) -> list[Any]:
        """The values that were dispatched and published in it, and in those around it."""
        return self._parts if self._outer is None else [*self._outer.all_parts(), *self._parts]

    def latest(self, slice_type: type[S]) -> S | None:
        """The newest item of a slice as this transaction sees it, or None.

        Raises:
            TransactionError: The transaction is not open, or an inner one is.
        """
        if self._state.open is not self:
            raise TransactionError(_NOT_HERE)
        slice_ = self.slices.get(slice_type)
        found: S | None
        if type(slice_) is tuple and slice_:
            found = slice_[-1]
        else:
            found = self._state.latest(slice_type) if slice_ is None else latest_of(slice_)
        return found

    def select_all(self, slice_type: type[S]) -> tuple[S, ...]:
        """All items of a slice as this transaction sees it.

        Raises:
            TransactionError: The transaction is not open, or an inner one is.
        """
        if self._state.open is not self:
            raise TransactionError(_NOT_HERE)
        items: tuple[S, ...] = self._state.items(slice_type)
        return items

    def dispatch(self, event: object) -> None:
        """Run the reducers of a value or an event now; for an event, first those of its value.

        The value of a ``ToolInvoked`` or ``PromptExecuted`` is not reduced again where it was the last thing
        dispatched here: a tool that needed the result of its command has done it already.

        Raises:
            ReducerError: A reducer returned something other than a tuple, or its type refuses it.
            StoreError: The session's store could not read back what a reducer returned.
            TransactionError: The transaction is not open here: it is over, another thread or task
                holds it, an inner one is open, a reducer is running; or the event belongs to
                another session.
            Exception: Whatever a reducer raises. Nothing that this call did stays.
        """
        state = self._state
        if state.open is not self or self.thread != get_ident() or self._reducing:
            raise TransactionError(_NOT_HERE)
        if self._task is not None and self._task is not _running_task():
            raise TransactionError(_NOT_HERE)
        routing = state.routing.get(type(event)) or state.find_routing(type(event))
        value = event.value if routing.is_carrier else None  # type: ignore[attr-defined]  # a carrier has one
        if routing.guards or (value is not None and value is not self._last):
            self._reduce_all(routing, event, value)
        else:
            self._reduce(routing, event)

    def _reduce_all(self, routing: Routing, event: object, value: object) -> None:
        """Reduce an event with its value and what its guards say that it entails: all of it, or nothing."""
        last, before = self._last, {name: getattr(self, name) for name in _UNDONE}
        parts, events = len(self._parts), len(self._events)
        try:
            entailed = [each for guard in routing.guards for each in guard(event, self)]
            if value is not None and value is not last:
                self.dispatch(value)
            self._reduce(routing, event)
            last = self._last
            for each in entailed:
                self.dispatch(each)
        except BaseException:
            for name, was in before.items():
                setattr(self, name, was)
            del self._parts[parts:], self._events[events:]
            raise
        finally:
            self._last = last

    def _reduce(self, routing: Routing, event: Any) -> None:
        """Make the next slices: all of them, or none where a reducer raises."""
        state, routes, log = self._state, routing.routes, routing.log
        if routing.is_event:
            if event.session_id is not state.session_id:
                event = self._address(event)
            if routing.is_call and event.idempotency_key is not None:
                self._take_key(event.idempotency_key)
        slices = self.slices.copy()
        try:
            changed = self._apply(routes, event, slices) if routes else False
            if log is not None:
                old = slices.get(log) or state.first(log)
                slices[log] = (Log(old) if isinstance(old, tuple) else old).push(event, state.past.limit)
            self.slices = slices
            self._changed = self._changed or changed
            if routing.is_event:
                self._has_event = True
                self._call_id = self._call_id or event.call_id or None
                self._actor = self._actor or event.actor or None
            if not routing.is_private:
                self._parts.append(event)
            self._last = event
        except BaseException as error:
            self._is_cut = self._is_cut or isinstance(error, MemoryError) or not isinstance(error, Exception)
            raise

    def _apply(self, routes: tuple[Route, ...], event: object, slices: Slices) -> bool:
        """Put what reducers make into slices; returns whether one is another that a rewind would restore."""
        state, changed = self._state, False
        self._reducing = True
        try:
            for route in routes:
                kind = route.slice_type
                old = slices.get(kind)
                if old is None:
                    old = state.first(kind)
                new = route.apply(old, event)
                if new is not old:
                    if not route.stays:
                        changed = True
                        if route.check is None:
                            state.require_readable(kind, old, new)
                    slices[kind] = new
        finally:
            self._reducing = False
        return changed

    def _address(self, event: SessionEvent) -> SessionEvent:
        """The event, addressed to this session."""
        event = addressed(event, self.session_id)
        if event.session_id != self.session_id:
            raise TransactionError(f"the event belongs to another session, {event.session_id}")
        return event

    def _take_key(self, key: str) -> None:
        """Note that a call has a key; a transaction has one."""
        call = called(self.all_parts())
        if call is not None and call.idempotency_key != key:
            raise TransactionError(OTHER_KEY)
        self._is_indexed = True

    def publish(self, event: SessionEvent) -> None:
        """Dispatch the event now, and publish it on the bus once the transaction is committed.

        An event without a ``session_id`` is addressed to this session. It raises what ``dispatch`` raises.
        """
        self.dispatch(event)
        self._events.append(self._last)  # the event, as it is addressed

    def restore(self, restored: Restored) -> None:
        """Replace all slices but the event logs.

        Raises:
            TransactionError: The transaction is not open here.
        """
        if self._state.open is not self or self._reducing or not self.is_held():
            raise TransactionError(_NOT_HERE)
        self.slices = {**self._state.emptied(), **restored.over(self.slices, self._state.stays)}
        self._changed = self._is_indexed = True
        self._last = restored
        self._parts.append(restored)


def _refusal(transaction: Transaction, outer: Transaction | None) -> TransactionError:
    if outer is not None and outer._reducing:
        return TransactionError("a reducer must not dispatch or publish: return the next slice instead")
    if transaction._entered:
        return TransactionError(
            "the transaction is open already: call session.transaction() for a nested one"
        )
    return SessionBusyError(BUSY)


def _running_task() -> object:
    """The running asyncio task; None outside any. Never imports asyncio."""
    loop = running_loop()
    return None if loop is None else sys.modules["asyncio.tasks"].current_task(loop)

"""The event bus: typed subscriptions and synchronous delivery in the order of subscription."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from functools import partial
from itertools import count
from operator import attrgetter, call
from types import FunctionType
from typing import Any, NamedTuple, Protocol, TypeVar

import attrs

from session.errors import IdentityError, shown
from session.events import SessionEvent, SessionId, session_id_of
from session.locks import ProcessLock

E = TypeVar("E")
Handler = Callable[[Any], object]
Needed = Callable[[], bool]


@attrs.frozen
class SubscriberFailure:
    """One subscriber that raised.

    Attributes:
        subscriber: The function that was called.
        error: What it raised.
    """

    subscriber: Handler
    error: Exception

    @property
    def name(self) -> str:
        """The subscriber's module and qualified name."""
        return name_of(self.subscriber)


class PublishResult(NamedTuple):
    """The result of publishing one event.

    Attributes:
        event: The event.
        subscribers: The functions that were called, in order.
        failures: Those of them that raised, in order.
    """

    event: object
    subscribers: tuple[Handler, ...] = ()
    failures: tuple[SubscriberFailure, ...] = ()

    @property
    def ok(self) -> bool:
        """True if every subscriber returned."""
        return not self.failures

    def raise_for_failures(self) -> None:
        """Raise an ExceptionGroup of what the subscribers raised, if any did; its message names them."""
        if self.failures:
            names = ", ".join(failure.name for failure in self.failures)
            what = f"{len(self.failures)} of {len(self.subscribers)} subscribers failed: {names}"
            raise ExceptionGroup(what, [failure.error for failure in self.failures])


class EventBus(Protocol):
    """The methods that a session needs of a bus: ``publish`` returns when the event is delivered.

    A bus may do more, and a session uses it when it is there: ``subscribe`` with a ``session_id`` (see
    ``InProcessEventBus``), so that an event reaches only its own session, and ``hears``, so that nothing is
    made or published that has no subscriber.
    """

    def subscribe(self, event_type: type[E], handler: Callable[[E], object]) -> None:
        """Call ``handler`` with every event of ``event_type`` or of a subclass of it."""
        ...

    def unsubscribe(self, event_type: type[E], handler: Callable[[E], object]) -> bool:
        """Cancel one such subscription; False if there was none."""
        ...

    def publish(self, event: object) -> PublishResult:
        """Call the subscribers, in order; one that fails does not stop the others."""
        ...


@attrs.frozen
class _Subscription:
    """Who wants to hear what."""

    number: int
    event_type: type
    handler: Handler
    when: Needed | None


class InProcessEventBus:
    """A bus in memory, safe to use from many threads.

    Subscribers are called in the order in which they subscribed, in the publisher's thread. Changes to
    subscriptions during a delivery take effect with the next event.
    """

    def __init__(self) -> None:
        self._lock = ProcessLock()
        self._numbers = count()
        # By the session whose events they want; None for those of all sessions.
        self._subscriptions: dict[SessionId | None, tuple[_Subscription, ...]] = {}
        self._kinds: dict[tuple[type, Needed | None], int] = {}  # how many subscriptions each has
        self._wanted: dict[type, bool | tuple[Needed, ...]] = {}  # whether, or by whom if needed
        self._known: dict[SessionId | None, dict[type, tuple[Handler, ...]]] = {}

    def subscribe(
        self,
        event_type: type[E],
        handler: Callable[[E], object],
        session_id: SessionId | None = None,
        when: Needed | None = None,
    ) -> None:
        """Call ``handler`` with every event of ``event_type`` or of a subclass of it.

        Args:
            event_type: The type.
            handler: The subscriber.
            session_id: Only with events that have this ``session_id``; with all when omitted. Such a
                subscription costs the events of other sessions nothing.
            when: Says whether the subscriber may need the next event; always when omitted. A session does not
                make or publish an event that no subscriber needs.

        Raises:
            TypeError: ``event_type`` is not a class, or ``handler`` cannot be called or is a coroutine
                function, which would never be awaited. Schedule the work from a plain function instead.
            IdentityError: ``session_id`` is malformed.
        """
        if not isinstance(event_type, type):
            raise TypeError(f"event_type must be a class, got {shown(event_type)}")
        require_function("subscriber", handler, "delivery is synchronous")
        wanted = None if session_id is None else session_id_of(session_id)
        with self._lock.lock:
            self._known = {}  # first: a child that is forked in between must not find what is outdated
            added = _Subscription(next(self._numbers), event_type, handler, when)
            self._count(added, wanted, 1)
            self._subscriptions[wanted] = (*self._subscriptions.get(wanted, ()), added)

    def unsubscribe(
        self,
        event_type: type[E],
        handler: Callable[[E], object],
        session_id: SessionId | None = None,
    ) -> bool:
        """Cancel one subscription.

        Returns:
            Whether there was one.
        """
        wanted = None if session_id is None else session_id_of(session_id)
        with self._lock.lock:
            subscriptions = self._subscriptions.get(wanted, ())
            wants = (event_type, handler)
            found = [each for each in subscriptions if (each.event_type, each.handler) == wants]
            if not found:
                return False
            self._known = {}
            self._subscriptions[wanted] = tuple(each for each in subscriptions if each is not found[0])
            self._count(found[0], wanted, -1)  # last: Ctrl-C may come before it, and too many costs little
            if not self._subscriptions[wanted]:
                del self._subscriptions[wanted]
            return True

    def _count(self, subscription: _Subscription, session_id: SessionId | None, more: int) -> None:
        if type(subscription.handler) is _Ear:
            others = (type(each.handler) is _Ear for each in self._subscriptions.get(session_id, ()))
            if not any(others):  # the only one: a session has reduced what it publishes
                return
        kind = subscription.event_type, subscription.when
        subscribed = self._kinds.get(kind, 0) + more
        if subscribed == more or not subscribed:  # the first, or none any more
            self._wanted = {}
        self._kinds[kind] = subscribed
        if not subscribed:
            del self._kinds[kind]

    def hears(self, event_type: type) -> bool:
        """True if a subscriber other than the session that publishes it may need an event of a type.

        It may where a subclass has a ``publish`` of its own, which may do anything with an event.
        """
        wanted = self._wanted.get(event_type)
        if wanted is None:
            wanted = self._find_wanted(event_type)
        return wanted is True or (wanted is not False and any(map(call, wanted)))

    def _find_wanted(self, event_type: type) -> bool | tuple[Needed, ...]:
        with self._lock.lock:
            whens = {when for kind, when in self._kinds if issubclass(event_type, kind)}
            if type(self).publish is not InProcessEventBus.publish or None in whens:
                found: bool | tuple[Needed, ...] = True
            else:
                found = tuple(when for when in whens if when is not None) or False
            self._wanted[event_type] = found
            return found

    def publish(self, event: object) -> PublishResult:
        """Call the subscribers, in order; one that fails does not stop the others.

        Returns:
            The subscribers that were called, and their failures. A failure is logged too, with the
            subscriber's name and without its text, which could contain what the event contains.

        Raises:
            IdentityError: A session event has no ``session_id``: no session would reduce it.
        """
        session_id = getattr(event, "session_id", None)
        if session_id is None:
            require_receiver(event)
        handlers = self._handlers(type(event), session_id)
        failures: tuple[SubscriberFailure, ...] = ()
        for handler in handlers:
            try:
                handler(event)
            except Exception as error:  # noqa: BLE001 - the contract: one failure does not stop the others
                failures += (SubscriberFailure(handler, error),)
                log_failure(__name__, "subscriber_failed", event, error, handler)
        return PublishResult(event, handlers, failures)

    def _handlers(self, event_type: type, session_id: SessionId | None) -> tuple[Handler, ...]:
        known = self._known.get(session_id)
        found = None if known is None else known.get(event_type)
        return self._find(event_type, session_id) if found is None else found

    def _find(self, event_type: type, session_id: SessionId | None) -> tuple[Handler, ...]:
        with self._lock.lock:
            own = () if session_id is None else self._subscriptions.get(session_id, ())
            if not own and session_id is not None:
                return self._handlers(event_type, None)  # nothing to keep for this session
            wanting = sorted((*self._subscriptions.get(None, ()), *own), key=attrgetter("number"))
            found = tuple(each.handler for each in wanting if issubclass(event_type, each.event_type))
            self._known.setdefault(session_id, {})[event_type] = found
            return found


class _Ear:
    """The subscription of a session to the events that other code publishes for it."""

    __slots__ = ("_bus", "_delivery", "_options", "_session_id")

    def __init__(self, delivery: Delivery, session_id: SessionId) -> None:
        self._bus = delivery.bus
        self._session_id = session_id
        both = (self._bus.subscribe, self._bus.unsubscribe)
        has_routes = type(self._bus) is InProcessEventBus or all(
            "session_id" in inspect.signature(each).parameters for each in both
        )
        self._options = {"session_id": session_id} if has_routes else {}
        self._delivery = weakref.ref(delivery, self.stop if has_routes else None)
        self._bus.subscribe(SessionEvent, self, **self._options)

    def stop(self, _gone: object = None) -> None:
        """Stop listening."""
        self._bus.unsubscribe(SessionEvent, self, **self._options)

    def __call__(self, event: SessionEvent) -> None:
        delivery = self._delivery()
        if delivery is None:
            self.stop()
        elif event is not delivery.delivering:
            require_receiver(event)
            if event.session_id == self._session_id:
                delivery.receive(delivery, event)  # not a cell of this: it would keep the session


class Delivery:
    """Publishes what a session has reduced, and hands it what other code published for it.

    Sessions that share a state and a bus share this: what comes in is reduced once. The bus holds it weakly.

    Attributes:
        bus: The bus. One without routes by session hands over the events of every session.
        hears: Says whether the bus has a subscriber for a type; one that cannot say may have one.
        receive: Reduces an event of the session; it is given this, too.
        delivering: The event that is being published.
    """

    def __init__(
        self, bus: EventBus, session_id: SessionId, receive: Callable[[Delivery, SessionEvent], None]
    ) -> None:
        self.bus = bus
        self.hears: Callable[[type], bool] = getattr(bus, "hears", lambda _type: True)
        self.receive = receive
        self.delivering: object = None
        self._users: weakref.WeakSet[object] = weakref.WeakSet()
        self._ear = _Ear(self, session_id)

    def join(self, session: object) -> None:
        """Deliver for a session too."""
        self._users.add(session)

    def leave(self, session: object) -> bool:
        """Stop listening, unless another session that shares this is open; returns whether it stopped."""
        self._users.discard(session)
        if self._users:
            return False
        self._ear.stop()
        return True

    def deliver(self, event: Any) -> PublishResult:
        """Publish what is reduced already."""
        self.delivering = event
        try:
            return self.bus.publish(event)
        except Exception as error:  # noqa: BLE001 - what is committed stays: a bus cannot undo it
            log_failure("session.session", "bus_failed", event, error, self.bus.publish)
            return PublishResult(event, (self.bus.publish,), (SubscriberFailure(self.bus.publish, error),))
        finally:
            self.delivering = None


def require_function(role: str, function: Any, reason: str) -> None:
    """Refuse what a session cannot call.

    Raises:
        TypeError: It cannot be called; or it is a coroutine function, which ``reason`` speaks against.
    """
    if not callable(function):
        raise TypeError(f"a {role} must be callable, got {shown(function)}")
    if type(function) is FunctionType and not vars(function):  # no mark: only its code says what it is
        is_async = bool(function.__code__.co_flags & inspect.CO_COROUTINE)
    else:
        is_async = any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))
    if is_async:
        raise TypeError(f"a {role} must be a plain function: {reason}")


def require_receiver(event: object) -> None:
    """Refuse a session event that is addressed to no session.

    Raises:
        IdentityError: It has no ``session_id``.
    """
    if isinstance(event, SessionEvent) and event.session_id is None:
        raise IdentityError(
            f"the {type(event).__name__} has no session_id: publish it with session.publish(event), "
            "or pass session_id=session.session_id when you make it"
        )


def name_of(handler: Handler) -> str:
    """The module and qualified name of a subscriber; of an object that is called, those of its class."""
    while isinstance(handler, partial):
        handler = handler.func
    try:
        name = f"{handler.__module__}.{handler.__qualname__}"
    except Exception:  # noqa: BLE001 - an object may answer for its attributes in any way
        name = f"{type(handler).__module__}.{type(handler).__qualname__}"
    return name


def log_failure(place: str, what: str, event: object, error: Exception, handler: Handler) -> None:
    """Log a failure with names only: its text or traceback could contain what the event contains."""
    import logging  # noqa: PLC0415 - only a failure needs it

    names = {"event": type(event).__name__, "error": type(error).__name__, "handler": name_of(handler)}
    logging.getLogger(place).error(what, extra=names)

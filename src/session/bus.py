"""The event bus: typed subscriptions and synchronous delivery in the order of subscription."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import attrs

from session.errors import IdentityError, shown
from session.events import SessionEvent
from session.locks import ProcessLock

__all__ = ["EventBus", "HandlerFailure", "InProcessEventBus", "PublishResult"]

E = TypeVar("E")
Handler = Callable[[Any], object]


@attrs.frozen
class HandlerFailure:
    """One subscriber that raised.

    Attributes:
        handler: The subscriber.
        error: What it raised.
    """

    handler: Handler
    error: Exception

    @property
    def name(self) -> str:
        """The subscriber's module and qualified name."""
        return name_of(self.handler)


class PublishResult(NamedTuple):
    """The result of publishing one event.

    Attributes:
        event: The event.
        handlers: The subscribers that were called, in order.
        failures: Those of them that raised, in order.
    """

    event: object
    handlers: tuple[Handler, ...] = ()
    failures: tuple[HandlerFailure, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every subscriber returned."""
        return not self.failures

    def raise_for_failures(self) -> None:
        """Raise an ExceptionGroup of what the subscribers raised, if any did; its message names them."""
        if self.failures:
            names = ", ".join(failure.name for failure in self.failures)
            what = f"{len(self.failures)} of {len(self.handlers)} subscribers failed: {names}"
            raise ExceptionGroup(what, [failure.error for failure in self.failures])


class EventBus(Protocol):
    """What a session needs of a bus: delivery is synchronous and done when ``publish`` returns."""

    def subscribe(self, event_type: type[E], handler: Callable[[E], object]) -> None:
        """Call ``handler`` with every event of ``event_type`` or of a subclass of it."""
        ...

    def unsubscribe(self, event_type: type[E], handler: Callable[[E], object]) -> bool:
        """Take one such subscription back; False when there was none."""
        ...

    def publish(self, event: object) -> PublishResult:
        """Call the subscribers, in order; one that fails does not stop the others."""
        ...


class InProcessEventBus:
    """A bus in memory, safe to use from many threads.

    Subscribers are called in the order in which they subscribed, in the publisher's thread. Those
    that subscribe or leave during a delivery take part from the next event on.
    """

    def __init__(self) -> None:
        self._lock = ProcessLock()
        self._subscriptions: tuple[tuple[type, Handler], ...] = ()
        self._by_type: dict[type, tuple[Handler, ...]] = {}

    def subscribe(self, event_type: type[E], handler: Callable[[E], object]) -> None:
        """Call ``handler`` with every event of ``event_type`` or of a subclass of it.

        Raises:
            TypeError: ``event_type`` is not a class, or ``handler`` cannot be called or is a coroutine
                function, which would never be awaited. Schedule the work from a plain function instead.
        """
        if not isinstance(event_type, type):
            raise TypeError(f"event_type must be a class, got {shown(event_type)}")
        require_function("subscriber", handler, "delivery is synchronous")
        with self._lock.lock:
            self._by_type = {}  # first: a child that is forked in between must not find what is outdated
            self._subscriptions = (*self._subscriptions, (event_type, handler))

    def unsubscribe(self, event_type: type[E], handler: Callable[[E], object]) -> bool:
        """Cancel one subscription.

        Returns:
            Whether there was one.
        """
        with self._lock.lock:
            subscriptions = self._subscriptions
            try:
                place = subscriptions.index((event_type, handler))
            except ValueError:
                return False
            self._by_type = {}
            self._subscriptions = subscriptions[:place] + subscriptions[place + 1 :]
            return True

    def publish(self, event: object) -> PublishResult:
        """Call the subscribers, in order; one that fails does not stop the others.

        Returns:
            The subscribers that were called, and their failures. A failure is logged too, with the
            subscriber's name and without its text, which could contain what the event contains.

        Raises:
            IdentityError: A session event has no ``session_id``: no session would reduce it.
        """
        require_receiver(event)
        handlers = self._by_type.get(type(event))
        if handlers is None:
            handlers = self._find(type(event))
        failures: tuple[HandlerFailure, ...] = ()
        for handler in handlers:
            try:
                handler(event)
            except Exception as error:  # noqa: BLE001 - the contract: one failure does not stop the others
                failures += (HandlerFailure(handler, error),)
                log_failure(__name__, "subscriber_failed", event, error, handler)
        return PublishResult(event, handlers, failures)

    def _find(self, event_type: type) -> tuple[Handler, ...]:
        with self._lock.lock:
            found = tuple(handler for kind, handler in self._subscriptions if issubclass(event_type, kind))
            self._by_type[event_type] = found
            return found


def require_function(role: str, function: object, reason: str) -> None:
    """Refuse what a session cannot call.

    Raises:
        TypeError: It cannot be called; or it is a coroutine function, which ``reason`` speaks against.
    """
    if not callable(function):
        raise TypeError(f"a {role} must be callable, got {shown(function)}")
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
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
    """Log a failure by names alone: its text or traceback could contain what the event contains."""
    import logging  # noqa: PLC0415 - only a failure needs it

    names = {"event": type(event).__name__, "error": type(error).__name__, "handler": name_of(handler)}
    logging.getLogger(place).error(what, extra=names)

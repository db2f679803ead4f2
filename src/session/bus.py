"""The event bus: typed subscriptions and synchronous delivery in the order of subscription."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import attrs

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


class PublishResult(NamedTuple):
    """What became of one published event.

    Attributes:
        event: The event.
        handlers: The subscribers that were told, in order.
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
        """Raise an ExceptionGroup of what the subscribers raised, if any did."""
        if self.failures:
            what = f"{len(self.failures)} of {len(self.handlers)} subscribers failed"
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
        """Tell the subscribers, in order; a failing one does not stop the others."""
        ...


class InProcessEventBus:
    """A bus in memory, safe to use from many threads.

    Subscribers are called in the order in which they subscribed, in the publisher's thread. Those
    that subscribe or leave during a delivery take part from the next event on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: tuple[tuple[type, Handler], ...] = ()
        self._by_type: dict[type, tuple[Handler, ...]] = {}

    def subscribe(self, event_type: type[E], handler: Callable[[E], object]) -> None:
        """Call ``handler`` with every event of ``event_type`` or of a subclass of it.

        Raises:
            TypeError: ``event_type`` is no class, or ``handler`` cannot be called or is a coroutine
                function: nobody would await it. Schedule the work from a plain function instead.
        """
        if not isinstance(event_type, type):
            raise TypeError(f"event_type must be a class, got {event_type!r}")
        if not callable(handler):
            raise TypeError(f"a subscriber must be callable, got {handler!r}")
        if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__):
            raise TypeError("a subscriber must be a plain function: delivery is synchronous")
        with self._lock:
            self._subscriptions = (*self._subscriptions, (event_type, handler))
            self._by_type = {}

    def unsubscribe(self, event_type: type[E], handler: Callable[[E], object]) -> bool:
        """Take one subscription back.

        Returns:
            Whether there was one.
        """
        with self._lock:
            subscriptions = self._subscriptions
            try:
                place = subscriptions.index((event_type, handler))
            except ValueError:
                return False
            self._subscriptions = subscriptions[:place] + subscriptions[place + 1 :]
            self._by_type = {}
            return True

    def publish(self, event: object) -> PublishResult:
        """Tell the subscribers, in order; a failing one does not stop the others.

        Returns:
            Who was told, and who raised what. A failure is logged too, without its text: that
            could carry what the event carries.
        """
        handlers = self._by_type.get(type(event))
        if handlers is None:
            handlers = self._find(type(event))
        failures: tuple[HandlerFailure, ...] = ()
        for handler in handlers:
            try:
                handler(event)
            except Exception as error:  # noqa: BLE001 - the contract: one failure stops nobody else
                failures += (HandlerFailure(handler, error),)
                log_failure(__name__, "subscriber_failed", event, error)
        return PublishResult(event, handlers, failures)

    def _find(self, event_type: type) -> tuple[Handler, ...]:
        with self._lock:
            found = tuple(handler for kind, handler in self._subscriptions if issubclass(event_type, kind))
            self._by_type[event_type] = found
            return found


def log_failure(place: str, what: str, event: object, error: Exception) -> None:
    """Log a failure by the names of types alone: a text or a traceback could carry what the event carries."""
    import logging  # noqa: PLC0415 - only a failure needs it

    told = {"event": type(event).__name__, "error": type(error).__name__}
    logging.getLogger(place).error(what, extra=told)

"""Where a session and its bus meet: what the session commits goes out, what others publish comes in."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from session.bus import (
    EventBus,
    HandlerFailure,
    PublishResult,
    hearing,
    listen,
    log_failure,
    require_receiver,
)
from session.events import SessionEvent
from session.state import State
from session.transaction import Transaction

__all__ = ["Delivery", "delivery_of"]


class Delivery:
    """Publishes what a session has reduced, and reduces what other code published for it.

    Sessions that share a state and a bus share this: what comes in is reduced once.

    Attributes:
        bus: The bus.
        hears: Says whether the bus has a subscriber for a type.
    """

    def __init__(self, bus: EventBus, state: State) -> None:
        """Begin to listen."""
        self.bus = bus
        self.hears = hearing(bus)
        self._state = state
        self._delivering: object = None
        self._users: WeakSet[object] = WeakSet()
        self._close = listen(bus, self, state.session_id, Delivery._hear)

    def join(self, session: object) -> None:
        """Deliver for a session too."""
        self._users.add(session)

    def leave(self, session: object) -> None:
        """Stop listening, unless another session that shares this is open."""
        self._users.discard(session)
        if not self._users:
            self._close()
            self._state.deliveries.discard(self)

    def deliver(self, event: Any) -> PublishResult:
        """Publish what is reduced already."""
        self._delivering = event
        try:
            return self.bus.publish(event)
        except Exception as error:  # noqa: BLE001 - what is committed stays: a bus cannot undo it
            log_failure("session.session", "bus_failed", event, error, self.bus.publish)
            return PublishResult(event, (self.bus.publish,), (HandlerFailure(self.bus.publish, error),))
        finally:
            self._delivering = None

    def _hear(self, event: SessionEvent) -> None:
        """Reduce an event of this session that other code published on the bus."""
        if event is self._delivering:
            return
        require_receiver(event)
        if event.session_id == self._state.session_id:
            with Transaction(self._state, self) as transaction:
                transaction.reduce(event)


def delivery_of(state: State, bus: EventBus, session: object) -> Delivery:
    """What delivers between a state and a bus, for a session."""
    with state.lock:
        shared = [each for each in state.deliveries if each.bus is bus]
        delivery: Delivery = shared[0] if shared else Delivery(bus, state)
        delivery.join(session)
        state.attach(delivery)
    return delivery

"""Calls of one turn that a framework runs at the same time, in the order in which the model made them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import asynccontextmanager, contextmanager, suppress
from threading import Lock
from time import monotonic

_MOST_TURNS = 1_000
_GRACE = 2.0
"""The seconds to wait for earlier calls that have not begun: other code may hold them back for good."""


class TurnOrder:
    """Lets each call of a turn begin when the earlier ones are over.

    An earlier call may never come, because it waits for a person or was over before a restart: that is waited
    for ``_GRACE`` seconds in all.
    """

    def __init__(self) -> None:
        self._turns: OrderedDict[Hashable, dict[str, Future[None]]] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def turn_of(self, turn: Hashable, call_id: str, earlier: Sequence[str]) -> Iterator[None]:
        """Hold back a call until the earlier ones are over, and those that wait for it until it is.

        Args:
            turn: The turn, unlike that of any other run.
            call_id: The call.
            earlier: The calls of the turn that go before it.
        """
        calls, own = self._enter(turn, call_id, earlier)
        left = _GRACE
        try:
            for call in calls:
                started = monotonic()
                with suppress(TimeoutError):
                    call.result(left)
                left = max(0.0, left - (monotonic() - started))
                if call.running():
                    call.result()
            yield
        finally:
            _end(own)

    @asynccontextmanager
    async def aturn_of(self, turn: Hashable, call_id: str, earlier: Sequence[str]) -> AsyncIterator[None]:
        """The same from async code."""
        calls, own = self._enter(turn, call_id, earlier)
        left = _GRACE
        try:
            for call in calls:
                started = monotonic()
                await asyncio.wait([asyncio.wrap_future(_shielded(call))], timeout=left)
                left = max(0.0, left - (monotonic() - started))
                if call.running():
                    await asyncio.wrap_future(_shielded(call))
            yield
        finally:
            _end(own)

    def _enter(
        self, turn: Hashable, call_id: str, earlier: Sequence[str]
    ) -> tuple[list[Future[None]], Future[None]]:
        with self._lock:
            calls = self._turns.setdefault(turn, {})
            self._turns.move_to_end(turn)
            while len(self._turns) > _MOST_TURNS:
                self._turns.popitem(last=False)
            if call_id not in calls or calls[call_id].done():
                calls[call_id] = Future()
            own = calls[call_id]
            if not own.running():
                own.set_running_or_notify_cancel()
            return [calls.setdefault(each, Future()) for each in earlier], own


def _end(call: Future[None]) -> None:
    with suppress(InvalidStateError):  # a repeat of the call has ended it, or nobody waits any more
        call.set_result(None)


def _shielded(call: Future[None]) -> Future[None]:
    """A future that ends with the call; cancelling it does not cancel the call."""
    twin = Future[None]()
    call.add_done_callback(lambda _: _end(twin))
    return twin

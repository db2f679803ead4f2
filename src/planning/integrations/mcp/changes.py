"""Notifications of a plan's changes, in both protocol eras."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from mcp.server.session import ServerSession
from mcp.server.subscriptions import ResourceUpdated, ServerEvent

from planning.plan.model import Plan
from planning.suite.events import PlanChanged
from session import Session

_logger = logging.getLogger("planning.mcp")


def watching(session: Session, client: ServerSession) -> Callable[[], None]:
    """Notify a client of changes of a session's plan, until what is returned is called.

    Several changes while it does not read are one.
    """
    changed = asyncio.Event()

    async def notify() -> None:
        while True:
            await changed.wait()
            changed.clear()
            await client.send_resource_updated(uri_of(session))

    stop = _on_change(session, changed.set)
    task = asyncio.create_task(notify())

    def end() -> None:
        stop()
        task.cancel()

    return end


class PlanEvents:
    """A subscription bus for ``subscriptions/listen``, with the changes of one plan on it."""

    def __init__(self, session: Session | None) -> None:
        self._session = session

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Call a listener for each change."""
        if self._session is None:
            return lambda: None
        event = ResourceUpdated(uri_of(self._session))
        return _on_change(self._session, lambda: listener(event))

    async def publish(self, event: ServerEvent) -> None:
        """Nothing is published here: the session does it."""


def uri_of(session: Session) -> str:
    """The URI of a session's plan."""
    return f"plan://{session.session_id}"


def _on_change(session: Session, call: Callable[[], object]) -> Callable[[], None]:
    """Call something in this event loop when a plan has changed, whichever thread or process changes it."""
    loop = asyncio.get_running_loop()
    last = session.select_latest(Plan)

    def look() -> None:
        nonlocal last
        plan = session.select_latest(Plan)
        if plan != last:
            last = plan
            call()

    def changed(event: PlanChanged) -> None:
        if event.session_id == session.session_id:
            with suppress(RuntimeError):  # the loop is closed: no client is left
                loop.call_soon_threadsafe(look)

    session.bus.subscribe(PlanChanged, changed)
    following = asyncio.create_task(_follow(session, look))

    def stop() -> None:
        session.bus.unsubscribe(PlanChanged, changed)
        following.cancel()

    return stop


async def _follow(session: Session, look: Callable[[], None]) -> None:
    """Take over what other processes write to the session's store."""
    if session.store is None:
        return
    try:
        async for change in session.store.awatch(session.session_id, session.version):
            if change.version > session.version:
                await session.run_in_worker(session.refresh)
            look()
    except Exception as error:  # noqa: BLE001 - a store may fail in any way, and nothing waits for this task
        _logger.warning("changes by other processes are not announced any more: %s", error)

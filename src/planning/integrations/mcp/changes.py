"""Notifications of a plan's changes, in both protocol eras."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server.subscriptions import ListenHandler, ResourceUpdated, ServerEvent
from mcp.shared.exceptions import MCPError

from planning.events import PlanChanged
from planning.model import Plan

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession

    from session import Session

__all__ = ["Changes", "watching"]

_MOST_STREAMS: Final = 256
_logger = logging.getLogger("planning.mcp")


def watching(session: Session, uri: str, client: ServerSession) -> Callable[[], None]:
    """Notify a client of each change of a plan; several changes while it does not read are one.

    Args:
        session: The session that holds the plan.
        uri: The resource that changes.
        client: Who is notified.

    Returns:
        Stops it.
    """
    changed = asyncio.Event()

    async def notify() -> None:
        while True:
            await changed.wait()
            changed.clear()
            await client.send_resource_updated(uri)

    stop = _on_change(session, changed.set)
    task = asyncio.create_task(notify(), name="planning notifications")

    def end() -> None:
        stop()
        task.cancel()

    return end


class Changes:
    """The streams of changes that clients of the newer protocol have open."""

    def __init__(self) -> None:
        self._open = 0

    async def listen(
        self,
        session: Session | None,
        uri: str | None,
        ctx: ServerRequestContext[Any],
        params: types.SubscriptionsListenRequestParams,
    ) -> types.SubscriptionsListenResult:
        """Serve one stream until its client closes it.

        Raises:
            MCPError: Too many are open.
        """
        if self._open >= _MOST_STREAMS:
            raise MCPError(types.INTERNAL_ERROR, f"{_MOST_STREAMS} subscriptions are open; close one first")
        self._open += 1
        try:
            return await ListenHandler(_PlanEvents(session, uri))(ctx, params)
        finally:
            self._open -= 1


class _PlanEvents:
    """A subscription bus with the changes of one plan on it."""

    def __init__(self, session: Session | None, uri: str | None) -> None:
        self._session = session
        self._uri = uri

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Call a listener for each change."""
        if self._session is None or self._uri is None:
            return lambda: None
        event = ResourceUpdated(self._uri)
        return _on_change(self._session, lambda: listener(event))

    async def publish(self, event: ServerEvent) -> None:
        """Nothing is published here: the session does it."""


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
    following = asyncio.create_task(_follow(session, look), name="planning store")

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
                await session.off_loop(session.refresh)
            look()
    except Exception as error:  # noqa: BLE001 - a store may fail in any way, and nothing waits for this task
        _logger.warning("changes by other processes are not announced any more: %s", error)

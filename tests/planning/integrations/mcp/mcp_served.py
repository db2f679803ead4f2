"""Servers that tests connect to with the official client: in this process, over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp_types import CallToolResult, TextContent

from planning.integrations.mcp import build_server, serve_http

MODES = ["auto", "legacy"]
PATIENCE = 30.0
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}
in_both_eras = pytest.mark.parametrize("mode", MODES)
over_both = pytest.mark.parametrize("way", ["memory", "http"])


def within(main: Coroutine[Any, Any, Any]) -> Any:
    """Run a test's coroutine to its end; one that hangs fails."""
    return asyncio.run(asyncio.wait_for(main, PATIENCE))


@asynccontextmanager
async def over_http(server: Server[Any], **options: Any) -> AsyncIterator[str]:
    """Serve over HTTP on a free port; gives the URL."""
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve_http(server, started=url.set_result, **options))
    waiting: list[asyncio.Future[Any]] = [serving, url]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    try:
        if serving.done():
            serving.result()
        yield url.result()
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving


@asynccontextmanager
async def connecting(way: str, mode: str, **built: Any) -> AsyncIterator[Callable[[], Client]]:
    """Serve in one way, ``memory`` or ``http``; gives what makes clients."""
    if way == "memory":
        server = build_server(**built)
        yield lambda: Client(server, mode=mode)
    else:
        async with over_http(build_server(**built)) as url:
            yield lambda: Client(url, mode=mode)


def said(result: CallToolResult) -> str:
    """What the model reads of a result; one that failed begins with ``error:``."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    return f"error: {block.text}" if result.is_error else block.text

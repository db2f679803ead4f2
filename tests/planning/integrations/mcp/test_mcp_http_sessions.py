"""Over HTTP so many sessions are open, and no more; those without requests end by time."""

from __future__ import annotations

import asyncio

import httpx2
from mcp_served import over_http, within

from planning.integrations.mcp import build_server
from planning.serving import Limits

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


async def opened(http: httpx2.AsyncClient, url: str) -> int:
    """The status of the answer to a client that wants a new session."""
    return (await http.post(url, json=HELLO, headers=JSON)).status_code


def test_one_session_too_many_is_refused_until_another_has_ended_by_time() -> None:
    async def main() -> list[int]:
        limits = Limits(sessions=2, idle=0.5)
        async with over_http(build_server(), limits=limits) as url, httpx2.AsyncClient() as http:
            first = [await opened(http, url) for _ in range(3)]
            await asyncio.sleep(1)
            return [*first, await opened(http, url)]

    assert within(main()) == [200, 200, 503, 200]

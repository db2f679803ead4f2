"""Over HTTP so many sessions are open, and no more: a new one takes the place of one that nobody uses."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp_served import over_http, said, setup, within

from planning.integrations.mcp import build_server
from planning.integrations.mcp.http import Limits
from planning.tools import tool

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
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
NEWER = {"MCP-Protocol-Version": "2026-07-28"}


async def opened(http: httpx2.AsyncClient, url: str) -> str:
    """The id of a new session, or the status of a refusal."""
    answer = await http.post(url, json=HELLO, headers=JSON)
    return answer.headers["mcp-session-id"] if answer.status_code == 200 else str(answer.status_code)


async def statuses(http: httpx2.AsyncClient, url: str, *ids: str) -> list[int]:
    """What each session answers to a ping."""
    sent = [await http.post(url, json=PING, headers=JSON | {"Mcp-Session-Id": each}) for each in ids]
    return [each.status_code for each in sent]


def test_a_new_session_ends_the_one_that_is_idle_for_longest() -> None:
    async def main() -> list[int]:
        async with over_http(build_server(), limits=Limits(sessions=2)) as url, httpx2.AsyncClient() as http:
            first, second = await opened(http, url), await opened(http, url)
            assert await statuses(http, url, first) == [200]
            third = await opened(http, url)
            return await statuses(http, url, first, second, third)

    assert within(main()) == [200, 404, 200]


def test_abandoned_sessions_never_keep_new_clients_out() -> None:
    async def main() -> list[int]:
        limits = Limits(sessions=3, rate=1_000_000, burst=1_000_000)
        async with over_http(build_server(), limits=limits) as url, httpx2.AsyncClient() as http:
            ids = [await opened(http, url) for _ in range(50)]
            return await statuses(http, url, *ids)

    assert within(main()) == [404] * 47 + [200] * 3


def test_many_that_open_at_once_are_all_served() -> None:
    async def main() -> set[int]:
        limits = Limits(sessions=3, rate=1_000_000, burst=1_000_000)
        async with over_http(build_server(), limits=limits) as url, httpx2.AsyncClient() as http:
            for _ in range(3):
                await opened(http, url)
            return {len(await each) for each in [asyncio.ensure_future(opened(http, url)) for _ in range(3)]}

    assert within(main()) == {32}


@pytest.mark.parametrize("refused", [{"json": PING}, {"json": PING, "headers": NEWER}], ids=["old", "newer"])
def test_a_session_that_was_left_makes_room_without_ending_another(refused: dict[str, Any]) -> None:
    async def main() -> list[int]:
        async with over_http(build_server(), limits=Limits(sessions=2)) as url, httpx2.AsyncClient() as http:
            first, second = await opened(http, url), await opened(http, url)
            await http.delete(url, headers={"Mcp-Session-Id": second})
            await http.post(url, **(refused | {"headers": JSON | refused.get("headers", {})}))
            third = await opened(http, url)
            return await statuses(http, url, first, second, third)

    assert within(main()) == [200, 404, 200]


def test_a_session_at_work_is_never_ended() -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> str:
        """Take long."""
        begun.set()
        await may_end.wait()
        return "whole"

    async def main() -> tuple[str, str, list[str]]:
        server = build_server([slow])
        async with (
            over_http(server, limits=Limits(sessions=1)) as url,
            httpx2.AsyncClient() as http,
            Client(url, mode="legacy") as client,
        ):
            call = asyncio.ensure_future(client.call_tool("slow"))
            await begun.wait()
            refused = [await opened(http, url) for _ in range(3)]
            may_end.set()
            worked = said(await call)
            return worked, said(await client.call_tool("planning_setup_plan", setup("A"))), refused

    assert within(main()) == (
        "whole",
        "Plan set, no steps yet. Add them with planning_add_step.",
        ["503", "503", "503"],
    )


def test_a_tool_whose_client_has_gone_still_runs_to_its_end() -> None:
    begun, may_end, ends = asyncio.Event(), asyncio.Event(), list[str]()

    @tool
    async def slow() -> str:
        """Take long."""
        begun.set()
        try:
            await may_end.wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        ends.append("whole")
        return "whole"

    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "slow", "arguments": {}}}

    async def main() -> tuple[str, str]:
        async with (
            over_http(build_server([slow]), limits=Limits(sessions=1)) as url,
            httpx2.AsyncClient() as http,
        ):
            headers = JSON | {"Mcp-Session-Id": await opened(http, url)}
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await http.post(url, json=ready, headers=headers)
            gone = asyncio.ensure_future(http.post(url, json=call, headers=headers))
            await begun.wait()
            gone.cancel()
            await asyncio.sleep(0.2)  # the server has seen that the connection is closed
            while_running = await opened(http, url)
            may_end.set()
            while not ends:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)  # the call is over
            return while_running, await opened(http, url)

    while_running, afterwards = within(main())
    assert (ends, while_running, len(afterwards)) == (["whole"], "503", 32)

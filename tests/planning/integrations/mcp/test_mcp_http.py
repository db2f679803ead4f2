"""A server over HTTP: who may speak to it, how much and how often, and clients that leave or flood."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from socket import has_ipv6
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from frameworks import setup
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_served import HELLO, JSON, in_both_eras, over_http, said

from planning.integrations.mcp import build_server, http_app
from planning.serving import Limits, is_loopback
from session import Session
from session.stores import SqliteStore

READ = "planning_read_plan"
TOKEN = "a token of the tests"  # noqa: S105 - it guards nothing
EVERYWHERE = "0.0.0.0"  # noqa: S104 - with a token


async def answers(*requests: dict[str, Any], **options: Any) -> list[tuple[int, str]]:
    """The status and the text of the answer to each request, of which ``HELLO`` is one that may pass."""
    async with over_http(build_server(), **options) as url, httpx2.AsyncClient() as http:
        given: list[dict[str, Any]] = [{"headers": {}, "json": HELLO} | request for request in requests]
        sent = [await http.post(url, **(each | {"headers": JSON | each["headers"]})) for each in given]
        return [(each.status_code, "" if each.status_code == 200 else each.text) for each in sent]


HOSTS = (
    "evil.example evil.example:80 localhost.evil.example 127.0.0.1.evil.example 127.0.0.2 0.0.0.0 [::1 "
    "localhost,evil.example evil.example@127.0.0.1 localhost:80@evil.example localhost@127.0.0.1 127.0.0.1: "
    "127.0.0.1:port 127.0.0.1:999999 [::1]evil localhost/evil.example localhost? localhost# "
    "localhost\\evil.example 0x7f.1 127.1 \xe9"
)
ORIGINS = (
    "http://evil.example https://localhost.evil.example http://localhost@evil.example null file:// "
    "chrome-extension://localhost localhost http://[::1 http://evil.example@127.0.0.1 http://127.0.0.1/path"
)


@pytest.mark.parametrize(
    ("header", "values", "expected"),
    [
        ("Host", [*HOSTS.split(), "", "local host"], (421, "Unknown host")),
        ("Origin", [*ORIGINS.split(), "", "http://127.0.0.1 http://evil.example"], (403, "Unknown origin")),
        ("Host", ["localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000"], (200, "")),
        ("Origin", ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1"], (200, "")),
    ],
)
async def test_only_this_machine_may_ask(header: str, values: list[str], expected: tuple[int, str]) -> None:
    found = await answers(*({"headers": {header: value.encode("latin-1")}} for value in values))
    assert dict(zip(values, found, strict=True)) == dict.fromkeys(values, expected)


async def test_a_name_may_be_allowed() -> None:
    known = {"Host": "plans.example", "Origin": "https://plans.example"}
    other = {"Host": "plans.example.org"}
    given = await answers({"headers": known}, {"headers": other}, allowed_hosts=["Plans.Example"])
    assert given == [(200, ""), (421, "Unknown host")]


async def test_without_the_token_nothing_is_answered() -> None:
    wrong = ["Bearer", "Bearer another", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer \xe9"]
    right = [f"Bearer {TOKEN}", f"bearer  {TOKEN}"]
    headers = [{}, *({"Authorization": given.encode("latin-1")} for given in (*wrong, *right))]
    found = await answers(*({"headers": each} for each in headers), token=TOKEN)
    assert found == [(401, "A token is required")] * 7 + [(200, "")] * 2


async def test_a_refusal_says_how_to_authorize_and_closes_the_connection() -> None:
    async with over_http(build_server(), token=TOKEN) as url, httpx2.AsyncClient() as http:
        found = (await http.post(url, json=HELLO, headers=JSON)).headers
        twice = [*JSON.items(), *[("Authorization", f"Bearer {TOKEN}")] * 2]
        assert (await http.post(url, json=HELLO, headers=twice)).status_code == 401
    assert (found["www-authenticate"], found["connection"]) == ("Bearer", "close")
    assert {"server", "date"} & {*found} == set()


@pytest.mark.skipif(not has_ipv6, reason="no IPv6 on this machine")
async def test_an_ipv6_address_is_in_brackets() -> None:
    async with over_http(build_server(), host="::1") as url, httpx2.AsyncClient() as http:
        answer = await http.post(url, json=HELLO, headers=JSON)
    assert (url.rpartition(":")[0], answer.status_code) == ("http://[::1]", 200)


def test_beyond_this_machine_a_token_is_required() -> None:
    for host in (EVERYWHERE, "::", "192.0.2.7", "plans.example"):
        with pytest.raises(ValueError, match=r".") as refused:
            http_app(build_server(), host=host)
        said = f"a server on {host} is reached from other machines: it needs a token"
        assert str(refused.value) == said
    with pytest.raises(ValueError, match=r"it needs a token$"):
        http_app(build_server(), token="")
    assert list(map(is_loopback, ["localhost", "127.0.0.9", "::1", "10.0.0.1"])) == [True, True, True, False]


async def test_a_server_for_all_addresses_knows_the_one_that_was_called() -> None:
    allowed = {"Authorization": f"Bearer {TOKEN}"}
    requests = [
        {"headers": allowed | extra} for extra in ({}, {"Host": "evil.example"}, {"Host": EVERYWHERE})
    ]
    async with over_http(build_server(), host=EVERYWHERE, token=TOKEN) as url, httpx2.AsyncClient() as http:
        here = url.replace(EVERYWHERE, "127.0.0.2")
        result = [
            (await http.post(here, json=HELLO, headers=JSON | each["headers"])).status_code
            for each in requests
        ]
    assert result == [200, 421, 421]


async def test_the_id_of_a_session_is_the_servers_own() -> None:
    async with over_http(build_server()) as url, httpx2.AsyncClient() as http:
        opened = [await http.post(url, json=HELLO, headers=JSON) for _ in range(3)]
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        guessed = await http.post(url, json=ping, headers=JSON | {"Mcp-Session-Id": "1"})
        ids = {each.headers["mcp-session-id"] for each in opened}
    assert (guessed.status_code, guessed.json()["error"]["message"]) == (404, "Session not found")
    assert [len(bytes.fromhex(each)) for each in ids] == [16] * 3


# A client of the newer era has no connection


async def test_a_client_of_the_newer_era_falls_back_where_each_connection_has_its_plan() -> None:
    async with over_http(build_server()) as url, Client(url, mode="auto") as client:
        result = [client.protocol_version, said(await client.call_tool(*setup("A")))]
    assert result == ["2025-11-25", "Plan set, no steps yet. Add them with planning_add_step."]


async def test_one_that_insists_has_no_plan_and_not_that_of_another() -> None:
    async with (
        over_http(build_server()) as url,
        Client(url, mode="legacy") as other,
        Client(url, mode="2026-07-28") as client,
    ):
        await other.call_tool(*setup("Private"))
        resources = (await client.list_resources()).resources
        result = [said(await client.call_tool(READ)), resources]
    assert result == [
        "error: no session for this call: it belongs to no connection. Connect with the initialize handshake,"
        " or start the server with one session for all",
        [],
    ]


async def test_a_client_takes_its_plan_up_again_after_a_reconnect(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "plans.db")

    def resume(name: str) -> Session | None:
        return None if store.head(name) is None else Session(session_id=name, store=store)

    server = build_server(new_session=lambda: Session(store=store), resume=resume)
    async with over_http(server) as url:
        async with Client(url, mode="legacy") as client:
            await client.call_tool(*setup("Kept"))
            uri = str((await client.list_resources()).resources[0].uri)
        texts = []
        for name in (uri.removeprefix("plan://"), "somebody-elses"):
            async with (
                httpx2.AsyncClient(headers={"Planning-Session": name}) as http,
                Client(streamable_http_client(url, http_client=http), mode="legacy") as client,
            ):
                try:
                    texts.append(said(await client.call_tool(READ)))
                except MCPError as error:
                    texts.append(str(error))
    assert texts == [
        "Kept (active, 0 of 0 done)",
        "no session 'somebody-elses' is here; omit the header Planning-Session to begin a new one",
    ]


# Clients that leave, stall or flood


async def raw(url: str, *parts: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which these bytes were sent."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    for part in parts:
        writer.write(part)
    await writer.drain()
    return reader, writer


def head(url: str, length: int, **headers: str) -> bytes:
    lines = ["POST /mcp HTTP/1.1", f"Host: {urlsplit(url).netloc}", f"Content-Length: {length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in (JSON | headers).items()]
    return "\r\n".join([*lines, "", ""]).encode()


@in_both_eras
async def test_a_client_that_leaves_in_the_middle_leaves_the_others_alone(mode: str) -> None:
    started = asyncio.Event()
    cancelled = asyncio.Event()

    async def slow() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    session = Session() if mode == "auto" else None
    async with over_http(build_server([slow], session=session)) as url, Client(url, mode=mode) as other:
        await other.call_tool(*setup("Stays"))
        leaving = Client(url, mode=mode)
        await leaving.__aenter__()
        calling = asyncio.create_task(leaving.call_tool("slow"))
        await started.wait()
        calling.cancel()
        await asyncio.wait([calling])
        await leaving.__aexit__(None, None, None)
        await cancelled.wait()
        body = json.dumps(HELLO).encode()
        for cut in (0, 1, len(body) - 1):  # in the head, in the body
            _, writer = await raw(url, head(url, len(body))[: -4 if not cut else None], body[:cut])
            writer.transport.abort()
        result = said(await other.call_tool(READ))
    assert result == "Stays (active, 0 of 0 done)"


@pytest.mark.parametrize(
    ("limits", "length", "status", "reason"),
    [
        (Limits(body=1_000), 1_001, b"413", b"Request body too large"),
        (Limits(seconds=0.05), 100, b"408", b"The request took too long"),
    ],
)
async def test_a_body_that_is_too_large_or_does_not_come_is_not_waited_for(
    limits: Limits, length: int, status: bytes, reason: bytes
) -> None:
    async with over_http(build_server(), limits=limits) as url:
        reader, writer = await raw(url, head(url, length), b"{")
        top, _, body = (await reader.readuntil(reason)).partition(b"\r\n\r\n")
        writer.close()
    assert (top.split()[1], body) == (status, reason)


async def test_an_answer_may_take_longer_than_its_request() -> None:
    async def slow() -> str:
        await asyncio.sleep(0.4)
        return "done"

    server = build_server([slow], session=Session())
    async with over_http(server, limits=Limits(seconds=0.2)) as url, Client(url) as client:
        assert said(await client.call_tool("slow")) == "done"


async def test_a_request_beyond_the_limit_of_connections_is_refused() -> None:
    async def ask(url: str) -> int:
        async with httpx2.AsyncClient() as http:
            return (await http.post(url, json=HELLO, headers=JSON)).status_code

    async with over_http(build_server(), limits=Limits(connections=1, waiting=1)) as url:
        statuses = [await ask(url)]
        _, writer = await raw(url, head(url, 100))
        statuses.append(await ask(url))
        writer.close()
    assert statuses == [200, 503]


async def test_one_session_too_many_is_refused_until_another_has_ended_by_time() -> None:
    limits = Limits(sessions=2, idle=0.2)
    async with over_http(build_server(), limits=limits) as url, httpx2.AsyncClient() as http:

        async def opened() -> int:
            return (await http.post(url, json=HELLO, headers=JSON)).status_code

        first = [await opened() for _ in range(3)]
        while await opened() == 503:
            await asyncio.sleep(0.02)
    assert first == [200, 200, 503]

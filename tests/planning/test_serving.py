"""The guard of both HTTP servers: clients that say nothing shut nobody out."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from time import sleep
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import uvicorn
from anyio.from_thread import start_blocking_portal
from mcp_served import over_http
from page_data import serving

from planning.integrations.mcp import build_server
from planning.serving import Limits, listening, serve
from planning.view import server

LIMITS = Limits(header=10, waiting=20, connections=20)
Served = Callable[[], AbstractContextManager[str]]
TOKEN = "a token of the tests"  # noqa: S105 - it guards nothing


@contextmanager
def mcp_server() -> Iterator[str]:
    served = over_http(build_server(), token=TOKEN, limits=LIMITS)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(served) as url:
        yield url


@contextmanager
def page_server() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "_LIMITS", LIMITS)
        with serving(b"the page") as link:
            yield link


def get(url: str, **headers: str) -> int:
    """The status of the answer to an honest client without a token."""
    return httpx2.get(url, headers=headers, timeout=5).status_code


def connected(url: str, timeout: float = 5) -> socket.socket:
    where = urlsplit(url)
    return socket.create_connection((where.hostname, where.port), timeout)


def header_of(url: str) -> bytes:
    return f"GET {urlsplit(url).path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n\r\n".encode()


SERVERS = pytest.mark.parametrize(
    ("serve", "expected"), [(mcp_server, 401), (page_server, 200)], ids=["mcp", "page"]
)


@SERVERS
@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"\x16\x03\x01"])
def test_more_silent_clients_than_places_shut_nobody_out(serve: Served, expected: int, said: bytes) -> None:
    with serve() as url:
        silent = [connected(url) for _ in range(200)]
        for each in silent:
            with suppress(OSError):  # it may have given way
                each.sendall(said)
        assert [get(url) for _ in range(5)] == [expected] * 5
        for each in silent:
            each.close()


@SERVERS
@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
def test_a_client_whose_first_request_does_not_come_is_dropped(
    serve: Served, expected: int, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "LIMITS", Limits(header=0.05))
    with serve() as url, connected(url) as connection:
        connection.sendall(said)
        with suppress(ConnectionError):
            assert connection.recv(1_000) == b""


@SERVERS
def test_a_header_may_come_in_two_parts(serve: Served, expected: int) -> None:
    with serve() as url:
        first, _, rest = header_of(url).partition(b"Host")
        with connected(url) as connection:
            connection.sendall(first)
            sleep(0.05)
            connection.sendall(b"Host" + rest)
            assert connection.recv(1_000).startswith(f"HTTP/1.1 {expected} ".encode())


@SERVERS
def test_a_second_request_of_a_connection_has_to_come_as_soon(
    serve: Served, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "LIMITS", Limits(header=0.3))
    with serve() as url:
        with connected(url, 3) as connection:  # uvicorn waits 5
            connection.sendall(header_of(url))
            answer = b""
            with suppress(ConnectionError):
                while part := connection.recv(1_000):  # until the server lets go of it
                    answer += part
                    connection.sendall(b"GET / HT")
        assert answer.startswith(f"HTTP/1.1 {expected} ".encode())


def test_a_connection_that_comes_while_the_server_ends_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    theirs.settimeout(5)
    shut_down = uvicorn.Server.shutdown

    async def late(server: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
        await shut_down(server, sockets)
        kind, state = server.config.http_protocol_class, server.server_state
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: kind(server.config, state, {}), ours)  # type: ignore[call-arg]  # as uvicorn makes one

    async def app(_scope: Any, _receive: Any, _send: Any) -> None:
        """Answer nothing."""

    async def main() -> None:
        served = asyncio.create_task(serve(app, listening("127.0.0.1", 0, LIMITS), LIMITS))
        await asyncio.sleep(0.1)
        served.cancel()
        with suppress(asyncio.CancelledError):
            await served

    monkeypatch.setattr(uvicorn.Server, "shutdown", late)
    asyncio.run(main())
    with theirs:
        assert theirs.recv(1) == b""


@SERVERS
def test_what_clients_do_wrong_is_not_in_the_log(
    serve: Served, expected: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    with serve() as url:
        with connected(url) as wrong:
            wrong.sendall(b"GET\r\n\r\n")
            assert wrong.recv(1_000).startswith(b"HTTP/1.1 400 ")
        assert get(url) == expected
    assert [each for each in caplog.records if each.name.startswith("uvicorn")] == []
    assert (capfd.readouterr(), logging.getLogger("uvicorn").handlers) == (("", ""), [])


def test_what_clients_may_use_unless_the_host_says_otherwise() -> None:
    assert Limits() == Limits(
        header=10, seconds=30, body=1_000_000, connections=500, waiting=200, sessions=1_000, idle=1_800
    )

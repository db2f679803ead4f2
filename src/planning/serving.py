"""The guard of the two HTTP servers, of MCP and of the page: who may connect, for how long, and how many."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs
import uvicorn
from starlette.responses import PlainTextResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST: Final = re.compile(r"(?P<name>[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_ORIGIN: Final = re.compile(rf"https?://({_HOST.pattern})")
_PATIENCE: Final = 30.0  # seconds that a client may take to read a part of an answer
_GRACE: Final = 1  # seconds that answers have when the server ends


@attrs.frozen(kw_only=True)
class Limits:
    """The limits on how much of a server its clients may use.

    Attributes:
        header: The seconds that a client has to send the header of a request. Each connection that has not
            sent one may be replaced by a newer one, so that idle clients cannot block others.
        seconds: The seconds that it has for the whole request.
        body: The most bytes of a request.
        connections: How many connections are open at once, those that wait for a header not included.
        waiting: How many connections wait for a header.
        sessions: How many MCP sessions are open at once.
        idle: The seconds after which an MCP session without requests ends.
    """

    header: float = 10.0
    seconds: float = 30.0
    body: int = 1_000_000
    connections: int = 500
    waiting: int = 200
    sessions: int = 1_000
    idle: float = 1_800.0


def is_loopback(host: str) -> bool:
    """True if only this machine reaches what listens there."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Answers requests that may not pass: of another host or origin, without the token, or too slow."""

    def __init__(
        self,
        app: ASGIApp,
        names: frozenset[str],
        *,
        token: str | None = None,
        seconds: float = Limits().seconds,
        unknown_host: str = "Unknown host",
        is_alone: bool = False,
    ) -> None:
        """Guard an application."""
        self._app = app
        self._names = names
        self._token = None if token is None else token.encode()
        self._seconds = seconds
        self._unknown_host = unknown_host
        self._is_alone = is_alone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            refusal.headers["connection"] = "close"
            await refusal(scope, receive, send)
            return
        deadline = asyncio.get_running_loop().time() + self._seconds
        is_whole = False

        async def received() -> Message:
            nonlocal is_whole
            if is_whole:
                return await receive()
            async with asyncio.timeout_at(deadline):
                message = await receive()
            is_whole = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        try:
            await self._app(scope, received, send)
        except TimeoutError:
            if is_whole:
                raise
            answer = PlainTextResponse("The request took too long", 408, {"connection": "close"})
            await answer(scope, receive, send)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = [(name, value.decode("latin-1").lower()) for name, value in scope["headers"]]
        hosts = [_HOST.fullmatch(value) for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not self._is_here(hosts[0], scope):
            return PlainTextResponse(self._unknown_host, 421)
        for name, value in headers:
            if name != b"origin":
                continue
            is_other = self._is_alone and hosts[0] is not None and value != f"http://{hosts[0][0]}"
            if is_other or not self._is_here(_ORIGIN.fullmatch(value), scope):
                return PlainTextResponse("Unknown origin", 403)
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if self._token is not None and not (len(given) == 1 and _is_token(given[0], self._token)):
            return PlainTextResponse("A token is required", 401, {"www-authenticate": "Bearer"})
        return None

    def _is_here(self, found: re.Match[str] | None, scope: Scope) -> bool:
        name = "" if found is None else found["name"].strip("[]")
        return bool(name) and (name in self._names or name == (scope.get("server") or ("",))[0])


def _is_token(given: bytes, expected: bytes) -> bool:
    scheme, _, token = given.partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), expected)


class _Connection(H11Protocol):
    """A connection, whose requests have to come soon, and whose answers have to be read.

    Until a header is whole nothing is known of a client. It waits with others like it, and
    the one that has waited longest gives way to a newer one. A silent client is dropped in any case.
    """

    limits: Limits
    waiting: dict[_Connection, asyncio.TimerHandle]

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._wait_no_longer()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Continue reading; once the header of a request is complete, the deadline ends."""
        super().handle_events()
        cycle = vars(self)["cycle"]  # None until the first request, whatever its type says
        if cycle is not None and not cycle.response_complete:
            self._wait_no_longer()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        if not self.transport.is_closing():
            self._wait()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait for the client to read what was sent."""
        super().pause_writing()
        self._unread = self.loop.call_later(_PATIENCE, self.transport.abort)

    def resume_writing(self) -> None:
        """Send on: the client has read enough."""
        super().resume_writing()
        self._unread.cancel()

    def _wait(self) -> None:
        self._wait_no_longer()
        self.waiting[self] = self.loop.call_later(self.limits.header, self.transport.abort)
        if len(self.waiting) > self.limits.waiting:
            oldest = next(iter(self.waiting))
            oldest._wait_no_longer()
            oldest.transport.abort()

    def _wait_no_longer(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller, and does nothing while nothing is asked of it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.over = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def main_loop(self) -> None:
        """Wait for the end."""
        await self.over.wait()


def listening(host: str, port: int, limits: Limits) -> socket.socket:
    """A socket that listens.

    Raises:
        OSError: It cannot listen there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=limits.connections)


async def serve(
    app: ASGIApp,
    sock: socket.socket,
    limits: Limits,
    *,
    started: Callable[[], object] = lambda: None,
    ending: Callable[[], Any] | None = None,
) -> None:
    """Serve an application until this is cancelled."""
    config = uvicorn.Config(
        app,
        http=type("_Connection", (_Connection,), {"limits": limits, "waiting": {}}),
        ws="none",
        log_config=None,
        log_level="critical",  # what clients do wrong is nothing to be read here
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=limits.connections + limits.waiting,
        timeout_graceful_shutdown=_GRACE,
    )
    server = _Server(config)
    task = asyncio.ensure_future(server.serve(sockets=[sock]))
    started()
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        if ending is not None:
            await ending()
        server.over.set()
        await task
        for connection in tuple(server.server_state.connections):  # uvicorn leaves those that took too long
            connection.transport.abort()
        await asyncio.sleep(0)  # they are closed in the next turn of the event loop
        raise

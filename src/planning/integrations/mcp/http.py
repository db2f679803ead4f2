"""An MCP server over HTTP: who may speak to it, how much and how often."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import attrs
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from planning.integrations.mcp.server import WORK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp.server.lowlevel import Server
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Limits", "http_app", "is_loopback", "serve_http"]

_PATH: Final = "/mcp"
_SESSION: Final = b"mcp-session-id"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_ANY: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, and not listened on
_GRACE: Final = 2  # seconds that requests have when the server stops


@attrs.frozen(kw_only=True)
class Limits:
    """How much of a server its clients may use.

    Attributes:
        body: The most bytes of a request.
        seconds: How long a client may take to send one.
        rate: How many requests a second each address may make, over a while.
        burst: How many it may make at once.
        connections: How many connections are open at once.
        sessions: How many MCP sessions are open at once; one more ends the one that is idle for longest.
        idle: The seconds after which a session without requests ends.
    """

    body: int = 1_000_000
    seconds: float = 30.0
    rate: float = 100.0
    burst: int = 500
    connections: int = 500
    sessions: int = 1_000
    idle: float = 1_800.0


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def http_app(
    server: Server[Any],
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    allowed_hosts: Iterable[str] = (),
    limits: Limits | None = None,
) -> Starlette:
    """The ASGI application that serves MCP's streamable HTTP at ``/mcp``.

    A request is answered with 421 when its ``Host`` is another, with 403 when a page of another origin sent
    it, with 401 without the token, with 413 when it is too large, with 408 when it takes too long, with 429
    when there are too many, and with 503 when every session that may be open has a request or a call at work.

    Args:
        server: From ``build_server``.
        host: The address that it listens on.
        token: What clients must send as their bearer token. All who know it are one tenant.
        allowed_hosts: Names by which it may be reached, beside its address.
        limits: What clients may use.

    Raises:
        ValueError: It listens on more than this machine, and there is no token.
    """
    if not token and (token is not None or not is_loopback(host)):
        raise ValueError(f"a server on {host} is reached from other machines: it needs a token")
    limits = limits or Limits()
    manager = StreamableHTTPSessionManager(
        server,
        max_request_body_size=limits.body,
        session_idle_timeout=limits.idle,
        max_sessions=limits.sessions,
    )

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    names = {name.lower() for name in (host, *allowed_hosts)} - _ANY
    if is_loopback(host) or host in _ANY:
        names |= _LOOPBACK
    return Starlette(
        routes=[Route(_PATH, endpoint=_Sessions(StreamableHTTPASGIApp(manager), limits.sessions))],
        middleware=[Middleware(_Guard, names=frozenset(names), token=token, limits=limits)],
        lifespan=lifespan,
    )


async def serve_http(
    server: Server[Any],
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    token: str | None = None,
    allowed_hosts: Iterable[str] = (),
    limits: Limits | None = None,
    started: Callable[[str], object] = lambda _url: None,
) -> None:
    """Serve MCP over HTTP until this is cancelled; see ``http_app``.

    Args:
        server: From ``build_server``.
        host: The address to listen on.
        port: The port; 0 for any free one.
        token: What clients must send as their bearer token.
        allowed_hosts: Names by which it may be reached, beside its address.
        limits: What clients may use.
        started: Called with the URL once it listens.

    Raises:
        ValueError: It listens on more than this machine, and there is no token.
        OSError: It cannot listen there.
    """
    limits = limits or Limits()
    app = http_app(server, host=host, token=token, allowed_hosts=allowed_hosts, limits=limits)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=limits.connections) as listening:
        config = uvicorn.Config(
            app,
            log_config=None,
            log_level="error",  # it warns of every connection beyond the limit
            access_log=False,
            server_header=False,
            ws="none",
            limit_concurrency=limits.connections,
            timeout_graceful_shutdown=_GRACE,
        )
        serving = _Uvicorn(config)
        shown = f"[{host}]" if ":" in host else host
        started(f"http://{shown}:{listening.getsockname()[1]}{_PATH}")
        task = asyncio.ensure_future(serving.serve(sockets=[listening]))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            serving.should_exit = True
            await task
            raise


class _Uvicorn(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


class _Guard:
    """Answers requests that may not pass; in this order: host, origin, token, rate, time."""

    def __init__(self, app: ASGIApp, names: frozenset[str], token: str | None, limits: Limits) -> None:
        self._app = app
        self._names = names
        self._token = None if token is None else token.encode()
        self._rates = _Rates(limits.rate, limits.burst)
        self._seconds = limits.seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._seconds
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
            await PlainTextResponse("The request took too long", 408)(scope, receive, send)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = [(name, value.decode("latin-1")) for name, value in scope["headers"]]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not self._is_here(_hostname(f"//{hosts[0]}"), scope):
            return PlainTextResponse("Unknown host", 421)
        for name, value in headers:
            if name == b"origin" and not self._is_here(_hostname(value, "http", "https"), scope):
                return PlainTextResponse("Unknown origin", 403)
        given = [value for name, value in headers if name == b"authorization"]
        if self._token is not None and not (len(given) == 1 and self._is_token(given[0])):
            return PlainTextResponse("A token is required", 401, {"WWW-Authenticate": "Bearer"})
        wait = self._rates.wait((scope.get("client") or ("",))[0])
        if wait > 0:
            return PlainTextResponse("Too many requests", 429, {"Retry-After": str(int(wait) + 1)})
        return None

    def _is_here(self, name: str | None, scope: Scope) -> bool:
        """Whether it is a name of this server, or the very address that the client has connected to."""
        return name is not None and (name in self._names or name == (scope.get("server") or ("",))[0])

    def _is_token(self, given: str) -> bool:
        scheme, _, token = given.partition(" ")
        known = self._token or b""
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode("latin-1"), known)


class _Sessions:
    """Makes room for a new session by ending the one that is idle for longest; one at work goes on.

    A tool may still run when the request of its call is over, for its client may have gone: both are work.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        # How many requests and calls each session has; the one used last is last.
        self._at_work = OrderedDict[str, int]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; one that opens a session may end another."""
        given = next((value.decode("latin-1") for name, value in scope["headers"] if name == _SESSION), None)
        if given is None:
            await self._open(scope, receive, send)
            return
        is_over = False

        async def sent(message: Message) -> None:
            nonlocal is_over
            if message["type"] == "http.response.start":
                status = message["status"]
                is_over = status == 404 or (status == 200 and scope["method"] == "DELETE")
            await send(message)

        with self._working(given):
            try:
                await self._app({**scope, WORK: partial(self._working, given)}, receive, sent)
            finally:
                if is_over:
                    self._at_work.pop(given, None)

    @contextmanager
    def _working(self, given: str) -> Iterator[None]:
        self._at_work[given] = self._at_work.pop(given, 0) + 1
        try:
            yield
        finally:
            if given in self._at_work:  # it is not over
                self._at_work[given] = self._at_work.pop(given) - 1

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is of no session yet; it is passed on again after it has ended another."""
        read: list[Message] = []
        unread: list[Message] = []

        async def received() -> Message:
            read.append(unread.pop(0) if unread else await receive())
            return read[-1]

        while await self._is_full(scope, received, send):
            await self._end_oldest(scope)
            unread, read = [*read, *unread], []

    async def _is_full(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Pass on a request that is of no session yet; unanswered when it needs the place of an idle one."""
        is_full = False

        async def sent(message: Message) -> None:
            nonlocal is_full
            if message["type"] == "http.response.start":
                is_full = message["status"] == 503 and self._oldest() is not None
                opened = next((value for name, value in message["headers"] if name == _SESSION), None)
                if opened is not None and message["status"] == 200:
                    self._keep(opened.decode("latin-1"))
            if not is_full:
                await send(message)

        await self._app(scope, receive, sent)
        return is_full

    def _keep(self, opened: str) -> None:
        self._at_work[opened] = 0
        if len(self._at_work) > self._most:  # one of them has ended by itself
            self._at_work.pop(self._oldest() or opened)

    def _oldest(self) -> str | None:
        return next((each for each, requests in self._at_work.items() if not requests), None)

    async def _end_oldest(self, scope: Scope) -> None:
        """End a session as its client would."""
        oldest = self._oldest()
        if oldest is None:
            return
        del self._at_work[oldest]

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unsent(_message: Message) -> None:
            pass

        await self._app(
            {**scope, "method": "DELETE", "headers": [(_SESSION, oldest.encode())]}, nothing, unsent
        )


def _hostname(url: str, *schemes: str) -> str | None:
    """The host of a URL, in lower case; None when it has none, or another scheme."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.hostname if parts.scheme in (schemes or ("",)) else None


class _Rates:
    """How often each of the addresses that were seen last may still make a request."""

    _MOST: Final = 10_000

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Count a request; returns the seconds to wait when there were too many."""
        now = time.monotonic()
        left, since = self._left.pop(address, (float(self._burst), now))
        left = min(float(self._burst), left + (now - since) * self._rate)
        is_free = left >= 1.0
        self._left[address] = (left - 1.0 if is_free else left, now)
        if len(self._left) > self._MOST:
            self._left.popitem(last=False)
        return 0.0 if is_free else (1.0 - left) / self._rate

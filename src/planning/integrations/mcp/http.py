"""An MCP server over HTTP, for those who may speak to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from planning.serving import LOOPBACK, Guard, Limits, is_loopback, listening, serve

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

_PATH: Final = "/mcp"
_ANY: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, and not listened on


def http_app(
    server: Server[Any],
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    allowed_hosts: Iterable[str] = (),
    limits: Limits | None = None,
) -> Starlette:
    """The ASGI application that serves MCP's streamable HTTP at ``/mcp``.

    A request is answered with 421 when its ``Host`` is wrong, with 403 when a page of another origin sent
    it, with 401 without the token, with 413 when it is too large, with 408 when it takes too long, and with
    503 when there are too many connections or sessions.

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
        names |= LOOPBACK
    return Starlette(
        routes=[Route(_PATH, endpoint=StreamableHTTPASGIApp(manager))],
        middleware=[Middleware(Guard, names=frozenset(names), token=token, seconds=limits.seconds)],
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
    with listening(host, port, limits) as sock:
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{sock.getsockname()[1]}{_PATH}"
        await serve(app, sock, limits, started=lambda: started(url))

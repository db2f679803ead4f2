"""The server of the page: only for this machine, and for those who have the link."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from planning.errors import ToolValidationError, line_of, printable
from planning.view.document import Document, as_json
from planning.view.feeds import Feeds, problem_event
from planning.view.page import live_page, policy
from planning.view.steer import PlanMoved, command_of
from session import StoreError

try:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse, Response, StreamingResponse
    from starlette.routing import Route

    from planning.serving import LOOPBACK, Guard, Limits, listening
    from planning.serving import serve as serve_app
except ModuleNotFoundError:
    raise ImportError("the page needs starlette and uvicorn: pip install 'session-planning[view]'") from None

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from planning.view.sources import StoreSource

_HOST: Final = "127.0.0.1"
_LIMITS: Final = Limits()
_CHUNK: Final = 65_536
_LONGEST_BODY: Final = 20_000
_VERSION: Final = re.compile("[0-9]{1,15}")
_NOTHING: Final = "There is nothing here. Open the whole link that 'planning' printed."
_ELSEWHERE: Final = "This server is 127.0.0.1 and no other. Open the link that 'planning' printed."


def app_of(shown: Feeds | bytes, token: str, *, steers: bool = False) -> ASGIApp:
    """The ASGI application that serves the page below ``/TOKEN/``."""
    base = f"/{token}"
    if isinstance(shown, bytes):

        async def fixed(_request: Request) -> Response:
            chunks = (shown[at : at + _CHUNK] for at in range(0, len(shown), _CHUNK))
            return StreamingResponse(_await(chunks), media_type="text/html")

        return _guard(Starlette(routes=[Route(f"{base}/", fixed)]), token, is_live=False)
    site = _Site(shown, base, steers=steers)
    routes = [
        Route(f"{base}/", site.page),
        Route(f"{base}/s/{{name}}", site.page),
        Route(f"{base}/run/{{name}}.json", site.run),
        Route(f"{base}/events", site.session_changes),
        Route(f"{base}/events/{{name}}", site.changes),
        *([Route(f"{base}/steer/{{name}}", site.steer, methods=["POST"])] if steers else []),
    ]
    return _guard(Starlette(routes=routes), token, is_live=True)


def _guard(app: ASGIApp, token: str, *, is_live: bool) -> ASGIApp:
    return _Closed(Guard(app, LOOPBACK, unknown_host=_ELSEWHERE, is_alone=True), token, is_live=is_live)


class _Site:
    """Answer the requests of the page of sessions."""

    def __init__(self, feeds: Feeds, base: str, *, steers: bool) -> None:
        self._feeds = feeds
        self._live = {"mode": "live", "base": base, **({"steers": True} if steers else {})}

    async def page(self, request: Request) -> Response:
        """The page."""
        session = request.path_params.get("name", self._feeds.only)
        return Response(live_page(as_json({**self._live, "session": session})), media_type="text/html")

    async def run(self, request: Request) -> Response:
        """Answer with the history of a session."""
        name = request.path_params["name"]
        try:
            return _stream(await self._feeds.run(name))
        except LookupError:
            return _no_session(name)
        except StoreError as error:
            return _stream(Document(title=name, kind="session", source="", problem=line_of(error)).parts())

    async def changes(self, request: Request) -> Response:
        """Answer with the changes in a session."""
        name = request.path_params["name"]
        given = request.headers.get("last-event-id") or request.query_params.get("after", "0")
        if _VERSION.fullmatch(given) is None:
            return PlainTextResponse(f"after={printable(given[:40])} is not a version.", 400)
        try:
            return _events(await self._feeds.changes(name, int(given)))
        except LookupError:
            return _no_session(name)
        except StoreError as error:
            return Response(problem_event(line_of(error)), media_type="text/event-stream")

    async def steer(self, request: Request) -> Response:
        """A change of the plan by the user of the page."""
        name = request.path_params["name"]
        try:
            fields = await _fields(request)
            version = await self._feeds.steer(name, command_of(fields), fields["version"])
        except PlanMoved as moved:
            return _json({"message": str(moved), "version": moved.version, "plan": moved.plan}, 409)
        except ToolValidationError as refusal:
            return PlainTextResponse(str(refusal), 400)
        except LookupError:
            return _no_session(name)
        except StoreError as error:
            return PlainTextResponse(line_of(error), 503)
        return _json({"version": version})

    async def session_changes(self, _request: Request) -> Response:
        """The list of sessions, and what changes in it."""
        return _events(self._feeds.session_changes())


async def _fields(request: Request) -> dict[str, Any]:
    """Read what a page sends."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST_BODY:
            raise ToolValidationError(f"send at most {_LONGEST_BODY:,} bytes")
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or type(fields.get("version")) is not int or fields["version"] < 0:
        raise ToolValidationError("send JSON with a command and the version that it is for")
    return fields


def _json(value: object, status: int = 200) -> Response:
    return Response(as_json(value).encode("utf-8", "backslashreplace"), status, media_type="application/json")


def _no_session(name: str) -> Response:
    return PlainTextResponse(f"There is no session {printable(name)}.", 404)


def _events(texts: AsyncGenerator[str]) -> Response:
    async def written() -> AsyncIterator[bytes]:
        async with aclosing(texts):
            async for text in texts:
                yield text.encode("utf-8", "backslashreplace")

    return StreamingResponse(written(), media_type="text/event-stream")


def _stream(parts: Iterable[str]) -> Response:
    """An answer in chunks: of what a client reads slowly, little waits in memory."""

    def chunks() -> Iterator[bytes]:
        waiting, size = list[str](), 0
        for part in parts:
            waiting.append(part)
            size += len(part)
            if size > _CHUNK:
                yield "".join(waiting).encode("utf-8", "backslashreplace")
                waiting, size = [], 0
        yield "".join(waiting).encode("utf-8", "backslashreplace")

    return StreamingResponse(_await(chunks()), media_type="application/json")


async def _await(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


class _Closed:
    """Refuses requests without the token, and limits in every answer who may use it."""

    def __init__(self, app: ASGIApp, token: str, *, is_live: bool) -> None:
        self._app = app
        self._token = token.encode()
        self._headers = [
            (b"content-security-policy", f"{policy(is_live=is_live)}; frame-ancestors 'none'".encode()),
            (b"cache-control", b"no-store"),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"connection", b"close"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *self._headers]}
            await send(message)

        token = scope["path"].removeprefix("/").partition("/")[0]
        is_known = hmac.compare_digest(token.encode(), self._token)
        await (self._app if is_known else PlainTextResponse(_NOTHING, 404))(scope, receive, sent)


async def serve(
    source: StoreSource | bytes,
    port: int = 0,
    *,
    started: Callable[[str], object] = lambda _url: None,
    steers: bool = False,
) -> None:
    """Serve the page on this machine until this is cancelled."""
    token = secrets.token_urlsafe(18)
    shown = source if isinstance(source, bytes) else Feeds(source)
    with listening(_HOST, port, _LIMITS) as sock:
        link = f"http://{_HOST}:{sock.getsockname()[1]}/{token}/"
        ending = shown.end if isinstance(shown, Feeds) else None
        app = app_of(shown, token, steers=steers)
        await serve_app(app, sock, _LIMITS, started=lambda: started(link), ending=ending)

"""``planning mcp``: the planning tools as an MCP server."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import typer

from planning.cli.usage import EXIT_CODES, Refused, bad_option
from planning.errors import nearest, printable, show
from session import Session
from session.errors import IdentityError

if TYPE_CHECKING:
    from planning.workflow.capabilities import Capabilities

__all__ = ["MCP_HELP", "mcp"]

_TOKEN: Final = "PLANNING_MCP_TOKEN"  # noqa: S105 - the name of the variable that holds it
_SHORTEST_TOKEN: Final = 16
_MOST_WARNINGS: Final = 100
# \b keeps a paragraph as it is written.
MCP_HELP: Final = f"""\b
Examples:
  planning mcp
  planning mcp --store plans.db --session nightly --tools mark,read
  planning mcp --http 127.0.0.1:8000
  planning mcp --run my_app.tools:registry

\b
Sessions:
  Each client has a plan of its own. With --session ID, all have the
  same one. With --store FILE, plans are kept in a SQLite database: a
  server that is started again with the same --store and --session
  resumes the plan. Without --session, a client that connects again
  sends the id of its plan as the header Planning-Session.

\b
HTTP:
  The server answers at http://HOST:PORT/mcp; PORT 0 takes any free
  one, and the URL is printed on standard error. When HOST is reached
  from other machines, clients need a token: set {_TOKEN}
  here, of at least {_SHORTEST_TOKEN} characters, and let clients send
  "Authorization: Bearer TOKEN". All who know it are one tenant. Put a
  server that speaks TLS in front.

\b
Running workflows:
  --run module:object adds a tool that runs workflow documents, whose
  steps call the tools of the object. The module is imported, which
  runs its code; name only modules that you trust.

{EXIT_CODES}"""


def mcp(
    *,
    store: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keep the plans in this SQLite database.", show_default=False),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="ID", help="One session for all clients.", show_default=False),
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="The planning tools to offer, such as mark,read; all by default.",
            show_default=False,
        ),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve over HTTP instead of standard input and output.",
            show_default=False,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A name by which the HTTP server may be reached, beside HOST. May be repeated.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE:OBJECT",
            help="Offer a tool that runs workflows, which call these tools. May be repeated.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve the planning tools to MCP clients, over standard input and output or over HTTP.

    The plan is a resource with notifications of changes, and the strategies are prompts.
    """
    try:
        from planning.integrations.mcp import build_server, serve_http, serve_stdio
        from planning.serving import is_loopback
    except ImportError as error:
        raise Refused(str(error)) from None
    names = _plan_tools(tools)
    address = None if http is None else _address(http)
    token = os.environ.get(_TOKEN) or None
    if address is not None:
        if token is not None and len(token) < _SHORTEST_TOKEN:
            raise Refused(
                f"the token in {_TOKEN} has fewer than {_SHORTEST_TOKEN} characters; take a longer one"
            )
        if token is None and not is_loopback(address[0]):
            raise Refused(
                f"{printable(address[0])} is reached from other machines: set {_TOKEN} to a token, which"
                " clients send as a bearer token"
            )
    elif allow_host:
        raise bad_option("--allow-host", "it needs --http")
    server = build_server(**_sessions(store, session), plan_tools=names, workflows=_workflows(run))
    with _logging_plainly():
        if address is None:
            import asyncio

            _end_at_signals()
            asyncio.run(serve_stdio(server))
            return
        host, port = address
        try:
            _serve(
                serve_http(
                    server, host, port, token=token, allowed_hosts=allow_host or (), started=_say_where
                )
            )
        except OSError as error:
            number = error.errno or 0
            reason = os.strerror(number) if number > 0 else error.strerror or type(error).__name__
            raise Refused(f"cannot listen on {printable(str(http))}: {reason}") from None


def _plan_tools(given: str | None) -> tuple[str, ...]:
    """The planning tools by their names, with or without what all of them begin with and end with."""
    from planning.integrations.mcp.server import PLAN_TOOLS

    if given is None:
        return PLAN_TOOLS
    short = {name.split("_")[1]: name for name in PLAN_TOOLS}
    known = {**{name: name for name in PLAN_TOOLS}, **short}
    wanted = [word.strip() for word in given.split(",") if word.strip()]
    for word in wanted:
        if word not in known:
            near = nearest(word, known)
            hint = f"; did you mean {near}?" if near else f"; they are {', '.join(short)}"
            raise bad_option("--tools", f"{show(word)} is not a planning tool{hint}")
    if not wanted:
        raise bad_option("--tools", f"name at least one of {', '.join(short)}")
    return tuple(name for name in PLAN_TOOLS if name in {known[word] for word in wanted})


def _sessions(file: str | None, given: str | None) -> dict[str, Any]:
    """How ``build_server`` finds the sessions: one for all clients, or one for each."""
    from session.stores import SqliteStore, StoreError

    try:
        store = None if file is None else SqliteStore(file)
        if given is not None:
            return {"session": Session(session_id=given, store=store)}
    except IdentityError as error:
        raise bad_option("--session", error) from None
    except StoreError as error:
        raise Refused(printable(str(error))) from None
    if store is None:
        return {}

    def resume(name: str) -> Session | None:
        try:
            known = store.head(UUID(name))  # a random id: none that somebody else could guess
        except ValueError:
            return None
        return None if known is None else Session(session_id=known.session_id, store=store)

    return {"new_session": lambda: Session(store=store), "resume": resume}


def _workflows(given: list[str] | None) -> Capabilities | None:
    if not given:
        return None
    from planning.cli.capabilities import capabilities_of

    if any(":" not in value for value in given):
        raise bad_option("--run", "write module:object, such as my_app.tools:registry")
    try:
        return capabilities_of(tools=given)
    except Refused as error:
        raise Refused(error.message.replace("--tools", "--run", 1)) from None


def _address(given: str) -> tuple[str, int]:
    """The host and the port of ``HOST:PORT``; an IPv6 address is in brackets."""
    host, _, port = given.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not (host and port.isascii() and port.isdigit() and int(port) < 65_536):
        raise bad_option("--http", f"{show(given)} is not HOST:PORT; write 127.0.0.1:8000")
    return host, int(port)


def _end_at_signals() -> None:
    """End the process at a signal: a thread that waits for standard input cannot be stopped."""
    from planning.cli.drive import EXIT_CODES as SIGNAL_CODES

    for number, code in SIGNAL_CODES.items():
        signal.signal(number, lambda *_, code=code: os._exit(code))


def _serve(serving: Coroutine[Any, Any, None]) -> None:
    """Serve until the client leaves, or a signal ends it."""
    from planning.cli.drive import EXIT_CODES as SIGNAL_CODES
    from planning.cli.drive import until_told

    received = until_told(serving)
    if received is not None:
        raise typer.Exit(SIGNAL_CODES[received])


def _say_where(url: str) -> None:
    typer.echo(f"planning: serving MCP at {url}", err=True)


@contextmanager
def _logging_plainly() -> Iterator[None]:
    """Log warnings, each on one line and once: what clients do must not fill what standard error leads to."""
    import logging

    said: set[str] = set()

    class OneLine(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return f"planning: {printable(record.getMessage())[:500]}"

    def is_new(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if len(said) >= _MOST_WARNINGS or text in said:
            return False
        said.add(text)
        return True

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine())
    handler.addFilter(is_new)
    root, tools = logging.getLogger(), logging.getLogger("planning.tools")
    before = root.handlers[:], root.level, tools.level
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    tools.setLevel(logging.CRITICAL)  # the client reads why a call failed
    try:
        yield
    finally:
        root.handlers[:], level, tools_level = before
        root.setLevel(level)
        tools.setLevel(tools_level)

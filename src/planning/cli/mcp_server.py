"""``planning mcp``: the planning tools as an MCP server."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit
from uuid import UUID

import typer

from planning.cli.arguments import session_ids
from planning.cli.capabilities import capabilities_of
from planning.cli.drive import EXIT_CODES as SIGNAL_CODES
from planning.cli.drive import until_signalled
from planning.cli.opening import found_store, known_session
from planning.cli.terminal import say
from planning.cli.usage import LAST, Refused, bad_option
from planning.errors import printable, show
from planning.policy.policy import PlanPolicy
from planning.workflow.capabilities import Capabilities
from session import IdentityError, Session
from session.stores import StoreError

_TOKEN: Final = "PLANNING_MCP_TOKEN"  # noqa: S105 - the name of the variable that holds it
_SHORTEST_TOKEN: Final = 16
# \b keeps a paragraph as it is written.
MCP_HELP: Final = f"""\b
Examples:
  planning mcp
  planning mcp --store plans.db --session nightly --tools mark,read
  planning mcp --store plans.db --session nightly --approval
  planning mcp --http 127.0.0.1:8000
  planning mcp --run my_app.tools:registry

\b
Sessions:
  Each client has a plan of its own. With --session ID, all have the
  same one. With --store STORE, plans are kept in a store: a
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
What the plan must have:
  With --approval, the client asks its user to approve the plan, where
  it can; or run 'planning approve'. It blocks the tools of this
  server, not the client's other tools. With --evidence required, a step
  is marked done only with a successful call that was made since it
  began, of a tool of this server or of a program that works in the same
  session; with unique, one call proves one step.

\b
Claude Code:
  claude mcp add planning -- planning mcp --always-load
    --no-structured --store plans.db --session project
  Without --always-load, Claude Code keeps the tools behind a search.
  With data in the results, its model reads that and not the text.

\b
Arguments of clients:
  Some clients add arguments to a model's calls. They are dropped,
  unless the tool declares them: toolCallId, sessionId, action and
  chatInput (n8n), wait_for_previous (Gemini CLI), random_string
  (Cursor). --ignore NAME,NAME drops these names instead.

\b
Running workflows:
  --run module:object adds a tool that runs workflow documents, whose
  steps call the tools of the object. The module is imported, which
  runs its code; name only modules that you trust.
"""


def mcp(
    *,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="STORE", help="Keep the plans in this SQLite file, or in postgresql://HOST/DATABASE."
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help=f"One session for all clients; {LAST} is the one of the store that was changed last.",
            autocompletion=session_ids,
        ),
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="The planning tools to offer, such as mark,read; all by default."),
    ] = None,
    approval: Annotated[
        bool, typer.Option("--approval", help="A plan waits for the user's approval before other tools run.")
    ] = False,
    evidence: Annotated[
        Literal["required", "unique"] | None,
        typer.Option(help="A step is done only with a call that shows it; see below."),
    ] = None,
    dependencies: Annotated[bool, typer.Option("--dependencies", help="Steps may depend on others.")] = False,
    always_load: Annotated[
        bool, typer.Option("--always-load", help="Claude Code has the tools in every request; see below.")
    ] = False,
    structured: Annotated[
        bool,
        typer.Option(
            "--structured/--no-structured",
            show_default=False,
            help="Whether results have data beside their text, as they do by default; see below.",
        ),
    ] = True,
    ignore: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Arguments that clients add by themselves, to drop; see below."),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve over HTTP instead of standard input and output."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A name by which the HTTP server may be reached, beside HOST. May be repeated.",
        ),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE:OBJECT",
            help="Offer a tool that runs workflows, which call these tools. May be repeated.",
        ),
    ] = None,
) -> None:
    """Serve the planning tools to MCP clients, over standard input and output or over HTTP.

    The plan is a resource with notifications of changes, and the strategies are prompts.
    """
    try:
        from planning.integrations.mcp import build_server, serve_http, serve_stdio
        from planning.integrations.mcp.results import CLIENT_FIELDS
        from planning.serving import is_loopback
    except ImportError as error:
        raise Refused(str(error)) from None

    names = _plan_tools(tools)
    policy = PlanPolicy(evidence=evidence, approval=approval, dependencies=dependencies)
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
    server = build_server(
        **_sessions(store, session),
        plan_tools=names,
        policy=None if policy == PlanPolicy() else policy,
        workflows=_workflows(run),
        always_load=always_load,
        structured=structured,
        ignore=CLIENT_FIELDS if ignore is None else [name.strip() for name in ignore.split(",")],
    )
    _log_plainly()
    if address is None:
        for each in SIGNAL_CODES:  # standard input may never end
            signal.signal(each, lambda number, _: os._exit(SIGNAL_CODES[signal.Signals(number)]))
        asyncio.run(serve_stdio(server))
        return
    hosts, started = allow_host or (), lambda url: say(f"serving MCP at {url}")
    try:
        received = until_signalled(
            serve_http(server, *address, token=token, allowed_hosts=hosts, started=started)
        )
    except OSError as error:
        number = error.errno or 0  # negative where the name of a host is not known
        reason = os.strerror(number) if number > 0 else error.strerror
        raise Refused(f"cannot listen on {printable(str(http))}: {reason}") from None
    if received is not None:
        raise typer.Exit(SIGNAL_CODES[received])


def _plan_tools(given: str | None) -> tuple[str, ...]:
    """The planning tools by their names, with or without what all of them begin with and end with."""
    from planning.integrations.mcp.server import PLAN_TOOLS  # an extra

    if given is None:
        return PLAN_TOOLS
    short = {name.split("_")[1]: name for name in PLAN_TOOLS}
    wanted = [word.strip().removeprefix("planning_").partition("_")[0] for word in given.split(",")]
    if unknown := [word for word in wanted if word not in short]:
        raise bad_option("--tools", f"{show(unknown[0])} is not one of {', '.join(short)}")
    return tuple(name for word, name in short.items() if word in wanted)


def _sessions(file: str | None, given: str | None) -> dict[str, Any]:
    """The way ``build_server`` finds the sessions: one for all clients, or one for each."""
    try:
        store = None if file is None else found_store(file)
        if store is not None:
            store.sessions(1)  # a server that cannot be reached is an error now
        if given == LAST:
            if store is None:
                raise bad_option("--session", f"{LAST} needs --store")
            given = str(known_session(store, LAST))
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
            known = store.head(UUID(name))  # a random id, which no other client can guess
        except ValueError:
            return None
        return None if known is None else Session(session_id=known.session_id, store=store)

    return {"new_session": lambda: Session(store=store), "resume": resume}


def _workflows(given: list[str] | None) -> Capabilities | None:
    if not given:
        return None

    if any(":" not in value for value in given):
        raise bad_option("--run", "write module:object, such as my_app.tools:registry")
    try:
        return capabilities_of(tools=given)
    except Refused as error:
        raise Refused(error.message.replace("--tools", "--run", 1)) from None


def _address(given: str) -> tuple[str, int]:
    """The host and the port of ``HOST:PORT``; an IPv6 address is in brackets."""
    parts, problem = urlsplit(f"//{given}"), f"{show(given)} is not HOST:PORT; write 127.0.0.1:8000"
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        raise bad_option("--http", problem) from None
    if host is None or port is None:
        raise bad_option("--http", problem)
    return host, port


def _log_plainly() -> None:
    """Log warnings on standard error, each on one line: clients decide what is in them."""

    class OneLine(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return f"planning: {printable(record.getMessage())[:500]}"

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("planning.tools").setLevel(logging.CRITICAL)  # the client reads why a call failed

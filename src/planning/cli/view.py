"""``planning view``: what a run did, and what it does now, as a page in the browser."""

from __future__ import annotations

import errno
import os
import signal
import threading
import webbrowser
from pathlib import Path
from typing import Annotated, Final

import typer

from planning.cli.arguments import SOURCES, AnySession, OneSession, ShownSource
from planning.cli.drive import EXIT_CODES as SIGNAL_CODES
from planning.cli.drive import until_signalled
from planning.cli.opening import is_store, known_session, opened_page, opened_store
from planning.cli.source import name_of, writing
from planning.cli.terminal import say
from planning.cli.usage import DEFAULT_STORE, Refused, bad_option
from planning.view.page import export_page
from planning.view.sources import StoreSource

# \b keeps a paragraph as it is written.
EXPORT_HELP: Final = f"""\b
Examples:
  planning export plans.db nightly -o run.html
  planning export transcript.jsonl -o run.html

{SOURCES}
\b
The file:
  It opens from a disk, makes no request, and holds what the run
  recorded: send it only to those who may read that.
"""


def export(
    source: ShownSource = DEFAULT_STORE,
    session: OneSession = None,
    *,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The HTML file to write.")],
) -> None:
    """Write what a run did as one HTML file, the page that 'planning view' shows."""
    target = Path(output)
    if target.suffix.lower() not in {".html", ".htm"}:
        raise bad_option("--output", f"name a file that ends in .html, not {name_of(output)}")
    with opened_page(source, session) as given:
        document = given.document()
    if source != "-" and target.exists() and target.samefile(source):
        raise bad_option("--output", "it is the source itself; name another file")
    with writing(output):
        target.write_bytes(export_page("".join(document.parts())))
    if document.problem is not None:
        say(document.problem)
        raise typer.Exit(1)


# \b keeps a paragraph as it is written.
VIEW_HELP: Final = f"""\b
Examples:
  planning view plans.db
  planning view plans.db nightly
  planning view transcript.jsonl
  planning view --no-open --port 8000 plans.db
  planning view --steer plans.db

{SOURCES}
\b
The page:
  It is served only on 127.0.0.1, at a link with a random token, and
  shows changes as they are made. Ctrl-C ends it; the exit code is 0
  then. 'planning export' writes the same page as a file.
  It changes nothing. With --steer it has buttons that approve or reject
  a plan, and move or remove its steps: keep the link to yourself.
"""
_MOST_PORT: Final = 65_535


def view(
    source: ShownSource = DEFAULT_STORE,
    session: AnySession = None,
    *,
    port: Annotated[
        int, typer.Option(min=0, max=_MOST_PORT, metavar="N", help="The port; 0 for any free one.")
    ] = 0,
    steer: Annotated[
        bool,
        typer.Option("--steer", help="Let the page approve and reject plans, and move and remove steps."),
    ] = False,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the link, and open no browser.")] = False,
) -> None:
    """Show what a run did as a page in the browser, live while it runs.

    The page has the plan in each of its versions, what changed it, refusals, calls and their times, and a
    workflow as a graph.
    """
    try:
        from planning.view.server import serve
    except ImportError as error:
        raise Refused(str(error)) from None

    def started(link: str) -> None:
        typer.echo(link)
        typer.echo("Press Ctrl-C to end.", err=True)
        if not no_open:
            threading.Thread(target=open_browser, args=(link,), name="browser", daemon=True).start()

    shown = _shown(source, session)
    if steer and isinstance(shown, bytes):
        raise bad_option("--steer", "it changes a plan in a store; a file is only shown")
    try:
        received = until_signalled(serve(shown, port, started=started, steers=steer))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise Refused(f"port {port} is in use; name another with --port, or omit it") from None
        raise Refused(f"cannot listen on port {port}: {error.strerror}") from None
    if received is not None and received != signal.SIGINT:
        raise typer.Exit(SIGNAL_CODES[received])


def _shown(source: str, session: str | None) -> StoreSource | bytes:
    """The place of the sessions; or the page of a file."""
    if not is_store(source):
        with opened_page(source, session) as given:
            return export_page("".join(given.document().parts()))
    with opened_store(source) as store:
        return StoreSource(source, None if session is None else str(known_session(store, session)))


def open_browser(link: str) -> None:
    """Open a link in a browser with windows of its own, if there is one."""
    try:
        browser = webbrowser.get()
        is_drawn_here = type(browser) is webbrowser.GenericBrowser and "BROWSER" not in os.environ
        is_open = not is_drawn_here and browser.open(link)  # lynx and its like would take the terminal
    except webbrowser.Error:
        is_open = False
    if not is_open:
        say("no browser was found; open the link yourself")

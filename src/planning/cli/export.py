"""``planning export``: what a run did as one file, or as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planning.cli.session_names import OneSession
from planning.cli.source import DEFAULT_STORE, SOURCES, ShownSource, name_of, no_session
from planning.cli.terminal import say
from planning.cli.usage import Refused, bad_option

if TYPE_CHECKING:
    from planning.view.document import Document

# \b keeps a paragraph as it is written.
EXPORT_HELP: Final = f"""\b
Examples:
  planning export plans.db nightly -o run.html
  planning export transcript.jsonl -o run.html
  planning export plans.db nightly -o run.svg

{SOURCES}
\b
The file:
  The ending of its name decides: .html or .htm is the page, .svg a
  picture of the workflow with its states, or, without a workflow, of
  the plan.
  The page opens from a disk, makes no request, and holds what the run
  recorded: send it only to those who may read that.
"""


def export(
    source: ShownSource = DEFAULT_STORE,
    session: OneSession = None,
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The file to write, .html or .svg.")
    ],
) -> None:
    """Write what a run did as one HTML file, the page that 'planning view' shows; or draw it as SVG."""
    ending = Path(output).suffix.lower()
    if ending not in {".html", ".htm", ".svg"}:
        raise bad_option(
            "--output", f"name a file that ends in .html, the page, or .svg, a picture, not {name_of(output)}"
        )
    document = _document(source, session)
    _write(_drawn(document, source) if ending == ".svg" else _page(document), source, output)
    if document.problem is not None:
        say(document.problem)
        raise typer.Exit(1)


def _document(source: str, session: str | None) -> Document:
    """What is exported."""
    from planning.cli.kinds import is_store
    from planning.cli.loading import loaded

    if not is_store(source):
        if session is not None:
            raise no_session(source)
        return loaded(source)[1]
    from planning.cli.stores import known_session, opened_store
    from planning.view.sessions import read_session

    with opened_store(source) as store, store.reading():
        head = store.newest(known_session(store, session))
        if head is None:
            raise Refused(f"session '{session}' was deleted")
        return read_session(store, head, Path(store.name).name)[0]


def _page(document: Document) -> bytes:
    from planning.view.page import export_page

    return export_page("".join(document.parts()))


def _drawn(document: Document, source: str) -> bytes:
    """The picture: of the workflow if there is one, else of the plan."""
    from planning.view.svg import graph_svg, plan_svg

    if document.run.workflow is not None:
        return graph_svg(document.run).encode()
    if document.plan is not None:
        return plan_svg(document.plan, document.facts).encode()
    raise Refused(f"{name_of(source)} holds neither a workflow nor a plan to draw")


def _write(data: bytes, source: str, output: str) -> None:
    """Write the file."""
    target = Path(output)
    if source != "-" and target.exists() and target.samefile(source):
        raise bad_option("--output", "it is the source itself; name another file")
    try:
        target.write_bytes(data)
    except (OSError, ValueError) as error:  # ValueError: a null character in a path
        reason = getattr(error, "strerror", None) or error
        raise Refused(f"cannot write {name_of(output)}: {reason}") from None

"""``planning export``: what a run did as one file, or as a picture."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planning.cli.source import SOURCES, ShownSession, ShownSource, name_of
from planning.cli.usage import EXIT_CODES, Refused, bad_option

if TYPE_CHECKING:
    from planning.view.document import Document

__all__ = ["EXPORT_HELP", "export"]

# \b keeps a paragraph as it is written.
EXPORT_HELP: Final = f"""\b
Examples:
  planning export plans.db --session nightly -o run.html
  planning export transcript.jsonl -o run.html
  planning export plans.db --session nightly --svg plan -o plan.svg
  planning export workflow.json --svg graph -o workflow.svg

{SOURCES}
\b
The file:
  It opens from a disk, makes no request, and holds what the run
  recorded: send it only to those who may read that.

{EXIT_CODES}"""

_LISTED: Final = 5


class Picture(StrEnum):
    """What is drawn."""

    PLAN = "plan"
    GRAPH = "graph"


def export(
    source: ShownSource,
    *,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write; - for standard output."),
    ],
    session: ShownSession = None,
    svg: Annotated[
        Picture | None,
        typer.Option(
            help="Draw this instead, as a picture: the plan as it is now, or the workflow with its states.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write what a run did as one HTML file, the page that 'planning view' shows; or draw it as SVG."""
    document = _document(source, session)
    data = _written(document, svg, source)
    if output == "-":
        typer.get_binary_stream("stdout").write(data)
    else:
        _write(data, source, output)
    if document.problem is not None:
        typer.echo(f"planning: {document.problem}", err=True)
        raise typer.Exit(1)


def _document(source: str, session: str | None) -> Document:
    """What is exported.

    Raises:
        Refused: It cannot be read.
    """
    from planning.cli.seen import document_of, is_store

    if not is_store(source):
        return document_of(source, session)
    from planning.cli.stores import known_session, opened_store
    from planning.errors import listed
    from planning.view.sessions import read_session

    with opened_store(source) as store, store.reading():
        heads = store.sessions(_LISTED + 1)
        if session is None and len(heads) != 1:
            names = listed(str(each.session_id) for each in heads[:_LISTED])
            more = ", ..." if len(heads) > _LISTED else ""
            what = f"several sessions; name one with --session: {names}{more}" if heads else "no session"
            raise Refused(f"{name_of(source)} holds {what}")
        head = store.newest(known_session(store, session or str(heads[0].session_id)))
        if head is None:
            raise Refused(f"session '{session}' was deleted")
        return read_session(store, head, Path(source).name)[0]


def _written(document: Document, svg: Picture | None, source: str) -> bytes:
    """The bytes of the file.

    Raises:
        Refused: There is nothing to draw.
    """
    from planning.view.page import export_page
    from planning.view.svg import graph_svg, plan_svg

    if svg is None:
        return export_page("".join(document.parts()))
    if svg is Picture.PLAN:
        if document.plan is None:
            raise Refused(f"{name_of(source)} holds no plan to draw")
        return plan_svg(document.plan).encode()
    if document.run.workflow is None:
        raise Refused(f"{name_of(source)} holds no workflow to draw")
    return graph_svg(document.run).encode()


def _write(data: bytes, source: str, output: str) -> None:
    """Write the file.

    Raises:
        Refused: It cannot be written.
    """
    target = Path(output)
    if source != "-" and target.exists() and target.samefile(source):
        raise bad_option("--output", "it is the source itself; name another file")
    try:
        target.write_bytes(data)
    except (OSError, ValueError) as error:  # ValueError: a null character in a path
        reason = getattr(error, "strerror", None) or error
        raise Refused(f"cannot write {name_of(output)}: {reason}") from None

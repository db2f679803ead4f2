"""``planning export``: what a run did as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from planning.cli.source import DEFAULT_STORE, SOURCES, OneSession, ShownSource, name_of, writing
from planning.cli.terminal import say
from planning.cli.usage import bad_option

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
    from planning.cli.opening import opened_page
    from planning.view.page import export_page

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

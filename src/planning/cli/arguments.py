"""The arguments and options that several commands have; a shell completes the ids of sessions."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread
from typing import Annotated, Any, Final

import typer

from planning.cli.usage import DEFAULT_STORE, LAST

WorkflowFile = Annotated[
    str | None, typer.Argument(metavar="WORKFLOW", help="A file, or - for standard input.")
]

_NAMES: Final = "MODULE:OBJECT|NAMES"

Tools = Annotated[
    list[str] | None,
    typer.Option(
        metavar=_NAMES,
        help="The tools: an object in a Python module, which is imported, see below; or names with commas"
        " between them, which are known and cannot be called. May be repeated.",
    ),
]

Handlers = Annotated[list[str] | None, typer.Option(metavar=_NAMES, help="The handlers, in the same way.")]

Agents = Annotated[list[str] | None, typer.Option(metavar=_NAMES, help="The agents, in the same way.")]

McpServers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COMMAND", help="Start an MCP server with this command, and take its tools. May be repeated."
    ),
]

_STORE: Final = "A SQLite file with sessions, or postgresql://HOST/DATABASE"
_SOURCE: Final = "A store, by default that of 'planning run'; or a file with one {}, or - for standard input."

StoreFile = Annotated[str, typer.Argument(metavar="STORE", help=f"{_STORE}.")]

RunsFile = Annotated[
    str, typer.Argument(metavar="STORE", help=f"{_STORE}; by default that of 'planning run'.")
]

AnySource = Annotated[str | None, typer.Argument(metavar="SOURCE", help=_SOURCE.format("session"))]

ShownSource = Annotated[str, typer.Argument(metavar="SOURCE", help=_SOURCE.format("run"))]

SOURCES: Final = """\b
What it reads:
  A store, as 'planning run' keeps one. Or a snapshot of a session, the
  JSON of Session.snapshot().to_json(). Or a transcript, as 'planning
  replay' reads it. Or a workflow.
"""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, nothing else.")]

Finished = Annotated[
    bool,
    typer.Option(
        "--finished",
        help="The text is complete, as the provider's finish reason says: add missing closing brackets"
        " instead of reporting that it was cut.",
    ),
]

_PATIENCE: Final = 1.0  # seconds: a server that does not answer must not hold up the shell


def session_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids that begin so, of the store that is named before; none without such a store."""
    place = ctx.params.get("store") or ctx.params.get("source") or DEFAULT_STORE
    found: list[str] = []
    reading = Thread(target=lambda: found.extend(_ids_in(str(place))), daemon=True)
    reading.start()
    reading.join(_PATIENCE)
    return [each for each in found if each.startswith(incomplete)]


def _ids_in(place: str) -> list[str]:
    from planning.cli.opening import opened_store

    with suppress(Exception), opened_store(place) as store:  # whatever is wrong: the command will say so
        return [str(head.session_id) for head in store.sessions()]
    return []


def _session(more: str) -> Any:
    more = (
        f"The id of a session in it, or its beginning, or {LAST} for the one that was changed last{more}."
        " Without a store, that of 'planning run'."
    )
    return typer.Argument(metavar="SESSION", help=more, autocompletion=session_ids)


SessionName = Annotated[str, _session("")]
AnySession = Annotated[str | None, _session("; all if omitted")]
OneSession = Annotated[str | None, _session("; may be omitted if it has only one")]

"""The argument that names a session; a shell completes it with the ids of the store that is named before."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread
from typing import Annotated, Final

import typer

from planning.cli.source import DEFAULT_STORE

_PATIENCE: Final = 1.0  # seconds: a server that does not answer must not hold up the shell


def session_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids that begin so, of the store that is named before; none where there is no such store.

    Args:
        ctx: The arguments so far.
        incomplete: The beginning of an id.
    """
    place = ctx.params.get("store") or ctx.params.get("source") or DEFAULT_STORE
    found: list[str] = []
    reading = Thread(target=lambda: found.extend(_ids_in(str(place))), daemon=True)
    reading.start()
    reading.join(_PATIENCE)
    return [each for each in found if each.startswith(incomplete)]


def _ids_in(place: str) -> list[str]:
    from planning.cli.stores import opened_store

    with suppress(Exception), opened_store(place) as store:  # whatever is wrong: the command will say so
        return [str(head.session_id) for head in store.sessions()]
    return []


SessionName = Annotated[
    str, typer.Argument(metavar="SESSION", help="The id of a session in it.", autocompletion=session_ids)
]
OneSession = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION",
        help="The id of a session in it; may be omitted if it has only one.",
        autocompletion=session_ids,
    ),
]

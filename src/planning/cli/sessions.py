"""``planning sessions``, ``diff``, ``rewind``, ``fork`` and ``verify``: the sessions of a store."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from planning.cli.source import DEFAULT_STORE, AsJson, OneSession, RunsFile, SessionName, StoreFile
from planning.cli.terminal import TROUBLE, as_json, columns, count, seconds_text, wants_color
from planning.cli.usage import bad_option
from planning.view.text import one_line

if TYPE_CHECKING:
    from rich.text import Text

    from planning.health import HealthState
    from planning.view.sessions import Listed

__all__ = ["diff", "fork", "rewind", "sessions", "verify"]

_ACTOR: Final = "planning rewind"
_STYLES: Final[dict[HealthState, str]] = {
    "working": "cyan",
    "waiting": "bold yellow",
    "finished": "green",
    "failed": "bold red",
    "stopped": "yellow",
}
_Version = Annotated[int, typer.Argument(metavar="VERSION", min=0, help="A version of it.")]


def sessions(
    store: RunsFile = DEFAULT_STORE,
    *,
    all_: Annotated[
        bool, typer.Option("--all", help="List all sessions; without it, the 50 that were changed last.")
    ] = False,
    as_json_: AsJson = False,
) -> None:
    """List the sessions of a store: how each is doing, its step at hand or its error, and how long it took.

    The session that was changed last is the first. Times are in UTC. A session is working, waiting for
    approval, finished, failed or stopped; nothing works on one that is stopped.
    """
    from planning.cli.stores import opened_store
    from planning.cli.table import MOST_ROWS, laid_out
    from planning.view.sessions import listed

    now = datetime.now(UTC)
    with opened_store(store) as opened, opened.reading():
        found = opened.sessions()
        rows = list(listed(opened, found if all_ else found[:MOST_ROWS], now))
    if as_json_:
        typer.echo(as_json([_fields(each, now) for each in rows]))
        return
    if not found:
        typer.echo("No sessions.")
        return
    names = ("session", "state", "done", "at", "for", "took", "changed")
    cells = [_cells(each, now) for each in rows]
    paints = wants_color(sys.stdout)
    for line in laid_out(names, cells, columns(sys.stdout), most=len(cells), color=paints)[0]:
        typer.echo(line)
    if len(found) > len(rows):
        typer.echo(f"and {len(found) - len(rows):,} more; --all lists all")


def _cells(row: Listed, now: datetime) -> tuple[str | Text, ...]:
    """A session as a row of the list."""
    from planning.cli.table import line_text

    health, head = row.health, row.head
    name = str(head.session_id)
    changed = "?" if head.damage is not None else f"{head.changed_at:%Y-%m-%d %H:%M:%S}"
    if health is None:
        problem = (
            "" if row.problem is None else line_text(one_line(f"cannot be read: {row.problem}"), TROUBLE)
        )
        return name, "no plan" if row.problem is None else "?", "", problem, "", "", changed
    style = _STYLES[health.state]
    is_error = health.error is not None and (health.state != "finished" or health.done < health.total)
    at = health.error if is_error else " ".join(filter(None, (health.step, health.title)))
    seconds = health.seconds(now)
    return (
        name,
        line_text(health.words, style),
        f"{health.done} of {health.total}",
        line_text(one_line(at or ""), style if is_error else ""),
        line_text(one_line(health.objective)),
        "" if seconds is None else seconds_text(seconds),
        changed,
    )


def _fields(row: Listed, now: datetime) -> dict[str, Any]:
    head, health = row.head, row.health
    names = ("state", "objective", "done", "total", "step", "title", "others", "error")
    return {
        "session_id": str(head.session_id),
        "version": head.version,
        "created_at": head.created_at.isoformat(),
        "changed_at": head.changed_at.isoformat(),
        "tags": dict(head.tags),
        "forked_from": [{"session_id": str(source), "version": last} for source, last in head.forked_from],
        **dict.fromkeys((*names, "seconds")),
        **({} if health is None else {name: getattr(health, name) for name in names}),
        **({} if health is None else {"seconds": health.seconds(now)}),
        **({} if row.problem is None else {"problem": row.problem}),
    }


def diff(
    store: StoreFile,
    session: SessionName,
    before: Annotated[int, typer.Argument(metavar="A", min=0, help="A version of it.")],
    after: Annotated[int, typer.Argument(metavar="B", min=0, help="Another version.")],
    *,
    as_json_: AsJson = False,
) -> None:
    """Say what differs between the plans of two versions of a session."""
    from planning.cli.stores import opened_session
    from planning.view.timeline import between

    with opened_session(store, session, is_read=True) as found:
        fields = between(found.at(before), found.at(after))
    typer.echo(as_json(fields) if as_json_ else one_line(fields["text"]))


def rewind(
    store: StoreFile,
    session: SessionName,
    version: _Version,
    *,
    as_json_: AsJson = False,
) -> None:
    """Restore the plan, and all else, of a version of a session.

    That is a new change: nothing in the history is rewritten, and a later version can be restored in the same
    way. The logs of calls stay. A program that has the session open sees it at its next call.
    """
    from planning.cli.stores import opened_session
    from planning.view.timeline import between

    with opened_session(store, session) as found:
        now = found.rewind(version, actor=_ACTOR)
        fields = between(found.at(now - 1), found.at(now))
    if as_json_:
        typer.echo(as_json({"session_id": session, "version": now, "diff": fields}))
    else:
        typer.echo(f"Version {now} restores version {version}. {one_line(fields['text'])}")


def fork(
    store: StoreFile,
    session: SessionName,
    *,
    at: Annotated[
        int | None,
        typer.Option(min=0, metavar="VERSION", help="The last version to copy; the newest if omitted."),
    ] = None,
    as_: Annotated[
        str | None,
        typer.Option("--as", metavar="SESSION", help="The id of the fork; a random one if omitted."),
    ] = None,
    as_json_: AsJson = False,
) -> None:
    """Copy the history of a session, up to a version, into a session of its own."""
    from planning.cli.stores import opened_session
    from session import IdentityError

    with opened_session(store, session) as found:
        try:
            forked = found.fork(at, session_id=as_)
        except IdentityError as error:
            raise bad_option("--as", error) from None
    if as_json_:
        typer.echo(as_json({"session_id": str(forked.session_id), "version": forked.version}))
    else:
        typer.echo(f"Forked {session} at version {forked.version} as {forked.session_id}.")


def verify(store: StoreFile, session: OneSession = None, *, as_json_: AsJson = False) -> None:
    """Check that a session is as it was written: all of its changes and checkpoints.

    The exit code is 1 where something is damaged.
    """
    from planning.cli.stores import known_session, opened_store
    from planning.view.text import line_of
    from session.stores import StoreError

    with opened_store(store) as opened, opened.reading():
        damage, version, versions = None, None, None
        identity = known_session(opened, session)
        try:
            versions = opened.verify(identity)
        except StoreError as error:
            damage, version = line_of(error), error.version
    if as_json_:
        typer.echo(as_json({"sound": damage is None, "version": version or versions, "damage": damage}))
    else:
        typer.echo(damage or f"{identity} is sound: {count(versions or 0, 'version')}.")
    if damage is not None:
        raise typer.Exit(1)

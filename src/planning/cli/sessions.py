"""``planning sessions``, ``diff``, ``rewind``, ``fork`` and ``verify``: the sessions of a store."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from planning.cli.session_names import OneSession, SessionName
from planning.cli.source import DEFAULT_STORE, AsJson, RunsFile, StoreFile
from planning.cli.terminal import as_json, columns, count
from planning.cli.usage import bad_option
from planning.view.text import fitted, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from session.stores import StoredSession

__all__ = ["diff", "fork", "rewind", "sessions", "verify"]

_ACTOR: Final = "planning rewind"
_MOST: Final = 50  # sessions that are listed
_GAP: Final = "  "
_WIDEST: Final = 40  # columns of an id: a UUID has 36
_ENOUGH: Final = 60  # columns for a plan; with fewer it is on a second line
_LEAST: Final = 4  # columns of a plan, where not even that fits
_Version = Annotated[int, typer.Argument(metavar="VERSION", min=0, help="A version of it.")]


def sessions(
    store: RunsFile = DEFAULT_STORE,
    *,
    all_: Annotated[
        bool, typer.Option("--all", help="List all sessions; without it, the 50 that were changed last.")
    ] = False,
    as_json_: AsJson = False,
) -> None:
    """List the sessions of a store, with their plans.

    The session that was changed last is the first. Times are in UTC.
    """
    from planning.cli.stores import opened_store
    from planning.view.sessions import session_fields

    with opened_store(store) as opened, opened.reading():
        found = opened.sessions()
        shown = found if all_ else found[:_MOST]
        rows = [(each, session_fields(opened, each)) for each in shown]
    if as_json_:
        typer.echo(as_json([_fields(*row) for row in rows]))
        return
    if not found:
        typer.echo("No sessions.")
        return
    names = ("session", "version", "changed", "plan")
    cells = [
        (str(head.session_id), str(head.version), _moment_of(head), one_line(_plan_in(plan)))
        for head, plan in rows
    ]
    for line in _listed([names, *cells], columns(sys.stdout)):
        typer.echo(line)
    if len(found) > len(shown):
        typer.echo(f"and {len(found) - len(shown):,} more; --all lists all")


def _listed(table: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """A line for each row, or two where a line has no room: only the last cell is ever cut.

    Args:
        table: The rows, the names of the columns first.
        width: The columns of the terminal; None where nothing is cut.
    """
    *sizes, longest = (max(map(len, column)) for column in zip(*table, strict=True))
    sizes = [min(size, _WIDEST) for size in sizes]  # a longer id shifts the rest of its line
    ends = list(accumulate(size + len(_GAP) for size in sizes))
    is_narrow = width is not None and width - ends[-1] < min(longest, _ENOUGH)
    first = max(1, sum(end - len(_GAP) <= (width or 0) for end in ends)) if is_narrow else len(ends)
    for *cells, last in table:
        words = [cell.ljust(size) + _GAP for cell, size in zip(cells, sizes, strict=True)]
        start = "".join(words[:first])
        if is_narrow:
            yield start.rstrip()
            start = _GAP + "".join(words[first:])
        yield start + (last if width is None else fitted(last, max(_LEAST, width - len(start))))


def _moment_of(head: StoredSession) -> str:
    return "?" if head.damage is not None else f"{head.changed_at:%Y-%m-%d %H:%M:%S}"


def _plan_in(plan: Mapping[str, Any]) -> str:
    """The plan of a session, in brief."""
    if plan["problem"] is not None:
        return f"cannot be read: {plan['problem']}"
    if plan["status"] is None:
        return "no plan"
    approval = {"waiting": ", waits for approval", "rejected": ", rejected"}.get(plan.get("approval", ""), "")
    return f"{plan['status']}, {plan['done']} of {plan['total']} done{approval}: {plan['objective']}"


def _fields(head: StoredSession, plan: Mapping[str, Any]) -> dict[str, Any]:
    names = ("objective", "status", "done", "total")
    return {
        "session_id": str(head.session_id),
        "version": head.version,
        "created_at": head.created_at.isoformat(),
        "changed_at": head.changed_at.isoformat(),
        "tags": dict(head.tags),
        "forked_from": [{"session_id": str(source), "version": last} for source, last in head.forked_from],
        "plan": None if plan["status"] is None else {name: plan[name] for name in names},
        **({} if plan["problem"] is None else {"problem": plan["problem"]}),
    }


def diff(
    store: StoreFile,
    session: OneSession = None,
    before: Annotated[
        int | None, typer.Argument(metavar="A", min=0, help="A version; the last but one if omitted.")
    ] = None,
    after: Annotated[
        int | None, typer.Argument(metavar="B", min=0, help="Another version; the newest if omitted.")
    ] = None,
    *,
    as_json_: AsJson = False,
) -> None:
    """Say what differs between the plans of two versions of a session, by default the last two."""
    from planning.cli.stores import opened_session
    from planning.view.timeline import between

    with opened_session(store, session, is_read=True) as found:
        first = max(0, found.version - 1) if before is None else before
        last = found.version if after is None else after
        fields = between(found.at(first), found.at(last))
    shown = f"From version {first} to {last}: {one_line(fields['text'])}"
    typer.echo(as_json({"from": first, "to": last, **fields}) if as_json_ else shown)


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
    session: OneSession = None,
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
        typer.echo(f"Forked {found.session_id} at version {forked.version} as {forked.session_id}.")


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

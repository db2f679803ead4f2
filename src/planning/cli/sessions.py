"""``planning sessions``, ``diff``, ``rewind``, ``fork`` and ``verify``: the sessions of a store."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from planning.cli.source import DEFAULT_STORE, AsJson, OneSession, RunsFile, SessionName, StoreFile
from planning.cli.terminal import as_json, columns, count, wrapped
from planning.cli.usage import EXIT_CODES, bad_option
from planning.errors import one_line

if TYPE_CHECKING:
    from session.stores import Store, StoredSession

__all__ = [
    "DIFF_HELP",
    "FORK_HELP",
    "REWIND_HELP",
    "SESSIONS_HELP",
    "VERIFY_HELP",
    "diff",
    "fork",
    "rewind",
    "sessions",
    "verify",
]

# \b keeps a paragraph as it is written.
SESSIONS_HELP: Final = f"""\b
Examples:
  planning sessions plans.db
  planning sessions plans.db --json

{EXIT_CODES}"""
DIFF_HELP: Final = f"""\b
Examples:
  planning diff plans.db nightly 3 7
  planning diff plans.db nightly 0 7 --json

{EXIT_CODES}"""
REWIND_HELP: Final = f"""\b
Examples:
  planning rewind plans.db nightly 3

{EXIT_CODES}"""
FORK_HELP: Final = f"""\b
Examples:
  planning fork plans.db nightly
  planning fork plans.db nightly --at 3 --as what-if

{EXIT_CODES}"""
VERIFY_HELP: Final = f"""\b
Examples:
  planning verify plans.db nightly

{EXIT_CODES}"""
_ACTOR: Final = "planning rewind"
_UNREADABLE: Final = "cannot be read: "
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
    from planning.cli.table import MOST_ROWS, laid_out

    with opened_store(store) as opened, opened.reading():
        found = opened.sessions()
        shown = found if all_ else found[:MOST_ROWS]
        rows = [(each, *_plan_in(opened, each)) for each in shown]
    if as_json_:
        typer.echo(as_json([_fields(*row) for row in rows]))
        return
    if not found:
        typer.echo("No sessions.")
        return
    names = ("session", "version", "changed", "plan")
    cells = [(str(head.session_id), head.version, _moment_of(head), text) for head, _, text in rows]
    for line in laid_out(names, cells, columns(sys.stdout), most=len(cells))[0]:
        typer.echo(line)
    if len(found) > len(shown):
        typer.echo(f"and {len(found) - len(shown):,} more; --all lists all")


def _moment_of(head: StoredSession) -> str:
    return "?" if head.damage is not None else f"{head.changed_at:%Y-%m-%d %H:%M:%S}"


def _plan_in(store: Store, head: StoredSession) -> tuple[dict[str, Any] | None, str]:
    """The plan of a session, in brief: as JSON has it, and as a text."""
    from planning.model import Plan
    from planning.view.stores import open_session
    from planning.view.text import line_of
    from session.stores import StoreError

    if head.damage is not None:
        return None, f"{_UNREADABLE}{head.damage}"
    try:
        plan = open_session(store, head.session_id).select_latest(Plan)
    except StoreError as error:
        return None, f"{_UNREADABLE}{line_of(error)}"
    if plan is None:
        return None, "no plan"
    done, total = plan.progress
    fields = {"objective": plan.objective, "status": plan.status, "done": done, "total": total}
    return fields, f"{plan.status}, {done} of {total} done: {plan.objective}"


def _fields(head: StoredSession, plan: dict[str, Any] | None, text: str) -> dict[str, Any]:
    return {
        "session_id": str(head.session_id),
        "version": head.version,
        "created_at": head.created_at.isoformat(),
        "changed_at": head.changed_at.isoformat(),
        "tags": dict(head.tags),
        "forked_from": [{"session_id": str(source), "version": last} for source, last in head.forked_from],
        "plan": plan,
        **({"problem": text.removeprefix(_UNREADABLE)} if text.startswith(_UNREADABLE) else {}),
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
    from planning.cli.stores import known_session, opened_store
    from planning.diff import diff_plans
    from planning.model import Plan
    from planning.view.stores import open_session
    from planning.view.timeline import diff_fields

    with opened_store(store) as opened, opened.reading():
        found = open_session(opened, known_session(opened, session))
        plans = [found.at(version).select_latest(Plan) for version in (before, after)]
    differs = diff_plans(*plans)
    if as_json_:
        typer.echo(as_json(diff_fields(differs)))
    else:
        _say(str(differs))


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
    from planning.cli.stores import known_session, opened_store
    from planning.diff import diff_plans
    from planning.model import Plan
    from planning.view.stores import open_session
    from planning.view.timeline import diff_fields

    with opened_store(store) as opened:
        found = open_session(opened, known_session(opened, session))
        now = found.rewind(version, actor=_ACTOR)
        differs = diff_plans(found.at(now - 1).select_latest(Plan), found.select_latest(Plan))
    if as_json_:
        typer.echo(as_json({"session_id": session, "version": now, "diff": diff_fields(differs)}))
    else:
        _say(f"Version {now} restores version {version}. {differs}")


def fork(
    store: StoreFile,
    session: SessionName,
    *,
    at: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="VERSION",
            help="The last version to copy; the newest if omitted.",
            show_default=False,
        ),
    ] = None,
    as_: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="SESSION", help="The id of the fork; a random one if omitted.", show_default=False
        ),
    ] = None,
    as_json_: AsJson = False,
) -> None:
    """Copy the history of a session, up to a version, into a session of its own."""
    from planning.cli.stores import known_session, opened_store
    from planning.view.stores import open_session
    from session import IdentityError

    with opened_store(store) as opened:
        found = open_session(opened, known_session(opened, session))
        try:
            forked = found.fork(at, session_id=as_)
        except IdentityError as error:
            raise bad_option("--as", error) from None
    if as_json_:
        typer.echo(as_json({"session_id": str(forked.session_id), "version": forked.version}))
    else:
        _say(f"Forked {session} at version {forked.version} as {forked.session_id}.")


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
        _say(damage or f"{identity} is sound: {count(versions or 0, 'version')}.")
    if damage is not None:
        raise typer.Exit(1)


def _say(text: str) -> None:
    for line in wrapped(one_line(text), columns(sys.stdout)):
        typer.echo(line)

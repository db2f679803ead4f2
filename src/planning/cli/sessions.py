"""``planning sessions``, ``diff``, ``rewind``, ``fork`` and ``verify``: the sessions of a store."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer

from planning.cli.arguments import AnySession, AsJson, OneSession, RunsFile, SessionName, StoreFile
from planning.cli.opening import known_session, opened_session, opened_store
from planning.cli.terminal import as_json, columns, count, painted, readable, seconds_text, wants_color
from planning.cli.usage import DEFAULT_STORE, Refused, bad_option, examples
from planning.errors import line_of, printable
from planning.observe.health import HealthState
from planning.observe.text import fitted, one_line
from planning.observe.timeline import between
from planning.plan.commands import ApprovePlan, RejectPlan
from planning.suite.approval import PendingApproval, decide_approval, decision_of, pending_approval
from planning.view.sources import Listed, listed
from session import IdentityError
from session.stores import StoreError

SESSIONS_HELP: Final = examples("sessions", "sessions plans.db --json")
DIFF_HELP: Final = examples(
    "diff plans.db nightly", "diff plans.db nightly 3", "diff plans.db nightly 3 7 --json"
)
REWIND_HELP: Final = examples("rewind plans.db nightly 3")
FORK_HELP: Final = examples("fork plans.db nightly", "fork plans.db nightly --at 3 --as what-if")
VERIFY_HELP: Final = examples("verify plans.db", "verify plans.db nightly")
APPROVE_HELP: Final = examples(
    "approve plans.db nightly", 'approve plans.db nightly --reject "Test it first"'
)


def approve(
    store: RunsFile = DEFAULT_STORE,
    session: OneSession = None,
    *,
    reject: Annotated[
        str | None, typer.Option(metavar="REASON", help="Reject the plan: what the agent should change.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve the plan without a question.")] = False,
) -> None:
    """Approve or reject a plan that waits for it, while its agent runs or afterwards.

    The plan is shown, and you are asked. The decision is for the plan that was shown: if the agent has
    changed it by then, you see the new one. The exit code is 1 if nothing waits, or you rejected the plan
    when asked.
    """
    if reject is not None and (yes or not reject.strip()):
        raise bad_option("--reject", "omit --yes" if yes else "say what the agent should change")
    given = {"decision": "reject", "reason": reject} if reject is not None else "approve" if yes else None
    with opened_session(store, session) as found:
        decision = None
        while decision is None:
            pending = pending_approval(found)
            if pending is None:
                typer.echo("Nothing waits for approval.")
                raise typer.Exit(1)
            typer.echo(_shown(pending))
            decision = decision_of(given) or _asked()
            if not decide_approval(found, pending, decision):
                typer.echo("The plan has changed.")
                decision = None
    if isinstance(decision, RejectPlan):
        typer.echo(f"Rejected: {printable(decision.reason)}")
        raise typer.Exit(int(reject is None))
    typer.echo("Approved.")


def _shown(pending: PendingApproval) -> str:
    waiting = f"Waiting for approval: {', '.join(pending.step_ids) or 'the plan'}"
    return "\n".join([*map(printable, pending.text.split("\n")), waiting])


def _asked() -> ApprovePlan | RejectPlan:
    """The user's decision; asked three times at most."""
    try:
        for _ in range(3):
            answer = input("Type approve or reject: ").strip().lower()
            reason = input("What should the agent change? ") if answer == "reject" else ""
            decision = decision_of({"decision": answer, "reason": reason})
            if decision is not None:
                return decision
    except EOFError:
        raise Refused("no answer on standard input; nothing was decided. Give --yes or --reject") from None
    raise Refused("the answer was neither approve nor reject; nothing was decided")


_STYLES: Final[dict[HealthState, str]] = {
    "working": "cyan",
    "waiting": "bold yellow",
    "finished": "green",
    "failed": "bold red",
    "stopped": "yellow",
}
_MOST: Final = 50  # sessions that are listed
_GAP: Final = "  "
_WIDEST: Final = 40  # columns of an id: a UUID has 36
_ENOUGH: Final = 12  # columns for a plan; with fewer, other cells go
_GOING: Final = (3, 4, 2)  # took, changed, done
_LEAST: Final = 8  # columns of a plan, where not even that fits
_Version = Annotated[int, typer.Argument(metavar="VERSION", min=0, help="A version of it.")]


def sessions(
    store: RunsFile = DEFAULT_STORE,
    *,
    all_: Annotated[
        bool, typer.Option("--all", help="List all sessions; without it, the 50 that were changed last.")
    ] = False,
    as_json_: AsJson = False,
) -> None:
    """List the sessions of a store: their state, the current step or the error, and how long they took.

    The session that was changed last is the first. Times are in UTC. A session is working, waiting for
    approval, finished, failed or stopped; nothing works on one that is stopped.
    """
    now = datetime.now(UTC)
    with opened_store(store) as opened, opened.reading():
        found = opened.sessions()
        rows = list(listed(opened, found if all_ else found[:_MOST], now))
    if as_json_:
        typer.echo(as_json([_fields(each, now) for each in rows]))
        return
    if not found:
        typer.echo("No sessions.")
        return
    names = ("session", "state", "done", "took", "changed", "plan")
    styles = ["", *("" if each.health is None else _STYLES[each.health.state] for each in rows)]
    for line in _listed([names, *(_cells(each, now) for each in rows)], styles, columns(sys.stdout)):
        typer.echo(line)
    if len(found) > len(rows):
        typer.echo(f"and {len(found) - len(rows):,} more; --all lists all")


def _cells(row: Listed, now: datetime) -> tuple[str, ...]:
    """A session as a row of the list; the last cell is its current step or its error, and its objective."""
    health, head = row.health, row.head
    name = str(head.session_id)
    changed = "?" if head.damage is not None else f"{head.changed_at:%Y-%m-%d %H:%M:%S}"
    if row.problem is not None:
        return name, "?", "", "", changed, one_line(f"cannot be read: {row.problem}")
    if health is None:
        return name, "no plan", "", "", changed, ""
    error = None if health.state == "finished" else health.error
    at, seconds = error or " ".join(filter(None, (health.step, health.title))), health.elapsed(now)
    return (
        name,
        health.label,
        f"{health.done} of {health.total}",
        "" if seconds is None else seconds_text(seconds),
        changed,
        one_line(f"{at} ({health.objective})" if at and health.objective else at or health.objective),
    )


def _fields(row: Listed, now: datetime) -> dict[str, Any]:
    head, health = row.head, row.health
    names = ("state", "objective", "done", "total", "step", "title", "error")
    return {
        "session_id": str(head.session_id),
        "version": head.version,
        "created_at": head.created_at.isoformat(),
        "changed_at": head.changed_at.isoformat(),
        "tags": dict(head.tags),
        "forked_from": [{"session_id": str(source), "version": last} for source, last in head.forked_from],
        **{name: getattr(health, name, None) for name in names},
        "others": None if health is None else health.other_steps,
        "seconds": None if health is None else health.elapsed(now),
        **({} if row.problem is None else {"problem": row.problem}),
    }


def _listed(table: Sequence[Sequence[str]], styles: Sequence[str], width: int | None) -> Iterator[str]:
    """A line for each row, or two where not even the id and the state fit; only the last cell is cut."""
    sizes = [max(map(len, column)) for column in zip(*table, strict=True)]
    sizes[0] = min(sizes[0], _WIDEST)  # a longer id shifts the rest of its line
    indent, shown = "", _fitting(sizes, [*range(len(sizes))], width)
    if width is not None and _room(sizes, shown, width) < 0:
        indent, shown = _GAP, _fitting(sizes, [*range(1, len(sizes))], width - len(_GAP))
    color = wants_color(sys.stdout)
    for cells, style in zip(table, styles, strict=True):
        words = {place: cells[place].ljust(sizes[place]) + _GAP for place in shown[:-1]}
        used = len(indent) + sum(map(len, words.values()))
        words[1] = painted(cells[1], style, color=color) + words[1][len(cells[1]) :]
        last = cells[-1] if width is None else fitted(cells[-1], max(_LEAST, width - used))
        if indent:
            yield cells[0]
        yield (indent + "".join(words.values()) + last).rstrip()


def _fitting(sizes: Sequence[int], places: list[int], width: int | None) -> list[int]:
    """The cells of a line that leave room for the last one; the first ones always stay."""
    for place in _GOING:
        if width is not None and _room(sizes, places, width) < 0:
            places.remove(place)
    return places


def _room(sizes: Sequence[int], places: Sequence[int], width: int) -> int:
    """The columns that a line has to spare; below 0 if the last cell has too few."""
    return width - sum(sizes[place] + len(_GAP) for place in places[:-1]) - min(sizes[-1], _ENOUGH)


def diff(
    store: RunsFile = DEFAULT_STORE,
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
    with opened_session(store, session, is_read=True) as found:
        first = max(0, found.version - 1) if before is None else before
        last = found.version if after is None else after
        fields = between(found.at(first), found.at(last))
    shown = f"From version {first} to {last}: {readable(fields['text'])}"
    typer.echo(as_json({"from": first, "to": last, **fields}) if as_json_ else shown)


def rewind(store: StoreFile, session: SessionName, version: _Version, *, as_json_: AsJson = False) -> None:
    """Restore the plan, and all else, of a version of a session.

    That is a new change: nothing in the history is rewritten, and a later version can be restored in the same
    way. The logs of calls stay. A program that has the session open sees it at its next call.
    """
    with opened_session(store, session) as found:
        now = found.rewind(version, actor="planning rewind")
        fields = between(found.at(now - 1), found.at(now))
    if as_json_:
        typer.echo(as_json({"session_id": str(found.session_id), "version": now, "diff": fields}))
    else:
        typer.echo(f"Version {now} restores version {version}. {readable(fields['text'])}")


def fork(
    store: RunsFile = DEFAULT_STORE,
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
    with opened_session(store, session) as found:
        try:
            forked = found.fork(at, session_id=as_)
        except IdentityError as error:
            raise bad_option("--as", error) from None
    if as_json_:
        typer.echo(as_json({"session_id": str(forked.session_id), "version": forked.version}))
    else:
        typer.echo(f"Forked {found.session_id} at version {forked.version} as {forked.session_id}.")


def verify(store: RunsFile = DEFAULT_STORE, session: AnySession = None, *, as_json_: AsJson = False) -> None:
    """Check that sessions are as they were written: all of their changes and checkpoints.

    The exit code is 1 where something is damaged.
    """
    found = list[dict[str, Any]]()
    with opened_store(store) as opened, opened.reading():
        names = [head.session_id for head in opened.sessions()] if session is None else [session]
        is_one = len(names) == 1
        for identity in [known_session(opened, str(name)) for name in names]:
            damage, version = None, None
            try:
                version = opened.verify(identity)
            except StoreError as error:
                damage, version = line_of(error), error.version
            about = {} if is_one else {"session_id": str(identity)}
            found.append({**about, "sound": damage is None, "version": version, "damage": damage})
            if not as_json_:
                sound = f"{identity} is sound: {count(version or 0, 'version')}."
                typer.echo(sound if damage is None else damage if is_one else f"{identity}: {damage}")
    if as_json_:
        typer.echo(as_json(found[0] if is_one else found))
    elif not found:
        typer.echo("No sessions.")
    if not all(each["sound"] for each in found):
        raise typer.Exit(1)

"""``planning history`` and ``planning watch``: what changed a session, and what changes it now."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Annotated, Final

import typer

from planning.cli.arguments import AsJson, OneSession, RunsFile
from planning.cli.faces import face_of
from planning.cli.opening import opened
from planning.cli.progress import Progress
from planning.cli.terminal import Line, as_json, readable, say, wrapped
from planning.cli.usage import DEFAULT_STORE, examples
from planning.errors import line_of
from planning.observe.fact_words import approval_words
from planning.observe.names import named_facts, named_plan
from planning.observe.timeline import Changes, Moment, fields_of_moment, refusal_of, words_of
from planning.policy.reducers import AskToFinish
from session import ToolFailed
from session.stores import StoreError

HISTORY_HELP: Final = examples("history report --limit 20", "history plans.db --last")
WATCH_HELP: Final = examples("watch plans.db nightly", "watch plans.db nightly --json | my-dashboard")

_POLL: Final = 0.05  # seconds between two looks at the store


def history(
    store: RunsFile = DEFAULT_STORE,
    session: OneSession = None,
    *,
    after: Annotated[
        int, typer.Option(min=0, metavar="VERSION", help="Only the changes after this version.")
    ] = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only the last N changes; all if omitted.")
    ] = None,
    as_json_: AsJson = False,
) -> None:
    """List the changes of a session: when, by whom, and what each did to the plan.

    Times are in UTC. What other programs keep in the session is listed by its name.
    """
    damage, fields = "", []
    with opened(store, session) as given, given.history(after, limit) as changes:
        try:
            for moment in changes.new():
                if as_json_:
                    fields.append(fields_of_moment(moment))
                else:
                    change = moment.change
                    by = "" if change.actor is None else f"{change.actor}: "
                    head = f"{change.version:>5}  {change.at:%Y-%m-%d %H:%M:%S}  "
                    typer.echo(wrapped(head, readable(by + words_of(moment)), sys.stdout))
        except StoreError as error:
            damage = line_of(error)
    if as_json_:
        typer.echo(as_json(fields))
    if damage:
        say(damage)
        raise typer.Exit(1)


def watch(store: RunsFile = DEFAULT_STORE, session: OneSession = None, *, as_json_: AsJson = False) -> None:
    """Show the plan of a session, and each change of it as soon as it is made.

    With --json, each change of the session is printed on a line of its own. It ends when you press Ctrl-C, or
    when the session is deleted; the exit code is 0 then.
    """
    progress = Progress()
    with (
        opened(store, session, is_live=True) as given,
        given.history(None) as changes,
        face_of(sys.stdout, progress, is_json=as_json_) as face,
    ):
        code, reason = 0, "the session was deleted"
        try:
            if changes.plan is not None:
                approval, names = approval_words(changes.facts), changes.names
                shown = progress.take_plan(named_plan(changes.plan, names), named_facts(changes.facts, names))
                face.show(shown + [(approval, "")] * bool(approval))
            for moment in _as_they_come(changes):
                if as_json_:
                    typer.echo(json.dumps(json.loads(as_json(fields_of_moment(moment)))))  # a line
                else:
                    face.show(list(_changes(progress, moment)))
        except KeyboardInterrupt:
            reason = ""
        except StoreError as error:
            code, reason = 1, line_of(error)
        face.end((), ())
    if reason:
        say(reason)
    raise typer.Exit(code)


def _as_they_come(changes: Changes) -> Iterator[Moment]:
    """Each change as soon as it is made, until the session is deleted."""
    while not changes.is_deleted:
        yield from changes.new()
        time.sleep(_POLL)


def _changes(progress: Progress, moment: Moment) -> Iterator[Line]:
    """The changes in the plan, and the calls that were refused."""
    for event in moment.change.events:
        if isinstance(event, ToolFailed):
            is_refused, reason = refusal_of(event)
            if is_refused:
                yield progress.refuse(event.name, reason)
        elif isinstance(event, AskToFinish):
            yield readable(words_of(moment)), ""
    if moment.plan is not None or moment.steered:
        plan = progress.plan
        if moment.plan is not None:
            plan = moment.plan.after and named_plan(moment.plan.after, moment.names)
        lines = progress.take_plan(plan, named_facts(moment.facts, moment.names))
        yield from lines if moment.plan is not None else ()
        yield from ((text, "") for text in moment.steered)

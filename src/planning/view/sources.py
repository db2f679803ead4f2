"""Sessions in a store, as the page finds them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Final

import attrs

from planning.errors import line_of
from planning.observe.deltas import Fields
from planning.observe.health import Health, health_of
from planning.observe.steps import RunSteps
from planning.observe.stores import ShownStore, open_session, open_store
from planning.observe.timeline import Timeline
from planning.view.document import MOST_CHANGES, Document, RunData, health_fields
from planning.view.steer import HostCommand, steer
from session import IdentityError, Session, StoreError
from session.events import SessionId, session_id_of
from session.stores import Store, StoredSession

MOST_SESSIONS: Final = 10_000
"""The most sessions of a store that are listed."""
_MOST_KIN: Final = 200  # sessions in which the family of one is looked for


def read_session(store: ShownStore, head: StoredSession, source: str) -> tuple[Document, Timeline]:
    """A stored session as the page has it, and what reads the changes that follow."""
    first = max(0, head.version - MOST_CHANGES)
    name, family = str(head.session_id), family_of(store, head)
    timeline = Timeline(store, head, first)
    plan, run = None, RunData(is_stored=True)
    try:
        plan, run = timeline.plan, RunData(RunSteps.of(timeline.session), is_stored=True)
    except StoreError as error:
        timeline.problem = error
    document = Document(
        title=name,
        kind="session",
        source=source,
        session_id=name,
        began_at=head.created_at,
        first=first,
        plan=plan,
        facts=timeline.facts,
        names=timeline.names,
        run=run,
        family=family,
    )
    document.read(timeline)
    return document, timeline


@attrs.frozen
class Listed:
    """A session in a list."""

    head: StoredSession
    health: Health | None
    problem: str | None = None

    def at(self, now: datetime) -> Listed:
        """The same session at a later time, without a change since; see ``Health.at``."""
        health = None if self.health is None else self.health.at(now)
        return self if health is self.health else attrs.evolve(self, health=health)

    @cached_property
    def fields(self) -> Fields:
        """The session as the page has it; times are seconds."""
        return {
            "id": str(self.head.session_id),
            "version": self.head.version,
            "changed": round(self.head.changed_at.timestamp(), 3),
            **health_fields(self.health),
            **({} if self.problem is None else {"problem": self.problem}),
        }


def listed(store: Store, heads: Iterable[StoredSession], now: datetime) -> Iterator[Listed]:
    """The health of a store's sessions, in time that grows with their number.

    Of each, the changes after its newest checkpoints are read, and nothing is opened.
    """
    reader: Session | None = None
    for head in heads:
        health, problem = None, head.damage
        try:
            if not problem:
                reader = reader or open_session(store, head.session_id)
                health = health_of(
                    reader.read_other(head), now, began_at=head.created_at, changed_at=head.changed_at
                )
        except StoreError as error:
            problem = line_of(error)
        yield Listed(head, health, problem)


def family_of(store: Store, head: StoredSession) -> list[Fields]:
    """A session with those that it works for, those that work for it, and forks; empty where it is alone."""
    heads = {str(each.session_id): each for each in (*store.sessions(_MOST_KIN), head)}
    parents = {name: _parent_of(each, heads) for name, each in heads.items()}
    oldest = {name: _oldest(name, parents) for name in heads}
    kin = [name for name in heads if oldest[name] == oldest[str(head.session_id)]]
    if len(kin) == 1:
        return []
    names = ("id", "state", "done", "total")
    found = [each.fields for each in listed(store, [heads[name] for name in kin], datetime.now(UTC))]
    return [
        {
            **{name: fields[name] for name in names if name in fields},
            "parent": parents[fields["id"]],
            "title": fields.get("objective", fields["id"]),
        }
        for fields in found
    ]


def _parent_of(head: StoredSession, heads: Mapping[str, StoredSession]) -> str | None:
    """The session that it works for, else the nearest that it was forked from, where that is there."""
    named = [*(str(source) for source, _ in head.forked_from), str(head.parent or "")]
    return next((name for name in reversed(named) if name in heads and name != str(head.session_id)), None)


def _oldest(name: str, parents: Mapping[str, str | None]) -> str:
    seen = {name}
    while (parent := parents[name]) is not None and parent not in seen:
        seen.add(parent)
        name = parent
    return name


_MOMENT: Final = 0.5  # seconds


@attrs.frozen
class Run:
    """A session that was opened."""

    document: Document
    moments: Timeline
    stamp: Callable[[], object | None]
    close: Callable[[], None]


class StoreSource:
    """The sessions of a store."""

    def __init__(self, place: str | Path, only: str | None) -> None:
        """Open a store."""
        self._store = open_store(str(place))
        self._known: dict[str, Listed] = {}
        heads = self._store.sessions(2) if only is None else ()
        self.only = str(heads[0].session_id) if len(heads) == 1 else only

    def listed(self) -> Fields:
        """The sessions that were changed last, newest first, as far as they can be read in a moment.

        A session is read again only when it has changed, or could not be read. ``reading`` is how many the
        next calls will read; ``more`` is whether the store has further sessions, ``problem`` what is wrong.
        """
        try:
            self._store.require()
            with self._store.reading():
                return self._list()
        except StoreError as error:
            return {"sessions": [], "more": False, "problem": line_of(error), "reading": 0}

    def _list(self) -> Fields:
        heads, now = self._store.sessions(MOST_SESSIONS + 1), datetime.now(UTC)
        known, unread, troubled = dict[str, Listed](), list[StoredSession](), list[StoredSession]()
        for head in heads[:MOST_SESSIONS]:
            name = str(head.session_id)
            found = self._known.get(name)
            if found is None or found.head != head:
                unread.append(head)
                found = Listed(head, None)
            elif found.problem is not None:
                troubled.append(head)
            known[name] = found.at(now)
        self._known, end, count = dict(known), time.monotonic() + _MOMENT, 0
        for each in listed(self._store, [*unread, *troubled], now):
            count += 1
            known[str(each.head.session_id)] = self._known[str(each.head.session_id)] = each
            if time.monotonic() > end:
                break
        for head in unread[count:]:
            del self._known[str(head.session_id)]
        return {
            "sessions": [each.fields for each in known.values()],
            "more": len(heads) > MOST_SESSIONS,
            "problem": next((head.damage for head in heads if head.damage is not None), None),
            "reading": max(0, len(unread) - count),
        }

    def stamp(self) -> object | None:
        """As in ``Run``, for the list."""
        return self._store.stamp()

    def open(self, name: str) -> Run:
        """Open a session."""
        identity = self._identity(name)
        store = self._store.another()
        with store.reading():
            head = store.newest(identity)
            if head is None:
                raise LookupError(name)
            document, timeline = read_session(store, head, store.name)
        return Run(document, timeline, store.stamp, store.close)

    def steer(self, name: str, command: HostCommand, version: int) -> int:
        """Change the plan of a session as its host, as ``steer`` does."""
        identity = self._identity(name)
        with closing(self._store.another()) as store:
            if store.newest(identity) is None:
                raise LookupError(name)
            return steer(open_session(store, identity), command, version)

    def _identity(self, name: str) -> SessionId:
        try:
            identity = session_id_of(name)
        except IdentityError as error:
            raise LookupError(name) from error
        self._store.require()
        return identity

"""The sessions of a store as the page has them: one in full, each in a list, and the family of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

import attrs

from planning.observe.deltas import Fields
from planning.observe.health import Health, health_of
from planning.observe.stores import ShownStore, open_session
from planning.observe.text import line_of
from planning.observe.timeline import Timeline
from planning.view.document import MOST_CHANGES, Document
from planning.view.states import RunStates, health_fields
from session import Session, StoreError
from session.stores import Store, StoredSession

MOST_SESSIONS: Final = 10_000
"""The most sessions of a store that are listed."""
_MOST_KIN: Final = 200  # sessions in which the family of one is looked for


def read_session(store: ShownStore, head: StoredSession, source: str) -> tuple[Document, Timeline]:
    """A stored session as the page has it, and what reads the changes that follow.

    Args:
        store: The store; it shows the session as far as it was read.
        head: What the store has of the session.
        source: What the store is called.

    Raises:
        StoreError: Nothing of it can be read.
    """
    first = max(0, head.version - MOST_CHANGES)
    name, family = str(head.session_id), family_of(store, head)
    timeline = Timeline(store, head, first)
    plan, run = None, RunStates()
    try:
        plan, run = timeline.plan, RunStates.of(timeline.session)
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
    """A session in a list.

    Attributes:
        head: What the store has of it.
        health: How it is doing; None where it has neither a plan nor a run, and where it cannot be read.
        problem: Why it cannot be read; None where it can.
    """

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
    """How sessions of a store are doing, in time that grows with their number.

    Of each, the changes after its newest checkpoints are read, and nothing is opened.

    Args:
        store: The store.
        heads: What it has of the sessions.
        now: The time.
    """
    reader: Session | None = None
    for head in heads:
        health, problem = None, head.damage
        try:
            if not problem:
                reader = reader or open_session(store, head.session_id)
                health = health_of(
                    reader.peek(head), now, began_at=head.created_at, changed_at=head.changed_at
                )
        except StoreError as error:
            problem = line_of(error)
        yield Listed(head, health, problem)


def family_of(store: Store, head: StoredSession) -> list[Fields]:
    """A session with those that it works for, those that work for it, and forks; empty where it is alone.

    Raises:
        StoreError: The store cannot be read.
    """
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

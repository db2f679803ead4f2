"""The sessions of a store as the page has them: one in full, each in a list, and the family of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from planning.facts import PlanFacts
from planning.model import Plan
from planning.view.deltas import Fields
from planning.view.document import MOST_CHANGES, Document
from planning.view.facts import approval_words
from planning.view.states import RunStates
from planning.view.stores import ShownStore, open_session
from planning.view.text import line_of
from planning.view.timeline import Timeline
from session import StoreError
from session.stores import Store, StoredSession

__all__ = ["MOST_SESSIONS", "family_of", "read_session", "session_fields"]

MOST_SESSIONS: Final = 200
"""The most sessions of a store that are listed."""


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
        first=first,
        plan=plan,
        facts=timeline.facts,
        run=run,
        family=family,
    )
    document.read(timeline)
    return document, timeline


def session_fields(store: Store, head: StoredSession) -> Fields:
    """A session in a list: how far its plan is."""
    plan, facts, problem = None, None, head.damage
    try:
        if not problem:
            session = open_session(store, head.session_id)
            plan, facts = session.select_latest(Plan), session.select_latest(PlanFacts)
    except StoreError as error:
        problem = line_of(error)
    done, total = (0, 0) if plan is None else plan.progress
    return {
        "id": str(head.session_id),
        "version": head.version,
        "changed_at": round(head.changed_at.timestamp(), 3),
        "objective": None if plan is None else plan.objective,
        "status": None if plan is None else plan.status,
        "done": done,
        "total": total,
        "problem": problem,
        **({"approval": facts.approval} if facts is not None and approval_words(facts) else {}),
    }


def family_of(store: Store, head: StoredSession) -> list[Fields]:
    """A session with those that it works for, those that work for it, and forks; empty where it is alone.

    Raises:
        StoreError: The store cannot be read.
    """
    heads = {str(each.session_id): each for each in (*store.sessions(MOST_SESSIONS), head)}
    parents = {name: _parent_of(each, heads) for name, each in heads.items()}
    oldest = {name: _oldest(name, parents) for name in heads}
    kin = [name for name in heads if oldest[name] == oldest[str(head.session_id)]]
    if len(kin) == 1:
        return []
    family = list[Fields]()
    for name in kin:
        fields = session_fields(store, heads[name])
        kept = {key: fields[key] for key in ("id", "status", "done", "total")}
        family.append({**kept, "parent": parents[name], "title": fields["objective"] or name})
    return family


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

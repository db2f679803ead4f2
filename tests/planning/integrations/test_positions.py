"""Positions: what a framework's state holds of a session."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from frameworks import mark, refusals, setup, toolbox
from syrupy.assertion import SnapshotAssertion

from planning import Plan, SetupPlan
from planning.integrations._rewind import (
    calling,
    checked,
    go_back,
    is_of,
    merge,
    plan_from,
    position_of,
    restored,
    settle,
)
from planning.suite.events import last_change
from session import Session, VersionError, replace_latest, select_latest


def planned(objective: str = "Open the shop") -> Session:
    session = Session()
    box = toolbox(session, ())
    box.call(*setup(objective, "Rent a room", "Buy shelves"))
    box.call("planning_mark_step", {"step_id": "S001", "status": "done", "note": "By the river"})
    return session


def test_a_position_that_is_made_while_another_process_makes_the_first_change_fits(
    opens: Callable[[], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = opens(), opens()
    began = here.created_at

    def read_then_overtaken(session: Session) -> Any:
        elsewhere.dispatch(SetupPlan("From elsewhere"))
        session.refresh()
        return began

    with monkeypatch.context() as patch:
        patch.setattr(Session, "created_at", property(read_then_overtaken))
        position = position_of(here)
    settle(here, position)
    assert is_of(position, here)


def test_what_else_a_session_in_memory_holds_is_in_its_position() -> None:
    session = planned()
    session.register_reducer(SetupPlan, replace_latest)
    session.dispatch(SetupPlan("Open the shop", ()))
    position = json.loads(json.dumps(position_of(session)))
    assert restored(position).select_all(SetupPlan) == (SetupPlan("Open the shop", ()),)


OF_OTHER_TYPES: list[Any] = [[], {}, 7, None]
WITHOUT_PLAN: list[Any] = [
    {"plan": ["x"]},
    {"plan": ["", "active", []]},
    *({"plan": ["x", status, []]} for status in ("open", *OF_OTHER_TYPES)),
    *({"plan": ["x", "active", [["S001", "y", None, status, []]]]} for status in ("ok", *OF_OTHER_TYPES)),
    {"session_id": "shop"},
]
NO_POSITIONS: list[Any] = [
    *(7, "x", [], {}, {"session_id": "a"}),
    *({"session_id": "a", "since": "", "version": version} for version in (True, -1)),
    *({"session_id": "a", "since": 1, "version": 1}, {"session_id": 1, "since": "", "version": 1}),
]


def test_what_is_no_position_of_the_session_is_refused(snapshot: SnapshotAssertion) -> None:
    session = Session(session_id="shop")
    own = {"session_id": "shop", "since": session.created_at.isoformat(), "version": 7}
    refused = refusals(
        *(partial(plan_from, each) for each in WITHOUT_PLAN),
        *(partial(checked, each) for each in NO_POSITIONS),
        lambda: settle(session, own),
        lambda: settle(session, {**own, "since": "2020-01-01T00:00:00+00:00"}),
    )
    assert refused == snapshot


class TestMerge:
    """Several tasks of a framework write a position each."""

    def test_a_change_stays_beside_a_position_of_another_process_before_it(self) -> None:
        changed = {"session_id": "shop", "since": "2026-01-01T00:00:01+00:00", "version": 1}
        idle = {"session_id": "shop", "since": "2026-01-01T00:00:00+00:00", "version": 0}
        assert merge(idle, changed) == merge(changed, idle) == changed
        later = {**idle, "version": 2}
        assert (merge(changed, later), merge(later, changed)) == (later, changed)

    def test_no_position_gives_way_to_one(self) -> None:
        first = position_of(planned())
        assert merge(None, first) == merge(first, None) == first

    def test_a_restored_session_that_changed_nothing_gives_way(self) -> None:
        start = position_of(Session(), step="1")
        changed, idle = position_of(planned(), start, "2"), position_of(Session(), start, "2")
        assert merge(merge(start, changed), idle) == changed
        assert merge(merge(start, idle), changed) == changed

    def test_two_sessions_that_both_changed_in_one_step_are_an_error(self) -> None:
        start = position_of(Session(), step="1")
        one, other = position_of(planned(), start, "2"), position_of(planned("Another"), start, "2")
        with pytest.raises(VersionError) as caught:
            merge(merge(start, one), other)
        assert str(caught.value) == (
            "the process ended between calls of one turn, and the session was in memory: go back to an "
            "earlier checkpoint, or open the session with a store"
        )


def marked(session: Session, place: str, at: str, step_id: str = "S002") -> None:
    """Mark a step in the name of a place of a framework."""
    with calling(session, place, at):
        toolbox(session, ()).call(*mark(step_id, "in_progress"))


class TestGoBack:
    def test_only_over_changes_that_were_made_since(self) -> None:
        session = planned()
        start = position_of(session)
        marked(session, "bench:1", "2")
        last = last_change(session, "bench:1")
        assert last is not None
        go_back(session, start, last, "4")
        assert session.version == 3
        go_back(session, start, last, "2")
        assert session.history()[-1].actor == "bench"
        assert select_latest(session, Plan) == plan_from(start)

    def test_not_when_the_place_has_changed_it_meanwhile(self) -> None:
        session = planned()
        start = position_of(session)
        marked(session, "bench:1", "2")
        last = last_change(session, "bench:1")
        marked(session, "bench:1", "3", "S001")
        plan = select_latest(session, Plan)
        assert last is not None
        go_back(session, start, last)
        assert select_latest(session, Plan) == plan

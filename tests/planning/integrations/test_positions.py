"""Positions: what a framework's state holds of a session."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from frameworks import mark, setup, toolbox

from planning import Plan, SetupPlan
from planning.integrations._rewind import (
    calling,
    go_back,
    is_of,
    merge,
    plan_from,
    position_of,
    restored,
    settle,
)
from planning.suite.events import last_change
from session import Session, SnapshotError, VersionError, replace_latest, select_latest


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


@pytest.mark.parametrize(
    ("position", "message"),
    [
        (
            {"plan": ["x"]},
            "plan in the agent's state cannot be read: not enough values to unpack (expected 3, got 1)",
        ),
        (
            {"plan": ["", "active", []]},
            "plan in the agent's state cannot be read: objective: blank; send 1 to 240 characters",
        ),
        ({"plan": ["x", "open", []]}, "plan in the agent's state has an unknown status: 'open'"),
        (
            {"plan": ["x", "active", [["S001", "y", None, "ok", []]]]},
            "plan in the agent's state has an unknown status: 'ok'",
        ),
        (
            {"session_id": "shop"},
            "agent's state is of session 'shop', which is in a store: give that session to the integration",
        ),
    ],
)
def test_a_position_without_a_plan_is_refused(position: Any, message: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        plan_from(position)
    assert str(caught.value) == f"the {message}"


@pytest.mark.parametrize("status", [[], {}, 7, None])
def test_a_status_of_another_type_is_refused(status: Any) -> None:
    for plan in (["x", status, []], ["x", "active", [["S001", "y", None, status, []]]]):
        with pytest.raises(SnapshotError, match=r"^the plan in the agent's state "):
            plan_from({"plan": plan})


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

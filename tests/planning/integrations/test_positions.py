"""Positions: what a framework's state holds of a session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planning import Plan, PlanningToolsSection, SetupPlan, Toolbox, register_plan
from planning.events import MOST_PLACES, FrameworkTurn
from planning.integrations._rewind import follow, merge, plan_from, position_of, restored
from session import Session, SnapshotError, VersionError, replace_latest, select_all, select_latest


def planned(objective: str = "Open the shop") -> Session:
    """A session with a plan."""
    session = Session()
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    steps = [{"title": "Rent a room", "details": "Two windows\nat least"}, {"title": "Buy shelves"}]
    toolbox.call("planning_setup_plan", {"objective": objective, "initial_steps": steps})
    toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done", "note": "By the river"})
    return session


def test_a_position_is_json_and_gives_the_plan_back() -> None:
    session = planned()
    position = json.loads(json.dumps(position_of(session, None)))
    assert plan_from(position) == select_latest(session, Plan)


def test_what_else_a_session_in_memory_holds_is_in_its_position() -> None:
    session = planned()
    session.register_reducer(SetupPlan, replace_latest)
    session.dispatch(SetupPlan("Open the shop", ()))
    position = json.loads(json.dumps(position_of(session, None)))
    assert restored(position).select_all(SetupPlan) == (SetupPlan("Open the shop", ()),)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            ["x"],
            "the plan in the agent's state cannot be read: not enough values to unpack (expected 3, got 1)",
        ),
        (
            ["", "active", []],
            "the plan in the agent's state cannot be read: objective: blank; send 1 to 240 characters",
        ),
        (["x", "open", []], "the plan in the agent's state has an unknown status: 'open'"),
        (
            ["x", "active", [["S001", "y", None, "ok", []]]],
            "the plan in the agent's state has an unknown status: 'ok'",
        ),
    ],
)
def test_a_position_without_a_plan_is_refused(plan: Any, message: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        plan_from({"plan": plan})
    assert str(caught.value) == message


class TestMerge:
    """Several tasks of a framework write a position each."""

    def test_the_later_version_of_a_session_stays(self) -> None:
        session = planned()
        first = position_of(session, None)
        second, third = ({**first, "version": version, "after": None} for version in (4, 5))
        assert merge(second, third) == merge(third, second) == third

    def test_a_position_that_follows_the_other_stays(self) -> None:
        first = position_of(planned(), None)
        second = position_of(planned("Another"), first)
        assert merge(first, second) == second

    def test_a_restored_session_that_changed_nothing_gives_way(self) -> None:
        start = position_of(Session(), None)
        changed, idle = position_of(planned(), start), position_of(Session(), start)
        assert merge(merge(start, changed), idle) == changed
        assert merge(merge(start, idle), changed) == changed

    def test_two_sessions_that_both_changed_are_an_error(self) -> None:
        start = position_of(Session(), None)
        one, other = position_of(planned(), start), position_of(planned("Another"), start)
        with pytest.raises(VersionError) as caught:
            merge(merge(start, one), other)
        assert str(caught.value) == (
            "the process ended between calls of one turn, and the session was in memory: go back to an "
            "earlier checkpoint, or open the session with a store"
        )


def test_a_session_keeps_the_last_turns_of_a_bounded_number_of_places() -> None:
    session = Session()
    register_plan(session)
    for number in range(MOST_PLACES + 5):
        follow(session, None, f"bench:{number}:", "1", calls=True)
    places = [turn.place for turn in select_all(session, FrameworkTurn)]
    assert places == [f"bench:{number}:" for number in range(5, MOST_PLACES + 5)]

"""Changes that an agent of a framework makes carry where in it they were made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from planning import (
    ApprovePlan,
    NewPlanStep,
    PlanningToolsSection,
    PlanPolicy,
    SetupPlan,
    Toolbox,
    pending_approval,
)
from planning.suite import events
from planning.suite.approval import decide_approval
from planning.suite.events import FrameworkChange, framework, last_change
from session import Session

SETUP = {"objective": "Ship it", "initial_steps": ["A", "B"]}
MARK = {"step_id": "S001", "status": "in_progress"}


@contextmanager
def at(session: Session, place: str, checkpoint: str) -> Iterator[None]:
    running = framework.set((session.session_id, place, checkpoint))
    yield
    framework.reset(running)


def toolbox_of(session: Session, policy: PlanPolicy | None = None) -> Toolbox:
    return Toolbox(PlanningToolsSection(session=session, policy=policy).tools(), session=session)


def changes(session: Session) -> list[tuple[str, str, int, int]]:
    return [(each.place, each.at, each.version, each.start) for each in session.select_all(FrameworkChange)]


def test_the_last_change_of_each_place_is_kept_in_the_order_of_the_changes(session: Session) -> None:
    toolbox = toolbox_of(session)
    session.dispatch(SetupPlan("Before"))
    with at(session, "bench:1", "a"):
        toolbox.call("planning_setup_plan", SETUP)
        toolbox.call("planning_mark_step", {**MARK, "step_id": "S009"})  # is refused
    with at(session, "bench:2", "b"):
        toolbox.call("planning_mark_step", MARK)
    toolbox.call("planning_read_plan")
    with at(session, "bench:1", "c"):
        toolbox.call("planning_read_plan")
    assert changes(session) == [("bench:2", "b", 4, 3), ("bench:1", "c", 6, 1)]
    last = last_change(session, "bench:1")
    assert last is not None and last.at == "c"
    assert last_change(session, "bench:3") is None


def test_a_call_in_another_session_is_not_marked() -> None:
    one, other = Session(), Session()
    with at(one, "bench:1", "a"):
        toolbox_of(other).call("planning_setup_plan", SETUP)
    assert changes(other) == []


def test_of_very_many_places_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch, session: Session) -> None:
    toolbox = toolbox_of(session)
    monkeypatch.setattr(events, "MOST_PLACES", 3)  # in place of a thousand
    for number in range(5):
        with at(session, f"bench:{number}", "a"):
            toolbox.call("planning_setup_plan", SETUP)
    assert [place for place, *_ in changes(session)] == ["bench:2", "bench:3", "bench:4"]


def test_what_a_policy_records_of_an_agent_and_what_a_user_decides_is_marked_too(session: Session) -> None:
    section = PlanningToolsSection(
        session=session, policy=PlanPolicy(approval=True, finish_gate=1, stale_after=1, evidence="required")
    )
    session.dispatch(SetupPlan("Ship it", (NewPlanStep("A"),)))
    toolbox = Toolbox([*section.tools(), lookup], session=session)
    with at(session, "bench:1", "a"):
        toolbox.call("lookup", {})
        section.take_notice()
        assert not section.may_finish().ok
        toolbox.call("planning_add_step", {"steps": ["B"]})
        shown = pending_approval(session)
        assert shown is not None and decide_approval(session, shown, ApprovePlan())
    marked = [
        change.version
        for change in session.history()
        if any(isinstance(event, FrameworkChange) for event in change.events)
    ]
    assert marked == [2, 3, 4, 5, 6]


def lookup() -> str:
    """Look something up."""
    return "found"

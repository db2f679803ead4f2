"""What a plan that waits for approval holds back: every tool of the toolbox that is not a planning tool."""

from __future__ import annotations

from typing import Literal

import pytest

from planning import PlanningToolsSection, PlanPolicy, Toolbox, pending_approval
from planning.plan.commands import ApprovePlan
from planning.tools.tool import Tool
from session import Session
from session.stores import MemoryStore

WAITS = "work was not called: the plan waits for approval; end your turn and ask the user to approve it"


@pytest.mark.parametrize("publishes", ["call", "value", "own"])
def test_no_tool_runs_before_the_plan_is_approved_however_it_publishes(
    publishes: Literal["call", "value", "own"],
) -> None:
    made: list[str] = []

    def work(place: str) -> str:
        """Work."""
        made.append(place)
        return "worked"

    session = Session()
    section = PlanningToolsSection(session=session, policy=PlanPolicy(approval=True))
    tool = Tool(name="work", description="Work.", function=work, publishes=publishes)
    toolbox = Toolbox([*section.tools(), tool], session=session)
    assert toolbox.call("planning_setup_plan", {"objective": "Goal", "initial_steps": ["A"]}).success
    assert toolbox.call("work", {"place": "here"}).message.endswith(WAITS)
    assert toolbox.call("planning_read_plan", {}).success
    session.dispatch(ApprovePlan())
    assert toolbox.call("work", {"place": "there"}).success
    assert made == ["there"]


@pytest.mark.parametrize("is_stored", [False, True])
def test_what_is_refused_inside_a_transaction_says_why(is_stored: bool) -> None:
    session = Session(session_id="run-7", store=MemoryStore() if is_stored else None)
    section = PlanningToolsSection(session=session, policy=PlanPolicy(approval=True))
    toolbox = Toolbox([*section.tools(), Tool("work", "Work.", lambda: "worked")])
    assert toolbox.call("planning_setup_plan", {"objective": "Goal"}).success
    with session.transaction() as transaction:
        assert toolbox.call("work", {}).message == WAITS
        transaction.dispatch(ApprovePlan())
        assert toolbox.call("work", {}).message == "worked"


def test_nobody_is_asked_to_approve_a_plan_that_was_abandoned() -> None:
    session = Session()
    section = PlanningToolsSection(session=session, policy=PlanPolicy(approval=True))
    toolbox = Toolbox([*section.tools(), Tool("work", "Work.", lambda: "worked")])
    for name, arguments in (("planning_setup_plan", {"objective": "Goal"}), ("planning_clear_plan", {})):
        assert toolbox.call(name, arguments).success
    assert pending_approval(session) is None
    assert toolbox.call("work", {}).message == (
        "work was not called: the plan was abandoned before it was approved; set up another plan first"
    )
    assert toolbox.call("planning_setup_plan", {"objective": "Another"}).success
    assert toolbox.call("work", {}).message == WAITS

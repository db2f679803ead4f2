"""What a plan that waits for approval holds back: every tool of the toolbox that is not a planning tool."""

from __future__ import annotations

from typing import Literal

import pytest

from planning import PlanningToolsSection, PlanPolicy, Toolbox
from planning.commands import ApprovePlan
from planning.tools.tool import Tool
from session import Session

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

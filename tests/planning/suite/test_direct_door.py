"""The direct door: an event that somebody puts on the bus by hand, with a command as its value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning import AddStep, MarkStep, NewPlanStep, Plan, PlanStep, SetupPlan, Toolbox
from planning.plan.reducers import REDUCERS
from planning.suite.tools import register_plan
from planning.testing.strategies import commands
from session import InProcessEventBus, Session, ToolInvoked

STEP = PlanStep("S001", "Look", None, "pending")
PLAN = Plan("Fix", "active", (STEP,))


@pytest.fixture
def planned(session: Session) -> Session:
    """The session with a plan of one step."""
    register_plan(session)
    session.dispatch(PLAN)
    return session


def event(session: Session, value: Any) -> ToolInvoked:
    return ToolInvoked("by_hand", None, None, value, session_id=session.session_id)


@pytest.mark.parametrize(
    ("plan", "command"),
    [
        (PLAN, MarkStep("S001", None)),  # type: ignore[arg-type]
        (PLAN, MarkStep("S001", ["done"])),  # type: ignore[arg-type]
        (PLAN, AddStep(None)),  # type: ignore[arg-type]
        (Plan("Fix", "abandoned", (STEP,)), MarkStep("S001", "done")),
        (PLAN, "no command at all"),
        (PLAN, object()),
    ],
)
def test_a_nonsense_command_leaves_the_plan_as_it_was(plan: Plan, command: Any, planned: Session) -> None:
    planned.dispatch(plan)
    assert planned.bus.publish(event(planned, command)).ok
    assert planned.select_latest(Plan) is plan


def test_an_event_that_a_tool_published_is_not_reduced_again(
    toolbox: Toolbox, session: Session, bus: InProcessEventBus
) -> None:
    bus.subscribe(ToolInvoked, lambda heard: None)
    toolbox.invoke("planning_setup_plan", SetupPlan("Fix"))
    toolbox.invoke("planning_add_step", AddStep((NewPlanStep("Look"),)))
    assert session.select_latest(Plan) == PLAN


@given(st.data())
def test_any_sequence_of_commands_is_reduced_as_the_reducers_say(data: st.DataObject) -> None:
    session = Session()
    register_plan(session)
    slice_: tuple[Plan, ...] = ()
    count = data.draw(st.integers(1, 6))
    for _ in range(count):
        command = data.draw(commands(slice_[-1] if slice_ else None))
        published = event(session, command)
        assert session.bus.publish(published).ok
        assert session.select_latest(ToolInvoked) is published
        slice_ = REDUCERS[type(command)](slice_, command) if type(command) in REDUCERS else slice_
        assert session.select_all(Plan) == slice_
    assert session.version == count

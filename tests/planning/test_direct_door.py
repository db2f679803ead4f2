"""The direct door: an event that somebody puts on the bus by hand, with a command as its value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning import (
    AddStep,
    ClearPlan,
    MarkStep,
    NewPlanStep,
    Plan,
    PlanStep,
    ReadPlan,
    SetupPlan,
    Toolbox,
    UpdateStep,
)
from planning.reducers import REDUCERS
from planning.suite import register_plan
from session import InProcessEventBus, Session, ToolInvoked
from strategies import commands

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
    ("command", "expected"),
    [
        (SetupPlan("Ship", (NewPlanStep("Look"),)), Plan("Ship", "active", (STEP,))),
        (AddStep((NewPlanStep("Look"),)), Plan("Fix", "active", (STEP, replace(STEP, step_id="S002")))),
        (UpdateStep("S001", "Search"), Plan("Fix", "active", (replace(STEP, title="Search"),))),
        (
            MarkStep("S001", "done", "Ok"),
            Plan("Fix", "completed", (replace(STEP, status="done", notes=("Ok",)),)),
        ),
        (ClearPlan(), Plan("Fix", "abandoned", ())),
        (ReadPlan(), PLAN),
        (None, PLAN),
    ],
)
def test_the_value_of_a_published_event_is_reduced(command: Any, expected: Plan, planned: Session) -> None:
    published = event(planned, command)
    assert planned.bus.publish(published).ok
    assert planned.select_all(Plan) == (expected,)
    assert planned.select_all(ToolInvoked) == (published,)


@pytest.mark.parametrize(
    ("plan", "command"),
    [
        (PLAN, UpdateStep("S009", "x")),
        (PLAN, MarkStep("S009", "done")),
        (PLAN, MarkStep("S001", "bogus")),  # type: ignore[arg-type]
        (PLAN, MarkStep("S001", None)),  # type: ignore[arg-type]
        (PLAN, MarkStep("S001", ["done"])),  # type: ignore[arg-type]
        (PLAN, MarkStep("", "done")),
        (PLAN, AddStep(())),
        (PLAN, AddStep(None)),  # type: ignore[arg-type]
        (Plan("Fix", "completed", (STEP,)), AddStep((NewPlanStep("x"),))),
        (Plan("Fix", "completed", (STEP,)), UpdateStep("S001", "x")),
        (Plan("Fix", "abandoned", (STEP,)), MarkStep("S001", "done")),
        (Plan("Fix", "abandoned"), AddStep((NewPlanStep("x"),))),
        (Plan("Fix", "abandoned"), ClearPlan()),
        (PLAN, "no command at all"),
        (PLAN, object()),
    ],
)
def test_a_nonsense_command_leaves_the_plan_as_it_was(plan: Plan, command: Any, planned: Session) -> None:
    planned.dispatch(plan)
    assert planned.bus.publish(event(planned, command)).ok
    assert planned.select_latest(Plan) is plan


@pytest.mark.parametrize(
    "command",
    [MarkStep(None, "done"), AddStep((7,)), SetupPlan("x", 7)],  # type: ignore[arg-type]
)
def test_a_command_of_the_wrong_types_is_a_failure_that_changes_nothing(
    command: Any, planned: Session
) -> None:
    snapshot = planned.snapshot()
    assert not planned.bus.publish(event(planned, command)).ok
    assert planned.select_latest(Plan) is PLAN
    assert planned.snapshot() == snapshot


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
    for _ in range(data.draw(st.integers(1, 6))):
        command = data.draw(commands(slice_[-1] if slice_ else None))
        assert session.bus.publish(event(session, command)).ok
        slice_ = REDUCERS[type(command)](slice_, command) if type(command) in REDUCERS else slice_
        assert session.select_all(Plan) == slice_

"""Validating and reducing are one transaction: all of a call is committed, or nothing."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from planning import (
    AddStep,
    ClearPlan,
    MarkStep,
    NewPlanStep,
    Plan,
    PlanningToolsSection,
    PlanStep,
    SetupPlan,
    Toolbox,
    UpdateStep,
)
from session import InProcessEventBus, Session, SessionEvent, ToolFailed, ToolInvoked

CALLS: dict[str, Any] = {
    "planning_setup_plan": SetupPlan("Ship it"),
    "planning_add_step": AddStep((NewPlanStep("Pack"),)),
    "planning_update_step": UpdateStep("S001", "Look again"),
    "planning_mark_step": MarkStep("S001", "done"),
    "planning_clear_plan": ClearPlan(),
}


def fails(_slice: tuple[Any, ...], _event: Any) -> NoReturn:
    raise RuntimeError("secret text")


def steps_of(session: Session) -> list[str]:
    plan = session.select_latest(Plan)
    return [step.title for step in plan.steps] if plan else []


@pytest.fixture
def heard(bus: InProcessEventBus, toolbox: Toolbox) -> list[SessionEvent]:
    """What the bus tells after a plan of one step was set up."""
    toolbox.invoke("planning_setup_plan", SetupPlan("Fix", (NewPlanStep("Look"),)))
    events: list[SessionEvent] = []
    bus.subscribe(SessionEvent, events.append)
    return events


@pytest.mark.parametrize("name", CALLS)
def test_when_a_reducer_of_the_command_raises_nothing_has_happened(
    name: str, toolbox: Toolbox, session: Session, heard: list[SessionEvent]
) -> None:
    session.register_reducer(type(CALLS[name]), fails, Plan)
    plan, snapshot, log = session.select_latest(Plan), session.snapshot(), session.select_all(ToolInvoked)

    with pytest.raises(RuntimeError) as caught:
        toolbox.invoke(name, CALLS[name])
    assert str(caught.value) == "secret text"
    arguments = toolbox.tools[name].examples[0].arguments
    if "step_id" in arguments:
        arguments = {**arguments, "step_id": "S001"}
    result = toolbox.call(name, arguments)
    message = f"{name} failed. Call it again, or continue without it."
    error = f"Tool '{name}' encountered an error"
    assert (result.success, result.message, result.error, result.value) == (False, message, error, None)

    assert session.select_latest(Plan) is plan
    assert session.snapshot() == snapshot
    assert session.select_all(ToolInvoked) == log
    assert [type(event) for event in heard] == [ToolFailed, ToolFailed]


def test_a_subscriber_may_call_a_tool(toolbox: Toolbox, session: Session, bus: InProcessEventBus) -> None:
    def follow(event: ToolInvoked) -> None:
        if event.name == "planning_setup_plan":
            toolbox.invoke("planning_add_step", AddStep((NewPlanStep("Follow up"),)))

    bus.subscribe(ToolInvoked, follow)
    toolbox.invoke("planning_setup_plan", SetupPlan("Fix", (NewPlanStep("Look"),)))
    assert steps_of(session) == ["Look", "Follow up"]
    assert [event.name for event in session.select_all(ToolInvoked)] == [
        "planning_setup_plan", "planning_add_step",
    ]  # fmt: skip


def test_several_calls_can_be_one_transaction(
    toolbox: Toolbox, session: Session, heard: list[SessionEvent]
) -> None:
    with session.transaction():
        toolbox.invoke("planning_add_step", AddStep((NewPlanStep("Pack"),)))
        assert toolbox.invoke("planning_mark_step", MarkStep("S002", "done")).success
        assert heard == []
    assert steps_of(session) == ["Look", "Pack"]
    assert [type(event) for event in heard] == [ToolInvoked, ToolInvoked]


def test_a_transaction_that_is_given_up_takes_its_calls_back(
    toolbox: Toolbox, session: Session, heard: list[SessionEvent]
) -> None:
    before, log = session.select_latest(Plan), session.select_all(ToolInvoked)
    with pytest.raises(RuntimeError), session.transaction():
        toolbox.invoke("planning_clear_plan")
        raise RuntimeError
    assert session.select_latest(Plan) is before
    assert session.select_all(ToolInvoked) == log
    assert heard == []


def test_two_sessions_on_one_bus_keep_their_plans_apart(bus: InProcessEventBus) -> None:
    left, right = Session(bus=bus), Session(bus=bus)
    toolboxes = [
        Toolbox(PlanningToolsSection(session=session).tools(), session=session) for session in (left, right)
    ]
    toolboxes[0].invoke("planning_setup_plan", SetupPlan("Left", (NewPlanStep("a"),)))
    assert right.select_all(Plan) == ()
    assert right.select_all(ToolInvoked) == ()
    toolboxes[1].invoke("planning_setup_plan", SetupPlan("Right"))
    toolboxes[0].invoke("planning_mark_step", MarkStep("S001", "done"))
    assert left.select_latest(Plan) == Plan("Left", "completed", (PlanStep("S001", "a", None, "done"),))
    assert right.select_latest(Plan) == Plan("Right", "active")
    assert [len(session.select_all(ToolInvoked)) for session in (left, right)] == [2, 1]

"""The lifecycle: one table, and the tools that keep to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import pytest

from planning import (
    AddStep,
    ClearPlan,
    MarkStep,
    NewPlanStep,
    Plan,
    ReadPlan,
    SetupPlan,
    Toolbox,
    ToolValidationError,
    UpdateStep,
)
from planning.plan.commands import Command
from planning.plan.model import PlanStatus
from planning.plan.reducers import TRANSITIONS, allows
from session import InProcessEventBus, Session, SessionEvent, ToolFailed, ToolInvoked

STATUSES: tuple[PlanStatus | None, ...] = (None, "active", "completed", "abandoned")
TOOLS: dict[type[Command], str] = {
    SetupPlan: "planning_setup_plan",
    AddStep: "planning_add_step",
    UpdateStep: "planning_update_step",
    MarkStep: "planning_mark_step",
    ClearPlan: "planning_clear_plan",
    ReadPlan: "planning_read_plan",
}
COMMANDS: dict[type[Command], Command] = {
    SetupPlan: SetupPlan("Ship it", (NewPlanStep("Pack"),)),
    AddStep: AddStep((NewPlanStep("Test"),)),
    UpdateStep: UpdateStep("S001", "Look again"),
    MarkStep: MarkStep("S001", "done"),
    ClearPlan: ClearPlan(),
    ReadPlan: ReadPlan(),
}
REFUSALS: dict[PlanStatus | None, str] = {
    None: "no plan yet; call planning_setup_plan first",
    "completed": "the plan is completed; reopen a step with planning_mark_step, "
    "or start a new plan with planning_setup_plan",
    "abandoned": "the plan was abandoned; start a new one with planning_setup_plan",
}
CELLS = [
    pytest.param(status, command, cell, id=f"{status or 'no plan'}-{command.__name__}")
    for (status, command), cell in TRANSITIONS.items()
]
Door = Callable[[Toolbox, Command], None]


def invoked(toolbox: Toolbox, command: Command) -> None:
    """Through the door for Python: a refusal is raised."""
    toolbox.invoke(TOOLS[type(command)], command)


def called(toolbox: Toolbox, command: Command) -> None:
    """Through the door for models: a refusal is a failed result; raised here to be seen."""
    result = toolbox.call(TOOLS[type(command)], asdict(command))
    if not result.success:
        assert result.message == f"Refused, nothing changed. {result.error}"
        raise ToolValidationError(result.error or "")


def bring_to(toolbox: Toolbox, status: PlanStatus | None) -> None:
    """Give the session a plan of two steps, or of none once it is abandoned, in a status."""
    if status is None:
        return
    invoked(toolbox, SetupPlan("Fix the login bug", (NewPlanStep("Look"), NewPlanStep("Fix"))))
    if status == "completed":
        invoked(toolbox, MarkStep("S001", "done"))
        invoked(toolbox, MarkStep("S002", "done"))
    elif status == "abandoned":
        invoked(toolbox, ClearPlan())


def plan_in(status: PlanStatus | None) -> Plan | None:
    return None if status is None else Plan("Fix the login bug", status)


@pytest.mark.parametrize("door", [invoked, called])
@pytest.mark.parametrize(("status", "command", "cell"), CELLS)
def test_the_tools_keep_to_the_table(
    status: PlanStatus | None,
    command: type[Command],
    cell: tuple[PlanStatus, ...],
    door: Door,
    toolbox: Toolbox,
    session: Session,
    bus: InProcessEventBus,
) -> None:
    bring_to(toolbox, status)
    before, snapshot, log = session.select_latest(Plan), session.snapshot(), session.select_all(ToolInvoked)
    assert (before.status if before else None) == status
    heard: list[SessionEvent] = []
    bus.subscribe(SessionEvent, heard.append)

    if not cell:
        with pytest.raises(ToolValidationError) as caught:
            door(toolbox, COMMANDS[command])
        assert str(caught.value) == REFUSALS[status]
        assert session.select_latest(Plan) is before
        assert session.snapshot() == snapshot
        assert session.select_all(ToolInvoked) == log
        assert [type(event) for event in heard] == [ToolFailed]
    else:
        door(toolbox, COMMANDS[command])
        after = session.select_latest(Plan)
        assert after is not None
        assert after.status in cell
        says_what_is_so = command is MarkStep and status == "completed"
        assert (after is before) is (command is ReadPlan or says_what_is_so)
        assert [type(event) for event in heard] == [ToolInvoked]
        assert session.select_all(ToolInvoked) == (*log, *heard)
        assert len(session.select_all(Plan)) == 1


@pytest.mark.parametrize("status", ["completed", "abandoned", None])
def test_what_a_refusal_tells_the_model_to_do_is_allowed(status: PlanStatus | None) -> None:
    names = {name: command for command, name in TOOLS.items()}
    told = [word.strip(",;") for word in REFUSALS[status].split() if word.startswith("planning_")]
    assert told
    assert all(allows(plan_in(status), names[name]) for name in told)

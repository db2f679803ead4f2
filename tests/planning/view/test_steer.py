"""What a host does to a plan that it looks at: it fits the plan that was seen, or nothing happens."""

from __future__ import annotations

from typing import Any

import pytest

from planning import Plan, PlanningToolsSection, PlanPolicy, Toolbox, ToolValidationError
from planning.plan.commands import ApprovePlan, MoveStep, RejectPlan
from planning.plan.facts import PlanFacts
from planning.view.steer import command_of, steer
from session import Session


@pytest.fixture
def session() -> Session:
    """A session with a plan that waits for approval, at version 1."""
    session = Session()
    section = PlanningToolsSection(session=session, policy=PlanPolicy(approval=True))
    steps = ["Copy it", "Check it", "Delete the old"]
    Toolbox(section.tools()).call(
        "planning_setup_plan", {"objective": "Move the data", "initial_steps": steps}
    )
    return session


def state(session: Session) -> tuple[list[str], str, str | None]:
    """The ids of the steps, the approval, and the reason."""
    plan, facts = session.select_latest(Plan), session.select_latest(PlanFacts)
    assert plan is not None
    assert facts is not None
    return [step.step_id for step in plan.steps], facts.approval, facts.reason


ALL = ["S001", "S002", "S003"]


@pytest.mark.parametrize(
    ("fields", "after"),
    [
        ({"command": "approve"}, (ALL, "approved", None)),
        ({"command": "reject", "reason": " too\n long "}, (ALL, "rejected", "too long")),
        ({"command": "remove", "step_id": "s2"}, (["S001", "S003"], "waiting", None)),
        ({"command": "move", "step_id": "S003", "index": 0}, (["S003", "S001", "S002"], "waiting", None)),
    ],
)
def test_a_command_changes_the_plan_as_the_host(
    session: Session, fields: dict[str, Any], after: tuple[list[str], str, str | None]
) -> None:
    assert steer(session, command_of(fields), 1) == 2
    assert state(session) == after
    assert session.history()[-1].actor == "host"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "command: use approve, reject, remove or move"),
        ({"command": "clear"}, "command: use approve, reject, remove or move"),
        ({"command": "reject"}, "reason: say what is wrong with the plan, in 1 to 512 characters"),
        (
            {"command": "reject", "reason": 7},
            "reason: say what is wrong with the plan, in 1 to 512 characters",
        ),
        (
            {"command": "reject", "reason": "x" * 513},
            "reason: say what is wrong with the plan, in 1 to 512 characters",
        ),
        (
            {"command": "remove", "step_id": "S009"},
            "step_id: the plan has no step S009; its steps are S001 to S003",
        ),
        ({"command": "remove", "step_id": ["S001"]}, "step_id: expected a string, got list"),
        ({"command": "move", "step_id": "S001", "index": 3}, "index: no such place; send 0 to 2"),
        ({"command": "move", "step_id": "S001", "index": True}, "index: no such place; send 0 to 2"),
        ({"command": "move", "step_id": "S001"}, "index: no such place; send 0 to 2"),
    ],
)
def test_what_does_not_fit_the_plan_is_refused(
    session: Session, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ToolValidationError) as refusal:
        steer(session, command_of(fields), 1)
    assert str(refusal.value) == problem
    assert session.version == 1


@pytest.mark.parametrize("command", [ApprovePlan(), RejectPlan("No")])
def test_what_does_not_wait_cannot_be_decided(session: Session, command: Any) -> None:
    steer(session, ApprovePlan(), 1)
    with pytest.raises(ToolValidationError, match="nothing waits for approval"):
        steer(session, command, 2)
    with pytest.raises(ToolValidationError, match="nothing waits for approval"):
        steer(Session(), command, 0)


def test_calls_of_other_tools_do_not_make_a_decision_old(session: Session) -> None:
    def look() -> str:
        return "seen"

    from planning import tool

    Toolbox([tool(look)], session=session).call("look", {})
    assert session.version == 2
    assert steer(session, MoveStep("S003", 0), 1) == 3

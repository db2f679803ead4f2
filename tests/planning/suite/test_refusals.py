"""Refusals name everything at once, and no plan can trap its session."""

from __future__ import annotations

from typing import Any, cast

import pytest

from planning import AddStep, MarkStep, Plan, PlanStep, Toolbox, ToolValidationError, UpdateStep
from session import Session, select_latest


def refusals(toolbox: Toolbox, name: str, arguments: Any) -> list[str]:
    with pytest.raises(ToolValidationError) as caught:
        toolbox.invoke(name, arguments)
    return [str(problem) for problem in caught.value.problems]


NO_PLAN = "no plan yet; call planning_setup_plan first"
NOTHING = "nothing to change; send a title or details"
EMPTY = "steps: empty; send at least one step"


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("planning_add_step", AddStep(()), [NO_PLAN, EMPTY]),
        ("planning_update_step", UpdateStep("S001"), [NO_PLAN, NOTHING]),
        ("planning_update_step", UpdateStep("S001", None, "  "), [NO_PLAN]),
        ("planning_update_step", {"step_id": "S001", "details": 7},
         ["details: expected a string of 0 to 512 characters, got a number", NO_PLAN]),
        ("planning_update_step", {"step_id": "S001", "title": None, "details": None, "x": 1},
         ["x: unknown field; the fields are step_id, title, details", NO_PLAN, NOTHING]),
        ("planning_add_step", {"steps": [], "x": 1},
         [EMPTY, "x: unknown field; the fields are steps", NO_PLAN]),
        ("planning_mark_step", {"step_id": "S001"},
         ["status: missing; send one of pending, in_progress, blocked, done", NO_PLAN]),
    ],
)  # fmt: skip
def test_what_is_empty_is_named_beside_everything_else(
    toolbox: Toolbox, name: str, arguments: Any, expected: list[str]
) -> None:
    assert refusals(toolbox, name, arguments) == expected


def test_an_unknown_step_is_named_beside_an_empty_change(toolbox: Toolbox) -> None:
    toolbox.call("planning_setup_plan", {"objective": "x", "initial_steps": ["a", "b"]})
    assert refusals(toolbox, "planning_update_step", UpdateStep("S009")) == [
        "step_id: the plan has no step S009; its steps are S001 to S002",
        NOTHING,
    ]


def test_a_plan_of_an_unknown_status_counts_as_none(toolbox: Toolbox, session: Session) -> None:
    session.dispatch(Plan("x", cast("Any", "bogus"), (PlanStep("S001", "a", None, "pending"),)))
    assert refusals(toolbox, "planning_mark_step", MarkStep("S001", "done")) == [NO_PLAN]
    assert toolbox.call("planning_read_plan").error == NO_PLAN
    assert toolbox.call("planning_setup_plan", {"objective": "again"}).success
    assert select_latest(session, Plan) == Plan("again", "active", ())

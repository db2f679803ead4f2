"""A plan as text, and the replies to commands."""

from __future__ import annotations

import pytest
from hypothesis import given

from planning import (
    AddStep,
    ClearPlan,
    MarkStep,
    NewPlanStep,
    Plan,
    PlanStep,
    ReadPlan,
    SetupPlan,
    UpdateStep,
    plan_text,
)
from planning.commands import Command
from planning.model import StepStatus
from planning.render import reply
from strategies import plans


def plan(*statuses: StepStatus, status: str = "active") -> Plan:
    steps = tuple(
        PlanStep(f"S{place:03d}", f"Title {place}", None, each) for place, each in enumerate(statuses, 1)
    )
    return Plan("Fix the login bug", status, steps)  # type: ignore[arg-type]


def test_a_plan_is_its_objective_and_a_line_for_each_step() -> None:
    text = plan_text(
        Plan(
            "Fix the login bug",
            "active",
            (
                PlanStep(
                    "S001", "Reproduce it", "On Firefox\n\tand Chrome", "done", ("Fails", "Since 1.2\nor so")
                ),
                PlanStep("S002", "Write a test", None, "in_progress"),
                PlanStep("S1000", "Fix it", None, "blocked", ("No access",)),
            ),
        )
    )
    assert text == (
        "Fix the login bug (active, 1 of 3 done)\n"
        "S001 done: Reproduce it\n"
        "  On Firefox\n"
        "  \tand Chrome\n"
        "  - Fails\n"
        "  - Since 1.2\n"
        "    or so\n"
        "S002 in_progress: Write a test\n"
        "S1000 blocked: Fix it\n"
        "  - No access"
    )


def test_a_plan_without_steps_is_one_line() -> None:
    assert plan_text(Plan("Fix the login bug", "abandoned")) == "Fix the login bug (abandoned, 0 of 0 done)"


@given(plans())
def test_nothing_of_a_plan_is_lost_in_its_text(plan: Plan) -> None:
    rest = plan_text(plan)
    assert rest.isascii()
    parts = [plan.objective, plan.status, str(len(plan.steps))]
    for step in plan.steps:
        parts += [step.step_id, step.status, step.title, *(step.details or "").split("\n")]
        for note in step.notes:
            parts += ["- ", *note.split("\n")]
    for part in parts:
        before, found, rest = rest.partition(part) if part else ("", part, rest)
        assert found == part, (part, before)


@given(plans())
def test_only_the_line_of_a_step_starts_with_its_id(plan: Plan) -> None:
    lines = [line for line in plan_text(plan).split("\n")[1:] if not line.startswith("  ")]
    assert lines == [f"{step.step_id} {step.status}: {step.title}" for step in plan.steps]


@pytest.mark.parametrize(
    ("command", "after", "expected"),
    [
        (SetupPlan("x"), plan(), "Plan set, no steps yet. Add them with planning_add_step."),
        (SetupPlan("x", (NewPlanStep("a"),)), plan("pending"), "Plan set: S001. Next: S001 Title 1"),
        (
            SetupPlan("x", (NewPlanStep("a"),) * 3),
            plan("pending", "pending", "pending"),
            "Plan set: S001 to S003. Next: S001 Title 1",
        ),
        (AddStep((NewPlanStep("a"),)), plan("done", "pending"), "Added S002."),
        (AddStep((NewPlanStep("a"),) * 2), plan("done", "pending", "pending"), "Added S002 to S003."),
        (UpdateStep("S001", "a"), plan("done", "pending"), "S001 updated."),
        (ClearPlan(), plan(status="abandoned"), "Plan abandoned."),
        (ReadPlan(), plan("done", "pending"), plan_text(plan("done", "pending"))),
        (MarkStep("S001", "in_progress"), plan("in_progress", "pending"), "S001 in_progress."),
        (MarkStep("S001", "pending"), plan("pending", "pending"), "S001 pending."),
        (MarkStep("S001", "done"), plan("done", "pending"), "S001 done. Next: S002 Title 2"),
        (MarkStep("S002", "done"), plan("pending", "done"), "S002 done. Next: S001 Title 1"),
        (
            MarkStep("S002", "done"),
            plan("in_progress", "done", "blocked", "pending"),
            "S002 done. Next: S004 Title 4",
        ),
        (MarkStep("S001", "done"), plan("done", "blocked"), "S001 done. Blocked: S002 Title 2"),
        (MarkStep("S001", "blocked"), plan("blocked", "pending"), "S001 blocked. Next: S002 Title 2"),
        (MarkStep("S001", "done"), plan("done", "done", status="completed"), "S001 done. Plan completed."),
    ],
)
def test_a_reply_says_what_was_done_and_what_comes_next(command: Command, after: Plan, expected: str) -> None:
    assert reply(command, after) == expected


def test_a_reply_to_a_mark_of_a_step_that_is_gone_still_names_the_next() -> None:
    assert reply(MarkStep("S009", "done"), plan("done", "pending")) == "S009 done. Next: S002 Title 2"

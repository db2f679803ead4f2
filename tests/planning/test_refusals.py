"""Refusals name everything at once, and no plan can trap its session."""

from __future__ import annotations

from typing import Any, cast

import pytest

from planning import AddStep, MarkStep, Plan, PlanStep, Toolbox, ToolValidationError, UpdateStep
from planning.text import NOTE
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
        (
            "planning_add_step",
            {"steps": [], "x": 1},
            [EMPTY, "x: unknown field; the fields are steps", NO_PLAN],
        ),
        (
            "planning_update_step",
            {"step_id": "S001", "x": 1},
            ["x: unknown field; the fields are step_id, title, details", NO_PLAN, NOTHING],
        ),
        (
            "planning_mark_step",
            {"step_id": "S001"},
            ["status: missing; send one of pending, in_progress, blocked, done", NO_PLAN],
        ),
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


def test_a_space_at_either_end_of_a_note_is_trimmed(toolbox: Toolbox, session: Session) -> None:
    toolbox.call("planning_setup_plan", {"objective": "x", "initial_steps": ["a"]})
    for note in ("x ", " x"):
        assert toolbox.invoke("planning_mark_step", MarkStep("S001", "done", note)).value.note == "x"
    plan = select_latest(session, Plan)
    assert plan is not None
    assert plan.steps[0].notes == ("x", "x")


def test_the_remedies_are_in_words_that_can_be_followed() -> None:
    assert NOTE.problems("a\r\nb \u201cc\u201d") == [
        "a carriage return (U+000D) at character 2; remove it",
        "LEFT DOUBLE QUOTATION MARK (U+201C) at character 6; only ASCII is allowed, write '\"'",
        "RIGHT DOUBLE QUOTATION MARK (U+201D) at character 8; only ASCII is allowed, write '\"'",
    ]
    assert NOTE.problems("\x01\x02\x03\x04")[-1] == "1 more character to replace"


def test_a_blocked_step_is_not_named_as_what_is_left(toolbox: Toolbox) -> None:
    toolbox.call("planning_setup_plan", {"objective": "x", "initial_steps": ["a", "b"]})
    first = toolbox.invoke("planning_mark_step", MarkStep("S001", "blocked"))
    second = toolbox.invoke("planning_mark_step", MarkStep("S002", "done"))
    again = toolbox.invoke("planning_mark_step", MarkStep("S001", "blocked"))
    assert [first.message, second.message, again.message] == [
        "S001 blocked. Next: S002 b",
        "S002 done. Blocked: S001 a",
        "S001 blocked. No other step is open.",
    ]


def test_a_note_cannot_pose_as_two(toolbox: Toolbox) -> None:
    toolbox.call("planning_setup_plan", {"objective": "x", "initial_steps": ["a"]})
    toolbox.invoke("planning_mark_step", MarkStep("S001", "in_progress", "one\n- two"))
    assert toolbox.call("planning_read_plan").message == (
        "x (active, 0 of 1 done)\nS001 in_progress: a\n  - one\n    - two"
    )


def test_a_flood_of_problems_is_counted_and_not_all_written_out(toolbox: Toolbox) -> None:
    refused = toolbox.call("planning_setup_plan", {"objective": "x", "initial_steps": ["\u2014"] * 5_000})
    lines = refused.message.splitlines()
    assert (lines[0], len(lines)) == ("Refused, nothing changed. 5000 problems:", 62)
    assert lines[-2:] == [
        '- initial_steps[59].title: EM DASH (U+2014) at character 1; only ASCII is allowed, write "-"',
        "- and 4940 more",
    ]

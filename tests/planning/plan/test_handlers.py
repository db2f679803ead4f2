"""Handlers: what they let through, what they say when they refuse, and the lifecycle that they keep to."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from planning import (
    AddStep,
    ClearPlan,
    MarkStep,
    NewPlanStep,
    ReadPlan,
    SetupPlan,
    ToolValidationError,
    UpdateStep,
)
from planning.errors import Problem, cut
from planning.plan import handlers as handle
from planning.plan.commands import MarkSteps, MoveStep, RemoveStep
from planning.plan.model import Plan, PlanStatus, PlanStep
from planning.plan.reducers import TRANSITIONS
from planning.suite.tools import planning_tools
from session import Session

NO_PLAN = "no plan yet; call planning_setup_plan first"
COMPLETED = (
    "the plan is completed; reopen a step with planning_mark_step, "
    "or start a new plan with planning_setup_plan"
)
NOTHING = "nothing to change; send a title or details"
ABANDONED = "the plan was abandoned; start a new one with planning_setup_plan"

HANDLERS: dict[type[Any], Callable[[Any, Plan | None], Any]] = {
    SetupPlan: handle.setup_plan,
    AddStep: handle.add_step,
    UpdateStep: handle.update_step,
    MarkStep: handle.mark_step,
    ClearPlan: handle.clear_plan,
    ReadPlan: handle.read_plan,
    MarkSteps: handle.mark,
    RemoveStep: handle.remove_step,
    MoveStep: handle.move_step,
}


def plan(*step_ids: str, status: Any = "active") -> Plan:
    steps = tuple(PlanStep(step_id, f"Title of {step_id}", None, "pending") for step_id in step_ids)
    return Plan("Fix the login bug", status, steps)


PLAN = plan("S001", "S002")


def handled(command: Any, current: Plan | None) -> Any:
    return HANDLERS[type(command)](command, current)


def refusal(command: Any, current: Plan | None) -> str:
    with pytest.raises(ToolValidationError) as caught:
        handled(command, current)
    return str(caught.value)


SENT = [
    SetupPlan(" Ship it\n"),
    SetupPlan("Ship it", (NewPlanStep(" Pack ", " \n"), NewPlanStep("Send", "By\n\tair "))),
    AddStep((NewPlanStep("\tTest", ""),)),
    UpdateStep(" S001 ", " Look "),
    UpdateStep("S001", None, " why\nnot "),
    UpdateStep("S001", "Look", "  "),
    MarkStep("\u00a0S002\n", "done", " seen "),
    MarkSteps((MarkStep(" S002 ", "done", " seen "), MarkStep("S001", "pending")), is_last=True),
    MarkSteps((), is_report=True),
    RemoveStep(" s1 "),
    MoveStep("2", 0),
]


def test_a_command_is_made_normal(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(str(handled(command, PLAN)) for command in SENT) == snapshot


@pytest.mark.parametrize(("status", "reason"), [
    (None, NO_PLAN), ("active", None), ("completed", COMPLETED), ("abandoned", ABANDONED),
])  # fmt: skip
def test_the_table_of_the_lifecycle_says_what_is_refused_and_a_refusal_names_what_is_not(
    status: PlanStatus | None, reason: str | None
) -> None:
    current = None if status is None else plan("S001", status=status)
    for command in (
        SetupPlan("Ship it", (NewPlanStep("Pack"),)),
        AddStep((NewPlanStep("Test"),)),
        UpdateStep("S001", "Look again"),
        MarkStep("S001", "done"),
        ClearPlan(),
        ReadPlan(),
    ):
        if TRANSITIONS[status, type(command)]:
            assert handled(command, current) == command
        else:
            assert refusal(command, current) == reason
    named = re.findall(r"planning_\w+", reason or "planning_read_plan")
    tools = {tool.name: tool.parameters for tool in planning_tools(Session())}
    assert all(TRANSITIONS[status, tools[name]] for name in named)


def test_a_step_of_another_kind_becomes_a_plain_one() -> None:
    class Later(NewPlanStep):
        """A step of a program's own."""

    normal = handled(AddStep((Later("Test"), NewPlanStep("Ship"))), PLAN)
    assert (normal, [type(step) for step in normal.steps]) == (
        AddStep((NewPlanStep("Test"), NewPlanStep("Ship"))),
        [NewPlanStep, NewPlanStep],
    )


def test_a_status_from_a_string_enum_becomes_plain_text() -> None:
    class Plain(str, Enum):  # noqa: UP042 - the older kind, whose str() is not its value
        DONE = "done"

    status: Any = Plain.DONE
    normal = handled(MarkStep("S001", status), PLAN)
    assert isinstance(normal, MarkStep)
    assert (normal.status, type(normal.status)) == ("done", str)


SYNONYMS: list[Any] = [
    *("completed", "Complete", "resolved", "waiting", "canceled", "on-hold", "failed", "started", "running"),
    *("todo", "to do", "not_started", "done!", "", ["done"]),
]
NO_STEPS: list[Any] = [
    *(None, 7, "Pack", NewPlanStep("Pack"), {"title": "Pack"}),
    (NewPlanStep("a"), "b", NewPlanStep(" ")),
]
IDS = ("S001", "S010", "S1000", "Intro", "phase-2", "7")
MEAN_NO_STEP: list[Any] = [
    *("2", "S2", 2, "S", "001x", "phase", "phase2", "S-1", "+1", "1.0", "S1_0", "S0", "11"),
]
ALIKE = plan("S01", "S001", "Fix", "fix", "s0001", "S00001")
REFUSED: list[tuple[Any, Plan | None]] = [
    (SetupPlan("x" * 241), PLAN),
    (SetupPlan("x", (NewPlanStep("a"), NewPlanStep("x" * 161, "y" * 600))), None),
    (AddStep((NewPlanStep(" "), NewPlanStep("a\nb"))), None),
    (AddStep(()), None),
    (UpdateStep("S001"), None),
    (UpdateStep("S001", None, "  "), None),
    (UpdateStep("S009"), PLAN),
    (UpdateStep("S001", " "), PLAN),
    (UpdateStep("S009", "a"), plan("S007")),
    (UpdateStep("S009", "", "\u2013"), plan("S001", status="completed")),
    (MarkStep("", "done"), PLAN),
    (MarkStep("S" * 65, "done"), PLAN),
    (MarkStep("S001", "done", " \n"), PLAN),
    (MarkSteps((MarkStep("S001", "done"), MarkStep("S007", "done"))), PLAN),
    (MarkSteps((MarkStep("S001", "done"),)), None),
    (RemoveStep("S001"), None),
    (MoveStep("S001", 2), PLAN),
    (MoveStep("S001", -1), PLAN),
    (MoveStep("S001", True), PLAN),
    (MoveStep("S001", 5), None),
    (MoveStep("S009", 5), PLAN),
    *((MarkStep("S001", status), PLAN) for status in SYNONYMS),
    *((SetupPlan("x", steps), None) for steps in NO_STEPS),
    (AddStep(7), PLAN),  # type: ignore[arg-type]  # what is refused
    (MarkStep("S009", "done"), plan("S001", status="abandoned")),
    *((MarkStep(given, "done"), plan(*IDS)) for given in MEAN_NO_STEP),
    *((command, ALIKE) for command in (MarkStep("1", "done"), UpdateStep("FIX", "a"))),
]


def test_a_refusal_lists_every_problem(snapshot: SnapshotAssertion) -> None:
    said = [f"{cut(str(command), 120)}\n{refusal(command, current)}\n" for command, current in REFUSED]
    assert "\n".join(said) == snapshot


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ("S001", "S001"), ("s001", "S001"), ("S1", "S001"), ("s1", "S001"), (" S01 ", "S001"),
        ("1", "S001"), (1, "S001"), (1.0, "S001"), ("0001", "S001"), ("10", "S010"), (10, "S010"),
        ("s1000", "S1000"), (1000, "S1000"), ("intro", "Intro"), ("PHASE-2", "phase-2"),
        ("S7", "7"), (7, "7"),
    ],
)  # fmt: skip
def test_the_shape_of_a_step_id_is_forgiven(given: Any, recorded: str) -> None:
    current = plan(*IDS)
    assert handled(MarkStep(given, "done"), current) == MarkStep(recorded, "done")
    assert handled(UpdateStep(given, "Look"), current) == UpdateStep(recorded, "Look")


@pytest.mark.parametrize("step_id", ["S001", "fix"])
def test_a_step_id_that_may_mean_several_steps_is_the_one_that_is_written_so(step_id: str) -> None:
    assert handled(MarkStep(step_id, "done"), ALIKE) == MarkStep(step_id, "done")


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ("Done", "done"), ("DONE", "done"), (" done\n", "done"), ("in progress", "in_progress"),
        ("in-progress", "in_progress"), ("In Progress", "in_progress"), ("inProgress", "in_progress"),
        ("IN_PROGRESS", "in_progress"), ("Blocked", "blocked"), ("Pending", "pending"),
    ],
)  # fmt: skip
def test_the_shape_of_a_status_is_forgiven(given: Any, recorded: Any) -> None:
    assert handled(MarkStep("S001", given), PLAN) == MarkStep("S001", recorded)


def test_the_highest_number_of_a_step_is_one_less_than_a_thousand_million() -> None:
    highest: Any = 10**9 - 1
    assert handled(MarkStep(highest, "done"), plan("S999999999")) == MarkStep("S999999999", "done")
    assert handled(MarkStep(0, "done"), plan("S000")) == MarkStep("S000", "done")  # type: ignore[arg-type]


def test_what_the_plan_has_against_malformed_arguments_is_diagnosed() -> None:
    known = Problem("the plan has no step S009; its steps are S001 to S002", "step_id")
    assert handle.diagnose(MarkStep, {"step_id": "S009"}, PLAN) == [known]
    assert handle.diagnose(MarkStep, {"step_id": "S009"}, None) == [Problem(NO_PLAN)]
    assert handle.diagnose(MarkStep, {"step_id": "S001"}, PLAN) == []
    assert handle.diagnose(MarkStep, {"step_id": 9}, PLAN) == []
    assert handle.diagnose(MarkStep, {}, PLAN) == []
    assert handle.diagnose(ClearPlan, {"step_id": "S009"}, PLAN) == []
    given: list[dict[str, object]] = [{"title": "A"}, {"details": "A"}, {}]
    assert [len(handle.diagnose(UpdateStep, each, PLAN)) for each in given] == [0, 0, 1]
    assert handle.diagnose(AddStep, {"step_id": "S009"}, plan("S001", status="completed")) == [
        Problem(COMPLETED)
    ]

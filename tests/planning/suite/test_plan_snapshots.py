"""Plans from a snapshot's text: those that a session can hold are read, and no others."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from planning import Plan, PlanStep, SetupPlan, Toolbox
from planning.plan.commands import MarkStep, NewPlanStep
from session import ReducerError, Session, Snapshot, SnapshotError


@pytest.fixture
def text(session: Session, toolbox: Toolbox) -> str:
    """A snapshot with a plan of two steps."""
    steps = (NewPlanStep("one", "with\ndetails"), NewPlanStep("two"))
    toolbox.invoke("planning_setup_plan", SetupPlan("o" * 240, steps))
    toolbox.invoke("planning_mark_step", MarkStep("S001", "done", "a note"))
    return session.snapshot().to_json()


def spoiled(*path_and_value: Any) -> Callable[[Any], None]:
    """Put a value at a path of the plans."""
    *path, value = path_and_value

    def changed(plans: Any) -> None:
        for part in path[:-1]:
            plans = plans[part]
        plans[path[-1]] = value

    return changed


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda plans: plans.append(plans[0]), "a session has one plan, got 2"),
        (spoiled(0, "objective", "o" * 241), "objective: 241 characters, at most 240; cut 1"),
        (spoiled(0, "objective", ""), "objective: blank; send 1 to 240 characters"),
        (spoiled(0, "objective", " "), "objective: blank; send 1 to 240 characters"),
        (spoiled(0, "steps", 1, "step_id", "S001"), "steps[1].step_id: S001 appears twice"),
        (spoiled(0, "steps", 1, "title", "t" * 161), "steps[1].title: 161 characters, at most 160; cut 1"),
        (spoiled(0, "steps", 1, "title", "a\nb"),
         'steps[1].title: a newline (U+000A) at character 2; this field is one line, write " "'),
        (spoiled(0, "steps", 0, "details", ""), "steps[0].details: blank; send 1 to 512 characters"),
        (spoiled(0, "steps", 0, "details", "d" * 513),
         "steps[0].details: 513 characters, at most 512; cut 1"),
        (spoiled(0, "steps", 0, "notes", ["a", "n" * 600]),
         "steps[0].notes[1]: 600 characters, at most 512; cut 88"),
        (spoiled(0, "steps", 0, "step_id", "S" * 65), "steps[0].step_id: 65 characters, at most 64; cut 1"),
    ],
)  # fmt: skip
def test_a_plan_that_no_session_holds_is_refused(
    spoil: Callable[[Any], None], message: str, text: str
) -> None:
    document = json.loads(text)
    spoil(document["slices"]["planning.model:Plan"])
    with pytest.raises(SnapshotError) as caught:
        Snapshot.from_json(json.dumps(document))
    assert str(caught.value) == f"Plan: {message}"


STEP = PlanStep("S001", "a", None, "pending")
of: Any = PlanStep  # also with what type hints refuse


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((7, "active"), "objective: expected a string, got int"),
        (("x", None), "status: expected str, got NoneType"),
        (("x", "active", [STEP]), "steps: expected tuple, got list"),
        (("x", "active", (STEP, "a")), "steps[1]: expected PlanStep, got str"),
        (("x", "active", (of(7, "a", None, "done"),)), "steps[0].step_id: expected a string, got int"),
        (("x", "active", (of("S001", 7, None, "done"),)), "steps[0].title: expected a string, got int"),
        (("x", "active", (of("S001", "a", 7, "done"),)), "steps[0].details: expected a string, got int"),
        (("x", "active", (of("S001", "a", None, 7),)), "steps[0].status: expected str, got int"),
        (("x", "active", (of("S001", "a", None, "done", []),)), "steps[0].notes: expected tuple, got list"),
        (("x", "active", (of("S001", "a", None, "done", ("a", 7)),)),
         "steps[0].notes[1]: expected a string, got int"),
    ],
)  # fmt: skip
def test_a_plan_with_parts_of_other_types_is_refused_when_it_is_dispatched(
    parts: tuple[Any, ...], message: str, session: Session, toolbox: Toolbox
) -> None:
    with pytest.raises(ReducerError) as caught:
        session.dispatch(Plan(*parts))
    assert str(caught.value) == f"the slice Plan is refused by its type: {message}"
    assert session.select_all(Plan) == ()


def test_a_slice_of_something_else_is_no_plan() -> None:
    nothing: Any = ["a plan"]
    with pytest.raises(ValueError, match=r"^plan: expected Plan, got str$"):
        Plan.check_slice(nothing)


def test_a_program_that_imports_the_package_alone_reads_a_plan(text: str) -> None:
    program = (
        "import sys, planning; from session import Snapshot;"
        "print(Snapshot.from_json(sys.stdin.read()).select_latest(planning.Plan).progress)"
    )
    command = [sys.executable, "-c", program]
    shown = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert shown.stdout == "(1, 2)\n"

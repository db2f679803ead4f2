"""The plan as data."""

from __future__ import annotations

import copy
import pickle
import typing
from dataclasses import MISSING, FrozenInstanceError, fields
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning import Plan, PlanStep
from planning.model import STEP_STATUSES, PlanStatus, StepStatus, index_of
from planning.step_ids import format_id
from strategies import plans

REQUIRED = object()
STEP = PlanStep("S001", "Reproduce it", None, "pending")
PLAN = Plan("Fix the login bug", "active", (STEP,))


def declared(kind: type[Any]) -> list[tuple[str, object, object]]:
    """The fields of a dataclass: name, type and default."""
    hints = typing.get_type_hints(kind)
    rows: list[tuple[str, object, object]] = []
    for field in fields(kind):
        if field.default_factory is not MISSING:
            rows.append((field.name, hints[field.name], field.default_factory()))
        else:
            default = REQUIRED if field.default is MISSING else field.default
            rows.append((field.name, hints[field.name], default))
    return rows


def test_the_statuses_are_those_of_the_specification_in_its_order() -> None:
    assert PlanStatus == Literal["active", "completed", "abandoned"]
    assert StepStatus == Literal["pending", "in_progress", "blocked", "done"]
    assert STEP_STATUSES == ("pending", "in_progress", "blocked", "done")


def test_a_step_has_the_fields_of_the_specification() -> None:
    assert declared(PlanStep) == [
        ("step_id", str, REQUIRED),
        ("title", str, REQUIRED),
        ("details", str | None, REQUIRED),
        ("status", StepStatus, REQUIRED),
        ("notes", tuple[str, ...], ()),
    ]


def test_a_plan_has_the_fields_of_the_specification() -> None:
    assert declared(Plan) == [
        ("objective", str, REQUIRED),
        ("status", PlanStatus, REQUIRED),
        ("steps", tuple[PlanStep, ...], ()),
    ]


@pytest.mark.parametrize("value", [STEP, PLAN])
def test_data_is_frozen_and_has_slots(value: Plan | PlanStep) -> None:
    for field in fields(value):
        with pytest.raises(FrozenInstanceError):
            setattr(value, field.name, "other")
        with pytest.raises(FrozenInstanceError):
            delattr(value, field.name)
    assert not hasattr(value, "__dict__")
    assert type(value).__slots__ == tuple(field.name for field in fields(value))


@given(plans())
def test_a_plan_can_be_compared_hashed_copied_and_pickled(plan: Plan) -> None:
    for twin in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan), copy.copy(plan)):  # noqa: S301 - its own pickle
        assert twin == plan
        assert hash(twin) == hash(plan)
        assert repr(twin) == repr(plan)


@pytest.mark.parametrize(
    "step_id", ["S004", "S0002", "s001", "S000", "S-01", "", "S", "\u0661", "S" + "9" * 9_999]
)
def test_an_id_that_no_step_has_is_nowhere(step_id: str) -> None:
    steps = [PlanStep(format_id(number), "x", None, "pending") for number in (1, 2, 3)]
    assert index_of(steps, step_id) is None


def test_a_step_is_found_by_its_id_and_not_by_its_place() -> None:
    steps = [PlanStep(step_id, "x", None, "pending") for step_id in ("S002", "S001", "S007", "intro", "S1_0")]
    assert [index_of(steps, step.step_id) for step in steps] == [0, 1, 2, 3, 4]


@given(plans(), st.text())
def test_an_index_is_the_place_of_its_step(plan: Plan, other: str) -> None:
    for place, step in enumerate(plan.steps):
        assert index_of(plan.steps, step.step_id) == place
    found = index_of(plan.steps, other)
    assert (found is None) is (other not in {step.step_id for step in plan.steps})

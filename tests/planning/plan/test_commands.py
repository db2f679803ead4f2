"""Plans and commands as data."""

from __future__ import annotations

import copy
import pickle
import typing
from dataclasses import MISSING, fields
from typing import Any, Literal

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
)
from planning.plan.commands import Command
from planning.plan.model import STEP_STATUSES, PlanStatus, StepStatus
from planning.plan.text import DETAILS, NOTE, OBJECTIVE, STEP_ID, TITLE
from strategies import commands, plans

REQUIRED = object()
STEP = PlanStep("S001", "Reproduce it", None, "pending")
FIELDS: dict[type[Any], list[tuple[str, object, object]]] = {
    NewPlanStep: [("title", str, REQUIRED), ("details", str | None, None)],
    SetupPlan: [("objective", str, REQUIRED), ("initial_steps", tuple[NewPlanStep, ...], ())],
    AddStep: [("steps", tuple[NewPlanStep, ...], REQUIRED)],
    UpdateStep: [("step_id", str, REQUIRED), ("title", str | None, None), ("details", str | None, None)],
    MarkStep: [("step_id", str, REQUIRED), ("status", StepStatus, REQUIRED), ("note", str | None, None)],
    ClearPlan: [],
    ReadPlan: [],
    PlanStep: [
        ("step_id", str, REQUIRED),
        ("title", str, REQUIRED),
        ("details", str | None, REQUIRED),
        ("status", StepStatus, REQUIRED),
        ("notes", tuple[str, ...], ()),
    ],
    Plan: [
        ("objective", str, REQUIRED),
        ("status", PlanStatus, REQUIRED),
        ("steps", tuple[PlanStep, ...], ()),
    ],
}


def default_of(field: Any) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return REQUIRED if field.default is MISSING else field.default


@pytest.mark.parametrize("kind", FIELDS)
def test_a_value_has_the_fields_of_the_specification(kind: type[Any]) -> None:
    hints = typing.get_type_hints(kind)
    assert [(field.name, hints[field.name], default_of(field)) for field in fields(kind)] == FIELDS[kind]
    assert kind.__slots__ == tuple(hints)
    assert kind.__dataclass_params__.frozen


def test_the_statuses_are_those_of_the_specification_in_its_order() -> None:
    assert PlanStatus == Literal["active", "completed", "abandoned"]
    assert StepStatus == Literal["pending", "in_progress", "blocked", "done"]
    assert STEP_STATUSES == ("pending", "in_progress", "blocked", "done")


@given(commands() | plans())
def test_a_value_can_be_compared_hashed_copied_and_pickled(value: Command | Plan) -> None:
    for twin in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):  # noqa: S301 - its own pickle
        assert twin == value
        assert hash(twin) == hash(value)
        assert repr(twin) == repr(value)


RULES = {"objective": OBJECTIVE, "title": TITLE, "details": DETAILS, "note": NOTE, "step_id": STEP_ID}


@pytest.mark.parametrize("kind", [NewPlanStep, SetupPlan, UpdateStep, MarkStep])
def test_a_text_field_carries_its_rule(kind: type[Any]) -> None:
    texts = [field for field in fields(kind) if field.name in RULES]
    for field in texts:
        assert field.metadata["check"] == RULES[field.name].problems
        assert field.metadata["max_length"] == RULES[field.name].limit
    assert texts

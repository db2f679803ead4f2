"""Plans and commands as data; tests/test_public_api.py stores their fields and defaults."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields
from typing import Any

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
from strategies import commands, plans

KINDS: list[Any] = [
    *(NewPlanStep, SetupPlan, AddStep, UpdateStep, MarkStep, ClearPlan, ReadPlan),
    *(PlanStep, Plan),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_is_a_frozen_dataclass_with_slots(kind: Any) -> None:
    assert kind.__dataclass_params__.frozen
    assert kind.__slots__ == tuple(field.name for field in fields(kind))


@given(commands() | plans())
def test_a_value_can_be_compared_hashed_copied_and_pickled(value: Command | Plan) -> None:
    for twin in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):  # noqa: S301 - its own pickle
        assert twin == value
        assert hash(twin) == hash(value)
        assert repr(twin) == repr(value)

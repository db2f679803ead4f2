"""Where a step of a plan is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning import Plan, PlanStep
from planning.plan.model import format_id, index_of
from strategies import plans


@pytest.mark.parametrize(
    "step_id", ["S004", "S0002", "s001", "S000", "S-01", "", "S", "\u0661", "S" + "9" * 9_999]
)
def test_an_id_that_no_step_has_is_nowhere(step_id: str) -> None:
    steps = [PlanStep(format_id(number), "x", None, "pending") for number in (1, 2, 3)]
    assert index_of(steps, step_id) is None


@given(plans(), st.text())
def test_an_index_is_the_place_of_its_step(plan: Plan, other: str) -> None:
    for place, step in enumerate(plan.steps):
        assert index_of(plan.steps, step.step_id) == place
    found = index_of(plan.steps, other)
    assert (found is None) is (other not in {step.step_id for step in plan.steps})

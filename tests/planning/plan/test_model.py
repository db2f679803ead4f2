"""Where a step of a plan is, and what holds of every id."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning import Plan, PlanStep
from planning.plan.model import format_id, index_of, number_of, written_alike
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


@given(st.integers(0, 10**12))
def test_an_id_reads_back_to_its_number(number: int) -> None:
    assert number_of(format_id(number)) == number


@given(st.text())
def test_any_text_has_a_number_or_none(text: str) -> None:
    number = number_of(text)
    assert number is None or text.endswith(str(number))


@given(st.integers(0, 10**9 - 1))
def test_every_shape_of_an_id_is_like_the_id_itself(number: int) -> None:
    step_id = format_id(number)
    for shape in (str(number), f"s{number}", f"S{number:06d}", step_id.lower()):
        assert written_alike(shape, [step_id, format_id(number + 1)]) == [step_id]


def test_an_id_of_very_many_digits_is_like_no_other() -> None:
    assert written_alike("9" * 100_000, ["S001", "S" + "9" * 99_999]) == []

"""Step ids: what holds of every number and every text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planning.plan.model import format_id, number_of, written_alike


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

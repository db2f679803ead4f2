"""Step ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.step_ids import as_text, format_id, highest_number, number_of, written_alike


@pytest.mark.parametrize(
    ("number", "step_id"), [(1, "S001"), (42, "S042"), (999, "S999"), (1000, "S1000"), (123_456, "S123456")]
)
def test_an_id_has_three_digits_or_more(number: int, step_id: str) -> None:
    assert format_id(number) == step_id
    assert number_of(step_id) == number


@pytest.mark.parametrize(
    ("step_id", "number"),
    [
        ("S0001", 1),
        ("X12", 12),
        ("phase2-3", 3),
        ("17", 17),
        ("S000", 0),
        ("S-5", 5),
        ("S1a", None),
        ("step", None),
        ("", None),
        ("S 1 ", None),
        ("S\u0663", None),
        ("S\u00b2", None),
        ("S" + "9" * 4_000, int("9" * 4_000)),
        ("S" + "9" * 4_001, None),
        ("S" + "9" * 100_000, None),
    ],
)
def test_the_number_of_an_id_is_its_suffix_of_ascii_digits(step_id: str, number: int | None) -> None:
    assert number_of(step_id) == number


@pytest.mark.parametrize(
    ("step_ids", "highest"),
    [
        ([], 0),
        (["S001", "S003", "S002"], 3),
        (["S999", "S1000"], 1000),
        (["intro", "S004", "end"], 4),
        (["intro", "end"], 0),
        (["S" + "9" * 5_000, "S007"], 7),
    ],
)
def test_the_highest_number_skips_ids_without_one(step_ids: list[str], highest: int) -> None:
    assert highest_number(step_ids) == highest


@given(st.integers(0, 10**12))
def test_an_id_reads_back_to_its_number(number: int) -> None:
    assert number_of(format_id(number)) == number


@given(st.text())
def test_any_text_has_a_number_or_none(text: str) -> None:
    number = number_of(text)
    assert number is None or text.endswith(str(number))


@pytest.mark.parametrize(
    ("step_id", "alike"),
    [
        ("S1", ["S001", "S1", "1"]),
        ("001", ["S001", "S1", "1"]),
        ("s10", ["S010"]),
        ("INTRO", ["Intro"]),
        ("S0", []),
        ("11", []),
        ("S001 ", []),
        ("\u0661", []),
        ("9" * 100_000, []),
    ],
)
def test_ids_that_differ_in_shape_alone_are_written_alike(step_id: str, alike: list[str]) -> None:
    known = ["S001", "S1", "1", "S010", "Intro", "S" + "9" * 99_999]
    assert written_alike(step_id, known) == alike


def test_only_the_number_of_a_step_becomes_text() -> None:
    for value in ("1", " 1", None, 1.0, True, -1, 10**9, 10**5_000, [1]):
        assert as_text(value) is value
    assert (as_text(0), as_text(7), as_text(10**9 - 1)) == ("0", "7", "999999999")


@given(st.integers(0, 10**9 - 1))
def test_every_shape_of_an_id_is_like_the_id_itself(number: int) -> None:
    step_id = format_id(number)
    for shape in (str(number), f"s{number}", f"S{number:06d}", step_id.lower()):
        assert written_alike(shape, [step_id, format_id(number + 1)]) == [step_id]

"""The source line in a terminal: what it shows of hostile text, and where the carets come to stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.workflow.reports.excerpt import Excerpt, excerpt

LONG = "0123456789" * 10


def test_a_line_that_fits_is_shown_whole() -> None:
    assert excerpt('{"name": "serch"}', 10, 7, 40) == Excerpt('{"name": "serch"}', 9, 7)


def test_a_line_as_wide_as_the_window_fits() -> None:
    assert excerpt(LONG, 100, 1, 100) == Excerpt(LONG, 99, 1)


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (1, Excerpt("01234567890123456...", 0, 2)),
        (11, Excerpt("01234567890123456...", 10, 2)),
        (12, Excerpt("...45678901234567...", 10, 2)),
        (50, Excerpt("...23456789012345...", 10, 2)),
        (91, Excerpt("...34567890123456789", 10, 2)),
        (92, Excerpt("...34567890123456789", 11, 2)),
        (100, Excerpt("...34567890123456789", 19, 1)),
        (101, Excerpt("...34567890123456789", 20, 1)),
    ],
)
def test_a_long_line_is_cut_around_the_place(column: int, shown: Excerpt) -> None:
    assert excerpt(LONG, column, 2, 20) == shown


@pytest.mark.parametrize("column", [1, 50, 95])
def test_the_carets_end_where_the_window_ends(column: int) -> None:
    text, offset, columns = excerpt(LONG, column, 10**9, 20)
    assert offset + columns == len(text.removesuffix("..."))


def test_the_carets_end_at_the_end_of_the_line() -> None:
    assert excerpt("[1, 2", 5, 30, 40) == Excerpt("[1, 2", 4, 1)


@pytest.mark.parametrize("column", [6, 7, 10**9])
def test_a_place_behind_the_line_is_its_end(column: int) -> None:
    assert excerpt("[1, 2", column, 3, 40) == Excerpt("[1, 2", 5, 1)


def test_an_empty_line_has_one_caret() -> None:
    assert excerpt("", 1, 1, 40) == Excerpt("", 0, 1)


def test_blanks_at_the_end_are_not_shown() -> None:
    assert excerpt("[1   ", 2, 1, 40) == Excerpt("[1", 1, 1)


@pytest.mark.parametrize(
    ("before", "shown", "columns"),
    [
        ("\t\t", " " * 8, 8),
        ("日本", "日本", 4),
        ("\uff21", "\uff21", 2),
        ("e\u0301e\u20dd", "e\u0301e\u20dd", 2),
        ("\u1112\u1161\u11ab", "\u1112\u1161\u11ab", 2),
        ("\U0001f600", "\U0001f600", 2),
        ("\U0001f44d\U0001f3fd", "\U0001f44d", 2),
        ("\u2764\ufe0f", "\u2764", 1),
        ("\x1b[2J", "\\x1b[2J", 7),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b", 12),
        ("\x0b\x0c\x85\u2028", "\\x0b\\x0c\\x85\\u2028", 18),
        ("\u202e\u200d\u200b\ufeff", "\\u202e\\u200d\\u200b\\ufeff", 24),
        ("\xa0", "\\xa0", 4),
        ("\ud800", "\\ud800", 6),
        ("\U000e0041", "\\U000e0041", 10),
    ],
    ids=ascii,
)
def test_the_caret_stands_under_its_place_whatever_is_before_it(
    before: str, shown: str, columns: int
) -> None:
    assert excerpt(before + "!", len(before) + 1, 1, 60) == Excerpt(shown + "!", columns, 1)


def test_the_carets_are_as_wide_as_what_is_meant() -> None:
    assert excerpt("a日\t\x1bb", 2, 3, 40) == Excerpt("a日    \\x1bb", 1, 10)


def test_a_mark_without_columns_has_a_caret_too() -> None:
    assert excerpt("e\u0301", 2, 1, 40) == Excerpt("e\u0301", 1, 1)


def test_a_wide_character_that_does_not_fit_is_left_out() -> None:
    assert excerpt("日" * 50, 20, 1, 20) == Excerpt("...日日日日日日日...", 9, 2)


def test_no_more_marks_are_shown_than_a_window_can_hold() -> None:
    text, offset, columns = excerpt("e" + "\u0301" * 1_000_000 + "x", 500_000, 3, 50)
    assert text == "..." + "\u0301" * 200 + "..."
    assert (offset, columns) == (3, 1)


def test_marks_without_columns_leave_room_for_the_rest() -> None:
    line = "\u0301" * 100 + "0123456789" * 5
    assert excerpt(line, 101, 3, 20) == Excerpt("..." + "\u0301" * 40 + "01234567890123...", 3, 3)


@given(
    st.text(st.characters() | st.sampled_from("\t\x1b日\u0301\ud800 "), max_size=80),
    st.integers(1, 90),
    st.integers(1, 90),
    st.integers(12, 60),
)
def test_an_excerpt_prints_and_fits_and_holds_its_place(
    line: str, column: int, length: int, width: int
) -> None:
    text, offset, columns = excerpt(line, column, length, width)
    assert text.isprintable()
    assert 0 <= offset <= width
    assert columns >= 1
    assert offset + columns <= width + 1  # behind the last character of a line as wide as the window
    if line.isascii() and line.isprintable() and column <= len(line):
        assert len(text) <= width
        assert (text + " " * width)[offset] == line[column - 1]

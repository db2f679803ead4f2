"""The source line in a terminal: what it shows of hostile text, and where the carets come to stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.workflow.reports.excerpt import Excerpt, excerpt

LONG = "0123456789" * 10


EXCERPTS = {
    "a line that fits is shown whole": ('{"name": "serch"}', 10, 7, 40, Excerpt('{"name": "serch"}', 9, 7)),
    "a line as wide as the window fits": (LONG, 100, 1, 100, Excerpt(LONG, 99, 1)),
    "the carets end at the end of the line": ("[1, 2", 5, 30, 40, Excerpt("[1, 2", 4, 1)),
    "a place at the end of the line": ("[1, 2", 6, 3, 40, Excerpt("[1, 2", 5, 1)),
    "a place behind the line is its end": ("[1, 2", 7, 3, 40, Excerpt("[1, 2", 5, 1)),
    "a place far behind the line is its end": ("[1, 2", 10**9, 3, 40, Excerpt("[1, 2", 5, 1)),
    "an empty line has one caret": ("", 1, 1, 40, Excerpt("", 0, 1)),
    "blanks at the end are not shown": ("[1   ", 2, 1, 40, Excerpt("[1", 1, 1)),
    "the carets are as wide as what is meant": (
        "a\u65e5\t\x1bb", 2, 3, 40, Excerpt("a\u65e5    \\x1bb", 1, 10)),
    "a mark without columns has a caret too": ("e\u0301", 2, 1, 40, Excerpt("e\u0301", 1, 1)),
    "a wide character that does not fit is left out": (
        "\u65e5" * 50, 20, 1, 20, Excerpt("..." + "\u65e5" * 7 + "...", 9, 2)),
    "no more marks are shown than a window can hold": (
        "e" + "\u0301" * 1_000_000 + "x", 500_000, 3, 50, Excerpt("..." + "\u0301" * 200 + "...", 3, 1)),
    "marks without columns leave room for the rest": (
        "\u0301" * 100 + LONG[:50], 101, 3, 20, Excerpt("..." + "\u0301" * 40 + "01234567890123...", 3, 3)),
}  # fmt: skip


@pytest.mark.parametrize(("line", "column", "length", "width", "shown"), EXCERPTS.values(), ids=EXCERPTS)
def test_an_excerpt_shows_its_place(line: str, column: int, length: int, width: int, shown: Excerpt) -> None:
    assert excerpt(line, column, length, width) == shown


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

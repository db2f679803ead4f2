"""Text that is cut to a width counts the columns that a terminal or a picture gives it."""

from __future__ import annotations

import pytest

from planning.observe.text import fitted, one_line


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("\u6d4b\u8bd5\u6d4b\u8bd5", 8, "\u6d4b\u8bd5\u6d4b\u8bd5"),
        ("\u6d4b\u8bd5\u6d4b\u8bd5", 7, "\u6d4b\u8bd5\u6d4b\u2026"),
        ("e\u0301" * 8, 8, "e\u0301" * 8),
        ("e\u0301" * 9, 8, "e\u0301" * 7 + "\u2026"),
        (
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            7,
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", 4, "\U0001f468\u2026"),
        ("a\u202eb", 20, "a\\u202eb"),
    ],
)
def test_a_text_is_cut_by_its_columns(text: str, columns: int, expected: str) -> None:
    assert fitted(text, columns) == expected


def test_a_line_keeps_the_joiners_and_blanks_of_a_language() -> None:
    assert one_line("\u5168\u3000\u89d2 \u0645\u06cc\u200c\u062e\n\u202e\x1b") == (
        "\u5168\u3000\u89d2 \u0645\u06cc\u200c\u062e | \\u202e\\x1b"
    )

"""The words for what was repaired."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from planning.reading.found import Found

__all__ = ["Notes", "count", "remarks"]

Notes = dict[str, tuple[int, int, int]]
"""By code: where it stood first, as start and end, and how often it was found."""

_PLAIN: Final = "send plain JSON"

_WORDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "fenced": ("the plan stood in a code fence", "", "send the plan without a fence"),
    "surrounding_text": ("other text stood around the plan", "", "send the plan alone"),
    "comment": ("a comment was left out", "{} comments were left out", _PLAIN),
    "trailing_comma": (
        "a comma before a closing bracket was left out",
        "{} commas before a closing bracket were left out",
        "write no comma behind the last item",
    ),
    "missing_comma": (
        "a missing comma was put in",
        "{} missing commas were put in",
        "separate items by commas",
    ),
    "single_quotes": (
        "a text in single quotes was read",
        "{} texts in single quotes were read",
        "write texts in double quotes",
    ),
    "bare_key": (
        "a field name without quotes was read",
        "{} field names without quotes were read",
        "write field names in double quotes",
    ),
    "python_literal": (
        "a Python literal was read",
        "{} Python literals were read",
        "write true, false and null",
    ),
    "number_form": (
        "a number in a form that JSON does not have was read",
        "{} numbers in a form that JSON does not have were read",
        "write numbers such as 1, 0.5 or 5.0",
    ),
    "escape_form": (
        "an escape that JSON does not have was read",
        "{} escapes that JSON does not have were read",
        "write \\u0041 for \\x41, and ' as it is",
    ),
    "odd_space": (
        "spaces that JSON does not have were read as spaces",
        "spaces that JSON does not have were read as spaces in {} places",
        "write plain spaces",
    ),
    "raw_control": (
        "a control character in a text was kept",
        "{} control characters in texts were kept",
        "write a line break as \\n and a tab as \\t",
    ),
    "missing_bracket": (
        "a missing bracket was put in",
        "{} missing brackets were put in",
        "check that nothing is missing, and close every bracket",
    ),
    "extra_bracket": (
        "a closing bracket too many was left out",
        "{} closing brackets too many were left out",
        "close every bracket once",
    ),
}


def count(notes: Notes, code: str, start: int, end: int) -> None:
    """Count a repair, and keep the first place of its kind."""
    first, last, times = notes.get(code, (start, end, 0))
    notes[code] = (start, end, times + 1) if start < first else (first, last, times + 1)


def remarks(notes: Notes) -> list[Found]:
    """One warning for each kind of repair, at its first place."""
    found = []
    for code, (start, end, count) in notes.items():
        one, many, hint = _WORDS[code]
        message = many.format(count) if count > 1 and many else one
        found.append(Found(code, message, hint, span=(start, end)))
    return found

"""What DuckDB says of a statement, in the words in which SQLite says it."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["translated"]

_SAME: Final = (
    (r'Table with name "?([^"\s!]+)"? does not exist', "no such table: {0}"),
    (r'Referenced column "([^"]+)" not found', "no such column: {0}"),
    (r'Table "([^"]+)" does not have a column named "([^"]+)"', "no such column: {0}.{1}"),
    (r'Referenced table "([^"]+)" not found', "no such column: {0}.*"),
    (r'Ambiguous reference to column name "([^"]+)"', "ambiguous column name: {0}"),
    (
        r'(?:Scalar |Table |Aggregate )?Function with name "?([^"\s!]+)"? (?:does not exist|is not in)',
        "no such function: {0}",
    ),
    (r'syntax error at or near "(.+?)"(?:\n|$)', 'near "{0}": syntax error'),
    (r"syntax error at end of input", "incomplete input"),
    (r"unterminated quoted", "unterminated"),
    (r"Cannot mix values of type (VARCHAR and \w+) in BETWEEN", "no function of types: =({0})"),
    (r'Referenced column "([^"]+)" was not found because', "no such column: {0}"),
    (r"Values were not provided", "Incorrect number of bindings"),
    (r'column "([^"]+)" must appear in the GROUP BY', "ungrouped column: {0}"),
    (
        r"No function matches the given name and argument types '([^(]+)\((.*)\)'",
        "no function of types: {0}({1})",
    ),
    (r'best candidate function for the function call "([^(]+)\((.*)\)"', "no function of types: {0}({1})"),
    (
        r"Cannot compare values of type (VARCHAR and type (?:DATE|TIMESTAMP)|\S+ and type VARCHAR)",
        "no function of types: =({0})",
    ),
)


def translated(text: str) -> str:
    """The same in SQLite's words, or DuckDB's own without what a model does not need."""
    for pattern, told in _SAME:
        found = re.search(pattern, text)
        if found:
            return told.format(*found.groups())
    own = re.split(r"\n\s*\n|\nLINE \d|\n\t?Candidate|\nPossible", text, maxsplit=1)[0]
    return re.sub(r"^[A-Z][A-Za-z ]* Error: ", "", own).rstrip(" .!")

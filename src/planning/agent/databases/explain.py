"""Why a statement failed, and why an answer is not what was asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from planning.agent.sql.aggregates import arbitrary_column
from planning.agent.sql.diagnosis import diagnose
from planning.agent.sql.traps import trap

__all__ = ["explain", "wrong_answer"]

Tables = Callable[[], Sequence[Mapping[str, Any]] | None]

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


def explain(text: str, sql: str, dialect: str, tables: Tables, probe: Callable[[str], str]) -> str:
    """An error of the database in words that help to correct the statement."""
    if dialect == "duckdb":
        text = _translated(text)

    def names() -> Mapping[str, Any] | None:
        found = tables()
        return None if found is None else {"tables": found}

    return diagnose(text, sql, dialect, names, probe)


def wrong_answer(sql: str, dialect: str, tables: Tables) -> str | None:
    """Why the answer to a statement that ran is not what was asked, and what to write; None if it is."""
    return trap(sql, dialect) or (arbitrary_column(sql, tables) if dialect == "sqlite" else None)


def _translated(text: str) -> str:
    """The same error in SQLite's words, or DuckDB's own without what a model does not need."""
    for pattern, message in _SAME:
        match = re.search(pattern, text)
        if match:
            return message.format(*match.groups())
    own = re.split(r"\n\s*\n|\nLINE \d|\n\t?Candidate|\nPossible", text, maxsplit=1)[0]
    return re.sub(r"^[A-Z][A-Za-z ]* Error: ", "", own).rstrip(" .!")

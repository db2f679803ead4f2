"""Errors where SQLite would answer wrongly without one.

SQLite takes a name in double quotes that is not a column for a string, and returns NULL for a string from
printf that is too large. Its own switch for the first (``SQLITE_DBCONFIG_DQS_DML``) cannot be set from Python
before 3.12, and would break views that were written with such strings.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Any, Final

__all__ = ["PRINTF", "StrictPrintf", "strict_names"]

PRINTF: Final = ("printf", "format")
"""The functions that return NULL for a string that is too large. All others raise an error."""

_QUOTED: Final = re.compile(
    r"""'(?:[^']|'')*+(?:'|\Z) | `(?:[^`]|``)*+(?:`|\Z) | \[[^]]*+(?:]|\Z) | --[^\n]*+ |
        /\*(?:[^*]|\*(?!/))*+(?:\*/|\Z) | "((?:[^"]|"")*+)" """,
    re.VERBOSE,
)
_DIRECTIVE: Final = re.compile(r"%[-+ #0,!]*(\*|\d{0,10})(?:\.(\*|\d{0,10}))?l{0,2}(.)", re.DOTALL)
_WRITES: Final = re.compile(r"[^%\0]|%[-+ #0,!]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?l{0,2}[%cdeEfgGiopqQsuwxXz]")


def strict_names(sql: str) -> str:
    """A statement with its names in backticks instead of double quotes, which are never strings."""
    return _QUOTED.sub(_in_backticks, sql)


def _in_backticks(found: re.Match[str]) -> str:
    name = found[1]
    if name is None:
        return found[0]
    return "`" + name.replace('""', '"').replace("`", "``") + "`"


class StrictPrintf:
    """SQLite's ``printf``, with an error instead of NULL for a string that is too large."""

    def __init__(self, longest: int) -> None:
        """Open a separate connection, in memory.

        Args:
            longest: The most bytes of a value.
        """
        self._longest = longest
        self._connection = sqlite3.connect(":memory:")
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)

    def __call__(self, *given: Any) -> Any:
        """Write a template with its values.

        Raises:
            OverflowError: The string is too large; SQLite reports it as for any other value.
        """
        template = "" if not given or given[0] is None else str(given[0])
        if _repeats(template, given[1:], self._longest):
            raise OverflowError("a text that is too large")
        marks = ", ".join("?" * len(given))
        (text,) = self._connection.execute(f"SELECT printf({marks})", given).fetchone()
        if text is None and _WRITES.match(template):
            raise OverflowError("a text that is too large")
        return text

    def close(self) -> None:
        """End its connection."""
        self._connection.close()


def _repeats(template: str, given: tuple[Any, ...], longest: int) -> bool:
    """Whether a letter would be repeated past the limit, which takes SQLite seconds."""
    values = iter(given)
    for width, precision, kind in _DIRECTIVE.findall(template):
        if kind in "%n":
            continue
        if width == "*":
            next(values, None)
        times = next(values, None) if precision == "*" else int(precision or 0)
        if kind == "c" and isinstance(times, int) and abs(times) > longest:
            return True
        next(values, None)
    return False

"""Errors where SQLite would answer wrongly without one.

SQLite takes a name in double quotes that is not a column for a string, and returns NULL for a string from
printf that is too large, after seconds. Its own switch for the first (``SQLITE_DBCONFIG_DQS_DML``) cannot be
set from Python before 3.12, and would break views that were written with such strings.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Final

from planning.agent.sql.failures import Failure

__all__ = ["check_names", "check_sizes"]

_QUOTED: Final = re.compile(
    r"""'(?:[^']|'')*+(?:'|\Z) | `(?:[^`]|``)*+(?:`|\Z) | \[[^]]*+(?:]|\Z) | --[^\n]*+ |
        /\*(?:[^*]|\*(?!/))*+(?:\*/|\Z) | "((?:[^"]|"")*+)" """,
    re.VERBOSE,
)
_EXPLAIN: Final = "EXPLAIN "
_LARGE: Final = re.compile(
    r"""%[-+\ \#0,!]*(?:\d{8}|\d*\.\d{8,}l{0,2}c) |
        \b(?:printf|format)\s*\(\s*'%[-+\ \#0,!]*(?:\*|\.\*l{0,2}c)[^']*'\s*,\s*\d{8}""",
    re.VERBOSE | re.IGNORECASE,
)


def check_names(connection: sqlite3.Connection, sql: str) -> None:
    """Check that each name in double quotes is a column: in backticks it is never a string.

    Raises:
        sqlite3.Error: One is not, or SQLite cannot parse the statement.
    """
    strict = _QUOTED.sub(_in_backticks, sql) if '"' in sql else sql
    if strict == sql:
        return
    try:
        connection.execute(_EXPLAIN + strict.removeprefix(_EXPLAIN)).close()
    except sqlite3.Error as error:
        if not str(error).startswith("no such column"):
            connection.execute(_EXPLAIN + sql.removeprefix(_EXPLAIN)).close()  # in its own words
        raise


def check_sizes(sql: str) -> None:
    """Check that printf makes no string of tens of millions of characters.

    Raises:
        Failure: It may.
    """
    if ("printf" in sql or "format" in sql) and _LARGE.search(sql):
        raise Failure("large")


def _in_backticks(found: re.Match[str]) -> str:
    name = found[1]
    return found[0] if name is None else "`" + name.replace('""', '"').replace("`", "``") + "`"

"""Names in double quotes that are not columns, as errors: SQLite would take them for strings.

Its own switch (``SQLITE_DBCONFIG_DQS_DML``) cannot be set from Python before 3.12, and would break views that
were written with such strings.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Final

__all__ = ["check_names"]

_QUOTED: Final = re.compile(
    r"""'(?:[^']|'')*+(?:'|\Z) | `(?:[^`]|``)*+(?:`|\Z) | \[[^]]*+(?:]|\Z) | --[^\n]*+ |
        /\*(?:[^*]|\*(?!/))*+(?:\*/|\Z) | "((?:[^"]|"")*+)" """,
    re.VERBOSE,
)
_EXPLAIN: Final = "EXPLAIN "


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


def _in_backticks(found: re.Match[str]) -> str:
    name = found[1]
    return found[0] if name is None else "`" + name.replace('""', '"').replace("`", "``") + "`"

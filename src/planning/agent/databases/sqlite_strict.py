"""Errors for statements that SQLite would answer wrongly, or could not stop.

SQLite takes a name in double quotes that is not a column for a string. Its own switch for that
(``SQLITE_DBCONFIG_DQS_DML``) cannot be set from Python before 3.12, and would break views that were written
with such strings. And it copies the table of a WITH wherever it is read: a chain in which each reads the one
before twice doubles with each step, and SQLite cannot be interrupted while it copies.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from math import prod
from typing import Final

from planning.agent.sql.failures import Failure

_QUOTED: Final = re.compile(
    r"""'(?:[^']|'')*+(?:'|\Z) | `(?:[^`]|``)*+(?:`|\Z) | \[[^]]*+(?:]|\Z) | --[^\n]*+ |
        /\*(?:[^*]|\*(?!/))*+(?:\*/|\Z) | "((?:[^"]|"")*+)" """,
    re.VERBOSE,
)
_WORD: Final = re.compile(rf"(?:{_QUOTED.pattern}) | (?:[\w$]|[^\x00-\x7f])+ | [(),]", re.VERBOSE)
_READING: Final = frozenset({"from", "join", "in", ",", "("})
_EXPLAIN: Final = "EXPLAIN "
_MOST_COPIED: Final = 100_000_000
"""The most characters of a statement together with its copies."""


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


def check_copies(sql: str) -> None:
    """Check that the tables of a WITH are not read too often.

    Raises:
        Failure: They may be, through each other.
    """
    if "with" not in sql.lower():
        return
    words = [
        "",
        *(found[0].lower() for found in _WORD.finditer(sql) if found[0][:2] not in {"--", "/*"}),
        "",
        "",
    ]
    made, reads, opened = set[str](), Counter[str](), 0
    for place, (before, word, after, last) in enumerate(
        zip(words, words[1:], words[2:], words[3:], strict=False)
    ):
        if before == "(":
            opened = place
        is_made = after == "as" and last in {"(", "not", "materialized"}
        if is_made:
            made.add(_name(words[opened - 1] if word == ")" else word))
        elif before in _READING and after != "(":
            reads[_name(word)] += 1
    if prod(max(1, reads[name]) for name in made) * len(sql) > _MOST_COPIED:
        raise Failure("expanded", max(made, key=lambda name: reads[name]))


def _name(word: str) -> str:
    return word[1:-1] if word[:1] in {'"', "`", "[", "'"} else word

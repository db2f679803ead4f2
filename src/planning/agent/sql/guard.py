"""Which statements are sent to a database: a single one that reads.

This check only gives the model a clear message early. The security boundary is the connection, which allows
nothing but reading; so a statement that cannot be tokenized is left to the database.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final, NoReturn

from planning.agent.sql.dialects import DIALECTS
from planning.errors import show

__all__ = ["EMPTY", "HALF", "LONGEST", "Refused", "check", "tokenize"]

LONGEST: Final = 100_000
HALF: Final = "the SQL holds half a character (a lone surrogate)"
EMPTY: Final = "the SQL is empty; send one SELECT"
_HALVES: Final = re.compile("[\ud800-\udfff]")
_READING: Final = ("SELECT", "VALUES", "(")
_MISSING: Final = "reading SQL needs sqlglot: pip install 'session-planning[agent]'"
_OTHERS: Final = """
    ABORT ALTER ANALYZE ATTACH BEGIN CALL CHECKPOINT COMMENT COMMIT COPY CREATE DEALLOCATE DELETE DESC
    DESCRIBE DETACH DROP END EXECUTE EXPLAIN EXPORT FORCE GRANT IMPORT INSERT INSTALL LOAD MERGE PRAGMA
    PREPARE REINDEX RELEASE RENAME REPLACE RESET REVOKE ROLLBACK SAVEPOINT SET SHOW START SUMMARIZE
    TRUNCATE UPDATE UPSERT USE VACUUM
"""
_WORDS: Final = frozenset(_OTHERS.split())
_LOOKING: Final = frozenset({"DESC", "DESCRIBE", "EXPLAIN", "SHOW", "SUMMARIZE"})
ONLY_READING: Final = (
    "is refused: only queries that read are run; send one SELECT (WITH ... SELECT is one too)"
)

NO_BRACKETS: Final = "SQLite takes no SELECT in brackets here; write SELECT * FROM (SELECT ...) for each"


class Refused(Exception):
    """A statement that is not sent to the database.

    Attributes:
        message: Why, and what to send instead.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def tokenize(sql: str, dialect: str) -> list[Any] | None:
    """The tokens of a statement; None if it cannot be tokenized.

    Raises:
        ImportError: sqlglot is not installed.
    """
    try:
        import sqlglot
    except ImportError:
        raise ImportError(_MISSING) from None
    try:
        return list(sqlglot.tokenize(sql, read=dialect))
    except Exception:  # noqa: BLE001 - it may fail in any way: the database decides then
        return None


def check(sql: object, dialect: str) -> str:
    """The one statement in a text, without what ends it.

    Args:
        sql: The text.
        dialect: ``sqlite`` or ``duckdb``.

    Raises:
        Refused: It must not be run.
        ImportError: sqlglot is not installed.
    """
    if not isinstance(sql, str):
        raise Refused(f"the SQL must be text, got {type(sql).__name__}; send one SELECT")
    if len(sql) > LONGEST:
        raise Refused(f"the SQL has {len(sql):,} characters, at most {LONGEST:,}; send a shorter SELECT")
    if "\0" in sql:
        raise Refused("the SQL holds a null character; remove it")
    if _HALVES.search(sql):
        raise Refused(f"{HALF}; correct the SQL")
    text = sql.removeprefix("\ufeff")
    tokens = tokenize(text, dialect)
    if tokens is None:
        return text
    words = [text[token.start : token.end + 1].upper() for token in tokens]
    statements = _statements(words)
    if not statements:
        raise Refused(EMPTY)
    if len(statements) > 1:
        raise Refused(f"{len(statements)} statements are refused; send one SELECT")
    first, end = statements[0]
    row = DIALECTS[dialect]
    if not row.takes_brackets:
        first, end = _unwrapped(words, first, end)
    start = next((place for place in range(first, end) if words[place] != "("), first)
    word = _main_word(words[start:end]) if words[start] == "WITH" else words[start]
    if word not in {*_READING, *row.begins}:
        _refuse(word, text[tokens[start].start :])
    if not row.takes_brackets and "(" in {word, words[first]}:
        raise Refused(NO_BRACKETS)
    return text[tokens[first].start : tokens[end].start if end < len(tokens) else len(text)]


def _statements(words: list[str]) -> list[tuple[int, int]]:
    """Where statements begin and end."""
    ends = [place for place, word in enumerate(words) if word == ";"] + [len(words)]
    begins = [0, *(place + 1 for place in ends)]
    return [(begin, end) for begin, end in zip(begins, ends, strict=False) if begin < end]


def _unwrapped(words: list[str], first: int, end: int) -> tuple[int, int]:
    """Where a statement begins and ends without the brackets around all of it."""
    closing: dict[int, int] = {}
    waiting: list[int] = []
    for place in range(first, end):
        if words[place] == "(":
            waiting.append(place)
        elif words[place] == ")" and waiting:
            closing[waiting.pop()] = place
    while end - first > 2 and closing.get(first) == end - 1:
        first, end = first + 1, end - 1
    return first, end


def _main_word(words: list[str]) -> str:
    """What follows the tables of a WITH: the word behind the bracket that closes the last one's body.

    A bracket is followed by a comma where there are more, and by AS or USING KEY where it closed a list of
    columns. Where there is none, the text is not a statement, and the database says so.
    """
    depth = 0
    for word, after in pairwise(words):
        depth += (word == "(") - (word == ")")
        if depth == 0 and word == ")" and after not in {",", "AS", "USING"}:
            return after
    return "SELECT"


def _refuse(word: str, text: str) -> NoReturn:
    if word in _LOOKING:
        raise Refused(
            f"{word} is refused: only queries are run; send one SELECT (WITH ... SELECT is one too)"
        )
    if word in _WORDS:
        raise Refused(f"{word} {ONLY_READING}")
    raise Refused(f"the SQL starts with {show(text.split(maxsplit=1)[0])}; send one SELECT and nothing else")

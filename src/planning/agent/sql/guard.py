"""Which statements are sent to a database: a single read-only one.

This check only gives the model a clear message early. The security boundary is the connection, which allows
nothing but reading; so a statement that cannot be tokenized is left to the database.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final

from planning.errors import show

_LONGEST: Final = 100_000
EMPTY: Final = "the SQL is empty; send one SELECT"
ONLY_READING: Final = (
    "is refused: only queries that read are run; send one SELECT (WITH ... SELECT is one too)"
)
_HALVES: Final = re.compile("[\ud800-\udfff]")
_READING: Final = {
    "sqlite": frozenset({"SELECT", "VALUES"}),
    "duckdb": frozenset({"SELECT", "VALUES", "(", "FROM", "TABLE", "PIVOT", "UNPIVOT"}),
    "postgres": frozenset({"SELECT", "VALUES", "(", "TABLE"}),
}
_MISSING: Final = "reading SQL needs sqlglot: pip install 'session-planning[agent]'"
_NO_BRACKETS: Final = "SQLite takes no SELECT in brackets here; write SELECT * FROM (SELECT ...) for each"


class StatementRefused(Exception):
    """A statement that is not sent to the database.

    Attributes:
        message: Why, and what to send instead.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def check(sql: object, dialect: str) -> str:
    """The one statement in a text, without what ends it.

    Args:
        sql: The text.
        dialect: ``sqlite``, ``duckdb`` or ``postgres``.

    Raises:
        StatementRefused: It must not be run.
        ImportError: sqlglot is not installed.
    """
    if not isinstance(sql, str):
        raise StatementRefused(f"the SQL must be text, got {type(sql).__name__}; send one SELECT")
    if len(sql) > _LONGEST:
        raise StatementRefused(
            f"the SQL has {len(sql):,} characters, at most {_LONGEST:,}; send a shorter SELECT"
        )
    if "\0" in sql:
        raise StatementRefused("the SQL contains a null character; remove it")
    if _HALVES.search(sql):
        raise StatementRefused("the SQL contains a lone surrogate; correct the SQL")
    text = sql.removeprefix("\ufeff")
    tokens = _tokens(text, dialect)
    if tokens is None:
        return text
    words = [text[token.start : token.end + 1].upper() for token in tokens]
    ends = [place for place, word in enumerate(words) if word == ";"] + [len(words)]
    begins = [0, *(place + 1 for place in ends)]
    statements = [(begin, end) for begin, end in zip(begins, ends, strict=False) if begin < end]
    if not statements:
        raise StatementRefused(EMPTY)
    if len(statements) > 1:
        raise StatementRefused(f"{len(statements)} statements are refused; send one SELECT")
    first, end = statements[0]
    start = next((place for place in range(first, end) if words[place] != "("), first)
    word = _main_word(words[start:end]) if words[start] == "WITH" else words[start]
    if word not in _READING[dialect] | {"("}:
        raise StatementRefused(f"{show(word) if not word.isalpha() else word} {ONLY_READING}")
    if "(" in {word, words[first]} - _READING[dialect]:
        raise StatementRefused(_NO_BRACKETS)
    return text[tokens[first].start : tokens[end].start if end < len(tokens) else len(text)]


def _tokens(sql: str, dialect: str) -> list[Any] | None:
    """The tokens of a statement; None if it cannot be tokenized."""
    try:
        import sqlglot
    except ImportError:
        raise ImportError(_MISSING) from None
    try:
        return list(sqlglot.tokenize(sql, read=dialect))
    except Exception:  # noqa: BLE001 - it may fail in any way: the database decides then
        return None


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

"""The check of statements before a database gets them: a single read-only one.

This check only gives the model a clear message early. The security boundary is the connection, which allows
nothing but reading; so a statement that cannot be tokenized is left to the database.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final
from unicodedata import normalize

from planning.errors import cut, one_line, printable, show
from planning.tools import ErrorKind

_LONGEST: Final = 100_000
_QUOTED: Final = 100
EMPTY: Final = "the SQL is empty; send one SELECT"
ONLY_READING: Final = (
    "is refused: only queries that read are run; send one SELECT (WITH ... SELECT is one too)"
)
WROTE_TEXT: Final = "the model wrote text, not SQL"
_COMMENT: Final = re.compile(r"--[^\n]*|/\*[\s\S]*?\*/")
_FIRST: Final = re.compile(r"[^\W\d_]+")
_SENTENCE: Final = re.compile(
    r"\W*(?:[^\W\d_]['\w-]*[,.:;!?]? +[^\W\d_]['\w-]*[,.:;!?]?(?: +[^\W\d_]|\s*\Z(?<=[.!?]))|[\u3040-\ud7a3])"
)
_STATEMENT: Final = re.compile(
    "alter|analy[sz]e|attach|begin|call|comment|commit|copy|create|declare|delete|desc|describe|detach|do|drop|end"
    "|exec|execute|explain|export|fetch|from|grant|import|insert|install|listen|load|lock|merge|notify|pivot"
    "|pragma|prepare|reindex|release|replace|reset|revoke|rollback|savepoint|select|set|show|start|summarize"
    "|table|truncate|unpivot|update|upsert|use|vacuum|values|with",
    re.IGNORECASE,
)
"""The first word of a statement."""
_HALVES: Final = re.compile("[\ud800-\udfff]")
_READING: Final = {
    "sqlite": frozenset({"SELECT", "VALUES"}),
    "duckdb": frozenset({"SELECT", "VALUES", "(", "FROM", "TABLE", "PIVOT", "UNPIVOT"}),
    "postgres": frozenset({"SELECT", "VALUES", "(", "TABLE"}),
}
_MISSING: Final = "reading SQL needs sqlglot: pip install 'session-planning[agent]'"
_NO_BRACKETS: Final = "SQLite takes no SELECT in brackets here; write SELECT * FROM (SELECT ...) for each"


class Failure(Exception):
    """A question to a database that has no answer.

    Attributes:
        kind: ``sql`` (the database refuses the statement), ``timeout``, or a key of the messages below.
        text: The error of the database, the name of the refused action, or the message.
    """

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(kind, text)
        self.kind = kind
        self.text = text


def is_statement(text: str) -> bool:
    """True if text begins as a statement of any kind does."""
    first = _FIRST.search(_COMMENT.sub(" ", text[:2_000]))
    return first is None or _STATEMENT.fullmatch(normalize("NFKC", first[0])) is not None


def is_sentence(text: str) -> bool:
    """True if text begins with words that are not those of a statement."""
    return not is_statement(text) and _SENTENCE.match(text[:2_000]) is not None


def wrote_text(text: str) -> str:
    """The message for an answer that is text."""
    return f"{WROTE_TEXT}: {cut(one_line(text.strip()), _QUOTED)}; write one SELECT, and nothing else"


def check(sql: object, dialect: str) -> str:
    """The one statement in the text, without what ends it; a Failure if it must not be run."""
    if not isinstance(sql, str):
        raise _refuse(f"the SQL must be text, got {type(sql).__name__}; send one SELECT")
    if len(sql) > _LONGEST:
        raise _refuse(f"the SQL has {len(sql):,} characters, at most {_LONGEST:,}; send a shorter SELECT")
    if "\0" in sql:
        raise _refuse("the SQL contains a null character; remove it")
    if _HALVES.search(sql):
        raise _refuse("the SQL contains a lone surrogate; correct the SQL")
    text = sql.removeprefix("\ufeff")
    if is_sentence(text):
        raise _refuse(wrote_text(text))
    tokens = _tokens(text, dialect)
    if tokens is None:
        return text
    words = [text[token.start : token.end + 1].upper() for token in tokens]
    ends = [place for place, word in enumerate(words) if word == ";"] + [len(words)]
    begins = [0, *(place + 1 for place in ends)]
    statements = [(begin, end) for begin, end in zip(begins, ends, strict=False) if begin < end]
    if not statements:
        raise _refuse(EMPTY)
    if len(statements) > 1:
        raise _refuse(f"{len(statements)} statements are refused; send one SELECT")
    first, end = statements[0]
    start = next((place for place in range(first, end) if words[place] != "("), first)
    word = _main_word(words[start:end]) if words[start] == "WITH" else words[start]
    if word not in _READING[dialect] | {"("}:
        raise _refuse(f"{show(word) if not word.isalpha() else word} {ONLY_READING}")
    if "(" in {word, words[first]} - _READING[dialect]:
        raise _refuse(_NO_BRACKETS)
    return text[tokens[first].start : tokens[end].start if end < len(tokens) else len(text)]


def _refuse(message: str) -> Failure:
    return Failure("statement", message)


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
    """The word that follows the tables of a WITH, behind the bracket that closes the last one's body.

    A bracket is followed by a comma if there are more, and by AS or USING KEY where it closed a list of
    columns. If there is none, the text is not a statement, and the database says so.
    """
    depth = 0
    for word, after in pairwise(words):
        depth += (word == "(") - (word == ")")
        if depth == 0 and word == ")" and after not in {",", "AS", "USING"}:
            return after
    return "SELECT"


_STORAGE: Final = {
    "missing": "there is no database at {path}; check the path",
    "denied": "{path} may not be read; ask for permission to read it",
    "locked": "{path} is locked by another program; try again later",
    "corrupt": (
        "{path} is damaged, or not an SQLite or DuckDB database; check the file, use a backup of it, or"
        " write duckdb:///PATH for a DuckDB file"
    ),
    "unfinished": (
        "{path} was left in the middle of a change; open it once with a program that may write to it"
    ),
    "unreadable": "{path} cannot be read ({text}); check the file and the disk it is on",
    "sql": "the contents of {path} cannot be read ({text}); check its tables and views",
    "empty": "{path} has no tables; check that it is the right file",
    "busy": "too many queries are running on {path}; try again later",
    "unavailable": "cannot start a thread that reads {path} ({text}); check this machine's memory",
    "settings": "{path} is open in this program with other settings; close it there first",
    "server": "{path} cannot be read: {text}",
    "library": "reading {path} needs {text}",
}
_QUERY: Final = {
    "statement": "{text}",
    "memory": "the query needs more memory than it may use; ask for less, with WHERE, LIMIT or an aggregate",
    "large": "a value in it is too large for an answer; ask for its length, or a part of it with substr",
    "expanded": "{text} would be expanded too often; read each table of the WITH fewer times",
    "broken": "the database failed on it; write the query in another way",
    "refused": "{text} " + ONLY_READING,
}


def explain(failure: Failure, path: str, seconds: float) -> tuple[str, ErrorKind]:
    """The message for a failure, and its code."""
    if failure.kind == "timeout":
        remedy = "ask for less, with WHERE or LIMIT"
        return f"the query took longer than {seconds:g} s and was stopped; {remedy}", ErrorKind.TIMEOUT
    if failure.kind in _QUERY:
        return _QUERY[failure.kind].format(text=failure.text), ErrorKind.PARAMETER
    text = failure.text or "no reason given"
    return _STORAGE[failure.kind].format(path=printable(path), text=text), ErrorKind.STORAGE

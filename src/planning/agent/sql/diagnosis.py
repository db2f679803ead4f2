"""Why a statement failed, in plain words, with what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

import attrs

from planning.agent.sql.guard import tokenize
from planning.agent.sql.schema import identifier, printable
from planning.agent.sql.uses import Use, tables_used

__all__ = ["diagnose"]

Names = Callable[[], Mapping[str, Any] | None]
Probe = Callable[[str], str]

_LONGEST: Final = 300
_NEAR: Final = 0.65  # invoices is no slip of notes
_LISTED: Final = 20
_PLACES: Final = 20
_INSTEAD: Final = {
    "concat": "the operator ||",
    "curdate": "date('now')",
    "date_add": "date(x, '+1 day')",
    "date_format": "strftime('%Y-%m-%d', x)",
    "date_part": "strftime('%Y', x)",
    "date_sub": "date(x, '-1 day')",
    "date_trunc": "strftime('%Y-%m', x)",
    "datediff": "julianday(x) - julianday(y)",
    "day": "strftime('%d', x)",
    "extract": "strftime('%Y', x)",
    "getdate": "datetime('now')",
    "isnull": "ifnull(x, y)",
    "left": "substr(x, 1, n)",
    "len": "length(x)",
    "month": "strftime('%m', x)",
    "now": "datetime('now')",
    "nvl": "ifnull(x, y)",
    "regexp": "x GLOB '[A-Z]*', or LIKE",
    "right": "substr(x, -n)",
    "string_agg": "group_concat(x, ', ')",
    "to_char": "strftime('%Y-%m-%d', x)",
    "year": "strftime('%Y', x)",
}
_ELSEWHERE: Final = {
    "EXTRACT (": "write strftime('%Y', x)",
    "FETCH FIRST": "write LIMIT",
    "FETCH NEXT": "write LIMIT",
    "ILIKE": "write LIKE, which takes small and capital letters for the same",
    "INTERVAL": "write date(x, '+1 day')",
    "LEFT (": "write substr(x, 1, n)",
    "RIGHT (": "write substr(x, -n)",
    "TOP 1": "write LIMIT at the end",
}
"""What is a mistake in SQLite's grammar, and what to write there."""

_PLAIN: Final = (
    ("Incorrect number of bindings", "the SQL has a parameter, such as ? or :name; write the value itself"),
    ("You can only execute one", "more than one statement is refused; send one SELECT"),
    ("incomplete input", "the SQL ends too early; write the rest of it, or close what is open"),
    ("parser stack overflow", "the SQL is nested too deeply; send a simpler SELECT"),
    ("Max expression depth", "the SQL is nested too deeply; send a simpler SELECT"),
    ("Expression tree is too large", "the SQL is nested too deeply; send a simpler SELECT"),
)


def diagnose(text: str, sql: str, dialect: str, names: Names, probe: Probe) -> str:
    """Put what a database says of a statement into words that help to correct it.

    Args:
        text: What it says.
        sql: The statement.
        dialect: ``sqlite`` or ``duckdb``.
        names: Gives the tables and columns that there are, as ``worker`` finds them; None when it cannot.
        probe: Gives what the database says of another statement, which is not run.

    Returns:
        One line: what is wrong, and what to do.
    """
    if dialect == "duckdb":
        from planning.agent.sql.duckdb_errors import translated  # noqa: PLC0415 - it knows this module

        text = translated(text)
    for beginning, told in _PLAIN:
        if text.startswith(beginning):
            return told
    for pattern, explain in _EXPLAINED:
        found = re.match(pattern, text, re.DOTALL)
        if found:
            return _line(explain(_Case(found[1], sql, dialect, names, probe)))
    return _line(f"{text}; correct the SQL")


@attrs.frozen
class _Case:
    """What a database complains of, and where."""

    word: str
    sql: str
    dialect: str
    names: Names
    probe: Probe

    def tables(self) -> list[Mapping[str, Any]]:
        return list((self.names() or {"tables": []})["tables"])


def _no_table(case: _Case) -> str:
    told = f"no such table: {case.word}"
    known = [table["name"] for table in case.tables()]
    near = _nearest(case.word.rpartition(".")[2], known)
    if near is not None:
        return f"{told}; did you mean {identifier(near)}?"
    if known:
        return f"{told}; the tables are {_listed(known)}"
    return f"{told}; the database holds no table" if case.names() is not None else told


def _no_column(case: _Case) -> str:
    word = case.word.partition(" - should this be")[0].strip('"')  # newer ones say what else it may be
    told = f"no such column: {word}"
    owner, _, name = word.rpartition(".")
    tables = case.tables()
    uses = tables_used(case.sql, case.dialect, tables)
    if owner:
        meant = [use for use in uses if owner.lower() in {use.alias.lower(), use.table["name"].lower()}]
        if not meant:
            known = sorted({identifier(use.alias) for use in uses})
            return f"{told}; {owner} is no table of the query" + (
                f", which reads {', '.join(known)}" if known else ""
            )
        near = _nearest(name, meant[0].columns())
        if near is not None:
            return f"{told}; did you mean {identifier(meant[0].alias)}.{identifier(near)}?"
        return f"{told}; {_has(meant[:1])}"
    return f"{told}; {_column_meant(name, uses, tables)}"


def _column_meant(name: str, uses: list[Use], tables: list[Mapping[str, Any]]) -> str:
    """What an unknown column was probably meant to be."""
    near = _nearest(name, [column for use in uses for column in use.columns()])
    if near is not None:
        table = next(use.table["name"] for use in uses if near in use.columns())
        return f"did you mean {identifier(near)}, of {identifier(table)}?"
    for table in tables:
        if name.lower() in {column["name"].lower() for column in table["columns"]}:
            return f"{identifier(table['name'])} has it, which the query does not read; join it"
    if uses:
        return _has(uses)
    return (
        "text stands in single quotes; check the name"
        if not tables
        else "check the name, and the table it is of"
    )


def _has(uses: Iterable[Use]) -> str:
    told = {
        use.table["name"]: f"{identifier(use.table['name'])} has {_listed(use.columns())}" for use in uses
    }
    return "; ".join(list(told.values())[:3])


def _ambiguous(case: _Case) -> str:
    name = case.word.rpartition(".")[2]
    owners = [
        use.alias
        for use in tables_used(case.sql, case.dialect, case.tables())
        if name.lower() in map(str.lower, use.columns())
    ]
    if len(set(owners)) < 2:
        return f"{case.word} is ambiguous; write its table before it, and name a table that is read twice"
    written = " or ".join(f"{identifier(owner)}.{identifier(name)}" for owner in dict.fromkeys(owners))
    return f"{case.word} is ambiguous; write {written}"


def _no_function(case: _Case) -> str:
    instead = _INSTEAD.get(case.word.lower()) if case.dialect == "sqlite" else None
    name = "SQLite" if case.dialect == "sqlite" else "DuckDB"
    return f"no such function: {case.word}; " + (
        f"write {instead}" if instead else f"{name} has none of that name; use one that it has"
    )


def _syntax(case: _Case) -> str:
    remedy = _elsewhere(case) or "correct the SQL there or just before"
    return f"syntax error{_place(case)}, near {case.word}; {remedy}"


def _elsewhere(case: _Case) -> str | None:
    """What to write for words that other databases know."""
    if case.dialect != "sqlite":
        return None
    tokens = tokenize(case.sql, case.dialect) or []
    kinds = {"STRING": "", "NUMBER": "1"}
    words = [kinds.get(token.token_type.name, token.text.upper()) for token in tokens]
    for word, after in pairwise(words):
        told = _ELSEWHERE.get(f"{word} {after}") or _ELSEWHERE.get(word)
        if told is not None:
            return f"SQLite has no {word}: {told}"
    return None


def _token(case: _Case) -> str:
    if case.word[:1] in {"'", '"', "`", "["}:
        return f"a quote is not closed, from {case.word} on; close it, and write a quote inside text twice"
    if case.word == ":" and "::" in case.sql:
        return ":: is no SQL here; write CAST(x AS type)"
    return f"{case.word} is no SQL; remove it"


def _arguments(case: _Case) -> str:
    return f"wrong number of arguments to {case.word}; check how many it takes"


def _aggregate(case: _Case) -> str:
    return (
        f"misuse of the aggregate {case.word}; use it in SELECT, HAVING or ORDER BY, and not inside another"
    )


_EXPLAINED: Final[tuple[tuple[str, Callable[[_Case], str]], ...]] = (
    (r"no such table: (.+)", _no_table),
    (r"no such column: (.+)", _no_column),
    (r"ambiguous column name: (.+)", _ambiguous),
    (r"no such function: (.+)", _no_function),
    (r'near "(.*)": syntax error', _syntax),
    (r'unrecognized token: "(.*)"', _token),
    (r"wrong number of arguments to function (.+)", _arguments),
    (r"misuse of aggregate(?: function)?:? (.+)", _aggregate),
)


def _place(case: _Case) -> str:
    """Where the word is that the database stumbled over; nothing where that cannot be told.

    A parser reads from left to right, and stumbles over the same word when nothing follows it.
    """
    tokens = tokenize(case.sql, case.dialect) or []
    ends = [token.end + 1 for token in tokens if case.sql[token.start : token.end + 1] == case.word]
    for end in ends[:_PLACES]:
        if len(ends) == 1 or case.probe(case.sql[:end]).startswith(f'near "{case.word}"'):
            start = end - len(case.word)
            line = case.sql.count("\n", 0, start) + 1
            return f" at line {line}, column {start - case.sql.rfind(chr(10), 0, start)}"
    return ""


def _nearest(name: str, known: Iterable[str]) -> str | None:
    import difflib  # noqa: PLC0415 - only a wrong name needs it

    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=_NEAR)
    return by_lower[near[0]] if near else None


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(identifier, names[:_LISTED])) + more


def _line(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."

"""Why a statement failed, in words that help to correct it, with what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from planning.agent.sql.casts import as_timestamp
from planning.agent.sql.dialects import title_of
from planning.agent.sql.foreign import foreign
from planning.agent.sql.guard import NO_BRACKETS, tokenize
from planning.agent.sql.schema import identifier
from planning.agent.sql.structure import COMPARING, Item, groups, is_word, structure
from planning.agent.sql.uses import Use, tables_used
from planning.errors import cut, nearest, printable

__all__ = ["diagnose"]

Names = Callable[[], Mapping[str, Any] | None]
Probe = Callable[[str], str]

_LONGEST: Final = 300
_NEAR: Final = 0.65  # invoices is not a misspelling of notes
_LISTED: Final = 20
_PLACES: Final = 20
_UNITED: Final = re.compile(r"\b(?:UNION|ALL|INTERSECT|EXCEPT)\s*\(", re.IGNORECASE)
_OF_TIME_TEXT: Final = """
    DATE DATEADD DATEDIFF DATEPART DATE_ADD DATE_DIFF DATE_SUB INTERVAL SYSDATE TIMESTAMP
"""
_OF_TIME: Final = frozenset(_OF_TIME_TEXT.split())
_WORDS_OF_TIME_TEXT: Final = """
    date day dayofyear dd hh hour interval minute month quarter second sysdate timestamp week weekday year
    yy yyyy
"""
_WORDS_OF_TIME: Final = frozenset(_WORDS_OF_TIME_TEXT.split())
_GRAMMAR_TEXT: Final = """
    CURRENT_DATE CURRENT_TIMESTAMP DATE DATE_ADD DATE_SUB EXTRACT FETCH GROUP_CONCAT ILIKE INTERVAL
    ISNULL LATERAL LEFT QUALIFY REGEXP RIGHT SUBSTRING TIMESTAMP TOP WITHIN
"""
_GRAMMAR: Final = frozenset(_GRAMMAR_TEXT.split()) | {"DISTINCT ON"}
"""Words that SQLite's grammar does not take. A function that it lacks is not a syntax error."""

_PLAIN: Final = (
    ("Incorrect number of bindings", "the SQL has a parameter, such as ? or :name; write the value itself"),
    ("You can only execute one", "more than one statement is refused; send one SELECT"),
    ("incomplete input", "the SQL ends too early; write the rest of it, or close what is open"),
    ("parser stack overflow", "the SQL is nested too deeply; send a simpler SELECT"),
    ("Max expression depth", "the SQL is nested too deeply; send a simpler SELECT"),
    ("Expression tree is too large", "the SQL is nested too deeply; send a simpler SELECT"),
    (
        "user-defined function raised",
        "printf and format take only text in UTF-8 here; join the strings with ||",
    ),
)


def diagnose(text: str, sql: str, dialect: str, names: Names, probe: Probe) -> str:
    """Explain the error of a database in words that help to correct the statement.

    Args:
        text: The error, in the words of SQLite or the database's own.
        sql: The statement.
        dialect: ``sqlite`` or ``duckdb``.
        names: Reads the tables and columns, as a worker process does; None if it cannot.
        probe: The error of the database for another statement, which is not run.

    Returns:
        One line: what is wrong, and what to do.
    """
    for beginning, message in _PLAIN:
        if text.startswith(beginning):
            return message
    for pattern, explain in _EXPLAINED:
        found = re.match(pattern, text, re.DOTALL)
        if found:
            longest = _LONGEST if len(found[1]) > _LONGEST else _LONGEST * 3  # a remedy must be whole
            return _line(explain(_Case(found[1], sql, dialect, names, probe)), longest)
    return _line(f"{text}; correct the SQL", _LONGEST)


@attrs.frozen
class _Case:
    """The word that a database complains of, and its statement."""

    word: str
    sql: str
    dialect: str
    names: Names
    probe: Probe

    def tables(self) -> list[Mapping[str, Any]]:
        return list((self.names() or {"tables": []})["tables"])


def _no_table(case: _Case) -> str:
    message = f"no such table: {case.word}"
    remedy = _misread(case, {"POSITION"})
    if remedy is not None:
        return remedy
    tables = case.tables()
    known = [table["name"] for table in tables]
    if case.word.lower() in map(str.lower, known):  # SQLite says so of x.* where x is not in FROM
        return _unread(case.word, tables_used(case.sql, case.dialect, tables))
    near = nearest(case.word.rpartition(".")[2], known, _NEAR)
    if near is not None:
        return f"{message}; did you mean {identifier(near)}?"
    if known:
        return f"{message}; the tables are {_listed(known)}"
    return f"{message}; the database has no tables" if case.names() is not None else message


def _unread(table: str, uses: Iterable[Use]) -> str:
    """The message for a table that is named but not in FROM."""
    read = ", ".join(sorted({identifier(use.alias) for use in uses}))
    message = f"{identifier(table)} is not in FROM" + (f"; the query reads {read}" if read else "")
    return f"{message}; join {identifier(table)}"


def _misread(case: _Case, names: Container[str]) -> str | None:
    """The message for a foreign expression with a word that the database took for a name."""
    word = re.compile(rf"\b{re.escape(case.word)}\b", re.IGNORECASE)
    for each in foreign(case.sql, case.dialect, names):
        if word.search(case.sql, each.start, each.end):
            return each.message
    return None


def _no_column(case: _Case) -> str:
    word = case.word.partition(" - should this be")[0].strip('"')  # newer versions suggest a string
    message = f"no such column: {word}"
    if word.lower() in _WORDS_OF_TIME:
        remedy = _misread(attrs.evolve(case, word=word), _OF_TIME)
        if remedy is not None:
            return remedy
    tables = case.tables()
    uses = tables_used(case.sql, case.dialect, tables)
    quoted = _quoted(word, case)
    owner, _, name = ("", "", word) if quoted else word.rpartition(".")
    if owner:
        meant = [use for use in uses if owner.lower() in {use.alias.lower(), use.table["name"].lower()}]
        if not meant and owner.lower() in {table["name"].lower() for table in tables}:
            return f"{message}; {_unread(owner, uses)}"
        if not meant:
            read = ", ".join(sorted({identifier(use.alias) for use in uses}))
            return f"{message}; {owner} is not in FROM" + (f"; the query reads {read}" if read else "")
        near = _meant(name, meant)
        if near:
            alias = identifier(meant[0].alias)
            return f"{message}; did you mean {', '.join(f'{alias}.{identifier(each)}' for each in near)}?"
        return f"{message}; {_has(meant[:1])}"
    if quoted == "value":
        near = _meant(name, uses)
        column = f"for the column, write {identifier(near[0])}; " if near else ""
        return f"{message}; {column}for a string, write '{_text(name)}' in single quotes"
    return f"{message}; {_column_meant(name, uses, tables)}" + (
        f"; for a string, write '{_text(name)}' in single quotes" if quoted and not _meant(name, uses) else ""
    )


def _text(name: str) -> str:
    return name.replace("'", "''")


def _quoted(word: str, case: _Case) -> str:
    """Whether a name is in double quotes: ``value`` if it is used like a value, else ``name``."""
    top = structure(case.sql, case.dialect)
    for group, outer, _ in groups(top) if top is not None else ():
        for place, item in enumerate(group.items):
            if item.kind == "name" and item.text == word and case.sql[item.start] == '"':
                is_argument = outer is not None and not group.is_query
                return "value" if _is_value(group.items, place, is_argument=is_argument) else "name"
    return ""


def _is_value(items: Sequence[Item], place: int, *, is_argument: bool) -> bool:
    """Whether the item at a place is more likely a value than a column."""
    if place == 0:
        return is_argument and len(items) > 1
    before = items[place - 1]
    is_second = is_word(before, "AND") and place > 2 and is_word(items[place - 3], "BETWEEN")
    is_compared = before.text in COMPARING or is_word(before, "BETWEEN", "GLOB", "LIKE", "MATCH") or is_second
    return is_compared or before.text == "||" or (is_argument and before.text == ",")


def _column_meant(name: str, uses: list[Use], tables: list[Mapping[str, Any]]) -> str:
    """What an unknown column was probably meant to be."""
    read = {use.table["name"] for use in uses}
    unread = [Use(table, table["name"]) for table in tables if table["name"] not in read]
    elsewhere = [use for use in unread if _by_table(name, use)]
    near = _meant(name, uses)
    if near and not (elsewhere and not any(_by_table(name, use) for use in uses)):
        table = next(use.table["name"] for use in uses if near[0] in use.columns())
        return f"did you mean {', '.join(map(identifier, near))}, of {identifier(table)}?"
    if elsewhere:
        columns = ", ".join(map(identifier, _by_table(name, elsewhere[0])))
        return f"{identifier(elsewhere[0].alias)} has {columns}, and the query does not read it; join it"
    for use in unread:
        if name.lower() in map(str.lower, use.columns()):
            return f"{identifier(use.alias)} has it, which the query does not read; join it"
    if uses:
        return _has(uses)
    return "check the name, and the table it is of" if tables else "check the name"


def _meant(name: str, uses: Sequence[Use]) -> list[str]:
    """The columns that a name may mean: ``ArtistName`` is the name of an artist, not the ``ArtistId``."""
    for use in uses:
        columns = _by_table(name, use)
        if columns:
            return columns
    for use in uses:
        rest = _rest(name, use)
        if rest:  # it begins with the name of the table
            rests = {"".join(_rest(column, use) or _words(column)): column for column in use.columns()}
            near = nearest("".join(rest), rests, _NEAR)
            return [rests[near]] if near else []
    near = nearest(name, [column for use in uses for column in use.columns()], _NEAR)
    return [near] if near else []


def _rest(name: str, use: Use) -> list[str]:
    """The words of a name behind those of the table; empty if it does not begin with them."""
    table, words = _words(use.table["name"]), _words(name)
    return words[len(table) :] if words[: len(table)] == table else []


def _by_table(name: str, use: Use) -> list[str]:
    """The columns of a table that a name with the table's name in front means, or the end of theirs."""
    rest = _rest(name, use)
    if not rest:
        return []
    columns = [column for column in use.columns() if not _rest(column, use)]
    same = [column for column in columns if _words(column) == rest]
    return same or [column for column in columns if _words(column)[-len(rest) :] == rest][:3]


def _words(name: str) -> list[str]:
    """The words of a name such as ``FirstName`` or ``first_name``, of which the last may be in the plural."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[^\W_A-Z]+|[A-Z]+(?![^\W_A-Z])|\d+", name)] or [
        name.lower()
    ]
    return [word.removesuffix("s") for word in words]


def _has(uses: Iterable[Use]) -> str:
    message = {
        use.table["name"]: f"{identifier(use.table['name'])} has {_listed(use.columns())}" for use in uses
    }
    return "; ".join(list(message.values())[:3])


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
    message = f"no such function: {case.word}"
    found = next(foreign(case.sql, case.dialect, {case.word.upper()}), None)
    if found is not None:
        return f"{message}; {found.remedy}"
    return f"{message}; {title_of(case.dialect)} has no function of that name; use one that it has"


def _no_types(case: _Case) -> str:
    name, _, types = case.word.rstrip(")").partition("(")
    names = {"DATE_ADD"} if name == "+" else {name.upper()}
    found = next(foreign(case.sql, case.dialect, names), None)
    cast = as_timestamp(case.sql, name) if found is None and "VARCHAR" in types else None
    remedy = cast if found is None else found.remedy
    if name == "=":
        return f"{types} cannot be compared; {remedy or 'cast one of them'}"
    return f"{name} does not take ({types}); {remedy or 'give it other types, or cast its arguments'}"


def _ungrouped(case: _Case) -> str:
    name = identifier(case.word)
    return f"{name} has many values in a group; add it to GROUP BY, or aggregate it, as in max({name})"


def _syntax(case: _Case) -> str:
    found = next(foreign(case.sql, case.dialect, _GRAMMAR), None)
    remedy = "correct the SQL there or just before" if found is None else found.message
    if found is None and case.dialect == "sqlite" and case.word == "(" and _UNITED.search(case.sql):
        remedy = NO_BRACKETS
    return f"syntax error{_place(case)}, near {case.word}; {remedy}"


def _token(case: _Case) -> str:
    if case.word[:1] in {"'", '"', "`", "["}:
        return f"a quote is not closed, from {case.word} on; close it, and write a quote inside text twice"
    if case.word == ":" and "::" in case.sql:
        found = next(foreign(case.sql, case.dialect, {"::"}), None)
        return f":: is not SQL here; {'write CAST(... AS type)' if found is None else found.remedy}"
    return f"{case.word} is not SQL; remove it"


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
    (r"ungrouped column: (.+)", _ungrouped),
    (r"no function of types: (.+)", _no_types),
)


def _place(case: _Case) -> str:
    """The place of the word that the database rejects; empty if it is unknown.

    A parser reads from left to right, and rejects the same word when nothing follows it.
    """
    tokens = tokenize(case.sql, case.dialect) or []
    ends = [token.end + 1 for token in tokens if case.sql[token.start : token.end + 1] == case.word]
    for end in ends[:_PLACES]:
        if len(ends) == 1 or case.probe(case.sql[:end]).startswith(f'near "{case.word}"'):
            start = end - len(case.word)
            line = case.sql.count("\n", 0, start) + 1
            return f" at line {line}, column {start - case.sql.rfind(chr(10), 0, start)}"
    return ""


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(identifier, names[:_LISTED])) + more


def _line(text: str, longest: int) -> str:
    return cut(printable(" ".join(text.split())), longest)

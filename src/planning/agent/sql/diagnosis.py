"""Why a statement failed: the database's error, with the nearest name, or what this database has instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
from sqlglot import exp

from planning.agent.sql.columns import Select, TableSource, Tree, attempt, parsed
from planning.agent.sql.schema import DIFFERENCES, identifier, sql_name, title_of
from planning.errors import cut, line_of, listed, nearest

_MOST: Final = 3
_LONGEST_NAME: Final = 100
_OF_SOME, _UNLIKE = 3, 5  # ranks: from here on only some words are the same, or none are
_WORD: Final = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|\d+")
_VAGUE: Final = frozenset({"code", "date", "id", "key", "name", "no", "number", "type", "value"})


def closest(
    name: str, groups: Sequence[tuple[str, Iterable[str]]], *, by_spelling: bool = True
) -> list[tuple[int, str]]:
    """The names that one probably means, each with the place of its group; none if none is close.

    ``album_id`` is ``AlbumId``, never ``ArtistId``; ``ArtistName`` is the ``Name`` of the table ``Artist``.
    """
    own = _words(name)
    ranks = [
        (_rank(own, _words(each), _words(table) if table else []), place, each)
        for place, (table, names) in enumerate(groups if 0 < len(name) <= _LONGEST_NAME else ())
        for each in names
    ]
    best = min(ranks, default=(_UNLIKE, 0, ""))[0]
    if best < (_UNLIKE if by_spelling else _OF_SOME):
        return [(place, each) for rank, place, each in ranks if rank == best][:_MOST]
    if not by_spelling:
        return []
    near = nearest(name, [each for _, _, each in ranks])
    for table, names in groups if near is None else ():
        behind = _behind(own, _words(table))
        near = near or nearest(" ".join(behind), names)
    return [(place, each) for _, place, each in ranks if each == near][:_MOST]


def _rank(own: list[str], words: list[str], table: list[str]) -> int:
    """The distance of a wrong name from one that exists, by the words of both; 0 is the nearest."""
    behind = _behind(own, table)
    is_part = set(words) < set(own) and set(words) - _VAGUE
    whole = (
        "".join(own) == "".join(words),
        bool(table) and words in (behind, table + own),
        bool(behind) and words[-len(behind) :] == behind,
        own != ["id"] and set(own) < set(words),
        bool(table) and bool(is_part),
    )
    return whole.index(True) if True in whole else _UNLIKE


def _behind(own: list[str], table: list[str]) -> list[str]:
    """The words of a name behind those of its table; none where it does not begin with them."""
    return own[len(table) :] if table and own[: len(table)] == table else []


def _words(name: str) -> list[str]:
    """The words of ``FirstName`` or ``first_names``, in lower case and in the singular."""
    words = [word.lower() for word in _WORD.findall(name)] or [name.lower()]
    return [word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s") for word in words]


_LONGEST: Final = 900
_LONGEST_WORD: Final = 200
_LISTED: Final = 20
_CONTEXT: Final = re.compile(r"\A[A-Z][A-Za-z ]* Error: |\n\s*\n.*|\nLINE \d.*|\n\t?Candidate.*", re.DOTALL)
_FOREIGN: Final = re.compile(r"syntax error|no such function|unrecognized token|function", re.IGNORECASE)
_LACKED: Final = re.compile(r"near \"(\w+)\"|function:? (?:with name )?\"?(\w+)|name (\w+) does not exist")
_USED: Final = r"(?=\s*(?:[('\d]|FIRST\b|TO\b))"
"""Behind a function or an operator, and not behind a column of that name."""
_REMEDIES: Final = (
    (r"mbiguous", "write its table before it"),
    (r"incomplete input|end of input", "write the rest of it, or close what is open"),
    (r"token: \"['\"`[]|unterminated", "close the quote, and write a quote inside text twice"),
    (r"permission denied", "use only the tables and columns of the schema"),
    (r"FROM-clause entry", "join it, or write the alias that the query gives it"),
    (r"operator does not exist", "cast one side, as in x::text"),
    (r"stack (?:overflow|depth)|tree is too large|expression depth", "send a simpler SELECT"),
)
_PARAMETER: Final = re.compile(r"\AIncorrect number of bindings|Values were not provided")


def diagnose(
    text: str, sql: str, dialect: str, tables: Callable[[], Sequence[Mapping[str, Any]] | None]
) -> str:
    """Explain the error of a database in one line: what is wrong, and what to do."""
    if _PARAMETER.search(text):
        return "the SQL has a parameter, such as ? or :name; write the value itself"
    for pattern, explain in _NAMES:
        found = re.search(pattern, text, re.DOTALL)
        if found:
            words = tuple(cut(word, _LONGEST_WORD) for word in found.groups())
            return line_of(explain(_Case(words, sql, dialect, tables() or ())), _LONGEST)
    message = _CONTEXT.sub("", text).rstrip(" .!") if dialect == "duckdb" else text
    remedy = next((remedy for pattern, remedy in _REMEDIES if re.search(pattern, text)), "")
    remedy = remedy or _difference(text, sql, dialect) or "correct the SQL"
    return line_of(f"{cut(message, _LONGEST // 3)}; {remedy}", _LONGEST)


def _difference(text: str, sql: str, dialect: str) -> str:
    """A part of a statement that this database lacks, and the one it has instead, as in the prompt."""
    lacked = " ".join(filter(None, (word for found in _LACKED.findall(text) for word in found)))
    for words, behind in ((lacked, ""), (sql, _USED)) if _FOREIGN.search(text) else ():
        for pattern, line in DIFFERENCES.get(sql_name(dialect), ()):
            found = re.search(rf"\b(?:{pattern})\b{behind}", words, re.IGNORECASE) if pattern else None
            if found is not None:
                return f"{title_of(dialect)} has no {found[0].upper()}: {line}"
    return ""


@attrs.frozen
class _Case:
    """The names that a database complains of, the statement, and the tables of the database."""

    words: tuple[str, ...]
    sql: str
    dialect: str
    tables: Sequence[Mapping[str, Any]]

    def tree(self) -> Tree | None:
        return attempt(lambda: Tree(parsed(self.sql, sql_name(self.dialect)), self.tables))


def _no_table(case: _Case) -> str:
    (word,), known, tree = case.words, [table["name"] for table in case.tables], case.tree()
    is_read = tree is None or any(table.name in word for table in tree.root.find_all(exp.Table))
    difference = "" if is_read else _difference("function", case.sql, case.dialect)
    if difference:  # SQLite takes the IN of POSITION('a' IN b) for that of a table
        return f"no such table: {word}; {difference}"
    near = [name for _, name in closest(word.rpartition(".")[2], [("", known)])]
    if (
        near and near[0].lower() == word.lower() and case.dialect != "postgres"
    ):  # SQLite says so of x.* where x is not in FROM
        return f"{identifier(near[0])} is not in FROM; join it"
    remedy = f"; the tables are {_join(known)}" if known else ""
    if near:
        remedy = f"; did you mean {' or '.join(map(identifier, near))}?"
    return f"no such table: {word}{remedy}"


def _no_column(case: _Case) -> str:
    word = ".".join(case.words).strip('"')
    is_quoted = '"' + word.replace('"', '""') + '"' in case.sql
    owner, _, name = ("", "", word) if is_quoted else word.rpartition(".")
    tree = case.tree()
    node, select = (None, None) if tree is None else _unknown(tree, owner.rpartition(".")[2], name)
    if tree is not None and select is None:
        select = next(reversed(tree.selects.values()), None)
    sources: list[TableSource] = []
    while select is not None:
        sources += select.sources.values()
        select = select.outer
    if owner and node is not None:
        return f"no such column: {word}; {_column_of(owner, name, sources, case.tables)}"
    near = closest(name, [(each.title, each.columns or ()) for each in sources])
    places = {place for place, _ in near}
    if len(places) == 1:
        columns = ", ".join(identifier(each) for _, each in near)
        remedy = f"did you mean {columns}, of {identifier(sources[near[0][0]].alias)}?"
    elif near:
        columns = " or ".join(
            f"{identifier(sources[place].alias)}.{identifier(each)}" for place, each in near
        )
        remedy = f"did you mean {columns}?"
    elif is_quoted:
        remedy = ""
    else:
        is_argument = node is not None and isinstance(
            node.parent, exp.Func
        )  # a unit, as in DATEDIFF(day, ...)
        is_foreign = is_argument or (
            node is None and tree is not None
        )  # it is not read as a column, as in INTERVAL
        remedy = _difference("function", case.sql, case.dialect) if is_foreign else ""
        remedy = remedy or _elsewhere(name, sources, case.tables)
    string = "for a string, write '{}' in single quotes".format(name.replace("'", "''")) if is_quoted else ""
    return f"no such column: {word}; {'; '.join(filter(None, [remedy, string]))}"


def _unknown(tree: Tree, owner: str, name: str) -> tuple[Any, Select | None]:
    """The column that nothing in its SELECT has, or that at least is so called; None if there is none."""
    found: tuple[Any, Select | None] = (None, None)
    for node, select in tree.all_of(exp.Column):
        if node.table.lower() == owner.lower() and name.lower() in {node.name.lower(), "*"}:
            if not select.owners(node):
                return node, select
            found = node, select
    return found


def _column_of(
    owner: str, name: str, sources: Sequence[TableSource], tables: Sequence[Mapping[str, Any]]
) -> str:
    """The probable meaning of a column of a certain table."""
    meant = [each for each in sources if owner.lower() in (each.alias.lower(), each.title.lower())][:1]
    if not meant:
        here = ", ".join(sorted({identifier(each.alias) for each in sources}))
        message = f"{identifier(owner)} is not in FROM" + (f"; the query reads {here}" if here else "")
        is_known = any(table["name"].lower() == owner.lower() for table in tables)
        return f"{message}; join {identifier(owner)}" if is_known else message
    near = closest(name, [(meant[0].title, meant[0].columns or ())])
    columns = ", ".join(f"{identifier(meant[0].alias)}.{identifier(each)}" for _, each in near)
    return f"did you mean {columns}?" if near else _has(meant)


def _elsewhere(name: str, sources: Sequence[TableSource], tables: Sequence[Mapping[str, Any]]) -> str:
    """The tables that the query does not read and that have a column, or what there is instead."""
    here = {each.title for each in sources}
    groups = [
        (table["name"], [column["name"] for column in table["columns"]])
        for table in tables
        if table["name"] not in here
    ]
    near = closest(name, groups, by_spelling=False)
    have = dict.fromkeys(groups[place][0] for place, _ in near)
    if len(have) == 1:
        columns = _join([each for _, each in near])
        return f"{identifier(*have)} has {columns}, and the query does not read it; join it"
    if have:
        columns = ", ".join(f"{identifier(groups[place][0])}.{identifier(each)}" for place, each in near)
        return f"there are {columns}, and the query reads none of these tables; join one"
    return _has(sources)


def _not_in_both(case: _Case) -> str:
    """For USING with a column that one of the tables does not have."""
    (word,), tree = case.words, case.tree()
    message = f"{word} is not a column of both tables of a JOIN"
    for node, select in () if tree is None else tree.all_of(exp.Join):
        names = [each.name.lower() for each in node.args.get("using") or ()]
        joined = select.sources.get(node.alias_or_name.lower())
        if word.lower() in names and joined is not None:
            others = [each for each in select.sources.values() if each is not joined]
            both = [each for each in joined.columns or () if any(other.has(each) for other in others)]
            near = closest(word, [(joined.title, both)])
            lacking = [each for each in (joined, *others) if not each.has(word)]
            using = (
                f"did you mean USING ({identifier(near[0][1])})?" if near else f"{_has(lacking)}; write ON"
            )
            return f"{message}; {using}"
    return f"{message}; write ON"


_NAMES: Final[tuple[tuple[str, Callable[[_Case], str]], ...]] = (
    (r"\Ano such table: (.+)", _no_table),
    (r'Table with name "?([^"\s!]+)"? does not exist', _no_table),
    (r"\Ano such column: (.+?)(?: - should this be .*)?\Z", _no_column),
    (r'Referenced column "([^"]+)" (?:was )?not found', _no_column),
    (r'Table "([^"]+)" does not have a column named "([^"]+)"', _no_column),
    (r"\Arelation \"(.+)\" does not exist", _no_table),
    (r"\Acolumn \"([^\"]+)\" specified in USING", _not_in_both),
    (r"\Acolumn \"?(.+?)\"? does not exist", _no_column),
    (r"\Acannot join using column (.+) - ", _not_in_both),
    (r'Column "([^"]+)" does not exist on \w+ side of join', _not_in_both),
)
"""The errors of the databases that name an unknown table or column, and what explains them."""


def _has(sources: Iterable[TableSource]) -> str:
    known = {each.title: each.columns for each in sources if each.columns}
    listed = [f"{identifier(title)} has {_join(columns)}" for title, columns in known.items()]
    return "; ".join(listed[:3]) or "check the name"


def _join(names: Sequence[str]) -> str:
    return listed(map(identifier, names), _LISTED)

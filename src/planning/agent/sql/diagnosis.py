"""Why a statement failed: the database's error, with what was probably meant.

That is the nearest name, or the same statement in the SQL of this database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
from sqlglot import exp

from planning.agent.sql.dialects import title_of
from planning.agent.sql.names import closest
from planning.agent.sql.schema import identifier
from planning.agent.sql.transpiled import transpiled
from planning.agent.sql.tree import Select, TableSource, Tree, attempt, parsed, read
from planning.errors import cut, printable

_LONGEST: Final = 900
_LONGEST_WORD: Final = 200
_LISTED: Final = 20
_CONTEXT: Final = re.compile(r"\A[A-Z][A-Za-z ]* Error: |\n\s*\n.*|\nLINE \d.*|\n\t?Candidate.*", re.DOTALL)
_FOREIGN: Final = re.compile(r"syntax error|no such function|unrecognized token|function", re.IGNORECASE)
_REMEDIES: Final = (
    (r"mbiguous", "write its table before it"),
    (r"incomplete input|end of input", "write the rest of it, or close what is open"),
    (r"token: \"['\"`[]|unterminated", "close the quote, and write a quote inside text twice"),
    (r"permission denied", "use only the tables and columns of the schema"),
    (r"FROM-clause entry", "join it, or write the alias that the query gives it"),
    (r"operator does not exist", "cast one side, as in x::text"),
    (r"stack overflow|tree is too large|expression depth", "send a simpler SELECT"),
)
_PARAMETER: Final = re.compile(r"\AIncorrect number of bindings|Values were not provided")


def diagnose(
    text: str,
    sql: str,
    dialect: str,
    tables: Callable[[], Sequence[Mapping[str, Any]] | None],
    probe: Callable[[str], str],
) -> str:
    """Explain the error of a database in words that help to correct the statement.

    Args:
        text: The error, in the words of SQLite or DuckDB.
        sql: The statement.
        dialect: The name of its dialect, such as ``sqlite``.
        tables: Reads the tables with their columns; None if they cannot be read.
        probe: The error of the database for EXPLAIN of another statement; empty if it takes that.

    Returns:
        One line: what is wrong, and what to do.
    """
    if _PARAMETER.search(text):
        return "the SQL has a parameter, such as ? or :name; write the value itself"
    for pattern, explain in _NAMES:
        found = re.search(pattern, text, re.DOTALL)
        if found:
            words = tuple(cut(word, _LONGEST_WORD) for word in found.groups())
            return explain(_Case(words, sql, dialect, tables() or (), probe))
    message = _CONTEXT.sub("", text).rstrip(" .!") if dialect == "duckdb" else text
    remedy = next((remedy for pattern, remedy in _REMEDIES if re.search(pattern, text)), "correct the SQL")
    case = _Case((), sql, dialect, (), probe)
    return case.says(cut(message, _LONGEST // 3), remedy, is_foreign=_FOREIGN.search(text) is not None)


@attrs.frozen
class _Case:
    """The names that a database complains of, the statement, and the tables of the database."""

    words: tuple[str, ...]
    sql: str
    dialect: str
    tables: Sequence[Mapping[str, Any]]
    probe: Callable[[str], str]

    def tree(self) -> Tree | None:
        return attempt(lambda: read(parsed(self.sql, self.dialect), self.tables))

    def says(self, what: str, remedy: str, *, is_foreign: bool) -> str:
        """What is wrong, and the statement in the SQL of this database if that helps, else a remedy."""
        written = transpiled(self.sql, self.dialect, self.probe) if is_foreign else None
        if written is None:
            return _line(f"{what}; {remedy}" if remedy else what)
        return f"{_line(what)}; {title_of(self.dialect)} takes this: {written}"


def _no_table(case: _Case) -> str:
    (word,), known = case.words, [table["name"] for table in case.tables]
    name = word.rpartition(".")[2]
    near = closest(name, [("", known)])[1]
    if (
        near and near[0].lower() == word.lower() and case.dialect != "postgres"
    ):  # SQLite says so of x.* where x is not in FROM
        return _line(f"{identifier(near[0])} is not in FROM; join it")
    remedy = f"the tables are {_listed(known)}" if known else ""
    if near:
        remedy = f"did you mean {' or '.join(map(identifier, near))}?"
    tree = case.tree()  # SQLite reads the IN of POSITION('a' IN b) as that of a table
    is_read = tree is None or any(table.name == name for table in tree.root.find_all(exp.Table))
    return case.says(f"no such table: {word}", remedy, is_foreign=not is_read)


def _no_column(case: _Case) -> str:
    word = ".".join(case.words).strip('"')
    is_quoted = '"' + word.replace('"', '""') + '"' in case.sql
    owner, _, name = ("", "", word) if is_quoted else word.rpartition(".")
    tree = case.tree()
    node, select = (None, None) if tree is None else _unknown(tree, owner.rpartition(".")[2], name)
    if tree is not None and select is None:
        select = next(iter(tree.selects[::-1]), None)
    sources: list[TableSource] = []
    while select is not None:
        sources += select.sources.values()
        select = select.outer
    if owner and node is not None:
        meant = [each for each in sources if owner.lower() in (each.alias.lower(), each.title.lower())]
        return _line(f"no such column: {word}; {_column_of(owner, name, meant[:1], sources, case.tables)}")
    string = "for a string, write '{}' in single quotes".format(name.replace("'", "''")) if is_quoted else ""
    place, near = closest(name, [(each.title, each.columns or ()) for each in sources])
    if near:
        columns = ", ".join(identifier(each) for each in near)
        remedy = f"did you mean {columns}, of {identifier(sources[place].alias)}?"
    else:
        remedy = "" if is_quoted else _elsewhere(name, sources, case.tables)
    is_foreign = not near and not is_quoted and (node is None or isinstance(node.parent, exp.Func))
    return case.says(
        f"no such column: {word}", "; ".join(filter(None, [remedy, string])), is_foreign=is_foreign
    )


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
    owner: str,
    name: str,
    meant: Sequence[TableSource],
    sources: Sequence[TableSource],
    tables: Sequence[Mapping[str, Any]],
) -> str:
    """What was meant by a column of a certain table."""
    if not meant:
        here = ", ".join(sorted({identifier(each.alias) for each in sources}))
        message = f"{identifier(owner)} is not in FROM" + (f"; the query reads {here}" if here else "")
        is_known = any(table["name"].lower() == owner.lower() for table in tables)
        return f"{message}; join {identifier(owner)}" if is_known else message
    near = closest(name, [(meant[0].title, meant[0].columns or ())])[1]
    alias = identifier(meant[0].alias)
    return (
        f"did you mean {', '.join(f'{alias}.{identifier(each)}' for each in near)}?" if near else _has(meant)
    )


def _elsewhere(name: str, sources: Sequence[TableSource], tables: Sequence[Mapping[str, Any]]) -> str:
    """A table that the query does not read and that has a column, or what there is instead."""
    here = {each.title for each in sources}
    others = [table for table in tables if table["name"] not in here]
    groups = [(table["name"], [column["name"] for column in table["columns"]]) for table in others]
    place, near = closest(name, groups, by_spelling=False)
    if near:
        return f"{identifier(groups[place][0])} has {_listed(near)}, and the query does not read it; join it"
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
            near = closest(word, [(joined.title, both)])[1]
            lacking = [each for each in (joined, *others) if not each.has(word)]
            remedy = f"did you mean USING ({identifier(near[0])})?" if near else f"{_has(lacking)}; write ON"
            return _line(f"{message}; {remedy}")
    return _line(f"{message}; write ON")


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
    listed = [f"{identifier(title)} has {_listed(columns)}" for title, columns in known.items()]
    return "; ".join(listed[:3]) or "check the name"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(identifier, names[:_LISTED])) + more


def _line(text: str) -> str:
    return cut(printable(" ".join(text.split())), _LONGEST)

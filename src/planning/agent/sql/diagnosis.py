"""Why a statement failed, in words that help to correct it, with what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
from sqlglot import exp

from planning.agent.sql.dialects import title_of
from planning.agent.sql.guard import NO_BRACKETS, tokenize
from planning.agent.sql.names import closest
from planning.agent.sql.schema import identifier
from planning.agent.sql.transpiled import transpiled
from planning.agent.sql.tree import Select, Source, Tree, read
from planning.errors import cut, printable

__all__ = ["diagnose"]

_LONGEST: Final = 900
_LONGEST_WORD: Final = 200
_LISTED: Final = 20
_PLACES: Final = 20
_UNITED: Final = re.compile(r"\b(?:UNION|ALL|INTERSECT|EXCEPT)\s*\(", re.IGNORECASE)
_NO_FUNCTION: Final = ("no such function: {}", "{title} has no function of that name; use one that it has")
_NO_TYPES: Final = ("{} does not take ({})", "give it other types, or cast its arguments")
_CONTEXT: Final = re.compile(r"\n\s*\n.*|\nLINE \d.*|\n\t?Candidate.*|\nPossible.*", re.DOTALL)
_CLASS: Final = re.compile(r"\A[A-Z][A-Za-z ]* Error: ")


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
    for pattern, explain in _ERRORS:
        found = re.search(pattern, text, re.DOTALL)
        if found:
            words = tuple(cut(word, _LONGEST_WORD) for word in found.groups())
            case = _Case(words, sql, dialect, tables, probe)
            if isinstance(explain, str):
                return _line(explain.format(*words))
            if isinstance(explain, tuple):
                return case.says(*(part.format(*words, title=title_of(dialect)) for part in explain))
            return explain(case)
    own = _CLASS.sub("", _CONTEXT.sub("", text)).rstrip(" .!") if dialect == "duckdb" else text
    return _line(f"{own}; correct the SQL", _LONGEST // 3)


@attrs.frozen
class _Case:
    """What a database complains of, and the statement."""

    words: tuple[str, ...]
    sql: str
    dialect: str
    read_tables: Callable[[], Sequence[Mapping[str, Any]] | None]
    probe: Callable[[str], str]

    @property
    def word(self) -> str:
        return ".".join(self.words)

    def says(self, what: str, remedy: str, *, is_foreign: bool = True) -> str:
        """What is wrong, and the statement in the SQL of this database if that helps, else a remedy."""
        written = transpiled(self.sql, self.dialect, self.probe) if is_foreign else None
        if written is None:
            return _line(f"{what}; {remedy}" if remedy else what)
        return f"{_line(what)}; {title_of(self.dialect)} takes this: {written}"


def _no_table(case: _Case) -> str:
    tables = case.read_tables()
    known = [table["name"] for table in tables or ()]
    tree, name = read(case.sql, case.dialect, tables or ()), case.word.rpartition(".")[2]
    is_read = tree is None or any(table.name == name for table in tree.root.find_all(exp.Table))
    if tree is not None and not is_read:  # SQLite says so of x.* where x is not in FROM
        for node, select in tree.all_of(exp.Column):
            if node.is_star and node.table == name:
                return _line(_not_in_from(name, select.sources.values(), tables or ()))
    near = closest(name, [("", known)])[1]
    if near:
        remedy = f"did you mean {' or '.join(map(identifier, near))}?"
    elif known:
        remedy = f"the tables are {_listed(known)}"
    else:
        remedy = "the database has no tables" if tables is not None else ""
    return case.says(f"no such table: {case.word}", remedy, is_foreign=not is_read)


def _no_column(case: _Case) -> str:
    word = case.word.strip('"')
    message, tables = f"no such column: {word}", case.read_tables() or ()
    is_quoted = '"' + word.replace('"', '""') + '"' in case.sql
    owner, _, name = ("", "", word) if is_quoted else word.rpartition(".")
    tree = read(case.sql, case.dialect, tables)
    node, select = (None, None) if tree is None else _unknown(tree, owner.rpartition(".")[2], name)
    sources: list[Source] = []
    if tree is not None and select is None:
        select = next(iter([*tree.selects.values()][::-1]), None)
    while select is not None:
        sources += select.sources.values()
        select = select.outer
    if owner and node is not None:
        return _line(f"{message}; {_column_of(owner, name, sources, tables)}")
    string = "for a string, write '{}' in single quotes".format(name.replace("'", "''")) if is_quoted else ""
    is_value = bool(string) and _is_value(node)
    place, near = closest(name, [(_title(each), each.columns or ()) for each in sources])
    if near and not is_value:
        return _line(f"{message}; did you mean {_named(near, sources[place], sources)}?")
    column = f"for the column, write {identifier(near[0])}" if near else ""
    remedies = [column if is_value else _elsewhere(name, sources, tables), string]
    is_foreign = not is_quoted and (node is None or isinstance(node.parent, exp.Func))
    return case.says(message, "; ".join(filter(None, remedies)), is_foreign=is_foreign)


def _unknown(tree: Tree, owner: str, name: str) -> tuple[Any, Select | None]:
    """The column that nothing in its SELECT has, or that at least is so called; None if there is none."""
    found: tuple[Any, Select | None] = (None, None)
    for node, select in tree.all_of(exp.Column):
        if node.table.lower() == owner.lower() and name.lower() in {node.name.lower(), "*"}:
            if not select.owners(node):
                return node, select
            found = node, select
    return found


def _is_value(node: Any) -> bool:
    """Whether a name is where a value is more likely than a column."""
    is_within = node is not None and isinstance(node.parent, (exp.Binary, exp.In, exp.Between, exp.Func))
    return is_within and node.arg_key != "this"


def _column_of(owner: str, name: str, sources: Sequence[Source], tables: Sequence[Mapping[str, Any]]) -> str:
    """What was meant by a column of a certain table."""
    source = next(
        (each for each in sources if owner.lower() in (each.alias.lower(), _title(each).lower())), None
    )
    if source is None:
        return _not_in_from(owner, sources, tables)
    near = closest(name, [(_title(source), source.columns or ())])[1]
    alias = identifier(source.alias)
    return (
        f"did you mean {', '.join(f'{alias}.{identifier(each)}' for each in near)}?"
        if near
        else _has([source])
    )


def _not_in_from(name: str, sources: Iterable[Source], tables: Sequence[Mapping[str, Any]]) -> str:
    read_here = ", ".join(sorted({identifier(each.alias) for each in sources}))
    message = f"{identifier(name)} is not in FROM" + (f"; the query reads {read_here}" if read_here else "")
    is_known = any(table["name"].lower() == name.lower() for table in tables)
    return f"{message}; join {identifier(name)}" if is_known else message


def _named(columns: Sequence[str], source: Source, sources: Sequence[Source]) -> str:
    """Columns of a source, with its alias where another has one of that name."""
    if sum(each.column(columns[0]) is not None for each in sources) > 1:
        return ", ".join(f"{identifier(source.alias)}.{identifier(each)}" for each in columns)
    return ", ".join(map(identifier, columns)) + f", of {identifier(_title(source))}"


def _elsewhere(name: str, sources: Sequence[Source], tables: Sequence[Mapping[str, Any]]) -> str:
    """A table that the query does not read and that has a column, or what there is instead."""
    read_here = {_title(each) for each in sources}
    groups = [(each["name"], _columns(each)) for each in tables if each["name"] not in read_here]
    place, near = closest(name, groups, by_spelling=False)
    if not near:
        return _has(sources) if sources else "check the name" + (", and the table it is of" if tables else "")
    table = identifier(groups[place][0])
    if near[0].lower() == name.lower():
        return f"{table} has it, which the query does not read; join it"
    return f"{table} has {_listed(near)}, and the query does not read it; join it"


def _ambiguous(case: _Case) -> str:
    name = case.word.rpartition(".")[2]
    tree = read(case.sql, case.dialect, case.read_tables() or ())
    owners = dict[str, None]()
    for node, select in () if tree is None else tree.all_of(exp.Column):
        if node.name.lower() == name.lower() and not node.table and not owners:
            owners |= dict.fromkeys(each.alias for each in select.owners(node))
    if len(owners) < 2:
        return _line(
            f"{case.word} is ambiguous; write its table before it, and name a table that is read twice"
        )
    written = " or ".join(f"{identifier(owner)}.{identifier(name)}" for owner in owners)
    return _line(f"{case.word} is ambiguous; write {written}")


def _not_in_both(case: _Case) -> str:
    """For USING with a column that one of the tables does not have."""
    message = f"{case.word} is not a column of both tables of a JOIN"
    tree = read(case.sql, case.dialect, case.read_tables() or ())
    for node, select in () if tree is None else tree.all_of(exp.Join):
        names = [each.name.lower() for each in node.args.get("using") or ()]
        joined = select.sources.get(node.alias_or_name.lower())
        if case.word.lower() in names and joined is not None:
            others = [each for each in select.sources.values() if each is not joined]
            both = [each for each in joined.columns or () if any(other.column(each) for other in others)]
            near = closest(case.word, [(_title(joined), both)])[1]
            lacking = [each for each in (joined, *others) if not each.column(case.word)]
            remedy = f"did you mean USING ({identifier(near[0])})?" if near else f"{_has(lacking)}; write ON"
            return _line(f"{message}; {remedy}")
    return _line(f"{message}; write ON")


def _syntax(case: _Case) -> str:
    remedy = "correct the SQL there or just before"
    if case.dialect == "sqlite" and case.word == "(" and _UNITED.search(case.sql):
        remedy = NO_BRACKETS
    what = f"syntax error{_place(case)}, near {case.word}"
    return case.says(what, remedy, is_foreign=case.word != ",")  # sqlglot reads over one too many


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


def _token(case: _Case) -> str:
    if case.word[:1] in {"'", '"', "`", "["}:
        return _line(
            f"a quote is not closed, from {case.word} on; close it, and write a quote inside text twice"
        )
    if case.word == ":" and "::" in case.sql:
        return case.says(":: is not SQL here", "write CAST(... AS type)")
    return _line(f"{case.word} is not SQL; remove it")


_Explain = Callable[[_Case], str]
_ERRORS: Final[tuple[tuple[str, str | tuple[str, str] | _Explain], ...]] = (
    (
        r"\AIncorrect number of bindings|Values were not provided",
        "the SQL has a parameter, such as ? or :name; write the value itself",
    ),
    (r"\AYou can only execute one", "more than one statement is refused; send one SELECT"),
    (
        r"\Aincomplete input|syntax error at end of input",
        "the SQL ends too early; write the rest of it, or close what is open",
    ),
    (
        r"\Aparser stack overflow|Max expression depth|\AExpression tree is too large",
        "the SQL is nested too deeply; send a simpler SELECT",
    ),
    (
        r"unterminated (?:quoted|string)",
        "a quote is not closed; close it, and write a quote inside text twice",
    ),
    (r"\Ano such table: (.+)", _no_table),
    (r'Table with name "?([^"\s!]+)"? does not exist', _no_table),
    (r"\Ano such column: (.+?)(?: - should this be .*)?\Z", _no_column),
    (r'Referenced column "([^"]+)" (?:was )?not found', _no_column),
    (r'Table "([^"]+)" does not have a column named "([^"]+)"', _no_column),
    (
        r'Referenced table "([^"]+)" not found',
        lambda case: _no_column(attrs.evolve(case, words=(*case.words, "*"))),
    ),
    (r"\Aambiguous column name: (.+)", _ambiguous),
    (r'Ambiguous reference to column name "([^"]+)"', _ambiguous),
    (r"\Acannot join using column (.+) - ", _not_in_both),
    (r'Column "([^"]+)" does not exist on \w+ side of join', _not_in_both),
    (r"\Ano such function: (.+)", _NO_FUNCTION),
    (r'Function with name "?([^"\s!]+)"? (?:does not exist|is not in)', _NO_FUNCTION),
    (r'(?:\Anear|syntax error at or near) "(.*?)"(?:: syntax error|\n|\Z)', _syntax),
    (r'\Aunrecognized token: "(.*)"', _token),
    (
        r"\Awrong number of arguments to function (.+)",
        ("wrong number of arguments to {}", "check how many it takes"),
    ),
    (
        r"\Amisuse of aggregate(?: function)?:? (.+)",
        "misuse of the aggregate {}; use it in SELECT, HAVING or ORDER BY, and not inside another",
    ),
    (
        r'column "([^"]+)" must appear in the GROUP BY',
        "{0} has many values in a group; add it to GROUP BY, or aggregate it, as in max({0})",
    ),
    (r"No function matches the given name and argument types '([^(]+)\((.*)\)'", _NO_TYPES),
    (r'best candidate function for the function call "([^(]+)\((.*)\)"', _NO_TYPES),
    (
        r"Cannot (?:mix|compare) values of type (VARCHAR and (?:type )?\w+|\S+ and type VARCHAR)",
        ("{} cannot be compared", "cast one of them"),
    ),
)
"""The errors of SQLite and of DuckDB, with the words in them that are wrong, and what explains them.

A pair is what is wrong, and what to do if no other statement can be suggested.
"""


def _title(source: Source) -> str:
    """The name of a table, or what a query is called."""
    return source.alias if source.table is None else str(source.table["name"])


def _columns(table: Mapping[str, Any]) -> list[str]:
    return [column["name"] for column in table["columns"]]


def _has(sources: Iterable[Source]) -> str:
    message = {
        _title(each): f"{identifier(_title(each))} has {_listed(each.columns)}"
        for each in sources
        if each.columns
    }
    return "; ".join(list(message.values())[:3]) or "check the name"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(identifier, names[:_LISTED])) + more


def _line(text: str, longest: int = _LONGEST) -> str:
    return cut(printable(" ".join(text.split())), longest)

"""What a statement reads: sqlglot's tree of it, with the columns of the tables.

It is loaded where a statement is analysed: sqlglot takes a while to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs
from sqlglot import Dialect, exp
from sqlglot.optimizer.scope import traverse_scope

_LONGEST: Final = 10_000
"""The most characters of a statement that is analysed, which takes about 0.3 s. A longer one is only run."""

_STEPS: Final = 40
"""The most steps of the parser for a token; a statement that is fair takes three or so."""

T = TypeVar("T")
Node = Any
"""A node of sqlglot's tree, whose base class has another name in each major version."""


def attempt(look: Callable[[], T]) -> T | None:
    """What a function returns; None if it fails: sqlglot may fail in any way, as in a recursion too deep."""
    try:
        return look()
    except Exception:  # noqa: BLE001 - then there is no hint, and the database has the last word
        return None


def parsed(sql: str, dialect: Any) -> Node:
    """The tree of a statement.

    sqlglot's parser goes back where an attempt fails, which takes exponential time where attempts are
    nested, as in ``a JOIN b JOIN c`` without ON: its steps are counted.

    Raises:
        ValueError: The statement is too long, sqlglot cannot read it, or takes too many steps.
    """
    if len(sql) > _LONGEST:
        raise ValueError("the statement is too long to read")
    reader = Dialect.get_or_raise(dialect)
    tokens = reader.tokenize(sql)
    parser: Any = reader.parser()
    left, advance = _STEPS * (len(tokens) + 10), parser._advance

    def counted(times: int = 1) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError("the statement takes too many steps to read")
        advance(times)

    parser._advance = counted
    (root,) = parser.parse(tokens, sql)
    return root


@attrs.frozen(eq=False)
class TableSource:
    """A table or a query in FROM.

    Attributes:
        alias: Its name in the statement.
        title: The name of the table, or the alias of a query.
        columns: Their names; None where they are unknown.
        key: The columns of the primary key of a table.
        is_table: Whether it is a table or view of the database.
        query: The tree of a query; None for a table.
        cte: The name of that query in WITH; empty for a query in FROM.
    """

    alias: str
    title: str
    columns: tuple[str, ...] | None
    key: tuple[str, ...] = ()
    is_table: bool = False
    query: Node = None
    cte: str = ""

    def has(self, name: str) -> bool:
        """Whether it has a column of that name, in any case."""
        return any(each.lower() == name.lower() for each in self.columns or ())


@attrs.frozen(eq=False)
class Select:
    """A SELECT, what it reads by its name there in lower case, and the SELECT around it."""

    node: exp.Select
    sources: Mapping[str, TableSource]
    outer: Select | None

    def owners(self, column: exp.Column) -> list[TableSource]:
        """The sources that a column may be of."""
        named = [self.sources.get(column.table.lower())] if column.table else self.sources.values()
        return [source for source in named if source is not None and source.has(column.name)]


@attrs.frozen(eq=False)
class Tree:
    """A statement.

    Attributes:
        root: Its tree.
        selects: Its SELECTs, the inner ones first.
        inside: The SELECT that each node is in, by the node's id.
        of_node: The SELECTs, by the ids of their nodes.
    """

    root: Node
    selects: Sequence[Select]
    inside: Mapping[int, Select | None]
    of_node: Mapping[int, Select]

    def all_of(self, *kinds: type[Node]) -> Iterator[tuple[Any, Select]]:
        """The nodes of these kinds, each with the SELECT that it is in."""
        for node in self.root.find_all(*kinds, bfs=False):
            select = self.inside[id(node)]
            if select is not None:
                yield node, select

    def owner(self, column: exp.Column) -> tuple[Select | None, TableSource | None]:
        """The SELECT, within or around, that a column is of, and the source there if it is known."""
        inner = select = self.inside[id(column)]
        while select is not None:
            owners = select.owners(column)
            if owners:
                return select, owners[0]
            if column.table.lower() in select.sources:
                return select, select.sources[column.table.lower()]
            select = select.outer
        return inner, None


def read(root: Node, tables: Sequence[Mapping[str, Any]]) -> Tree:
    """What a statement reads.

    Args:
        root: The tree of the statement; see ``parsed``.
        tables: The tables of the database.
    """
    known = {table["name"].lower(): table for table in tables}
    around: dict[int, exp.Select | None] = {}
    for node in root.walk():  # a node comes after the one that it is in
        parent = node.parent
        around[id(node)] = parent if isinstance(parent, exp.Select) else around.get(id(parent))
    sources: dict[int, dict[str, TableSource]] = {}
    for scope in traverse_scope(root):  # the inner ones come first
        if isinstance(scope.expression, exp.Select):
            sources[id(scope.expression)] = {
                alias.lower(): _source(alias, node, source, known, sources)
                for alias, (node, source) in scope.selected_sources.items()
            }
    selects: dict[int, Select] = {}
    for node in root.find_all(exp.Select):  # the outer ones come first
        if id(node) in sources:
            selects[id(node)] = Select(node, sources[id(node)], selects.get(id(around[id(node)])))
    inside = {node: selects.get(id(select)) for node, select in around.items()}
    return Tree(root, [selects[key] for key in sources if key in selects], inside, selects)


def _source(
    alias: str,
    node: Node,
    source: Any,
    known: Mapping[str, Mapping[str, Any]],
    inner: Mapping[int, Mapping[str, TableSource]],
) -> TableSource:
    if isinstance(source, exp.Table):
        table = known.get(source.name.lower(), {"name": source.name, "columns": ()})
        columns = tuple(column["name"] for column in table["columns"])
        key = tuple(column["name"] for column in table["columns"] if column["primary"])
        return TableSource(alias, table["name"], columns or None, key, is_table=bool(columns))
    names = tuple(source.outer_columns or _names(source.expression, inner))
    cte = node.name if isinstance(node, exp.Table) else ""
    return TableSource(alias, alias, None if "*" in names else names, query=source.expression, cte=cte)


def _names(query: Any, inner: Mapping[int, Mapping[str, TableSource]]) -> Iterator[str]:
    """The names of the columns of a query; ``*`` for those of a source that is not known."""
    while isinstance(query, exp.SetOperation):
        query = query.this.unnest()
    reads = inner.get(id(query), {})
    for each in query.expressions if isinstance(query, exp.Select) else [exp.Star()]:
        of = each.table.lower() if isinstance(each, exp.Column) else ""
        read = [source.columns for key, source in reads.items() if of in {"", key}] if each.is_star else ()
        for columns in read or [None]:
            yield from (columns or ["*"]) if each.is_star else [each.alias_or_name]

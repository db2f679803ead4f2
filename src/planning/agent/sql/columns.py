"""The contents of a statement's columns, which the database is asked.

A column, or what a view, a query in FROM, a WITH or an alias makes of one, is written as an expression of the
columns of tables. The database computes it for a few thousand rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

import attrs
from sqlglot import Dialect, exp
from sqlglot.optimizer.scope import traverse_scope

from planning.agent.sql.guard import Failure
from planning.agent.sql.schema import identifier, literal, quoted, sql_name
from planning.errors import nearest

_LONGEST: Final = 10_000
"""The most characters of a statement that is analysed, which takes about 0.3 s. A longer one is only run."""

_STEPS: Final = 40
"""The most steps of the parser for a token; a statement that is fair takes three or so."""

T = TypeVar("T")
Rows = Sequence[Sequence[Any]]
Tables = Sequence[Mapping[str, Any]]
Node = Any
"""A node of sqlglot's tree, whose base class has another name in each major version."""
Problem = tuple[str, ...]
"""The name of a sentence on what is wrong with a statement, and the words in it."""


def attempt(look: Callable[[], T]) -> T | None:
    """The result of a function; None if it fails: sqlglot may fail in any way, as in a recursion too deep."""
    try:
        return look()
    except Exception:  # noqa: BLE001 - then there is no hint, and the database has the last word
        return None


def parsed(sql: str, dialect: Any) -> Node:
    """The tree of a statement; it raises if that cannot be read.

    sqlglot's parser goes back where an attempt fails, which takes exponential time where attempts are
    nested, as in ``a JOIN b JOIN c`` without ON: its steps are counted.
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
    """A table or view of the database, or a query, in FROM, with its alias if it has one."""

    alias: str
    title: str  # the name of a table, or the alias of a query
    columns: tuple[str, ...] | None  # None if they are unknown
    key: tuple[str, ...] = ()
    types: Mapping[str, str] = {}
    is_table: bool = False
    query: Node = None
    cte: str = ""  # the name of a query in WITH

    def has(self, name: str) -> bool:
        """True if it has a column of that name, in any case."""
        return any(each.lower() == name.lower() for each in self.columns or ())


@attrs.define(eq=False)
class Select:
    """A SELECT, what it reads by its name there in lower case, and the SELECT around it."""

    node: exp.Select
    sources: Mapping[str, TableSource]
    outer: Select | None = None

    def owners(self, column: exp.Column) -> list[TableSource]:
        """The sources that a column may be of."""
        named = [self.sources.get(column.table.lower())] if column.table else self.sources.values()
        return [source for source in named if source is not None and source.has(column.name)]

    def starred(self, star: Node) -> list[TableSource]:
        """The sources whose columns ``*`` or ``t.*`` means."""
        of = star.table.lower() if isinstance(star, exp.Column) else ""
        return [source for name, source in self.sources.items() if of in {"", name}]

    def outputs(self) -> Iterator[tuple[str, Node]]:
        """The columns that it returns, by name, and as expressions; ``*`` for those that are not known."""
        for each in self.node.expressions:
            if not each.is_star:
                yield each.alias_or_name, each.unalias()
                continue
            starred = [(source.alias, source.columns) for source in self.starred(each)]
            for alias, columns in starred or [("", None)]:
                for name in columns or ("*",):
                    yield name, exp.column(name, alias)

    def owner(self, column: exp.Column) -> tuple[Select, TableSource] | None:
        """The SELECT, this one or one around it, that a column is of, and the source there."""
        select: Select | None = self
        while select is not None:
            source = next(iter(select.owners(column)), None) or select.sources.get(column.table.lower())
            if source is not None:
                return select, source
            select = select.outer
        return None


class Tree:
    """A statement: its tree, and its SELECTs by the ids of their nodes, the inner ones first."""

    def __init__(self, root: Node, tables: Tables) -> None:
        known = {table["name"].lower(): table for table in tables}
        self.root = root
        self.selects: dict[int, Select] = {}
        self._inside: dict[int, exp.Select | None] = {}
        for node in root.walk():  # a node comes after the one that it is in
            inside = node.parent if isinstance(node.parent, exp.Select) else self._inside.get(id(node.parent))
            self._inside[id(node)] = inside
        for scope in traverse_scope(root):
            if isinstance(scope.expression, exp.Select):
                sources = {
                    alias.lower(): self._source(alias, node, source, known)
                    for alias, (node, source) in scope.selected_sources.items()
                }
                self.selects[id(scope.expression)] = Select(scope.expression, sources)
        for select in self.selects.values():
            select.outer = self.around(select.node)

    def around(self, node: Node) -> Select | None:
        """The SELECT that a node is in."""
        return self.selects.get(id(self._inside.get(id(node))))

    def all_of(self, *kinds: type[Node]) -> Iterator[tuple[Any, Select]]:
        """The nodes of these kinds, each with the SELECT that it is in."""
        for node in self.root.find_all(*kinds, bfs=False):
            if (select := self.around(node)) is not None:
                yield node, select

    def owner(self, column: exp.Column) -> tuple[Select | None, TableSource | None]:
        """The SELECT, within or around, that a column is of, and the source there if it is known."""
        inner = self.around(column)
        return (inner and inner.owner(column)) or (inner, None)

    def _source(self, alias: str, node: Node, source: Any, known: Mapping[str, Any]) -> TableSource:
        if isinstance(source, exp.Table):
            table = known.get(source.name.lower(), {"name": source.name, "columns": ()})
            columns = tuple(column["name"] for column in table["columns"])
            key = tuple(column["name"] for column in table["columns"] if column["primary"])
            types = {column["name"].lower(): column["type"].lower() for column in table["columns"]}
            return TableSource(alias, table["name"], columns or None, key, types, is_table=bool(columns))
        names = tuple(source.outer_columns or self._names(source.expression))
        cte = node.name if isinstance(node, exp.Table) else ""
        return TableSource(alias, alias, None if "*" in names else names, query=source.expression, cte=cte)

    def _names(self, query: Any) -> list[str]:
        """The names of the columns of a query; ``*`` for those of a source that is not known."""
        while isinstance(query, exp.SetOperation):
            query = query.this.unnest()
        select = self.selects.get(id(query))
        return ["*"] if select is None else [name for name, _ in select.outputs()]


SAMPLE: Final = 2_000
"""The most rows of an answer to a question."""
_SCANNED: Final = 50_000
"""The rows that a sample is taken from: a column of a large table may begin with NULLs."""
_JOINED: Final = 40
"""The rows of each table if there are several, each with each."""
_MOST_QUESTIONS: Final = 60
_MOST_MISSING: Final = 5
_MOST_VALUES: Final = 1_000
_ALIKE: Final = 0.6
_FEW: Final = 8
_LONGEST_QUESTION: Final = 4_000
_DEEPEST: Final = 12
_LARGEST: Final = 300

ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg)
DATES: Final = frozenset({"date", "date with a time", "date with T", "other date"})
_KINDS: Final = (
    ("digits", r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*"),
    ("date", r"\d{4}-\d\d-\d\d"),
    ("date with a time", r"\d{4}-\d\d-\d\d \d\d:.*"),
    ("date with T", r"\d{4}-\d\d-\d\dT\d\d:.*"),
    ("other date", r"\d{4}(?:-\d\d?-|/\d\d?/|\.\d\d?\.)\d\d?(?:[ T].*)?"),
    ("other date", r"\d\d?(?:-\d\d?-|/\d\d?/|\.\d\d?\.)(?:\d{4}|\d\d)(?: .*)?"),
    ("other date", r"(?:\d\d?[ -])?[A-Za-z]{3,9}\.?[ -](?:\d\d?(?:st|nd|rd|th)?,? )?\d{4}"),
    ("other date", r"\d{8}[ T]\d\d:?\d\d.*"),
    ("time", r"\d\d?:\d\d(?::.*)?"),
    ("amount", r"\s*[-+]?(?:\d+\.?\d*|\.\d+)\D*"),
)
"""The kinds of strings: the first that the whole of one is like; any other is text."""
_KIND: Final = re.compile("|".join(f"({pattern})" for _, pattern in _KINDS), re.DOTALL)
_NAMES: Final = ("text", *(kind for kind, _ in _KINDS))
_NUMBERS: Final = frozenset({"integer", "real"})
_SAME: Final = (
    exp.Min, exp.Max, exp.Sum, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue,
)  # fmt: skip
_COUNTS: Final = (exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile)
_FRACTIONS: Final = (exp.Avg, exp.PercentRank, exp.CumeDist)
_AROUND: Final = (exp.Window, exp.Filter, exp.Distinct)
FOREIGN_TYPES: Final = ("date", "datetime", "timestamp", "timestamptz", "time")
"""Types that SQLite casts to a number; sqlglot would write something else."""


@attrs.define(eq=False)
class Columns:
    """A statement that has run, and the database, which is asked what its columns hold if that is needed."""

    sql: str
    dialect: str = attrs.field(converter=sql_name)
    tables: Callable[[], Tables | None]
    rows_of: Callable[[str], Rows | None]  # it fails if the time is over
    asked: dict[str, Rows | None] = attrs.field(factory=dict)  # questions to the same data, and their answers
    _questions: int = 0

    @cached_property
    def root(self) -> Node | None:
        """The tree of the statement; None if sqlglot cannot read it."""
        return attempt(lambda: parsed(self.sql, self.dialect))

    @cached_property
    def tree(self) -> Tree:
        """The tables and columns that it reads."""
        return Tree(self.root, self.tables() or ())

    def text(self, node: Node) -> str:
        """A part of the statement in the SQL of the database."""
        while isinstance(node, exp.Paren):
            node = node.this
        return str(node.sql(dialect=self.dialect, normalize_functions=False, comments=False))

    def ask(
        self, sql: str, *, is_needed: bool = False, fold: Callable[[Rows], Rows] | None = None
    ) -> Rows | None:
        """The rows of a question, or what ``fold`` makes of them; None if the database has no answer.

        It is asked once. One that is needed fails when the time is over: what was not checked may be wrong.
        """
        if sql not in self.asked:
            self._questions += 1
            if self._questions > _MOST_QUESTIONS or len(sql) > _LONGEST_QUESTION:
                return None
            try:
                rows = self.rows_of(sql)
            except Failure:
                if is_needed:
                    raise
                return None
            self.asked[sql] = rows if fold is None or rows is None else fold(rows)
        return self.asked[sql]

    def ask_within(self, query: exp.Select, node: Node) -> Any:
        """The first value of a query that takes the place of a node; None if it has no rows.

        If it reads columns of what is around it, it is asked for each row of that.
        """
        for _ in range(3):
            rows = self.ask(f"{self.with_of(node)} {self.text(query.limit(1))}".lstrip(), is_needed=True)
            outer = node.find_ancestor(exp.Select)
            if rows is not None or outer is None or outer.args.get("from_") is None:
                return rows[0][0] if rows else None
            around, where = exp.select(exp.Subquery(this=query.limit(1))), outer.args.get("where")
            for part in ("from_", "joins"):
                around.set(part, outer.copy().args.get(part))
            if where is not None:
                is_inside = any(each is where for each in ancestors(node))
                around.set("where", _without(where, node) if is_inside else where.copy())
            query, node = around.where(exp.Exists(this=query.copy())), outer
        return None

    def with_of(self, node: Node) -> str:
        """The WITH that a part of the statement may read."""
        inside, named, is_recursive = {*map(id, ancestors(node))}, list[str](), False
        for each in [*ancestors(node)][::-1]:
            found = each.args.get("with_")
            for cte in found.expressions if found is not None else ():
                if id(cte) in inside:  # it reads those before it
                    break
                named.append(self.text(cte))
                is_recursive |= bool(found.args.get("recursive"))
        return f"WITH {'RECURSIVE ' * is_recursive}{', '.join(named)}" if named else ""

    # Kinds

    def kinds(self, node: Node) -> frozenset[str]:
        """The kinds of values of an expression, if it has any and can be asked."""
        bare = node.unnest()
        if isinstance(bare, exp.Literal):
            kind = kind_of(bare.name) if bare.is_string else "number"
            return frozenset({kind} if bare.name.strip() else ())
        if isinstance(bare, ARITHMETIC):
            return frozenset({"number"})
        values = Values(self)
        try:
            written = values.write(node)
            what, condition = f"typeof({written}), substr({written}, 1, 40)", f"{written} <> ''"
            return frozenset(kind for (kind,) in values.rows(what, condition, SAMPLE, _kinds_in))
        except LookupError:
            return frozenset()

    def is_any(self, node: Node, condition: str) -> bool:
        """True if a condition is true of any value of an expression, in all rows."""
        values = Values(self, is_whole=True)
        written = values.write(node)
        return bool(values.rows("1", f"{written} <> '' AND {condition.format(written)}", 1))

    def affinity(self, node: Node) -> str | None:
        """The declared type of a table's column: ``int``, ``text``, or its type in lower case."""
        _, source = self.tree.owner(node) if isinstance(node, exp.Column) else (None, None)
        kind = None if source is None else source.types.get(node.name.lower())
        return kind and ("int" if "int" in kind else "text" if re.search("char|text|clob", kind) else kind)


def missing_values(columns: Columns) -> list[str]:
    """The strings that a statement compares with a column which does not hold them, and what it has instead.

    They are why most statements return nothing: a name in a different case, another word for a status.
    """
    lines = list[str]()
    for node, _ in columns.tree.all_of(exp.EQ, exp.In):
        source = columns.tree.owner(node.this)[1] if isinstance(node.this, exp.Column) else None
        strings = [
            each.name for each in node.expressions or [node.args.get("expression")] if each and each.is_string
        ]
        if source is None or not source.is_table:
            continue
        for text in strings:
            field, where = exp.column(node.this.name, quoted=True), exp.table_(source.title, quoted=True)
            held = exp.select(field).distinct().from_(where)
            if len(lines) >= _MOST_MISSING or columns.ask(held.where(field.eq(text)).limit(1).sql()):
                continue
            rows = columns.ask(held.limit(_MOST_VALUES).sql()) or ()
            values = {row[0].strip().casefold(): row[0] for row in rows if isinstance(row[0], str)}
            meant = nearest(text.strip(), values, _ALIKE)
            near = [] if meant is None else [values[meant]]
            few = near or (values.values() if len(values) <= _FEW else [])
            has = f"; it has {'' if near else 'only '}{', '.join(map(literal, few))}" if few else ""
            if values:
                lines.append(
                    f"{identifier(source.title)}.{identifier(node.this.name)} has no {literal(text)}{has}"
                )
    return [*dict.fromkeys(lines)]


def _kinds_in(rows: Rows) -> Rows:
    """The kinds of values, by SQLite's names for them and their beginnings."""
    kinds = {
        kind_of(text) if kind == "text" else "number" if kind in _NUMBERS else kind for kind, text in rows
    }
    return [[kind] for kind in kinds]


def kind_of(text: str) -> str:
    """The kind of a string."""
    found = _KIND.fullmatch(text)
    return _NAMES[(found and found.lastindex) or 0]


def ancestors(node: Node) -> Iterator[Node]:
    """A node and what is around it."""
    while node is not None:
        yield node
        node = node.parent


def _without(root: Node, node: Node) -> Node:
    """A copy with TRUE in the place of a node."""
    place = next(place for place, each in enumerate(root.walk()) if each is node)
    copy = root.copy()
    next(each for number, each in enumerate(copy.walk()) if number == place).replace(exp.true())
    return copy


class Values:
    """Expressions of a statement, as the database can compute them from the columns of its tables."""

    def __init__(self, columns: Columns, *, is_whole: bool = False) -> None:
        self._columns = columns
        self._is_whole = is_whole  # all rows, and not a sample
        self._read: dict[str, dict[str, None]] = {}  # the columns of each table
        self._with = ""
        self._size = 0

    def write(self, node: Node) -> str:
        """An expression for the questions about its values."""
        written = self._inline(node, self._columns.tree.around(node), 0)
        if isinstance(written, exp.Column):  # as most are
            return f"{written.table}.{quoted(written.name)}"
        return f"({self._columns.text(written)})"

    def rows(
        self, what: str, condition: str, limit: int = 1, fold: Callable[[Rows], Rows] | None = None
    ) -> Rows:
        """The rows that fulfil a condition; a LookupError if the database has no answer."""
        sources, is_single = [], len(self._read) == 1
        for place, (source, names) in enumerate(self._read.items()):
            found = f"SELECT {', '.join(map(quoted, names))} FROM {source}"  # noqa: S608 - names are quoted, and run by what can only read
            if not is_single:
                found += f" WHERE {' AND '.join(f'{quoted(name)} IS NOT NULL' for name in names)}"
            if not (is_single and self._is_whole):
                found += f" LIMIT {_SCANNED if is_single else _JOINED}"
            sources.append(f"({found}) AS s{place}")
        given = f" FROM {', '.join(sources)}" if sources else ""
        asked = f"{self._with} SELECT {what}{given} WHERE {condition} LIMIT {limit}".lstrip()
        rows = self._columns.ask(asked, fold=fold)
        if rows is None:
            raise LookupError
        return rows

    def given(self) -> str:
        """The condition that no column of the expressions is NULL."""
        names = [
            f"s{place}.{quoted(name)}" for place, each in enumerate(self._read.values()) for name in each
        ]
        return " AND ".join(f"{name} IS NOT NULL" for name in names) or "1"

    def _inline(self, node: Node, select: Select | None, depth: int) -> Node:
        """A copy of an expression that reads only the columns of tables."""
        self._size += 1
        if depth > _DEEPEST or self._size > _LARGEST:
            raise LookupError
        if isinstance(node, exp.Column) and not node.is_star:
            return self._column(node.table.lower(), node.name, select, depth)
        if isinstance(node, (exp.Subquery, exp.Select)):
            query = node.unnest()
            if not isinstance(query, exp.Select) or len(query.expressions) != 1:
                raise LookupError
            inner = self._columns.tree.selects.get(id(query))
            return exp.Paren(this=self._inline(query.expressions[0].unalias(), inner, depth + 1))
        if isinstance(node, _COUNTS):
            return exp.Literal.number(1)
        if isinstance(node, _FRACTIONS):
            return exp.Literal.number("1.5")
        if isinstance(node, _AROUND):
            return self._inline(node.this or node.expressions[0], select, depth)
        if isinstance(node, _SAME):  # a function: it takes the type affinity of a column
            same = self._inline(node.this, select, depth)
            if isinstance(node, exp.Sum):
                return exp.Paren(this=exp.Add(this=exp.Paren(this=same), expression=exp.Literal.number(0)))
            return exp.Nullif(this=same, expression=exp.Literal.string(""))
        if isinstance(node, (exp.Query, exp.Star, exp.Exists, exp.AggFunc)):
            raise LookupError  # noqa: TRY004 - it cannot be looked up

        def copied(value: Any) -> Any:
            if isinstance(value, list):
                return [copied(each) for each in value]
            return self._inline(value, select, depth) if isinstance(value, exp.Expression) else value

        is_sqlite = self._columns.dialect == "sqlite"
        if is_sqlite and isinstance(node, exp.Cast) and node.is_type(*FOREIGN_TYPES):
            numeric = exp.DataType.build("NUMERIC", udt=True)
            return exp.Cast(this=copied(node.this), to=numeric)
        return type(node)(**{name: copied(value) for name, value in node.args.items()})

    def _column(self, table: str, name: str, select: Select | None, depth: int) -> Node:
        """A column as an expression of the columns of tables."""
        owned = None if select is None else select.owner(exp.column(name, table or None))
        if owned is None:
            outputs = [] if select is None or table else select.node.expressions
            meant = [each.unalias() for each in outputs if each.alias.lower() == name.lower()]
            if not meant:
                raise LookupError
            return exp.Paren(this=self._inline(meant[0], select, depth + 1))
        select, source = owned
        if source.is_table:
            known = [each for each in source.columns or () if each.lower() == name.lower()]
            return self._of_table(quoted(source.title), *known[:1] or [name])
        query, within = source.query, self._columns.tree.selects.get(id(source.query))
        if within is None:
            if query is None or not isinstance(query, exp.Query):
                raise LookupError
            self._with = self._columns.with_of(select.node)
            return self._of_table(
                quoted(source.cte) if source.cte else f"({self._columns.text(query)})", name
            )
        outputs = [*within.outputs()]
        names = source.columns or [each for each, _ in outputs]
        for written, (_, expression) in zip(names, outputs, strict=True):
            if written.lower() == name.lower():
                return exp.Paren(this=self._inline(expression, within, depth + 1))
        raise LookupError

    def _of_table(self, source: str, name: str) -> Node:
        place = [*self._read, source].index(source)
        self._read.setdefault(source, {})[name] = None
        return exp.column(exp.to_identifier(name, quoted=True), table=f"s{place}")

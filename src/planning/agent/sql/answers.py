"""Statements that run, but whose answer is not what was asked.

A comparison with NULL is never true. SQLite takes a column that is neither grouped by nor aggregated from any
row, where other databases raise an error. Its value is defined if the group has only one, because the grouped
columns determine it (by a key of its table, or an equality of a join), and beside a single min() or max(): it
comes from the row with that value (https://www.sqlite.org/lang_select.html#bareagg).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlglot import exp

from planning.agent.sql.tree import Select, Source, Tree, attempt, read

__all__ = ["wrong_answer"]

Column = tuple[str, str]
"""The name of a table or query in its SELECT, and the column; in lower case."""
Rule = tuple[set[Column], set[Column]]
"""Columns that determine others."""

_RELEVANT: Final = re.compile(
    r"\b(?:null|cast|strftime|substr|substring|date|group|avg|count|sum|total|min|max|median|string_agg|percentile\w*|jsonb?_group\w+)\b"
    r"|group_concat",
    re.IGNORECASE,
)
_OTHERS: Final = re.compile(r"PERCENTILE|TOTAL|JSONB?_GROUP_(?:ARRAY|OBJECT)", re.IGNORECASE)
"""Aggregates that sqlglot has no class for."""
_ROWID: Final = frozenset({"rowid", "oid", "_rowid_"})
_STRINGS: Final = (exp.TimeToStr, exp.Substring, exp.Date)
_COMPARING: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)
_WHOLE: Final = (
    "{name} has many values beside {beside}, and SQLite would use any of them; add GROUP BY {name}, or "
    "aggregate it, as in max({name})"
)
_GROUPED: Final = (
    "{name} has many values in a group, and SQLite would use any of them; add it to GROUP BY, or aggregate "
    "it, as in max({name})"
)
_STAR: Final = (
    "* has columns with many values in a group, and SQLite would use any of them; write the columns of GROUP "
    "BY, and aggregates of others, instead of *"
)


def wrong_answer(
    sql: str, dialect: str, tables: Callable[[], Sequence[Mapping[str, Any]] | None]
) -> str | None:
    """Why the answer to a statement is not what was asked, and what to write; None if it may be.

    Args:
        sql: The statement, which the database has run.
        dialect: The name of its dialect, such as ``sqlite``.
        tables: Reads the tables with their columns and keys; None if they cannot be read.
    """
    tree = None if _RELEVANT.search(sql) is None else read(sql, dialect, ())
    message = None if tree is None else attempt(lambda: next(_misread(tree, dialect), None))
    if tree is None or message is not None or dialect != "sqlite" or not attempt(lambda: any(_groups(tree))):
        return message
    known = tables()
    whole = None if known is None else read(sql, dialect, known)
    found = whole and attempt(lambda: next(filter(None, (each.problem() for each in _groups(whole))), None))
    return found or None


def _text(node: Any, dialect: str = "sqlite") -> str:
    return str(node.sql(dialect=dialect, normalize_functions=False))


def _misread(tree: Tree, dialect: str) -> Iterator[str]:
    """Comparisons that are never true, and casts to types that SQLite does not have."""
    for node in tree.root.find_all(exp.EQ, exp.NEQ):
        value = node.expression if isinstance(node.this, exp.Null) else node.this
        if isinstance(node.this, exp.Null) != isinstance(node.expression, exp.Null):
            written, compared = f"{_text(value, dialect)} IS", _text(node, dialect)
            negated = " NOT" if isinstance(node, exp.NEQ) else ""
            yield f"{compared} is never true; write {written}{negated} NULL for {compared}"
    for node in tree.root.find_all(exp.Cast, *_COMPARING) if dialect == "sqlite" else ():
        if isinstance(node, exp.Cast):
            if node.is_type("date", "datetime", "timestamp", "time"):
                value, kind = _text(node.this), str(node.to.this.name)
                function = "date" if kind == "DATE" else "time" if kind == "TIME" else "datetime"
                instead = f"write {function}({value}) for CAST({value} AS {kind})"
                yield f"SQLite has no type {kind}, and casts to a number; {instead}"
            continue
        given = [node.args.get(name) for name in ("this", "expression", "low")]
        given += node.expressions[:1] if isinstance(node, exp.In) else []
        strings = [_text(each) for each in given if isinstance(each, _STRINGS)]
        if strings and any(isinstance(each, exp.Literal) and not each.is_string for each in given):
            instead = f"write CAST({strings[0]} AS INTEGER) for {strings[0]}"
            yield f"{strings[0]} is a string, and never equal to a number; {instead}"


def _groups(tree: Tree) -> Iterator[_Groups]:
    """The SELECTs of groups whose columns may have many values."""
    known: dict[int, _Groups] = {}
    for key, select in tree.selects.items():  # the inner ones first
        known[key] = _Groups(select, tree, known)
        if known[key].may_be_arbitrary():
            yield known[key]


def _column(select: Select, node: Any) -> Column | None:
    """The column of a SELECT that a name means; None for what is not one of its own."""
    if not isinstance(node, exp.Column):
        return None
    table, name = node.table.lower(), node.name.lower()
    if table:
        return (table, name) if table in select.sources else None
    for key, source in select.sources.items():
        if source.column(name):
            return key, name
    if name in _ROWID and len(select.sources) == 1:
        return next(iter(select.sources)), name
    unknown = [key for key, source in select.sources.items() if source.columns is None]
    return (unknown[0], name) if unknown else None


class _Groups:
    """What a SELECT groups by, and the columns that it reads of a group."""

    def __init__(self, select: Select, tree: Tree, inner: Mapping[int, _Groups]) -> None:
        self._select, self._inside = select, tree.inside
        self._keys = {name: [*_keys(source, inner)] for name, source in select.sources.items()}
        node = select.node
        self._outputs = [each.unalias() for each in node.expressions]
        self._aliases = {each.alias.lower(): each.unalias() for each in node.expressions if each.alias}
        group, having, order = (node.args.get(name) for name in ("group", "having", "order"))
        self._grouped = [] if group is None else [self._meant(each) for each in group.expressions]
        self._places = [*self._outputs, *([] if having is None else [having.this])]
        ordered = [] if order is None else [each.this for each in order.expressions]
        self._aggregates = [call for place in (*self._places, *ordered) for call in _calls(place)]
        if self._grouped:  # one row needs no order; a whole term may be an alias
            self._places += [each for each in ordered if self._alias(each) is None]

    def may_be_arbitrary(self) -> bool:
        """Whether there are groups, and not a single min() or max() to take the row from."""
        calls = [each for each in self._aggregates if isinstance(each, (exp.Min, exp.Max))]
        is_of_one_row = len({*map(self._spelled, calls)}) == 1 and not isinstance(calls[0].this, exp.Distinct)
        return bool(self._grouped or self._aggregates) and not is_of_one_row

    def problem(self) -> str | None:
        """The message for the first column with an arbitrary value."""
        grouped = {*map(self._spelled, self._grouped)}
        determined = self._determined([each for each in map(self._own, self._grouped) if each is not None])
        for place in self._places:
            if place.is_star and not isinstance(place, exp.AggFunc):
                star = [place.table.lower()] if isinstance(place, exp.Column) else [*self._select.sources]
                if any(not self._all_of(source) <= determined for source in star):
                    return _STAR
        for place in self._places:
            for column in self._bare(place, grouped):
                if self._own(column) not in determined:
                    alias = None if place in self._outputs else self._alias(column)
                    if alias is not None:
                        return (
                            f"{_text(column)} means the column here, and not the alias; write {_text(alias)}"
                        )
                    is_whole = (
                        place in self._outputs and place.find(exp.Query) is None and not any(_calls(place))
                    )
                    message = (
                        _GROUPED if self._grouped else _WHOLE.replace("{beside}", _text(self._aggregates[0]))
                    )
                    return message.replace("{name}", _text(place if is_whole else column))
        return None

    def key(self, columns: Sequence[str]) -> frozenset[str] | None:
        """The columns that determine a row of the answer: empty if it has one row, None if unknown."""
        limit = self._select.node.args.get("limit")
        if (self._aggregates and not self._grouped) or (limit is not None and limit.expression.name == "1"):
            return frozenset()
        if any(each.is_star for each in self._outputs):
            columns = [each.output_name for each in self._select.node.expressions]
        names = dict(zip(map(self._spelled, self._outputs), map(str.lower, columns), strict=False))
        found = [names.get(self._spelled(each)) for each in self._grouped]
        return frozenset(name for name in found if name) if found and None not in found else None

    # Reading expressions

    def _alias(self, node: Any) -> Any:
        """What is selected under a name; None if nothing is."""
        is_name = isinstance(node, exp.Column) and not node.table
        return self._aliases.get(node.name.lower()) if is_name else None

    def _own(self, node: Any) -> Column | None:
        return _column(self._select, node)

    def _bare(self, place: Any, grouped: set[str]) -> Iterator[Any]:
        """The columns that an expression reads itself, outside of aggregates and of what is grouped by."""
        calls = {
            id(each.parent if isinstance(each.parent, exp.Filter) else each) for each in self._aggregates
        }
        kinds = {type(each) for each in self._grouped}

        def is_whole(node: Any) -> bool:
            return id(node) in calls or (type(node) in kinds and self._spelled(node) in grouped)

        for node in place.walk(prune=is_whole):
            if isinstance(node, exp.Column) and not is_whole(node) and not node.is_star:
                select = self._inside[id(node)]
                while select is not None and select is not self._select and _column(select, node) is None:
                    select = select.outer
                if select is self._select and self._own(node) is not None:
                    yield node

    def _meant(self, item: Any) -> Any:
        """What an item of GROUP BY means: a number or an alias is something that is selected."""
        item = item.unnest()
        if item.is_int and 0 < int(item.name) <= len(self._outputs):
            return self._outputs[int(item.name) - 1].unnest()
        is_own = any(source.column(item.name) for source in self._select.sources.values())
        return item if is_own or self._alias(item) is None else self._alias(item).unnest()

    def _spelled(self, node: Any) -> str:
        """An expression as text in which a column has one spelling."""
        node = node.unnest()
        own = self._own(node)
        if own is not None:
            return f"{own[0]!r}.{own[1]!r}"

        def same(each: Any) -> Any:
            column = self._own(each)
            return each if column is None else exp.column(column[1], table=column[0], quoted=True)

        return str(node.copy().transform(same).sql(dialect="sqlite"))

    # Which columns have one value in a group

    def _all_of(self, source: str) -> set[Column]:
        """The columns of a source; one that no rule names where they are unknown."""
        known = self._select.sources.get(source)
        names = (known.columns if known is not None else None) or ("*",)
        return {(source, name.lower()) for name in names}

    def _determined(self, columns: Iterable[Column]) -> set[Column]:
        """The columns that have one value where these have one."""
        found, rules = set(columns), [*self._equalities()]
        for source, keys in self._keys.items():
            whole = self._all_of(source) | {(source, name) for name in _ROWID}
            rows = [frozenset({name}) for name in _ROWID if (source, name) not in self._all_of(source)]
            rules += [({(source, name) for name in key}, whole) for key in (*keys, *rows)]
        before = -1
        while len(found) != before:
            before = len(found)
            found.update(*(then for given, then in rules if given <= found))
        return found

    def _equalities(self) -> Iterator[Rule]:
        """The rules that the conditions imply."""
        node, sources = self._select.node, self._select.sources
        within = node.walk(prune=lambda each: isinstance(each, exp.Select) and each is not node)
        joins = [each for each in within if isinstance(each, exp.Join)]
        where = node.args.get("where")
        if where is not None:
            yield from self._implied(where.this, "")
        if any(join.side in {"RIGHT", "FULL"} for join in joins):  # a row may lack either table
            return
        for join in joins:
            added, is_left = join.alias_or_name.lower(), join.side == "LEFT"
            if join.args.get("on") is not None:
                yield from self._implied(join.args["on"], added if is_left else "")
            names = [each.name.lower() for each in join.args.get("using") or ()]
            if join.method == "NATURAL" and added in sources:
                names = [name.lower() for name in sources[added].columns or ()]
            for name in names:
                for source in sources:
                    if source != added and sources[source].column(name):
                        yield {(source, name)}, {(added, name)}
                        if not is_left:
                            yield {(added, name)}, {(source, name)}

    def _implied(self, condition: Any, added: str) -> Iterator[Rule]:
        """The rules that a condition implies; for a LEFT JOIN, all columns of it together."""
        given, then = set[Column](), set[Column]()
        for part in condition.flatten() if isinstance(condition, exp.And) else [condition]:
            each = part.unnest()
            sides = [each.this.unnest(), each.expression.unnest()] if isinstance(each, exp.EQ) else [each]
            if not all(isinstance(side, (exp.Column, exp.Literal)) for side in sides):
                if added:
                    return
                continue
            columns = [column for column in map(self._own, sides) if column is not None]
            if added:
                given.update(column for column in columns if column[0] != added)
                then.update(column for column in columns if column[0] == added)
            elif len(sides) == 2:
                yield {*columns[1:]}, {*columns[:1]}
                yield {*columns[:-1]}, {*columns[-1:]}
        if then:
            yield given, then


def _keys(source: Source, inner: Mapping[int, _Groups]) -> Iterator[frozenset[str]]:
    """The sets of columns that determine a row of a table or a query."""
    if source.table is None:
        query = inner.get(id(source.query))
        key = None if query is None else query.key(source.columns or ())
        if key is not None:
            yield key
        return
    columns = source.table["columns"]
    not_null = {each["name"] for each in columns if each["not_null"]}
    primary = [each["name"] for each in columns if each["primary"]]
    for key in (primary, *(names for names in source.table["unique"] if not_null.issuperset(names))):
        if key:
            yield frozenset(map(str.lower, key))


def _calls(place: Any) -> Iterator[Any]:
    """The aggregates of its own SELECT in an expression, without those of windows."""
    for node in place.walk(prune=lambda node: isinstance(node, exp.Query)):
        is_call = isinstance(node, exp.AggFunc) or (
            isinstance(node, exp.Anonymous) and _OTHERS.fullmatch(node.name) is not None
        )
        outside = node.parent.parent if isinstance(node.parent, exp.Filter) else node.parent
        if is_call and not isinstance(outside, exp.Window):
            yield node

"""Columns that are neither grouped by nor aggregated, which SQLite takes from an arbitrary row.

Other databases raise an error. The value is defined if the group has only one, because the grouped columns
determine it (by a key of its table, or an equality of a join), and beside a single min() or max(): it comes
from the row with that value (https://www.sqlite.org/lang_select.html#bareagg).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

__all__ = ["arbitrary_column"]

Tables = Mapping[str, Mapping[str, Any]]
Column = tuple[str, str]
"""The table, by its name in the SELECT, and the column; in lower case."""

_LONGEST: Final = 20_000
# Aggregates that sqlglot has no class for.
_OTHERS: Final = {"PERCENTILE", "TOTAL"}.union(
    f"{form}_GROUP_{kind}" for form in ("JSON", "JSONB") for kind in ("ARRAY", "OBJECT")
)
_RELEVANT: Final = re.compile(
    r"\b(?:group|avg|count|sum|total|min|max|median|string_agg|percentile\w*|jsonb?_group\w+)\b|group_concat",
    re.IGNORECASE,
)
_ROWID: Final = frozenset({"rowid", "oid", "_rowid_"})
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
_ALIAS: Final = "{name} means the column here, and not the alias; write {written}"


def arbitrary_column(sql: str, tables: Callable[[], Sequence[Mapping[str, Any]] | None]) -> str | None:
    """The message for a column with an arbitrary value; None if there is none.

    Statements of more than 20,000 characters, or that sqlglot cannot parse, are not checked.

    Args:
        sql: The statement, which SQLite has run.
        tables: Reads the tables of the database, as a worker process does; None if they are unknown.
    """
    if len(sql) > _LONGEST or _RELEVANT.search(sql) is None:
        return None
    import sqlglot
    from sqlglot.optimizer.scope import traverse_scope

    try:
        scopes = [each for each in traverse_scope(sqlglot.parse_one(sql, read="sqlite")) if _is_select(each)]
        if not any(_Select(each, {}, {}).may_be_arbitrary() for each in scopes):
            return None
        existing = tables()
        if existing is None:
            return None
        known = {table["name"].lower(): table for table in existing}
        selects: dict[int, _Select] = {}
        for each in scopes:  # the inner ones first
            selects[id(each.expression)] = _Select(each, known, selects)
        return next(filter(None, (select.problem(selects) for select in selects.values())), None)
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None


def _is_select(scope: Any) -> bool:
    from sqlglot import exp

    return isinstance(scope.expression, exp.Select)


class _Select:
    """One SELECT: what it groups by, and the columns that it reads of a group."""

    def __init__(self, scope: Any, tables: Tables, inner: Mapping[int, _Select]) -> None:
        from sqlglot import exp

        self._exp = exp
        self._select = select = scope.expression
        self._columns: dict[str, frozenset[str] | None] = {}  # None where they are not known
        self._keys: dict[str, list[frozenset[str]]] = {}
        for name, source in scope.sources.items():
            if isinstance(source, exp.Table):
                self._add_table(name.lower(), tables.get(source.name.lower()))
            else:
                self._add_query(name.lower(), source, inner.get(id(source.expression)))
        self._outputs = [each.unalias() for each in select.expressions]
        self._aliases = {each.alias.lower(): each.unalias() for each in select.expressions if each.alias}
        group, having, order = (select.args.get(name) for name in ("group", "having", "order"))
        self._grouped = [] if group is None else [*map(self._meant, group.expressions)]
        self._having = [] if having is None else [having.this]
        self._ordered = [] if order is None else [each.this for each in order.expressions]
        self._aggregates = [
            node for each in (*self._outputs, *self._having, *self._ordered) for node in self._calls(each)
        ]
        if not self._grouped:
            self._ordered = []  # one row needs no order

    def may_be_arbitrary(self) -> bool:
        """Whether there are groups whose columns may have many values."""
        return bool(self._grouped or self._aggregates) and not self._is_of_one_row()

    def problem(self, selects: Mapping[int, _Select]) -> str | None:
        """The message for the first column with an arbitrary value."""
        if not self.may_be_arbitrary():
            return None
        exp = self._exp
        grouped = {self._spelled(each) for each in self._grouped}
        determined = self._determined([each for each in map(self._column, self._grouped) if each is not None])
        for output in self._outputs:
            if output.is_star and not isinstance(output, exp.AggFunc):
                star = [output.table.lower()] if isinstance(output, exp.Column) else self._columns
                if any(not self._has_all(source, determined) for source in star):
                    return _STAR
        for place in (*self._outputs, *self._having, *self._ordered):
            for column in self._bare(place, grouped, selects):
                meant = self._column(column)
                written = None if column.table else self._aliases.get(column.name.lower())
                if place in self._outputs or written is None:
                    if meant is not None and meant not in determined:
                        is_whole = place.find(self._exp.Query) is None and not any(self._calls(place))
                        return self._message(place if is_whole else column)
                elif column is not place and self._is_own(column.name) and meant not in determined:
                    return _ALIAS.format(name=_text(column), written=_text(written))
        return None

    def _add_table(self, name: str, table: Mapping[str, Any] | None) -> None:
        columns = () if table is None else table["columns"]
        not_null = {each["name"] for each in columns if each["not_null"]}
        primary = [each["name"] for each in columns if each["primary"]]
        unique = () if table is None else (names for names in table["unique"] if not_null.issuperset(names))
        self._columns[name] = frozenset(each["name"].lower() for each in columns) or None
        self._keys[name] = [frozenset(map(str.lower, key)) for key in (primary, *unique) if key]

    def _add_query(self, name: str, scope: Any, query: _Select | None) -> None:
        names = [each.lower() for each in scope.outer_columns or scope.expression.named_selects]
        key = None if query is None else query.key(names)
        self._columns[name] = None if "*" in names else frozenset(names)
        self._keys[name] = [] if key is None else [key]

    def key(self, names: Sequence[str]) -> frozenset[str] | None:
        """The columns that determine a row of the answer: empty if it has one row, None if unknown."""
        limit = self._select.args.get("limit")
        if (self._aggregates and not self._grouped) or (limit is not None and limit.expression.name == "1"):
            return frozenset()
        outputs = dict(zip(map(self._spelled, self._outputs), names, strict=False))
        grouped = [outputs.get(self._spelled(each)) for each in self._grouped]
        return frozenset(name for name in grouped if name) if grouped and None not in grouped else None

    # Reading expressions

    def _calls(self, place: Any) -> Iterator[Any]:
        """The aggregates of this SELECT in an expression."""
        exp = self._exp
        for node in place.walk(prune=lambda node: isinstance(node, exp.Query)):
            is_call = isinstance(node, exp.AggFunc) or (
                isinstance(node, exp.Anonymous) and node.name.upper() in _OTHERS
            )
            if is_call and not isinstance(_outside(node, exp.Filter), exp.Window):
                yield node

    def _bare(self, place: Any, grouped: set[str], selects: Mapping[int, _Select]) -> Iterator[Any]:
        """The columns that an expression reads itself, outside of aggregates and of what is grouped by."""
        exp = self._exp
        calls = {id(_outermost_filter(each, exp)) for each in self._aggregates}
        kinds = {type(each) for each in self._grouped}

        def is_whole(node: Any) -> bool:
            return id(node) in calls or (type(node) in kinds and self._spelled(node) in grouped)

        for node in place.walk(prune=is_whole):
            if isinstance(node, exp.Column) and not is_whole(node) and not isinstance(node.this, exp.Star):
                inner = node.parent_select
                while inner is not None and inner is not self._select:
                    query = selects.get(id(inner))
                    if query is not None and query._column(node) is not None:
                        break
                    inner = inner.parent_select
                if inner is self._select:
                    yield node

    def _meant(self, item: Any) -> Any:
        """What an item of GROUP BY means: a number or an alias is something that is selected."""
        item = item.unnest()
        if item.is_int and 0 < int(item.name) <= len(self._outputs):
            return self._outputs[int(item.name) - 1].unnest()
        if isinstance(item, self._exp.Column) and not item.table and not self._is_own(item.name):
            return self._aliases.get(item.name.lower(), item).unnest()
        return item

    def _is_own(self, name: str) -> bool:
        """Whether a table is known to have a column."""
        return any(columns is not None and name.lower() in columns for columns in self._columns.values())

    def _column(self, node: Any) -> Column | None:
        """The column that a name means; None for other expressions, and columns of an outer query."""
        if not isinstance(node, self._exp.Column):
            return None
        table, name = node.table.lower(), node.name.lower()
        if table:
            return (table, name) if table in self._columns else None
        for source, columns in self._columns.items():
            if columns is not None and name in columns:
                return source, name
        if name in _ROWID and len(self._columns) == 1:
            return next(iter(self._columns)), name
        unknown = [source for source, columns in self._columns.items() if columns is None]
        return (unknown[0], name) if unknown else None

    def _spelled(self, node: Any) -> str:
        """An expression as text in which a column has one spelling."""

        def same(each: Any) -> Any:
            column = self._column(each)
            return each if column is None else self._exp.column(column[1], table=column[0], quoted=True)

        return str(node.unnest().copy().transform(same).sql(dialect="sqlite"))

    def _is_of_one_row(self) -> bool:
        """Whether there is a single min() or max()."""
        exp = self._exp
        calls = [each for each in self._aggregates if isinstance(each, (exp.Min, exp.Max))]
        return len({self._spelled(each) for each in calls}) == 1 and not isinstance(
            calls[0].this, exp.Distinct
        )

    # Which columns have one value in a group

    def _determined(self, columns: Iterable[Column]) -> set[Column]:
        """The columns that have one value where these have one."""
        found = set(columns)
        rules = [*self._equalities()]
        for source, keys in self._keys.items():
            names = self._columns[source] or frozenset()
            all_of_it = {(source, name) for name in names | _ROWID}
            rules += [({(source, name) for name in key}, all_of_it) for key in keys]
            rules += [({(source, name)}, all_of_it) for name in _ROWID - names]
        before = -1
        while len(found) != before:
            before = len(found)
            found.update(*(then for given, then in rules if given <= found))
        return found

    def _equalities(self) -> Iterator[tuple[set[Column], set[Column]]]:
        """The dependencies that the conditions imply: columns, and the columns that they determine."""
        where = self._select.args.get("where")
        joins = [each for each in self._select.find_all(self._exp.Join) if each.parent_select is self._select]
        conditions = [] if where is None else [(where.this, "")]
        if not any(join.side in {"RIGHT", "FULL"} for join in joins):  # of those, a row may lack either table
            for join in joins:
                added = join.alias_or_name.lower()
                conditions.append((join.args.get("on"), added if join.side == "LEFT" else ""))
                names = [each.name.lower() for each in join.args.get("using") or ()]
                if join.method == "NATURAL":
                    names = [*(self._columns.get(added) or ())]
                for name in names:
                    for source, columns in self._columns.items():
                        if source != added and columns is not None and name in columns:
                            yield {(source, name)}, {(added, name)}
                            if join.side != "LEFT":
                                yield {(added, name)}, {(source, name)}
        for condition, added in conditions:
            if condition is not None:
                yield from self._implied(condition, added)

    def _implied(self, condition: Any, added: str) -> Iterator[tuple[set[Column], set[Column]]]:
        """The dependencies that a condition implies; for a LEFT JOIN, all columns of it together."""
        exp = self._exp
        given, then = set[Column](), set[Column]()
        for each in condition.flatten() if isinstance(condition, exp.And) else [condition]:
            sides = [] if not isinstance(each.unnest(), exp.EQ) else [each.unnest().left, each.unnest().right]
            if not sides or not all(isinstance(side.unnest(), (exp.Column, exp.Literal)) for side in sides):
                if added:
                    return
                continue
            columns = [each for each in (self._column(side.unnest()) for side in sides) if each is not None]
            if added:
                given.update(column for column in columns if column[0] != added)
                then.update(column for column in columns if column[0] == added)
            elif len(columns) == 1:
                yield set(), {columns[0]}
            elif columns:
                yield {columns[0]}, {columns[1]}
                yield {columns[1]}, {columns[0]}
        if then:
            yield given, then

    def _has_all(self, source: str, determined: set[Column]) -> bool:
        columns = self._columns.get(source)
        return columns is not None and all((source, name) in determined for name in columns)

    def _message(self, value: Any) -> str:
        if self._grouped:
            return _GROUPED.format(name=_text(value))
        return _WHOLE.format(name=_text(value), beside=_text(self._aggregates[0]))


def _outside(node: Any, kind: type[Any]) -> Any:
    """The node around an expression, without a FILTER of its own."""
    parent = node.parent
    return parent.parent if isinstance(parent, kind) else parent


def _outermost_filter(node: Any, exp: Any) -> Any:
    return node.parent if isinstance(node.parent, exp.Filter) else node


def _text(node: Any) -> str:
    return str(node.sql(dialect="sqlite", normalize_functions=False))

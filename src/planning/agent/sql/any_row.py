"""Values that SQLite takes from any row: other databases refuse such statements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from sqlglot import exp

from planning.agent.sql.columns import Columns, Node, Problem, TableSource
from planning.agent.sql.schema import quoted

_ONE_VALUE: Final = "count({0}) IN (0, count(*)) AND min({0}) IS max({0})"
_OTHERS: Final = re.compile(r"TOTAL|JSONB?_GROUP_(?:ARRAY|OBJECT)", re.IGNORECASE)
"""Aggregates that sqlglot has no class for."""


def find_any_row(columns: Columns, node: exp.Select) -> Problem | None:
    """A column that is neither grouped by nor aggregated, and has several values in a group.

    SQLite takes it from any row; beside a single min() or max() from the row with that value
    (https://www.sqlite.org/lang_select.html#bareagg).
    """
    group, having, order = (node.args.get(name) for name in ("group", "having", "order"))
    aliases = {each.alias.lower(): each.unalias() for each in node.expressions if each.alias}
    terms = [having.this] if having else []
    terms += (
        [each.this for each in order.expressions if columns.text(each.this).lower() not in aliases]
        if order
        else []
    )
    calls = [call for place in (*node.expressions, *terms) for call in calls_of(place)]
    peaks = [each for each in calls if isinstance(each, (exp.Min, exp.Max))]
    is_of_one_row = len({*map(columns.text, peaks)}) == 1 and not isinstance(peaks[0].this, exp.Distinct)
    if is_of_one_row or not (calls or group):
        return None
    places = [*node.expressions, *(terms if group else terms[: 1 if having else 0])]
    items = [_resolve(columns, item.unnest(), node, aliases) for item in (group.expressions if group else ())]
    bare = dict[str, str]()  # a check, and the column as it was written
    for place in places:
        for spelled, written in _bare(columns, place.unalias(), node, items, {*map(id, calls)}):
            bare.setdefault(_ONE_VALUE.format(spelled) if spelled else "count(*) < 2", written)
    if not bare:
        return None
    whens = " ".join(f"WHEN NOT ({check}) THEN {place}" for place, check in [*enumerate(bare)][::-1])
    asked = node.copy()
    for part in ("order", "limit", "offset", "distinct", "with_"):
        asked.set(part, None)
    if having is not None and any(_bare(columns, having.this, node, items, {*map(id, calls)})):
        asked.set("having", None)
    asked.append("expressions", exp.alias_(exp.Var(this=f"CASE {whens} END"), "any row", quoted=True))
    found = exp.column("any row", quoted=True)
    place = columns.ask_within(
        exp.select(found).from_(asked.subquery()).where(exp.not_(found.is_(exp.Null()))), node
    )
    if place is None:
        return None
    name = [*bare.values()][place]
    return ("any row", name) if name else ("any rows",)


def calls_of(place: Node) -> Iterator[Node]:
    """The aggregates of its own SELECT in an expression, without those of windows."""
    for node in place.walk(prune=lambda node: isinstance(node, exp.Query)):
        is_call = isinstance(node, exp.AggFunc) or (
            isinstance(node, exp.Anonymous) and _OTHERS.fullmatch(node.name) is not None
        )
        outside = node.parent if isinstance(node.parent, exp.Filter) else node
        if is_call and not isinstance(outside.parent, exp.Window):
            yield outside


def _resolve(columns: Columns, item: Node, node: exp.Select, aliases: Mapping[str, Node]) -> Node:
    """The meaning of an item of GROUP BY: a number or an alias is something that is selected."""
    if item.is_int and 0 < int(item.name) <= len(node.expressions):
        return node.expressions[int(item.name) - 1].unalias().unnest()
    is_alias = isinstance(item, exp.Column) and columns.tree.owner(item)[1] is None
    return aliases.get(columns.text(item).lower(), item).unnest() if is_alias else item


def _bare(
    columns: Columns, place: Node, node: exp.Select, items: list[Node], calls: set[int]
) -> Iterator[tuple[str, str]]:
    """The columns of a SELECT that an expression reads outside of aggregates and of what is grouped by.

    For each how it can be written, and how it was; both are empty for all columns of what has unknown ones.
    """
    select = columns.tree.selects[id(node)]
    grouped = [
        (each.name.lower(), columns.tree.owner(each)[1]) for each in items if isinstance(each, exp.Column)
    ]

    def text(each: Node) -> str:
        """An expression, without the name of the table if it is the only one."""
        table = rf"\b{re.escape(next(iter(select.sources)))}\." if len(select.sources) == 1 else r"\Z."
        return re.sub(table, "", columns.text(each), flags=re.IGNORECASE)

    texts = {text(each) for each in items}
    aliases = {each.alias.lower() for each in node.expressions if each.alias}

    def is_kept(name: str, source: TableSource | None) -> bool:
        key = source.key if source is not None else ()
        return (name, source) in grouped or (
            bool(key) and all((each.lower(), source) in grouped for each in key)
        )

    def is_whole(each: Node) -> bool:
        return id(each) in calls or (any(type(each) is type(item) for item in items) and text(each) in texts)

    for each in place.walk(prune=is_whole):
        if is_whole(each):
            continue
        if (isinstance(each, exp.Star) and each.parent is node) or (
            isinstance(each, exp.Column) and each.is_star
        ):
            for source in select.starred(each):
                names = source.columns or ("",)
                for name in names if len({name.lower() for name in names}) == len(names) else [""]:
                    if not is_kept(name.lower(), source):
                        of = f"{quoted(source.alias)}." if source.alias else ""
                        yield (f"{of}{quoted(name)}" if name else ""), name
        elif isinstance(each, exp.Column):
            owner, of_source = columns.tree.owner(each)
            is_column = of_source is not None or bool(each.table) or each.name.lower() not in aliases
            if owner is select and is_column and not is_kept(each.name.lower(), of_source):
                yield columns.text(each), columns.text(each)


_NOT_VALUES: Final = (
    exp.From, exp.Join, exp.In, exp.Exists, exp.Any, exp.All, exp.Query, exp.CTE, exp.Lateral, exp.Array,
)  # fmt: skip
"""The nodes around a query in brackets that is not one value."""


def find_many_rows(columns: Columns, node: exp.Subquery) -> Problem | None:
    """A query in the place of one value that has several: SQLite takes that of its first row."""
    query = node.unnest()
    is_listed = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
    if node.parent is None or (isinstance(node.parent, _NOT_VALUES) and not is_listed):
        return None
    if not isinstance(query, exp.Query) or query.args.get("limit"):
        return None
    if isinstance(query, exp.Select) and _is_one_row(columns, query):
        return None
    every = exp.select("*").distinct().from_(query.subquery("q"))
    second = exp.select("1").from_(every.subquery("q")).offset(1)
    return ("many rows", columns.text(node)) if columns.ask_within(second, node) else None


def _is_one_row(columns: Columns, query: exp.Select) -> bool:
    """True if a query counts without groups, or looks for the key of a table."""
    if not query.args.get("group") and any(any(calls_of(each)) for each in query.expressions):
        return True
    select, where = columns.tree.selects[id(query)], query.args.get("where")
    fixed = (
        [] if where is None else [*where.this.flatten()] if isinstance(where.this, exp.And) else [where.this]
    )
    names = {
        (side.name.lower(), columns.tree.owner(side)[1])
        for each in fixed
        if isinstance(each, exp.EQ)
        for side in (each.this, each.expression)
        if isinstance(side, exp.Column)
    }
    return all(
        source.key and all((name.lower(), source) in names for name in source.key)
        for source in select.sources.values()
    )

"""Statements that run but do not answer the question.

A comparison with NULL is never true. SQLite takes a column that is neither grouped by nor aggregated from any
row, where other databases raise an error. That is right only if the column has one value in each group, which
a second statement asks, and beside a single min() or max(): it comes from the row with that value
(https://www.sqlite.org/lang_select.html#bareagg).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from planning.agent.sql.tree import Select, TableSource, Tree, attempt, parsed, read

_RELEVANT: Final = re.compile(
    r"\b(?:null|cast|strftime|substr|substring|date|group|avg|count|sum|total|min|max|jsonb?_group\w+)\b"
    r"|group_concat|string_agg",
    re.IGNORECASE,
)
_OTHERS: Final = re.compile(r"TOTAL|JSONB?_GROUP_(?:ARRAY|OBJECT)", re.IGNORECASE)
"""Aggregates that sqlglot has no class for."""
_STRINGS: Final = (exp.TimeToStr, exp.Substring, exp.Date)
_COMPARING: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)
_ANY_ROW: Final = (
    "{0} has many values in a group, and SQLite would use any of them; add it to GROUP BY, or aggregate "
    "it, as in max({0})"
)
_ANY_ROWS: Final = (
    "* may have many values in a group, and SQLite would use any of them; name the columns, add them to "
    "GROUP BY, or aggregate them"
)
_ONE_VALUE: Final = "count({0}) IN (0, count(*)) AND min({0}) IS max({0})"
_CHECKED: Final = "CASE WHEN {} THEN {} ELSE json_extract('{{}}', 'column {}') END"
_FAILED: Final = re.compile(r"JSON path.*'column (\d+)'")


def wrong_answer(
    sql: str,
    dialect: str,
    tables: Callable[[], Sequence[Mapping[str, Any]] | None],
    error_of: Callable[[str], str],
) -> str | None:
    """Why the answer to a statement is not what was asked, and what to write; None if it may be.

    Args:
        sql: The statement, which the database has run.
        dialect: The name of its dialect, such as ``sqlite``.
        tables: Reads the tables with their columns and keys; None if they cannot be read.
        error_of: Runs another statement, and returns the database's error; empty if there is none.
    """
    root = None if _RELEVANT.search(sql) is None else attempt(lambda: parsed(sql, dialect))
    if root is None:
        return None
    message = attempt(lambda: next(_misread(root, dialect, tables), None))
    is_grouping = dialect == "sqlite" and attempt(lambda: any(map(_is_of_any_row, root.find_all(exp.Select))))
    known = tables() if is_grouping and message is None else None
    found = None if known is None else attempt(lambda: _checked(read(root, known)))
    if not found:
        return message
    checked, names = found
    failed = _FAILED.search(error_of(checked))
    name = "" if failed is None else names[int(failed[1])]
    return None if failed is None else _ANY_ROW.format(name) if name else _ANY_ROWS


def _text(node: Any, dialect: str = "sqlite") -> str:
    return str(node.sql(dialect=dialect, normalize_functions=False))


def _misread(
    root: Any, dialect: str, tables: Callable[[], Sequence[Mapping[str, Any]] | None]
) -> Iterator[str]:
    """Comparisons that are never true, and casts to types that SQLite does not have."""
    for node in root.find_all(exp.EQ, exp.NEQ):
        first, second = (isinstance(each.unnest(), exp.Null) for each in (node.this, node.expression))
        if first != second:
            value, compared = _text(node.expression if first else node.this, dialect), _text(node, dialect)
            negated = " NOT" if isinstance(node, exp.NEQ) else ""
            yield f"{compared} is never true; write {value} IS{negated} NULL for {compared}"
    for node in root.find_all(exp.Not):
        inside = node.this.unnest()
        listed = inside.expressions if isinstance(inside, exp.In) else ()
        if any(isinstance(each.unnest(), exp.Null) for each in listed):
            yield f"{_text(node, dialect)} is never true; remove NULL from the list"
    strings = attempt(lambda: _strings(root, tables)) or {} if dialect == "sqlite" else {}
    for node in root.find_all(exp.Cast, *_COMPARING) if dialect == "sqlite" else ():
        if isinstance(node, exp.Cast):
            if node.is_type("date", "datetime", "timestamp", "time"):
                value, kind = _text(node.this), str(node.to.this.name)
                function = "date" if kind == "DATE" else "time" if kind == "TIME" else "datetime"
                instead = f"write {function}({value}) for CAST({value} AS {kind})"
                yield f"SQLite has no type {kind}, and casts to a number; {instead}"
            continue
        given = [node.args.get(name) for name in ("this", "expression", "low")]
        given += node.expressions[:1] if isinstance(node, exp.In) else []
        given = [each.unnest() for each in given if each is not None]
        texts = [_text(each) for each in given if isinstance(each, _STRINGS) or id(each) in strings]
        if texts and any(isinstance(each, exp.Literal) and not each.is_string for each in given):
            instead = f"write CAST({texts[0]} AS INTEGER) for {texts[0]}"
            yield f"{texts[0]} is a string, and never equal to a number; {instead}"


def _strings(root: Any, tables: Callable[[], Sequence[Mapping[str, Any]] | None]) -> dict[int, Any]:
    """The columns, by their ids, that a query in FROM or an alias makes of functions that return strings."""
    found: dict[int, Any] = {}
    for scope in traverse_scope(root):  # the inner ones come first
        for column in scope.columns:
            names = [column.table] if column.table else [*scope.selected_sources]
            source = scope.sources.get(names[0]) if len(names) == 1 else None
            if isinstance(source, Scope) and isinstance(source.expression, exp.Select):
                outputs = [] if source.outer_columns else source.expression.expressions
                meant = {each.alias_or_name.lower(): each.unalias().unnest() for each in outputs}
                value = meant.get(column.name.lower())
                if isinstance(value, _STRINGS) or id(value) in found:
                    found[id(column)] = value
    named = [each.alias.lower() for each in root.find_all(exp.Alias)]
    for column in root.find_all(exp.Column):
        name = "" if column.table else column.name.lower()
        value = _aliases(column.find_ancestor(exp.Select)).get(name) if named.count(name) == 1 else None
        if isinstance(value, _STRINGS) and _is_new(name, tables()):  # a column of a table goes before
            found[id(column)] = value
    return found


def _is_new(name: str, tables: Sequence[Mapping[str, Any]] | None) -> bool:
    """Whether no table has a column of this name, in lower case."""
    columns = [column["name"].lower() for table in tables or () for column in table["columns"]]
    return tables is not None and name not in columns


# Columns of any row


def _is_of_any_row(node: exp.Select) -> bool:
    """Whether SQLite may take a column of a SELECT from any row, as far as its text shows."""
    calls = [call for place in (*node.expressions, *_terms(node)) for call in _calls(place)]
    peaks = [each for each in calls if isinstance(each, (exp.Min, exp.Max))]
    is_of_one_row = len({*map(_text, peaks)}) == 1 and not isinstance(peaks[0].this, exp.Distinct)
    group = node.args.get("group")
    if is_of_one_row or not (calls or group):
        return False
    inside, aliases = {*map(id, calls)}, _aliases(node)
    grouped = {_text(each) for each in (group.expressions if group else ()) if isinstance(each, exp.Column)}
    for place in (*node.expressions, *_terms(node)):
        for each in place.walk(prune=lambda each: id(each) in inside):
            is_ordered = isinstance(each.parent, exp.Ordered) and _text(each).lower() in aliases
            is_read = isinstance(each, (exp.Column, exp.Star)) and not is_ordered
            if is_read and _text(each) not in grouped:
                return True
    return False


def _terms(node: exp.Select) -> list[Any]:
    """The condition of HAVING and the terms of ORDER BY."""
    having, order = node.args.get("having"), node.args.get("order")
    return ([having.this] if having else []) + ([each.this for each in order.expressions] if order else [])


def _calls(place: Any) -> Iterator[Any]:
    """The aggregates of its own SELECT in an expression, each with its FILTER, without those of windows."""
    for node in place.walk(prune=lambda node: isinstance(node, exp.Query)):
        is_call = isinstance(node, exp.AggFunc) or (
            isinstance(node, exp.Anonymous) and _OTHERS.fullmatch(node.name) is not None
        )
        outside = node.parent.parent if isinstance(node.parent, exp.Filter) else node.parent
        if is_call and not isinstance(outside, exp.Window):
            yield node


def _checked(tree: Tree) -> tuple[str, list[str]] | None:
    """A statement that fails where a column has many values in a group, and the names of such columns.

    None if there are no such columns.
    """
    checks = _Checks(tree)
    for select in tree.selects:
        if _is_of_any_row(select.node):
            checks.put_into(select)
    return (_text(tree.root), checks.names) if checks.names else None


class _Checks:
    """Checks that are put into a statement.

    Attributes:
        names: The columns that are checked, as they were written; empty for all of a source, whose names
            are not known.
    """

    def __init__(self, tree: Tree) -> None:
        self.names: list[str] = []
        self._known: dict[int, tuple[Select | None, TableSource | None, str]] = {}
        for column, select in [*tree.all_of(exp.Column)]:
            owner, source = tree.owner(column)
            is_alias = not column.table and column.name.lower() in _aliases(select.node)
            if is_alias and (source is None or isinstance(column.parent, exp.Ordered)):
                continue
            self._known[id(column)] = owner, source, _text(column)
            if source is not None and source.alias and not column.is_star:
                column.set("table", _identifier(source.alias))
                column.set("this", _identifier(column.name))

    def put_into(self, select: Select) -> None:
        """Put a check around each term of a SELECT that reads a column of any row."""
        node = select.node
        outputs = [each.unalias() for each in node.expressions]
        group = node.args.get("group")
        meant = [self._meant(item, node) for item in (group.expressions if group else ())]
        grouped, kinds = {*map(_text, meant)}, {*map(type, meant)}
        whole = [
            source
            for source in select.sources.values()
            if source.key and {_spelled(source, name) for name in source.key} <= grouped
        ]
        terms = _terms(node)
        if not group:  # one row needs no order
            terms = terms[: 1 if node.args.get("having") else 0]
        for place in (*outputs, *terms):
            text = _text(place)
            checked = "1" if place.is_star else text
            for source, spelled, name in self._bare(place, select, grouped, kinds):
                if source not in whole:
                    condition = _ONE_VALUE.format(spelled) if spelled else "count(*) < 2"
                    checked = _CHECKED.format(condition, checked, len(self.names))
                    self.names.append(name)
            if place.is_star and checked != "1":
                place.replace(exp.Var(this=f"{text}, {checked}"))
            elif checked not in {text, "1"}:
                alias = f" AS {_identifier(place.output_name)}" if place.parent is node else ""
                place.replace(exp.Var(this=checked + alias))

    def _meant(self, item: Any, node: Any) -> Any:
        """What an item of GROUP BY means: a number or an alias is something that is selected."""
        item, outputs = item.unnest(), node.expressions
        if item.is_int and 0 < int(item.name) <= len(outputs):
            return outputs[int(item.name) - 1].unalias().unnest()
        is_alias = isinstance(item, exp.Column) and id(item) not in self._known
        return _aliases(node)[item.name.lower()].unnest() if is_alias else item

    def _bare(
        self, place: Any, select: Select, grouped: set[str], kinds: set[type[Any]]
    ) -> Iterator[tuple[TableSource | None, str, str]]:
        """The columns that an expression reads outside of aggregates and of what is grouped by.

        For each its source, its spelling, and how it was written.
        """
        if place.is_star and not isinstance(place, exp.AggFunc):
            table = place.table.lower() if isinstance(place, exp.Column) else ""
            for source in [each for key, each in select.sources.items() if table in {"", key}]:
                names = source.columns or ("",)
                is_clear = len({name.lower() for name in names}) == len(names)
                for name in names if is_clear else [""]:
                    spelled = _spelled(source, name) if name else ""
                    if spelled not in grouped:
                        yield source, spelled, name
            return
        calls = {id(each.parent if isinstance(each.parent, exp.Filter) else each) for each in _calls(place)}

        def is_whole(node: Any) -> bool:
            return id(node) in calls or (type(node) in kinds and _text(node.unnest()) in grouped)

        for node in place.walk(prune=is_whole):
            owner, of, written = self._known.get(id(node), (None, None, ""))
            if owner is select and not is_whole(node) and not node.is_star:
                yield of, _text(node), written


def _aliases(node: exp.Select) -> dict[str, Any]:
    return {each.alias.lower(): each.unalias() for each in node.expressions if each.alias}


def _identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name.lower(), quoted=True)


def _spelled(source: TableSource, name: str) -> str:
    return _text(exp.column(_identifier(name), table=_identifier(source.alias) if source.alias else None))

"""Statements that run but do not answer the question.

They are judged by what their columns hold, which the database is asked. Where the type affinity of SQLite
decides whether a comparison works, the database makes that comparison on the data. A database with types
refuses most of this by itself: there only comparisons with NULL are looked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from sqlglot import exp

from planning.agent.sql.columns import (
    ARITHMETIC,
    DATES,
    FOREIGN_TYPES,
    Columns,
    Node,
    Rows,
    TableSource,
    Values,
    kind_of,
)
from planning.agent.sql.guard import Failure
from planning.agent.sql.schema import DROPS, quoted

Problem = tuple[str, ...]
"""The name of a sentence, and the words in it."""

_EQUAL: Final = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_SAFE: Final = (exp.NullSafeEQ, exp.NullSafeNEQ)
_COMPARING: Final = (*_EQUAL, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Case)
_MIRRORED: Final = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE}
_MATCHING: Final = (exp.Like, exp.ILike, exp.Glob)
_EQUALITY: Final = (exp.EQ, exp.NullSafeEQ)
_COUNTING: Final = (*ARITHMETIC, exp.Sum, exp.Avg, exp.Abs, exp.Round)
_DATE_FUNCTION: Final = re.compile(
    r"(strftime|date|datetime|time|julianday|unixepoch|format|printf)\(", re.IGNORECASE
)
_FORMATS: Final = frozenset({"format", "printf"})
_BEGINNING: Final = re.compile(r"\d{4}(?:-\d\d)?-?")
_COMPACT: Final = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_NO_NUMBERS: Final = frozenset({"text", "time"}) | DATES
"""Strings that SQLite takes for 0, or for the number that they begin with."""
_IS_DIGITS: Final = (
    "({0} GLOB '*[0-9]*' AND {0} NOT GLOB '*[^0-9.-]*' AND {0} NOT GLOB '?*-*' AND {0} NOT GLOB '*.*.*')"
)
_IS_NUMBER: Final = f"(typeof({{0}}) IN ('integer', 'real') OR {_IS_DIGITS})"
_IS_COMPACT: Final = f"{{0}} GLOB '{'[0-9]' * 8}'"
_DAY: Final = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
_ISO: Final = {"date": _DAY, "date with a time": f"{_DAY} *", "date with T": f"{_DAY}T*"}
"""A description of the values of some kinds."""
_MOST_LISTED: Final = 5
_MOST_SORTED: Final = 10_000


def wrong_answer(columns: Columns) -> str | None:
    """Why the answer to a statement is not what was asked, and what to write; None if it may be."""
    return next(_problems(columns, _RULES), None)


def whole_divisions(columns: Columns) -> list[str]:
    """The divisions of whole numbers that drop the rest, each with what to write."""
    return [*islice(_problems(columns, (_DIVISION,)), _MOST_LISTED)]


def _problems(columns: Columns, rules: tuple[Rule, ...]) -> Iterator[str]:
    nodes = [] if columns.root is None else [*columns.root.walk()]
    for kinds, ask, dialects in rules:
        is_here = columns.dialect in dialects
        for node in [each for each in nodes if is_here and isinstance(each, kinds)]:
            try:
                found = ask(columns, node)
            except Failure:
                raise
            except Exception:  # noqa: BLE001 - sqlglot may fail in any way: the database has the last word
                found = None
            if found is not None:
                yield _SENTENCES[found[0]].format(*found[1:])


# Comparisons with NULL


def _pairs(node: Node) -> Iterator[tuple[type[Node], Node, Node]]:
    """The two sides of a comparison and its kind; several pairs for BETWEEN, IN, CASE and rows of values."""
    if isinstance(node, exp.Between):
        whole = [(exp.GTE, node.this, node.args["low"]), (exp.LTE, node.this, node.args["high"])]
    elif isinstance(node, exp.In):
        query = node.args.get("query")
        others = node.expressions if query is None else [query]
        others = [
            row for each in others for row in (each.expressions if isinstance(each, exp.Values) else [each])
        ]
        whole = [(exp.EQ, node.this, each) for each in others]
    elif isinstance(node, exp.Case):
        whole = [(exp.EQ, node.this, each.this) for each in node.args["ifs"] if node.this is not None]
    else:
        whole = [(type(node), node.this, node.expression)]
    for kind, first, second in whole:
        firsts, seconds = _row(first), _row(second)
        for pair in zip(firsts, seconds, strict=False) if len(firsts) == len(seconds) else ():
            yield kind, *pair


def _row(node: Node) -> list[Node]:
    """The values of a row of values; a row of one is a value in brackets."""
    return node.expressions if isinstance(node, exp.Tuple) else [node]


def _is_null(node: Node) -> bool:
    node = node.unnest()
    return isinstance(node, exp.Null) or (isinstance(node, (exp.Cast, exp.Neg)) and _is_null(node.this))


def _null(columns: Columns, node: Node) -> Problem | None:
    """A comparison with NULL."""
    for kind, first, second in _pairs(node):
        if _is_null(first) == _is_null(second) or kind in _SAFE:
            continue
        value, written = columns.text(second if _is_null(first) else first), columns.text(node)
        if isinstance(node, exp.In):
            is_not = isinstance(_around(node), exp.Not)
            written = columns.text(_around(node)) if is_not else written
            return "no list" if is_not else "list", written, value
        if isinstance(node, exp.Case):
            return "null", f"CASE {value} WHEN NULL", f"CASE WHEN {value} IS NULL"
        return "null", written, f"{value} IS{' NOT' * (kind is exp.NEQ)} NULL"
    return None


def _around(node: Node) -> Node:
    """The node around a node, without brackets."""
    node = node.parent
    while isinstance(node, exp.Paren):
        node = node.parent
    return node


def _null_of_query(columns: Columns, node: Node) -> Problem | None:
    """NOT IN, or <> ALL, of a query that returns NULL."""
    inside = node.expression.unnest() if isinstance(node, exp.NEQ) else node.this.unnest()
    query = inside.args.get("query")
    if isinstance(inside, exp.All) and isinstance(node, exp.NEQ):
        query = inside.this
    elif isinstance(inside, exp.In) and inside.args.get("field") is not None:
        query = exp.select("*").from_(exp.table_(inside.args["field"].name, quoted=True))
    query = None if query is None else query.unnest()
    if not isinstance(query, exp.Query):
        return None
    names = [f"c{place}" for place in range(max(1, len(query.selects)))]
    named = query if isinstance(query, exp.Select) and len(names) == 1 else None
    if named is not None and not named.selects[0].is_star:  # in its own place, it may read what is around it
        column = named.selects[0].unalias()
        empty, plain = column.copy().is_(exp.Null()), named.copy()
        if not plain.args.get("limit"):
            asked = plain.having(empty) if any(_calls(column)) else plain.where(empty)
            asked.set("order", None)
            asked.set("expressions", [exp.Literal.number(1)])
            return ("query", columns.text(node)) if columns.ask_within(asked, node) else None
    is_empty = exp.or_(*(exp.column(name).is_(exp.Null()) for name in names))
    alias = exp.TableAlias(this=exp.to_identifier("q"), columns=[exp.to_identifier(name) for name in names])
    if columns.dialect == "sqlite":  # it names columns only in WITH
        asked = exp.select("1").from_("q").where(is_empty)
        asked.set("with_", exp.With(expressions=[exp.CTE(this=query.copy(), alias=alias)]))
    else:
        asked = exp.select("1").from_(exp.Subquery(this=query.copy(), alias=alias)).where(is_empty)
    return ("query", columns.text(node)) if columns.ask_within(asked, node) else None


# What columns hold


def _find_arithmetic(columns: Columns, node: Node) -> Problem | None:
    """Arithmetic on dates, times or text."""
    if _is_guarded(node):
        return None
    sides: list[Node] = [node.this, node.args.get("expression")]
    if isinstance(node, exp.Anonymous):  # sqlglot has no class for TOTAL
        sides = node.expressions if node.name.upper() == "TOTAL" else []
    for side in [each for each in sides if each is not None]:
        kinds = columns.kinds(side)
        if (
            kinds
            and kinds <= _NO_NUMBERS
            and (isinstance(side.unnest(), exp.Literal) or not columns.is_any(side, _IS_NUMBER))
        ):
            of = "text" if kinds == {"text"} else "time" if kinds <= {"time", "text"} else "date"
            return (
                of if isinstance(node, exp.Add) or of != "text" else "no number",
                columns.text(side),
                columns.text(node),
            )
    return None


def _true(columns: Columns, node: Node) -> Problem | None:
    """Text as a condition."""
    is_choice = isinstance(node.parent, exp.Case) and node.parent.this is not None
    for side in () if is_choice else (node.this, node.args.get("expression")):
        column = None if side is None else side.unnest()
        if isinstance(column, exp.Column) and columns.kinds(column) == {"text"}:
            return None if columns.is_any(column, _IS_NUMBER) else ("condition", columns.text(column))
    return None


def _is_guarded(node: Node, *, in_coalesce: bool = False) -> bool:
    """True if a node is computed only if a condition is true, which a sample does not show."""
    while node is not None and not isinstance(node, (exp.Query, exp.Connector)):
        is_choice = isinstance(node.parent, exp.Coalesce) and (in_coalesce or node.arg_key == "expressions")
        if is_choice or node.arg_key in {"true", "default", "false"}:
            return True
        node = node.parent
    return False


def _find_comparison(columns: Columns, node: Node) -> Problem | None:
    """Text or a date compared with a number, or dates in two spellings."""
    found = [_compare(columns, *pair) for pair in islice(_pairs(node), _MOST_LISTED)]
    if isinstance(node, exp.In) and not isinstance(node.this, exp.Tuple) and not all(found):
        return None
    return next(filter(None, found), None)


def _compare(columns: Columns, kind: type[Node], first: Node, second: Node) -> Problem | None:
    if _is_null(first) or _is_null(second) or _is_plain(columns, kind, first, second):
        return None
    kinds, others = columns.kinds(first), columns.kinds(second)
    if not kinds or not others or "blob" in kinds | others:
        return None
    if others == {"number"} and "number" not in kinds:
        return _mismatch(columns, kind, first, second, kinds, is_first=True)
    if kinds == {"number"} and "number" not in others:
        return _mismatch(columns, kind, second, first, others, is_first=False)
    if kinds == others == {"digits"}:
        return _find_letters(columns, kind, first, second)
    if "number" in kinds | others or not _is_respelled(columns, kind, first, second, kinds, others):
        return None
    for side, (of, *_) in ((first, kinds), (second, others)):
        is_column = of in _ISO and not isinstance(side.unnest(), exp.Literal)
        if is_column and columns.is_any(side, f"{{0}} NOT GLOB '{_ISO[of]}'"):
            return None
    return "spelling", columns.text(first), columns.text(second)


def _is_plain(columns: Columns, kind: type[Node], first: Node, second: Node) -> bool:
    """True if two columns of one declared type are joined, or a word is looked for in a column of text."""
    if kind not in _EQUALITY:
        return False
    types, word = [columns.affinity(each) for each in (first, second)], second.unnest()
    is_word = isinstance(word, exp.Literal) and word.is_string and kind_of(word.name) == "text"
    return types[0] is not None and (types[0] == types[1] or (is_word and types[0] == "text"))


def _mismatch(
    columns: Columns, kind: type[Node], text: Node, number: Node, kinds: frozenset[str], *, is_first: bool
) -> Problem | None:
    """Text compared with a number, unless the database takes it for one."""
    is_written, words = isinstance(text.unnest(), exp.Literal), (columns.text(text), columns.text(number))
    if "digits" not in kinds:
        if not is_written:
            is_wrong = not columns.is_any(text, _IS_NUMBER)
        else:  # a word that a column of numbers does not have is right in <>
            is_wrong = bool(kinds & DATES) or kind in _EQUALITY
            is_wrong = is_wrong and not columns.is_any(number, "typeof({0}) = 'text'")
        return ("date and number" if kinds & DATES else "never", *words) if is_wrong else None
    values = Values(columns)
    held, other = values.write(text), values.write(number)
    as_number, is_digits = f"CAST({held} AS NUMERIC)", _IS_DIGITS.format(held)
    is_taken = values.rows("1", f"{is_digits} AND {held} = ({as_number} + 0)")
    if not is_taken and not values.rows("1", f"{other} = (CAST({other} AS TEXT) || '')"):
        return "written" if is_written else "string", *words
    here, meant = (
        _write(columns, kind, *((side, other) if is_first else (other, side))) for side in (held, as_number)
    )
    return ("letters", *words) if values.rows("1", f"{is_digits} AND ({here}) <> ({meant})") else None


def _write(columns: Columns, kind: type[Node], first: str, second: str) -> str:
    return columns.text(kind(this=exp.Var(this=first), expression=exp.Var(this=second)))


def _find_letters(columns: Columns, kind: type[Node], first: Node, second: Node) -> Problem | None:
    """Two numbers as text, as the month '03' and '3', that are equal or in order only as numbers."""
    if isinstance(first.unnest(), exp.Literal):
        if isinstance(second.unnest(), exp.Literal):
            return None
        first, second, kind = second, first, _MIRRORED.get(kind, kind)
    if not issubclass(kind, _EQUAL) and isinstance(first.unnest(), exp.Column) and _has_codes(columns, first):
        return None
    values = Values(columns, is_whole=True)
    sides = [values.write(side) for side in (first, second)]
    are_digits = " AND ".join(map(_IS_DIGITS.format, sides))
    here = _write(columns, kind, *sides)
    meant = _write(columns, kind, *(f"CAST({side} AS NUMERIC)" for side in sides))
    if not values.rows("1", f"{are_digits} AND ({here}) <> ({meant})"):
        return None
    is_found = kind in _EQUALITY and values.rows("1", f"{are_digits} AND {here}")
    return None if is_found else ("letters", columns.text(first), columns.text(second))


def _has_codes(columns: Columns, node: Node) -> bool:
    """True if digits are codes and not numbers: some values begin with a 0."""
    return columns.is_any(node, "{0} GLOB '0[0-9]*'")


def _find_order(columns: Columns, node: Node) -> Problem | None:
    """The first or last of numbers as text, where '10' comes before '9'; or a string that sorts nothing."""
    value, is_sort = node.this, isinstance(node, exp.Ordered)
    written = f"ORDER BY {columns.text(node)}" if is_sort else columns.text(node)
    if is_sort and value.is_string:
        return "fixed", written, value.name
    select = node.find_ancestor(exp.Query)
    is_whole = is_sort and (isinstance(_around(node.parent), exp.Window) or not select.args.get("limit"))
    if is_whole or node.expressions or columns.kinds(value) != {"digits"} or _has_codes(columns, value):
        return None
    values = Values(columns, is_whole=True)
    held = values.write(value)
    (is_mixed,) = values.rows(f"DISTINCT {held}", _IS_DIGITS.format(held), _MOST_SORTED, _is_out_of_order)[0]
    return ("order", columns.text(value), written) if is_mixed else None


def _is_out_of_order(rows: Rows) -> Rows:
    """True if some strings are in a different order than their numbers."""
    numbers = [float(text) for text in sorted(str(row[0]) for row in rows)]
    return [[numbers != sorted(numbers)]]


def _is_respelled(
    columns: Columns,
    kind: type[Node],
    first: Node,
    second: Node,
    kinds: frozenset[str],
    others: frozenset[str],
) -> bool:
    """True if all dates of one side are written in another way than those of the other."""
    if isinstance(first.unnest(), exp.Literal):
        first, second, kinds, others = second, first, others, kinds
    is_equality, literal = issubclass(kind, _EQUAL), second.unnest()
    text = literal.name if isinstance(literal, exp.Literal) else None
    if isinstance(first.unnest(), exp.Literal) or len(kinds) != 1 or len(others) != 1:
        return False
    if kinds <= DATES and others <= DATES:
        both = kinds | others
        if kinds == others:
            return False
        return is_equality or "other date" in both or both == {"date with a time", "date with T"}
    if kinds == {"digits"} and others <= DATES:
        return not columns.is_any(first, f"NOT {_IS_COMPACT}")
    if not kinds <= DATES:
        return False
    if text is None:
        return others == {"digits"} and (is_equality or not columns.is_any(second, "length({0}) < 5"))
    if others == {"digits"} or _BEGINNING.fullmatch(text):
        return is_equality or _COMPACT.fullmatch(text) is not None or "other date" in kinds
    return not is_equality or re.search(r"\d", text) is not None


def _cast(columns: Columns, node: Node) -> Problem | None:
    """A CAST to a type of dates, which SQLite does not have."""
    if not node.is_type(*FOREIGN_TYPES) or columns.kinds(node.this) == {"number"}:
        return None
    kind = str(node.to.this.name)
    function = {"DATE": "date", "TIME": "time"}.get(kind, "datetime")
    return "cast", columns.text(node.this), kind, function


def _find_lost(columns: Columns, node: Node) -> Problem | None:
    """A date function that is NULL, or its own format, for all values that it is given."""
    written = columns.text(node)
    name, is_fixed = _DATE_FUNCTION.match(written), node.find(exp.Query, exp.Null) is not None
    if name is None or is_fixed or _is_guarded(node, in_coalesce=True):
        return None
    values = Values(columns, is_whole=True)
    result = values.write(node)
    arguments = node.expressions if isinstance(node, exp.Anonymous) else [*node.iter_expressions()]
    form = node.args.get("format") or (node.this if isinstance(node.this, exp.Expression) else arguments[0])
    is_format = name[1].lower() in _FORMATS
    if is_format and (len(arguments) < 2 or isinstance(form, exp.Literal)):
        return None
    wrong = f"{result} IS NULL"
    if is_format or (name[1].lower() == "strftime" and len(arguments) > 1 and isinstance(form, exp.Literal)):
        wrong = f"({wrong} OR {result} = {values.write(form)})"
    given = values.given()
    is_lost = values.rows("1", given) and not values.rows("1", f"{given} AND NOT {wrong}")
    return ("format" if is_format else "lost", written) if is_lost else None


def _find_division(columns: Columns, node: Node) -> Problem | None:
    """A division of whole numbers that loses the rest."""
    first, second = columns.text(node.this), columns.text(node.expression)
    around = _around(node)
    is_meant = isinstance(around, exp.Mul) and columns.text(around.expression) == second
    if is_meant or (isinstance(around, exp.Cast) and around.is_type("int", "bigint", "smallint")):
        return None
    values = Values(columns)
    of, by = values.write(node.this), values.write(node.expression)
    kind, kinds = ("pg_typeof({})::text", "'integer', 'bigint', 'smallint'")
    if columns.dialect == "sqlite":
        kind, kinds = "typeof({})", "'integer'"
    asked = " AND ".join(f"{kind.format(each)} IN ({kinds})" for each in (of, by))
    is_sum = node.find(exp.AggFunc) is not None
    is_rest = bool(values.rows("1", asked if is_sum else f"{asked} AND {of} % nullif({by}, 0) <> 0"))
    return ("division", columns.text(node), first, second) if is_rest else None


# Columns of any row

_ONE_VALUE: Final = "count({0}) IN (0, count(*)) AND min({0}) IS max({0})"
_OTHERS: Final = re.compile(r"TOTAL|JSONB?_GROUP_(?:ARRAY|OBJECT)", re.IGNORECASE)
"""Aggregates that sqlglot has no class for."""


def _any_row(columns: Columns, node: exp.Select) -> Problem | None:
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
    calls = [call for place in (*node.expressions, *terms) for call in _calls(place)]
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


def _calls(place: Node) -> Iterator[Node]:
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


# The rules

_SENTENCES: Final = {
    "null": "{0} is never true; write {1} for {0}",
    "no list": "{0} is never true; remove NULL from the list",
    "list": "{0} is never true for NULL; remove NULL from the list, or add OR {1} IS NULL",
    "query": "{0} is never true, as the query in it returns NULL; add IS NOT NULL to its WHERE",
    "date": (
        "{0} is a date as text, and {1} takes only its year; write julianday({0}) to count days, or "
        "date({0}, '-30 days')"
    ),
    "time": "{0} is a time as text, and {1} takes only its hour; write julianday({0}) * 24 for hours",
    "text": "{0} is text, which counts as 0 in {1}; write || to join text",
    "no number": "{0} is text, which counts as 0 in {1}; use a column of numbers",
    "condition": "{0} is text, which is never true; compare it, as in {0} = 'yes'",
    "date and number": (
        "{0} is a date as text, and {1} is a number; write dates in quotes, as '2024-01-31', or "
        "CAST(strftime('%s', {0}) AS INTEGER) for seconds"
    ),
    "never": "{0} is text and {1} is a number: they are never equal; compare values of one kind",
    "string": "{0} is a string, and never equal to a number; write CAST({0} AS INTEGER) for {0}",
    "written": "{0} is a string and {1} is a number: they are never equal; write it without quotes",
    "letters": (
        "{0} is text, and compared with the number {1} letter by letter; write CAST({0} AS NUMERIC) for {0}"
    ),
    "order": "{0} is text, and in {1} '10' comes before '9'; write CAST({0} AS NUMERIC) for {0}",
    "fixed": "{0} sorts by a string, which is one for all rows; write {1} without quotes for a column",
    "spelling": (
        "{0} and {1} are dates in two spellings, compared letter by letter; write both in one, as with "
        "date({0})"
    ),
    "lost": (
        "{0} is not a date for any value: SQLite has no such format or modifier, or needs its arguments in "
        "a different order; write strftime('%Y-%m', x), or date(x, '-30 days')"
    ),
    "format": "{0} is its first argument, unchanged; write strftime('%Y-%m', x) for parts of a date",
    "cast": "SQLite has no type {1}, and casts to a number; write {2}({0}) for CAST({0} AS {1})",
    "any row": (
        "{0} has many values in a group, and SQLite would use any of them; add it to GROUP BY, or aggregate "
        "it, as in max({0})"
    ),
    "any rows": (
        "* may have many values in a group, and SQLite would use any of them; name the columns, add them to "
        "GROUP BY, or aggregate them"
    ),
    "division": f"{{0}} {DROPS}; write {{1}} * 1.0 / {{2}} if it should not",
}
"""The error, and what to do."""

Rule = tuple[tuple[type[Node], ...], Callable[[Columns, Any], Problem | None], tuple[str, ...]]
"""The nodes that may be wrong, what asks the database about one of them, and in which dialects."""

_SQLITE: Final = ("sqlite",)
_EVERYWHERE: Final = ("sqlite", "duckdb", "postgres")
_RULES: Final[tuple[Rule, ...]] = (
    ((*_COMPARING, *_MATCHING), _null, _EVERYWHERE),
    ((exp.Not, exp.NEQ), _null_of_query, _EVERYWHERE),
    ((*_COUNTING, exp.Anonymous), _find_arithmetic, _SQLITE),
    ((exp.Where, exp.Having, exp.And, exp.Or, exp.Not, exp.If), _true, _SQLITE),
    (_COMPARING, _find_comparison, _SQLITE),
    ((exp.Max, exp.Min, exp.Ordered), _find_order, _SQLITE),
    ((exp.TimeToStr, exp.Anonymous, exp.Date, exp.Format), _find_lost, _SQLITE),
    ((exp.Cast,), _cast, _SQLITE),
    ((exp.Select,), _any_row, _SQLITE),
)
_DIVISION: Final[Rule] = ((exp.Div,), _find_division, ("sqlite", "postgres"))

"""Statements that run but do not answer the question.

They are judged by what their columns hold, which the database is asked. Where the type affinity of SQLite
decides whether a comparison works, the database makes that comparison on the data. A database with types
refuses most of this by itself: the rules say what is looked for there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from sqlglot import exp

from planning.agent.sql.any_row import calls_of, find_any_row, find_many_rows
from planning.agent.sql.columns import (
    ARITHMETIC,
    DATES,
    FOREIGN_TYPES,
    SAMPLE,
    Columns,
    Node,
    Problem,
    Rows,
    Values,
    kind_of,
)
from planning.agent.sql.guard import Failure
from planning.agent.sql.schema import DROPS

_EQUAL: Final = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_SAFE: Final = (exp.NullSafeEQ, exp.NullSafeNEQ)
_COMPARING: Final = (*_EQUAL, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Case)
_MIRRORED: Final = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE}
_ORDER: Final = (exp.GT, exp.GTE, exp.LT, exp.LTE)
_PARTS: Final = (exp.TimeToStr, exp.Monthname, exp.Dayname)
_CASES: Final = {exp.Upper: "[a-z]", exp.Lower: "[A-Z]"}
"""The letters that a function never returns."""
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
            asked = plain.having(empty) if any(calls_of(column)) else plain.where(empty)
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


def _find_alone(columns: Columns, node: Node) -> Problem | None:
    """A number or a string as a condition, as in ``x = 1 OR 2``."""
    for side in (node.this, node.expression):
        value = side.unnest()
        if isinstance(value, exp.Literal) and (value.is_string or value.name not in {"0", "1"}):
            return "alone", columns.text(value), columns.text(node)
    return None


def _find_chain(columns: Columns, node: Node) -> Problem | None:
    """A comparison of the result of a comparison, as in ``1 < x < 3``."""
    return ("chain", columns.text(node), columns.text(node.this)) if isinstance(node.this, _ORDER) else None


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
    return _first(columns, node, _compare)


def _find_forms(columns: Columns, node: Node) -> Problem | None:
    """A string in a form that the result of a function never has, as 'March' or '3' for a month."""
    return _first(columns, node, _find_form)


def _first(columns: Columns, node: Node, compare: Callable[..., Problem | None]) -> Problem | None:
    found = [compare(columns, *pair) for pair in islice(_pairs(node), _MOST_LISTED)]
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


def _find_form(columns: Columns, kind: type[Node], first: Node, second: Node) -> Problem | None:
    is_second = isinstance(second.unnest(), exp.Literal)
    value, literal = (first, second.unnest()) if is_second else (second, first.unnest())
    if not isinstance(literal, exp.Literal) or not literal.is_string:
        return None
    bare, given, is_equality = value.unnest(), literal.name, issubclass(kind, _EQUAL)
    for function, pattern in _CASES.items():
        if is_equality and isinstance(bare, function) and re.search(pattern, given):
            return "case", columns.text(value), columns.text(literal)
    is_time = columns.dialect == "sqlite" and ":" in given and columns.kinds(value) == {"time"}
    if not (isinstance(bare, _PARTS) or is_time):
        return None
    values = Values(columns)
    held = values.write(value)
    found = [str(row[0]) for row in values.rows(f"DISTINCT {held}", f"{held} <> ''", SAMPLE)]
    if not found or (is_equality and given in found):
        return None
    near = [text for text in found if text.strip().casefold() == given.strip().casefold()]
    widths, written = ([*map(len, re.findall(r"\d+", text))] for text in (found[0], given))
    is_same = _form(given) == _form(found[0]) if is_equality else written == widths[: len(written)] != []
    is_known = len({*map(_form, found)}) == 1 and not is_same
    if not (is_known or (is_equality and near)):
        return None
    return "form", columns.text(value), (near or found)[0], columns.text(literal)


def _form(text: str) -> str:
    """A string with 9 for each digit, and one a for letters."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d", "9", text))


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
    (is_mixed,) = values.rows(f"DISTINCT {held}", _IS_DIGITS.format(held), SAMPLE, _is_out_of_order)[0]
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
    "alone": (
        "{0} is a condition of its own in {1}, and the same for all rows; compare a column with it, as in "
        "x IN (1, 2)"
    ),
    "chain": "{0} compares the result of {1}, which is true or false; write two comparisons with AND",
    "case": "{0} is never equal to {1}; write it with the letters that {0} returns",
    "form": "{0} is a string such as '{1}', and compared with {2} letter by letter; write {2} in that form",
    "many rows": (
        "{0} has several values, and SQLite would use any of them; write IN for =, or add ORDER BY and "
        "LIMIT 1"
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
    (_COMPARING, _find_forms, _EVERYWHERE),
    (_COMPARING, _find_comparison, _SQLITE),
    ((exp.Max, exp.Min, exp.Ordered), _find_order, _SQLITE),
    ((exp.And, exp.Or), _find_alone, _EVERYWHERE),
    (_ORDER, _find_chain, _EVERYWHERE),
    ((exp.Subquery,), find_many_rows, _SQLITE),
    ((exp.TimeToStr, exp.Anonymous, exp.Date, exp.Format), _find_lost, _SQLITE),
    ((exp.Cast,), _cast, _SQLITE),
    ((exp.Select,), find_any_row, _SQLITE),
)
_DIVISION: Final[Rule] = ((exp.Div,), _find_division, ("sqlite", "postgres"))

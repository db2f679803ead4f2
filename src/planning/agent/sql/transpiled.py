"""Statements in the SQL of another database, translated for this one."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.mysql import MySQL
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.sqlite import SQLite
from sqlglot.dialects.tsql import TSQL

from planning.agent.sql.guard import StatementRefused, check
from planning.agent.sql.tree import attempt, parsed
from planning.errors import printable

_LONGEST: Final = 3_000
_LONGEST_HINT: Final = 2_000
_NOW: Final = {"NOW": exp.CurrentTimestamp, "GETDATE": exp.CurrentTimestamp, "CURDATE": exp.CurrentDate}
_COMPARING: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
_SHIFTS: Final = (exp.DateAdd, exp.DateSub)
_TRUNCATED: Final = (exp.DateTrunc, exp.TimestampTrunc)
_CODES: Final = {"YEAR": "%Y", "MONTH": "%m", "DAY": "%d", "HOUR": "%H", "MINUTE": "%M", "SECOND": "%S"}
_STARTS: Final = {
    "YEAR": "DATE({}, 'start of year')",
    "MONTH": "DATE({}, 'start of month')",
    "WEEK": "DATE({}, '-6 days', 'weekday 1')",
    "DAY": "DATE({})",
    "HOUR": "STRFTIME('%Y-%m-%d %H:00:00', {})",
}
_DAYS: Final = {"DAY": (1, "days"), "WEEK": (7, "days")}
_MONTHS: Final = {"MONTH": (1, "months"), "YEAR": (12, "months")}
_TIMES: Final = {"HOUR": (1, "hours"), "MINUTE": (1, "minutes"), "SECOND": (1, "seconds")}
_FORMAT: Final = re.compile(r"(?:%[dfHjmMsSwWY%]|[^%A-Za-z])*")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")


def transpiled(sql: str, dialect: str, probe: Callable[[str], str]) -> str | None:
    """A statement of another database in the SQL of this one; None if this one would not take it.

    Args:
        sql: The statement.
        dialect: The database that is asked.
        probe: The error of the database for EXPLAIN of a statement; empty if it takes that.
    """
    target = _TARGETS.get(dialect)
    for reader in _READERS if target is not None and len(sql) <= _LONGEST else ():
        written = attempt(partial(_written, sql, reader, target)) or sql
        is_short = written != sql and printable(written) == written and len(written) <= _LONGEST_HINT
        if is_short and _only_reads(written, dialect) and not probe(written):
            return written
    return None


def _only_reads(sql: str, dialect: str) -> bool:
    try:
        check(sql, dialect)
    except StatementRefused:
        return False
    return True


def _written(sql: str, reader: Any, target: Any) -> str:
    tree = parsed(sql, reader)
    for node in reversed([*tree.walk()]):  # the inner ones first
        _settle(node, rounds="::" in sql)
        if target is _SQLite:
            _settle_dates(node)
    return str(tree.sql(dialect=target, unsupported_level=ErrorLevel.RAISE, comments=False))


def _settle(node: Any, *, rounds: bool) -> None:
    """Write what a node means where it comes from, and would not mean here."""
    if isinstance(node, exp.Anonymous) and not node.expressions and node.name.upper() in _NOW:
        node.replace(_NOW[node.name.upper()]())
    elif isinstance(node, exp.Add) and any(map(_is_text, (node.this, node.expression))):
        node.replace(exp.DPipe(this=node.this, expression=node.expression))
    elif isinstance(node, exp.DateDiff):
        if any(each.is_string and not _DATE.match(each.name) for each in node.find_all(exp.Literal)):
            raise ValueError("a unit was read as a date")
    elif isinstance(node, exp.Cast) and rounds and node.to.is_type(*exp.DataType.INTEGER_TYPES):
        node.set("this", exp.Round(this=node.this))


def _settle_dates(node: Any) -> None:
    """Move dates by functions, and compare them as times: in SQLite they are strings, with a time or not."""
    count = node.args.get("expression")
    if isinstance(node, (exp.Add, exp.Sub, *_SHIFTS)) and isinstance(count, exp.Interval):
        kind = exp.DateAdd if isinstance(node, (exp.Add, exp.DateAdd)) else exp.DateSub
        node.replace(kind(this=node.this, expression=count.this, unit=count.unit))
    elif isinstance(node, _COMPARING):
        sides = [name for name in ("this", "expression", "low", "high") if node.args.get(name) is not None]
        kinds = {_kind(node.args[name]) for name in sides}
        if not kinds.isdisjoint({"date", "time"}) and not kinds <= {"date", "day"}:
            for name in sides:
                node.set(name, exp.Anonymous(this="DATETIME", expressions=[node.args[name]]))


def _is_text(node: Any) -> bool:
    is_written = isinstance(node, exp.Literal) and node.is_string and not re.fullmatch(r"[-\d.]+", node.name)
    return is_written or isinstance(node, exp.DPipe)


def _kind(node: Any) -> str | None:
    """``date`` or ``time`` for what gives one, ``day`` for a string that is one."""
    if isinstance(node, (*_SHIFTS, *_TRUNCATED)):
        is_time = _unit(node) in _TIMES or (isinstance(node, _SHIFTS) and _kind(node.this) in {"time", None})
        return "time" if is_time else "date"
    is_cast = isinstance(node, exp.Cast)
    if isinstance(node, (exp.CurrentDate, exp.TsOrDsToDate)) or (is_cast and node.is_type("date")):
        return "date"
    is_time = is_cast and node.is_type("datetime", "timestamp", "timestamptz")
    if is_time or isinstance(node, exp.CurrentTimestamp):
        return "time"
    return "day" if isinstance(node, exp.Literal) and _DATE.fullmatch(node.name) else None


def _unit(node: Any) -> str:
    unit = node.args.get("unit")
    return "DAY" if unit is None else unit.name.upper().removesuffix("S")


class _Generator(SQLite.Generator):  # type: ignore[valid-type, misc]  # its module is another in each version
    """SQLite, with the expressions that its generator lacks and models write most."""

    TRANSFORMS: ClassVar[dict[Any, Any]] = {
        **SQLite.Generator.TRANSFORMS,
        **dict.fromkeys(
            (exp.Year, exp.Month, exp.Day, exp.Hour, exp.Minute),
            lambda self, node: self.part(type(node).__name__, node.this),
        ),
        **dict.fromkeys(_TRUNCATED, lambda self, node: _STARTS[_unit(node)].format(self.sql(node.this))),
        **dict.fromkeys(_SHIFTS, lambda self, node: self.shifted(node)),
        exp.Extract: lambda self, node: self.part(node.this.name, node.expression),
        exp.Left: lambda self, node: self.func("SUBSTR", node.this, exp.Literal.number(1), node.expression),
        exp.Right: lambda self, node: f"SUBSTR({self.sql(node.this)}, -({self.sql(node.expression)}))",
        exp.TimeToStr: lambda self, node: self.formatted(node),
        exp.ToChar: lambda self, node: self.formatted(node),
        exp.DateDiff: lambda self, node: self.between(node),
    }

    def part(self, unit: str, value: Any) -> str:
        """A part of a date as a number."""
        written = self.sql(value.this if isinstance(value, exp.TsOrDsToDate) else value)
        return f"CAST(STRFTIME('{_CODES[unit.upper()]}', {written}) AS INTEGER)"

    def formatted(self, node: Any) -> str:
        """A date as a string, without names of months and days."""
        template = node.args["format"]
        if isinstance(node, exp.ToChar) or not _FORMAT.fullmatch(template.name):
            self.unsupported("STRFTIME has no such format")
        return str(self.func("STRFTIME", template, node.this))

    def shifted(self, node: Any) -> str:
        """A date some time later or earlier; by months, at most the last day of a month."""
        if node.this.find(*_SHIFTS):
            raise ValueError("a date that is moved twice, each time written several times, has no bounds")
        times, unit = (_DAYS | _MONTHS | _TIMES)[_unit(node)]
        number, value = int(node.expression.to_py()), self.sql(node.this)
        number *= times if isinstance(node, exp.DateAdd) else -times
        function = "DATE" if _kind(node) == "date" else "DATETIME"
        moved = f"{function}({value}, '{number:+d} {unit}')"
        if unit != "months":
            return moved
        last = f"DATE({value}, 'start of month', '{number + 1:+d} months', '-1 day')"
        last += "" if function == "DATE" else f" || ' ' || TIME({value})"
        return f"MIN({moved}, {last})"

    def between(self, node: Any) -> str:
        """The days, or the borders of months or years, between two dates."""
        later, earlier = node.this, node.expression
        if _unit(node) == "DAY":
            days = (f"JULIANDAY(DATE({self.sql(each)}))" for each in (later, earlier))
            return f"CAST({' - '.join(days)} AS INTEGER)"
        years = f"({self.part('YEAR', later)} - {self.part('YEAR', earlier)})"
        months = f"({years} * 12 + {self.part('MONTH', later)} - {self.part('MONTH', earlier)})"
        return {"YEAR": years, "MONTH": months}[_unit(node)]


class _SQLite(SQLite):
    Generator = _Generator


class _DuckDB(DuckDB):
    NULL_ORDERING = "nulls_are_small"


class _Postgres(Postgres):
    NULL_ORDERING = "nulls_are_small"


class _MySQL(MySQL):
    """MySQL with strings and names as all others write them."""

    DPIPE_IS_STRING_CONCAT = True

    class Tokenizer(MySQL.Tokenizer):
        QUOTES: ClassVar = ["'"]
        IDENTIFIERS: ClassVar = ["`", '"']
        STRING_ESCAPES: ClassVar = ["'"]


_TARGETS: Final = {"sqlite": _SQLite, "duckdb": _DuckDB}
_READERS: Final = (_Postgres, TSQL, _MySQL, SQLite)

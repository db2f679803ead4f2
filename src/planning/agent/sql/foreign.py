"""Expressions of other databases, written for SQLite or DuckDB with all their arguments.

A hint that is applied to the letter gives a statement that means the same. If no expression means the same,
the message only says what the database lacks.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from operator import itemgetter
from typing import Final

import attrs

from planning.agent.sql.dates import shifted
from planning.agent.sql.dialects import title_of
from planning.agent.sql.foreign_calls import Call, call_written, interval, now_written
from planning.agent.sql.structure import (
    COMPARING,
    Group,
    Item,
    Word,
    groups,
    is_word,
    operand_before,
    split,
    structure,
)

__all__ = ["Foreign", "foreign"]

_SHOWN: Final = {
    "CURRENT_DATE": "CURRENT_DATE()",
    "CURRENT_TIMESTAMP": "CURRENT_TIMESTAMP()",
    "DATE": "DATE literal",
    "GROUP_CONCAT": "SEPARATOR",
    "SUBSTRING": "SUBSTRING ... FROM",
    "TIMESTAMP": "TIMESTAMP literal",
    "WITHIN": "WITHIN GROUP",
}
_LITERALS: Final = ("DATE", "TIMESTAMP")
_LACKING: Final = {  # SQLite has no expression for these
    "DATEADD": "dates are moved by date(..., '+1 day')",
    "DATEDIFF": "julianday(...) - julianday(...) gives days",
    "DATE_ADD": "dates are moved by date(..., '+1 day')",
    "DATE_FORMAT": "strftime has no names of months or days; name them with CASE",
    "DATE_SUB": "dates are moved by date(..., '-1 day')",
    "TO_CHAR": "strftime has no names of months or days; name them with CASE",
    "CONCAT_WS": "join the strings with ||",
    "CONVERT": "use CAST(... AS TEXT), INTEGER or REAL, or strftime for dates",
    "DAYNAME": "strftime('%w', ...) numbers the days from 0 for Sunday; name them with CASE",
    "DAYOFWEEK": "strftime('%w', ...) numbers the days from 0 for Sunday",
    "DECODE": "use CASE",
    "INITCAP": "it has upper and lower only",
    "LISTAGG": "use group_concat over a subquery that is in order",
    "LPAD": "printf pads a number, as in printf('%05d', ...)",
    "MEDIAN": "order the values, and take the one in the middle with LIMIT 1 OFFSET",
    "MONTHNAME": "strftime('%m', ...) numbers the months from 01; name them with CASE",
    "REGEXP": "use LIKE with % and _, or GLOB with *, ? and [...]",
    "REGEXP_LIKE": "use LIKE with % and _, or GLOB with *, ? and [...]",
    "SPLIT_PART": "use substr and instr",
    "STDDEV": "compute it from sum, avg and count",
    "SUBSTRING_INDEX": "use substr and instr",
    "VARIANCE": "compute it from sum, avg and count",
    "WEEK": "strftime('%W', ...) numbers weeks that begin on Monday",
    "WEEKDAY": "strftime('%w', ...) numbers the days from 0 for Sunday",
}
_CASTS: Final = {
    "INT": "CAST(round({0}) AS INTEGER)", "INTEGER": "CAST(round({0}) AS INTEGER)",
    "BIGINT": "CAST(round({0}) AS INTEGER)", "TEXT": "CAST({0} AS TEXT)", "VARCHAR": "CAST({0} AS TEXT)",
    "FLOAT": "CAST({0} AS REAL)", "DOUBLE": "CAST({0} AS REAL)", "REAL": "CAST({0} AS REAL)",
    "NUMERIC": "CAST({0} AS REAL)", "DECIMAL": "CAST({0} AS REAL)",
    "DATE": "date({0})", "TIMESTAMP": "datetime({0})",
}  # fmt: skip
_DISTINCT_ON: Final = (
    "number the rows with row_number() OVER (PARTITION BY {} ORDER BY ...) AS n in a subquery, and take "
    "those WHERE n = 1"
)
_LONGEST: Final = 400
_LONGEST_READ: Final = 20_000  # characters of a statement that is searched


@attrs.frozen
class Foreign:
    """An expression of another database.

    Attributes:
        name: The function or word.
        start: Where it begins.
        end: Where it ends.
        remedy: What to write instead.
        message: What is wrong, and the remedy.
    """

    name: str
    start: int
    end: int
    remedy: str
    message: str


def foreign(sql: str, dialect: str, names: Container[str]) -> Iterator[Foreign]:
    """The expressions of other databases in a statement, in its order.

    Args:
        sql: The statement.
        dialect: ``sqlite`` or ``duckdb``.
        names: The functions and words to look for, in capitals.
    """
    top = structure(sql, dialect) if len(sql) <= _LONGEST_READ else None
    if top is not None:
        yield from _Reader(sql, dialect).all(top, names)


class _Reader:
    """Rewrites the expressions of one statement."""

    def __init__(self, sql: str, dialect: str) -> None:
        self._sql = sql
        self._dialect = dialect
        self._texts: dict[tuple[int, int], str] = {}  # by place, so that a nested one is written once

    def all(self, top: Group, names: Container[str]) -> Iterator[Foreign]:
        """All expressions with these names, at any depth."""
        places = [
            (item.start, group.items, place)
            for group, _, _ in groups(top)
            for place, item in enumerate(group.items)
            if self._name(group.items, place) in names
        ]
        for _, items, place in sorted(places, key=itemgetter(0)):
            found = self._at(items, place)
            if found is not None:
                yield found

    def _at(self, items: Sequence[Item], place: int) -> Foreign | None:
        name = self._name(items, place)
        found = self._rewritten(items, place)
        if found is not None:
            start, end, new = found
            old = self._sql[items[start].start : items[end - 1].end]
            return self._foreign(name, items[start], items[end - 1], f"write {new} for {old}")
        remedy = self._phrase(items, place)
        return self._foreign(name, items[place], items[place], remedy) if remedy else None

    def _foreign(self, name: str, first: Item, last: Item, remedy: str) -> Foreign:
        message = f"{title_of(self._dialect)} has no {_SHOWN.get(name, name)}: {remedy}"
        return Foreign(name, first.start, last.end, remedy, message)

    @staticmethod
    def _name(items: Sequence[Item], place: int) -> str:
        item = items[place]
        is_distinct = is_word(item, "ON") and place > 0 and is_word(items[place - 1], "DISTINCT")
        return "DISTINCT ON" if is_distinct else item.text if item.kind in {"word", "sign"} else ""

    # Expressions

    def text(self, items: Sequence[Item]) -> str:
        """The items as text, with all foreign expressions in them rewritten."""
        key = (items[0].start, items[-1].end) if items else (0, 0)
        if key not in self._texts:
            self._texts[key] = self._text(items)
        return self._texts[key]

    def _text(self, items: Sequence[Item]) -> str:
        out: list[tuple[int, int, str]] = []
        place = 0
        while place < len(items):
            found = self._rewritten(items, place)
            item = items[place]
            if found is not None:
                start, place, new = found
                while out and out[-1][0] >= items[start].start:
                    out.pop()
                out.append((items[start].start, items[place - 1].end, new))
                continue
            if isinstance(item, Group) and not item.is_query and item.items:
                first, last = item.items[0].start, item.items[-1].end
                new = self._sql[item.start : first] + self.text(item.items) + self._sql[last : item.end]
                out.append((item.start, item.end, new))
            else:
                out.append((item.start, item.end, self._sql[item.start : item.end]))
            place += 1
        pieces, before = [], out[0][0] if out else 0
        for start, end, new in out:
            pieces += [self._sql[before:start], new]
            before = end
        return "".join(pieces)

    def _rewritten(self, items: Sequence[Item], place: int) -> tuple[int, int, str] | None:
        """The beginning and end of the foreign expression at a place, and what to write for it.

        A long one is left as it is: a template may repeat its argument, and arguments may be nested.
        """
        item = items[place]
        after = items[place + 1] if place + 1 < len(items) else None
        if isinstance(after, Group) and is_word(item, item.text) and not after.is_query:
            new = self._call(item.text, after, items, place)
            is_short = new is not None and after.end - item.start + len(new) <= _LONGEST
            return (place, place + 2, new) if new is not None and is_short else None
        if self._dialect != "sqlite" or after is None:
            return None
        if item.text == "::" and item.kind == "sign" and place:
            begin = operand_before(items, place)
            template = _CASTS.get(after.text) if isinstance(after, Word) else None
            end = place + 2 + (place + 2 < len(items) and isinstance(items[place + 2], Group))
            return None if template is None else (begin, end, template.format(self.text(items[begin:place])))
        if is_word(item, *_LITERALS) and after.kind == "text":
            return self._date(items, place)
        if is_word(item, "INTERVAL") and place > 1 and items[place - 1].text in {"+", "-"}:
            return self._shifted(items, place)
        return None

    def _call(self, name: str, call: Group, items: Sequence[Item], place: int) -> str | None:
        """What to write for a call; None if it is fine, or nothing means the same."""
        given = split(call.items, ",") if call.items else []
        return call_written(Call(self._dialect, name, given, items[place + 2 : place + 4], self.text))

    def _date(self, items: Sequence[Item], place: int) -> tuple[int, int, str]:
        """A date literal as a string. The value that it is compared with may have a time or not."""
        literal = self._sql[items[place + 1].start : items[place + 1].end]
        if place > 1 and is_word(items[place - 1], "BETWEEN"):
            begin = operand_before(items, place - 1)
            end = place + 3 + any(is_word(item, *_LITERALS) for item in items[place + 3 : place + 4])
            bounds = [literal, *(self._sql[item.start : item.end] for item in items[end : end + 1])]
            if len(bounds) == 2 and items[end].kind == "text":
                left = self.text(items[begin : place - 1])
                both = " AND ".join(f"datetime({bound})" for bound in bounds)
                return begin, end + 1, f"datetime({left}) BETWEEN {both}"
        if place > 1 and items[place - 1].text in COMPARING:
            begin = operand_before(items, place - 1)
            sign, left = items[place - 1].text, self.text(items[begin : place - 1])
            return begin, place + 2, f"datetime({left}) {sign} datetime({literal})"
        return place, place + 2, literal

    def _shifted(self, items: Sequence[Item], place: int) -> tuple[int, int, str] | None:
        begin = operand_before(items, place - 1)
        count, unit, end = interval(items, place + 1)
        new = shifted(
            self.text(items[begin : place - 1]), -count if items[place - 1].text == "-" else count, unit
        )
        return None if new is None else (begin, end, new)

    # Phrases beyond expressions

    def _phrase(self, items: Sequence[Item], place: int) -> str | None:
        item, after = items[place], items[place + 1] if place + 1 < len(items) else None
        word = item.text
        if word == "TOP" and after is not None and after.kind in {"number", "group"} and place:
            more = items[place + 2] if place + 2 < len(items) else None
            if more is not None and is_word(more, "PERCENT", "WITH"):
                return "order the rows, and write LIMIT with their number at the end"
            return f"write LIMIT {self.text([after]).strip('()')} at the end"
        if word == "REGEXP" and self._dialect == "duckdb" and place and after is not None:
            value, pattern = self.text(items[operand_before(items, place) : place]), self.text([after])
            return f"write regexp_matches({value}, {pattern}) for {value} REGEXP {pattern}"
        if word == "SYSDATE":
            return f"write {now_written(self._dialect)} for SYSDATE"
        if self._dialect != "sqlite" or after is None:
            return None
        if word == "FETCH" and is_word(after, "FIRST", "NEXT"):
            return f"write {self._limit(items, place)} at the end"
        if word == "ILIKE":
            return "write LIKE, which ignores case here"
        if word == "ON" and place and is_word(items[place - 1], "DISTINCT"):
            by = self.text(after.items) if isinstance(after, Group) else "..."
            return _DISTINCT_ON.format(by)
        if word == "QUALIFY":
            return "select the window function in a subquery, and compare it in a WHERE around that"
        if word == "LATERAL":
            return "write a subquery in SELECT, or join a subquery with GROUP BY"
        if word == "WITHIN" and is_word(after, "GROUP"):
            return "there is no function such as PERCENTILE_CONT or LISTAGG that takes it"
        if word == "INTERVAL" and after.kind in {"text", "number"}:
            return "dates are moved by date(..., '+1 day')"
        return _LACKING.get(word) if isinstance(after, Group) or word == "REGEXP" else None

    def _limit(self, items: Sequence[Item], place: int) -> str:
        """LIMIT and OFFSET for FETCH FIRST n ROWS ONLY."""
        count = items[place + 2] if place + 2 < len(items) else None
        rows = count.text if count is not None and count.kind == "number" else "1"
        offset = [n for n in range(place) if is_word(items[n], "OFFSET")]
        return f"LIMIT {rows}" + (f" OFFSET {items[offset[-1] + 1].text}" if offset else "")

"""Statements that run, but whose answer is not what was asked: what their tokens show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from planning.agent.sql.dates import formatted
from planning.agent.sql.structure import (
    COMPARING,
    Group,
    Item,
    groups,
    is_word,
    name_of,
    operand_before,
    split,
    structure,
)

__all__ = ["trap"]

_EQUAL: Final = frozenset({"=", "==", "<>", "!="})
_TEXT_TYPES: Final = {"DATE": "date", "DATETIME": "datetime", "TIMESTAMP": "datetime", "TIME": "time"}
_GIVING_TEXT: Final = frozenset({"DATE", "DATETIME", "STRFTIME", "SUBSTR", "SUBSTRING", "TIME"})
_RELEVANT: Final = re.compile(rf"\b(?:NULL|FORMAT|CAST|{'|'.join(_GIVING_TEXT)})\b", re.IGNORECASE)


def trap(sql: str, dialect: str) -> str | None:
    """Why the answer to a statement is not what was asked, and what to write; None if it may be.

    Args:
        sql: The statement, which has run.
        dialect: ``sqlite`` or ``duckdb``.
    """
    top = None if _RELEVANT.search(sql) is None else structure(sql, dialect)
    if top is None:
        return None
    for group, _, _ in groups(top):
        message = next(_traps(group.items, sql, dialect), None)
        if message is not None:
            return message
    return None


def _traps(items: Sequence[Item], sql: str, dialect: str) -> Iterator[str]:
    """The traps in the items of one pair of brackets."""
    for place, item in enumerate(items):
        after = items[place + 1] if place + 1 < len(items) else None
        if place and after is not None and item.text in _EQUAL and is_word(after, "NULL"):
            value = _written(sql, items[operand_before(items, place) : place])
            instead = "IS NULL" if item.text in {"=", "=="} else "IS NOT NULL"
            compared = f"{value} {item.text} NULL"
            yield f"{compared} is never true; write {value} {instead} for {compared}"
        if is_word(item, "FORMAT") and isinstance(after, Group):
            yield from _format(items[place : place + 2], after, sql, dialect)
        if dialect == "sqlite" and item.kind == "word" and isinstance(after, Group):
            yield from _cast(item.text, after, sql)
            if item.text in _GIVING_TEXT and _is_compared_with_number(items, place):
                call = _written(sql, items[place : place + 2])
                instead = f"CAST({call} AS INTEGER)"
                yield f"{call} is a string, and never equal to a number; write {instead} for {call}"


def _cast(name: str, call: Group, sql: str) -> Iterator[str]:
    """CAST to a type that SQLite does not have: it takes the number at the beginning of the string."""
    sides = split(call.items, "AS") if name == "CAST" else []
    if len(sides) != 2 or not sides[0] or len(sides[1]) != 1:
        return
    kind, value = sides[1][0].text.upper(), _written(sql, sides[0])
    instead = f"{_TEXT_TYPES[kind]}({value})" if kind in _TEXT_TYPES else f"CAST({value} AS TEXT)"
    if kind in _TEXT_TYPES or kind == "STRING":
        yield f"SQLite has no type {kind}, and casts to a number; write {instead} for CAST({value} AS {kind})"


def _format(items: Sequence[Item], call: Group, sql: str, dialect: str) -> Iterator[str]:
    """FORMAT(value, template) of SQL Server and MySQL: here the template comes first."""
    given = split(call.items, ",")
    template = given[1][0] if len(given) == 2 and len(given[1]) == 1 else None
    if template is not None and name_of(given[0]) and template.kind in {"text", "number"}:
        value = _written(sql, given[0])
        code = formatted(dialect, "dotnet", value, template.text) if template.kind == "text" else None
        remedy = f"write {code} for {_written(sql, items)}" if code else "give it a template, then the value"
        yield f"format takes its template first; {remedy}"


def _is_compared_with_number(items: Sequence[Item], place: int) -> bool:
    """Whether a call is one side of a comparison, and a number all of the other."""
    before, after = items[max(0, place - 3) : place], items[place + 2 : place + 5]
    if before and before[-1].text not in COMPARING and _goes_on(before[-1:]):
        return False
    if len(after) > 1 and not _goes_on(after[2:]):
        value = after[1].items[0] if isinstance(after[1], Group) and after[1].items else after[1]
        is_list = is_word(after[0], "IN") and isinstance(after[1], Group)
        is_compared = after[0].text in COMPARING or is_list or is_word(after[0], "BETWEEN")
        if is_compared and value.kind == "number":
            return True
    is_second = len(before) > 1 and before[-1].text in COMPARING and before[-2].kind == "number"
    return is_second and not _goes_on(before[:-2]) and not _goes_on(after[:1])


def _goes_on(items: Sequence[Item]) -> bool:
    """Whether an operator follows, so that the items are only a part of a value."""
    return bool(items) and items[0].kind == "sign" and items[0].text not in {",", *COMPARING}


def _written(sql: str, items: Sequence[Item]) -> str:
    return sql[items[0].start : items[-1].end]

"""Strings that DuckDB does not cast to a time by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from planning.agent.sql.structure import (
    COMPARING,
    Group,
    Item,
    behind_name,
    groups,
    is_word,
    name_of,
    operand_before,
    split,
    structure,
)

__all__ = ["as_timestamp"]

_UNITS_TEXT: Final = """
    century day decade hour minute month quarter second week year
"""
_UNITS: Final = frozenset(_UNITS_TEXT.split())
_TIMES: Final = (
    "CURRENT_DATE",
    "CURRENT_LOCALTIMESTAMP",
    "CURRENT_TIMESTAMP",
    "DATE",
    "INTERVAL",
    "NOW",
    "TIMESTAMP",
    "TODAY",
)
_OF_TIME_TEXT: Final = """
    DATEDIFF DATE_DIFF DATE_PART DATE_TRUNC DAY DAYNAME DAYOFMONTH DAYOFWEEK DAYOFYEAR EPOCH EXTRACT HOUR
    ISODOW LAST_DAY MINUTE MONTH MONTHNAME QUARTER SECOND STRFTIME WEEK WEEKDAY YEAR
"""
_OF_TIME: Final = frozenset(_OF_TIME_TEXT.split())


def as_timestamp(sql: str, name: str) -> str | None:
    """The hint to cast a string that is used as a time; None if there is none.

    Args:
        sql: The statement.
        name: The function or operator that got the string; ``=`` for any comparison.
    """
    top = structure(sql, "duckdb")
    for group, _, _ in groups(top) if top is not None else ():
        for place in range(len(group.items)):
            written = [sql[each[0].start : each[-1].end] for each in _texts(group.items, place, name.upper())]
            if written:
                return f"write {', '.join(f'CAST({each} AS TIMESTAMP) for {each}' for each in written)}"
    return None


def _texts(items: Sequence[Item], place: int, name: str) -> Iterator[Sequence[Item]]:
    """The columns that may be strings, in the call or beside the operator at a place."""
    item, after = items[place], items[place + 1] if place + 1 < len(items) else None
    names = {"EXTRACT", "DATE_PART"} if name == "DATE_PART" else {name}
    if isinstance(after, Group) and is_word(item, *names & _OF_TIME):
        given = [each for each in split(after.items, ",", "FROM") if name_of(each)]
        yield from (each for each in given if each[0].text.lower() not in _UNITS or len(given) == 1)
    elif place and after is not None and item.text in ({*COMPARING, "BETWEEN"} if name == "=" else {name}):
        if is_word(after, *_TIMES):
            yield items[operand_before(items, place) : place]
        elif place > 1 and is_word(items[place - 2], "DATE", "TIMESTAMP") and after.is_name:
            yield items[place + 1 : behind_name(items, place + 1)]

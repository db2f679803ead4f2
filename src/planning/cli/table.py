"""Rows as a table of text that fits a width. Their values are untrusted, and cannot act on a terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import attrs
from rich.cells import cell_len

from planning.errors import one_line

__all__ = ["MOST_ROWS", "Table", "laid_out"]

MOST_ROWS: Final = 50
_WIDEST: Final = 120  # columns of a cell where nothing else bounds it
_NARROW: Final = 10  # columns below which a text says little: a date has ten
_NARROW_NUMBER: Final = 20  # a number that is cut is another number
_LONGEST: Final = 1_000  # characters of a text that are read
_GAP: Final = "  "


@attrs.frozen
class Table:
    """A table, laid out.

    Attributes:
        lines: Its lines: the names, a rule, the rows.
        columns: How many columns there are.
        shown: How many of them had room.
    """

    lines: tuple[str, ...]
    columns: int
    shown: int


def laid_out(
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    width: int | None,
    ellipsis: str = "...",
    *,
    most: int = MOST_ROWS,
) -> Table:
    """Lay out rows as a table. NULL is not a text: a text that reads so is in quotes.

    Args:
        names: The names of the columns, which need not differ.
        rows: The rows.
        width: How many columns of a terminal there are; None for as many as it takes.
        ellipsis: What is shown for what was cut off.
        most: How many rows are read.
    """
    names = [one_line(name) for name in names]
    values = [list(row) for row in rows[:most]]
    cells = [[_cell(value) for value in row] for row in values]
    are_numbers = [_is_numeric([row[place] for row in values]) for place in range(len(names))]
    widths = _widths(names, cells, are_numbers, width)
    lines = [
        [_padded(*cell, ellipsis) for cell in zip(row, widths, are_numbers, strict=False)]
        for row in (names, ["-" * wide for wide in widths], *cells)
    ]
    return Table(tuple(_GAP.join(line).rstrip() for line in lines), len(names), len(widths))


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"x'{bytes(value)[:_LONGEST].hex()}'"
    is_nested = isinstance(value, (list, dict))
    shown = json.dumps(value, ensure_ascii=False, default=str) if is_nested else str(value)
    text = one_line(shown[:_LONGEST])
    return "'" + text.replace("'", "''") + "'" if text.strip("'") == "NULL" else text


def _is_numeric(values: Sequence[object]) -> bool:
    """Whether a column holds numbers, and nothing else but NULL."""
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(each, (int, float)) and not isinstance(each, bool) for each in known
    )


def _widths(
    names: Sequence[str], cells: Sequence[Sequence[str]], are_numbers: Sequence[bool], width: int | None
) -> list[int]:
    """How wide each column is; those without room are omitted, from the right."""
    wanted = [
        min(_WIDEST, max([1, cell_len(name), *(cell_len(row[place]) for row in cells)]))
        for place, name in enumerate(names)
    ]
    if width is None:
        return wanted
    floors = [
        min(wide, _NARROW_NUMBER if is_number else _NARROW)
        for wide, is_number in zip(wanted, are_numbers, strict=True)
    ]
    if _total(floors) > width:
        floors = [min(wide, _NARROW) for wide in floors]
    count = len(floors)
    while count > 1 and _total(floors[:count]) > width:
        count -= 1
    return _fitted(wanted[:count], floors[:count], max(1, width - _total([0] * count)))


def _fitted(wanted: list[int], floors: list[int], room: int) -> list[int]:
    """Widths whose sum is no more than the room: the widest columns give way first."""
    widths = list(wanted)
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda place: (widths[place] > floors[place], widths[place]))
        if widths[widest] <= 1:
            break
        widths[widest] -= 1
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * max(0, len(widths) - 1)


def _padded(text: str, width: int, is_number: bool, ellipsis: str) -> str:  # noqa: FBT001 - a column's own
    text = _cut(text, width, ellipsis)
    blanks = " " * (width - cell_len(text))
    return blanks + text if is_number else text + blanks


def _cut(text: str, width: int, ellipsis: str) -> str:
    if cell_len(text) <= width:
        return text
    room = width - cell_len(ellipsis)
    if room < 1:
        ellipsis, room = "", width
    kept = ""
    for each in text:
        room -= cell_len(each)
        if room < 0:
            break
        kept += each
    return kept + ellipsis

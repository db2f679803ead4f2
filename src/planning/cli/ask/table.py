"""Rows as a table of text that fits a width. What is in them is untrusted, and acts on no terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Literal

import attrs
from rich.cells import cell_len

from planning.cli.printable import one_line

__all__ = ["MOST_ROWS", "Cell", "Table", "laid_out"]

MOST_ROWS: Final = 50
_WIDEST: Final = 120  # columns of a cell where nothing else bounds it
_NARROW: Final = 10  # columns below which a text says little: a date has ten
_NARROW_NUMBER: Final = 20  # a number that is cut is another number
_LONGEST: Final = 1_000  # characters of a text that are looked at
_GAP: Final = "  "


@attrs.frozen
class Cell:
    """One cell as it is shown, with the blanks that make it as wide as its column.

    Attributes:
        text: What is shown.
        kind: What it shows. NULL is no text: a text that reads so stands in quotes.
    """

    text: str
    kind: Literal["text", "number", "null", "name", "rule"]


@attrs.frozen
class Table:
    """A table, laid out.

    Attributes:
        lines: Its lines, each a row of cells: the names, a rule, the rows.
        columns: How many columns there are.
        shown: How many of them had room.
    """

    lines: tuple[tuple[Cell, ...], ...]
    columns: int
    shown: int

    def texts(self) -> list[str]:
        """The lines as text."""
        return [_GAP.join(cell.text for cell in line).rstrip() for line in self.lines]


def laid_out(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None, ellipsis: str = "..."
) -> Table:
    """Lay out rows as a table.

    Args:
        columns: The names, which need not differ.
        rows: The rows; no more than ``MOST_ROWS`` of them are looked at.
        width: How many columns of a terminal there are; None for as many as it takes.
        ellipsis: What stands for what was cut off.
    """
    shown = rows[:MOST_ROWS]
    names = [one_line(name) for name in columns]
    cells = [[_cell(value) for value in row] for row in shown]
    kinds = [_kind([row[place] for row in cells]) for place in range(len(names))]
    widths = _widths(names, cells, kinds, width)
    lines = [
        [
            _padded(Cell(name, "name"), wide, kind, ellipsis)
            for name, wide, kind in zip(names, widths, kinds, strict=False)
        ],
        [Cell("-" * wide, "rule") for wide in widths],
    ]
    lines += [
        [_padded(cell, wide, kind, ellipsis) for cell, wide, kind in zip(row, widths, kinds, strict=False)]
        for row in cells
    ]
    return Table(tuple(map(tuple, lines)), len(names), len(widths))


def _cell(value: object) -> Cell:
    if value is None:
        return Cell("NULL", "null")
    if isinstance(value, bool):
        return Cell("true" if value else "false", "text")
    if isinstance(value, (int, float)):
        return Cell(f"{value}", "number")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Cell(f"x'{bytes(value)[:_LONGEST].hex()}'", "text")
    is_nested = isinstance(value, (list, dict))
    text = one_line((_nested(value) if is_nested else str(value))[:_LONGEST])
    return Cell("'" + text.replace("'", "''") + "'" if text.strip("'") == "NULL" else text, "text")


def _nested(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _kind(cells: Sequence[Cell]) -> str:
    """What a column holds: numbers, if nothing else."""
    kinds = {cell.kind for cell in cells} - {"null"}
    return "number" if kinds == {"number"} else "text"


def _widths(
    names: Sequence[str], cells: Sequence[Sequence[Cell]], kinds: Sequence[str], width: int | None
) -> list[int]:
    """How wide each column is; those that have no room are left out, from the right."""
    wanted = [
        min(_WIDEST, max([1, cell_len(name), *(cell_len(row[place].text) for row in cells)]))
        for place, name in enumerate(names)
    ]
    if width is None:
        return wanted
    floors = [
        min(wide, _NARROW_NUMBER if kind == "number" else _NARROW)
        for wide, kind in zip(wanted, kinds, strict=True)
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


def _padded(cell: Cell, width: int, kind: str, ellipsis: str) -> Cell:
    text = _cut(cell.text, width, ellipsis)
    blanks = " " * (width - cell_len(text))
    is_right = kind == "number"
    return Cell(blanks + text if is_right else text + blanks, cell.kind)


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

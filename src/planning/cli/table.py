"""Rows as a table of text that fits a width, laid out by rich. Their values are untrusted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from planning.errors import one_line

__all__ = ["MOST_ROWS", "laid_out"]

MOST_ROWS: Final = 50
_WIDEST: Final = 120  # columns of a cell where nothing else bounds it
_NARROW: Final = 10  # columns below which a text says little: a date has ten
_NARROW_NUMBER: Final = 20  # a number that is cut is another number
_LONGEST: Final = 1_000  # characters of a text that are read
_GAP: Final = 2
_RULE: Final = Box("    \n    \n -  \n" + 5 * "    \n")  # a line below the names, and no other
_NO_END: Final = 1_000_000  # columns


def laid_out(
    names: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None, *, most: int = MOST_ROWS
) -> tuple[list[str], int]:
    """Lay out rows as a table. NULL is not a text: a text that reads so is in quotes.

    Args:
        names: The names of the columns, which need not differ.
        rows: The rows.
        width: How many columns of a terminal there are; None for as many as it takes.
        most: How many rows are read.

    Returns:
        Its lines, the names first; and how many of its columns had room, from the left.
    """
    rows = rows[:most]
    room, columns = _NO_END if width is None else width, list[Column]()
    for place, name in enumerate(names):
        wide = max(cell_len(one_line(name)), 1, *(cell_len(_cell(row[place])) for row in rows))
        is_number = _is_numeric([row[place] for row in rows])
        is_kept_whole = is_number and wide <= _NARROW_NUMBER
        room -= wide if is_kept_whole else min(wide, _NARROW)
        if room < 0 and columns:
            break
        room -= _GAP
        columns.append(
            Column(
                _text(one_line(name)),
                justify="right" if is_number else "left",
                no_wrap=is_kept_whole,
                max_width=_WIDEST,
            )
        )
    table = Table(*columns, box=_RULE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for row in rows:
        table.add_row(*(_text(_cell(value)) for value in row[: len(columns)]))
    console = Console(width=_NO_END if width is None else width, color_system=None)
    lines = console.render_lines(table, pad=False)
    return ["".join(part.text for part in line).rstrip() for line in lines], len(columns)


def _text(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")


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

"""Rows as a table of text that fits a width, laid out by rich. Their values are untrusted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.color import ColorSystem
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from planning.errors import one_line

__all__ = ["MOST_ROWS", "laid_out", "line_text"]

MOST_ROWS: Final = 50
_WIDEST: Final = 120  # columns of a cell where nothing else bounds it
_NARROW: Final = 10  # columns below which a text says little: a date has ten
_LONGEST: Final = 1_000  # characters of a text that are read
_NO_END: Final = 1_000_000  # columns


def laid_out(
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    width: int | None,
    *,
    most: int = MOST_ROWS,
    color: bool = False,
) -> tuple[list[str], int]:
    """Lay out rows as a table. NULL is not a text: a text that reads so is in quotes.

    Args:
        names: The names of the columns, which need not differ.
        rows: The rows. A value that is a ``Text`` is shown as it is.
        width: How many columns of a terminal there are; None for as many as it takes.
        most: How many rows are read.
        color: Whether the styles of ``Text`` values are painted.

    Returns:
        Its lines, the names first; and how many of its columns had room, from the left.
    """
    rows, wide = rows[:most], _NO_END if width is None else width
    shown = names[: max(1, wide // _NARROW)]
    columns = list[Column]()
    for place, name in enumerate(shown):
        is_number = all(isinstance(row[place], (int, float, type(None))) for row in rows)  # never cut
        column = Column(line_text(one_line(name)), no_wrap=is_number, max_width=_WIDEST)
        column.justify = "right" if is_number and rows else "left"
        columns.append(column)
    table = Table(*columns, box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for row in rows:
        table.add_row(
            *(value if isinstance(value, Text) else line_text(_cell(value)) for value in row[: len(shown)])
        )
    lines = Console(width=wide, color_system=None).render_lines(table, pad=False)
    system = ColorSystem.STANDARD if color else None
    painted = (
        "".join(
            part.style.render(part.text, color_system=system) if part.style else part.text for part in line
        )
        for line in lines
    )
    return [line.rstrip() for line in painted], len(shown)


def line_text(text: str, style: str = "") -> Text:
    """A printable line as the text of a cell, cut with an ellipsis where it has no room."""
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"x'{bytes(value)[:_LONGEST].hex()}'"
    is_json = isinstance(value, (bool, list, dict))
    shown = json.dumps(value, ensure_ascii=False, default=str) if is_json else str(value)
    text = one_line(shown[:_LONGEST])
    return "'" + text.replace("'", "''") + "'" if text.strip("'") == "NULL" else text

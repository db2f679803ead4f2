"""Rows as a table that fits a width, and as lines for programs. Their values are untrusted."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import chain
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from planning.errors import one_line

MOST_ROWS: Final = 50
_WIDEST: Final = 120  # columns of a cell where nothing else bounds it
_NARROW: Final = 10  # columns below which a text says little: a date has ten
_LONGEST: Final = 1_000  # characters of a text that are read
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER: Final = re.compile(r"[+-]?(inf|nan|\d+(\.\d*)?(e[+-]?\d+)?|\.\d+)", re.IGNORECASE)
_NO_END: Final = 1_000_000  # columns


def laid_out(names: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None) -> tuple[list[str], int]:
    """Lay out rows as a table. NULL is not a text: a text that reads so is in quotes."""
    rows, wide = rows[:MOST_ROWS], _NO_END if width is None else width
    shown = names[: max(1, wide // _NARROW)]
    columns = list[Column]()
    for place, name in enumerate(shown):
        is_number = all(isinstance(row[place], (int, float, type(None))) for row in rows)  # never cut
        column = Column(_line_text(one_line(name)), no_wrap=is_number, max_width=_WIDEST)
        column.justify = "right" if is_number and rows else "left"
        columns.append(column)
    table = Table(*columns, box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for row in rows:
        table.add_row(*(_line_text(_cell(value, _LONGEST)) for value in row[: len(shown)]))
    lines = Console(width=wide, color_system=None).render_lines(table, pad=False)
    return ["".join(part.text for part in line).rstrip() for line in lines], len(shown)


def tab_lines(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Rows as lines with tabs between the values, the names first. NULL is written as in a table."""
    yield "\t".join(map(one_line, names)) + "\n"
    for row in rows:
        yield "\t".join(map(_cell, row)) + "\n"


def csv_lines(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Rows as CSV, the names first: texts whole, NULL as nothing.

    A text that a spreadsheet would run as a formula is data: it begins with an apostrophe.
    """
    buffer = StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    for row in chain([names], rows):
        texts = ("" if value is None else _text_of(value) for value in row)
        writer.writerow(
            f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
            for text in texts
        )
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _line_text(text: str) -> Text:
    """A printable line as the text of a cell, cut with an ellipsis where it has no room."""
    return Text(text, no_wrap=True, overflow="ellipsis")


def _cell(value: object, limit: int | None = None) -> str:
    """A value on one line; of a long one, so many characters or bytes."""
    if value is None:
        return "NULL"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _text_of(bytes(value)[:limit])
    text = one_line(_text_of(value)[:limit])
    return "'" + text.replace("'", "''") + "'" if text.strip("'") == "NULL" else text


def _text_of(value: object) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"x'{bytes(value).hex()}'"
    is_json = isinstance(value, (bool, list, dict))
    return json.dumps(value, ensure_ascii=False, default=str) if is_json else str(value)

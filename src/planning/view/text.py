"""Text that is too long, or too wide, for where it is shown."""

from __future__ import annotations

import unicodedata

from planning.errors import printable

__all__ = ["fitted", "line_of", "shortened"]


def shortened(text: str, most: int) -> str:
    """A text, or its beginning where it has more characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def fitted(text: str, columns: int) -> str:
    """The beginning of a text on one line, printable, cut where it is wider than so many columns."""
    line = printable(" ".join(text[: 4 * columns].split()))
    wide = [unicodedata.east_asian_width(each) in "WF" for each in line]
    if len(line) + sum(wide) <= columns and len(text) <= 4 * columns:
        return line
    room, kept = columns - 1, 0
    while kept < len(line) and room > wide[kept]:
        room -= 1 + wide[kept]
        kept += 1
    return line[:kept].rstrip() + "…"


def line_of(error: BaseException) -> str:
    """An error on one line."""
    return printable(" ".join(str(error).split()))

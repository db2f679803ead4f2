"""A line of the source as a terminal shows it: on known columns, and cut around one place."""

from __future__ import annotations

import unicodedata
from typing import Final, NamedTuple

__all__ = ["Excerpt", "excerpt"]

_CUT: Final = "..."
_TAB = 4
_JAMO = (range(0x1160, 0x1200), range(0xD7B0, 0xD800))  # the parts of a Hangul syllable after its first


class Excerpt(NamedTuple):
    """A part of a line.

    Attributes:
        text: What is shown of it; nothing in it acts on a terminal.
        offset: The columns before the place.
        columns: The columns of the place, at least 1.
    """

    text: str
    offset: int
    columns: int


class _Cell(NamedTuple):
    shown: str
    columns: int


def excerpt(line: str, column: int, length: int, width: int) -> Excerpt:
    """The part of a line around a place: all of the line where it fits.

    Args:
        line: The line, without its end; it may be of any length.
        column: Where the place begins, from 1; the one after the last character is its end.
        length: How many characters it has. What does not fit is omitted.
        width: The columns that there are.
    """
    at = min(column - 1, len(line))
    first = max(0, at - 2 * width)  # twice: half of the characters may share a column with another
    end = min(len(line), at + 2 * width)
    before = [_cell(each) for each in line[first:at]]
    after = [_cell(each) for each in line[at:end]]
    lead, rest = _columns(before), _columns(after)
    is_cut_before, is_cut_after = first > 0, end < len(line)
    if is_cut_before or is_cut_after or lead + rest > width:
        # The place is in the middle, unless the line begins or ends near it.
        room = max(width // 2, width - rest)
        is_cut_before = is_cut_before or lead > room
        if is_cut_before:
            before = _last(before, room - len(_CUT))
        room = width - _columns(before) - len(_CUT) * is_cut_before
        is_cut_after = is_cut_after or rest > room
        if is_cut_after:
            after = _first(after, room - len(_CUT))
    head = _CUT * is_cut_before + "".join(cell.shown for cell in before)
    tail = "".join(cell.shown for cell in after) + _CUT * is_cut_after
    offset = _columns(before) + len(_CUT) * is_cut_before
    return Excerpt((head + tail).rstrip(" "), offset, max(1, _columns(after[:length])))


def _first(cells: list[_Cell], room: int) -> list[_Cell]:
    """As many of the first cells as there is room for."""
    for number, cell in enumerate(cells):
        room -= cell.columns
        if room < 0:
            return cells[:number]
    return cells


def _last(cells: list[_Cell], room: int) -> list[_Cell]:
    """As many of the last cells as there is room for."""
    return _first(cells[::-1], room)[::-1]


def _columns(cells: list[_Cell]) -> int:
    return sum(cell.columns for cell in cells)


def _cell(char: str) -> _Cell:
    """A character as it is shown, and the columns that it takes."""
    if " " <= char <= "~":
        return _Cell(char, 1)
    if char == "\t":
        return _Cell(" " * _TAB, _TAB)
    if "\ufe00" <= char <= "\ufe0f" or "\U0001f3fb" <= char <= "\U0001f3ff":
        return _Cell("", 0)  # a variant of an emoji: terminals disagree on how wide it makes it
    if not char.isprintable():
        escaped = ascii(char)[1:-1]
        return _Cell(escaped, len(escaped))
    if unicodedata.category(char) in {"Mn", "Me"} or any(ord(char) in part for part in _JAMO):
        return _Cell(char, 0)
    return _Cell(char, 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1)

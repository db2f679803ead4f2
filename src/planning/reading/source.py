"""The original text, and where in it something stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

__all__ = ["Source"]

_FEW = 16
_LINE_END = re.compile(r"\r\n|\n|\r")


class Source:
    r"""A text, and its lines. Lines end at ``\n``, ``\r\n`` or ``\r``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._has_returns = "\r" in text
        self._asked = 0

    @cached_property
    def _starts(self) -> list[int]:
        if self._has_returns:
            return [0, *(end.end() for end in _LINE_END.finditer(self.text))]
        lengths = (len(line) + 1 for line in self.text.split("\n"))
        return list(accumulate(lengths, initial=0))[:-1]

    def place(self, offset: int) -> tuple[int, int]:
        """The line and the column of an offset, both from 1, in characters."""
        self._asked += 1
        if self._asked <= _FEW and not self._has_returns:  # counting is faster than an index, for a few
            last = self.text.rfind("\n", 0, offset)
            return self.text.count("\n", 0, offset) + 1, offset - last
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line, without its end.

        Args:
            number: From 1.
        """
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

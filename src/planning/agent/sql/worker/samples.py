"""A few different values of each column, from the first rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

__all__ = ["MOST_COUNTED", "Samples"]

MOST_COUNTED: Final = 1_000_000
_ROWS: Final = 100
_LONGEST: Final = 200  # the schema shows fewer characters


class Samples:
    """Collects values until there are enough of every column.

    Attributes:
        rows: How many rows to look at, at most.
        values: The values, column by column.
    """

    rows = _ROWS

    def __init__(self, columns: int, most: int) -> None:
        self.values: list[list[Any]] = [[] for _ in range(columns)]
        self._most = most
        self._open = list(range(columns))

    def add(self, row: Sequence[Any]) -> bool:
        """Add the new values of a row.

        Returns:
            Whether there is enough of every column.
        """
        is_full = False
        for place in self._open:
            value = row[place]
            if value is None or type(value) is bytes:
                continue
            if type(value) is str and len(value) > _LONGEST:
                value = value[:_LONGEST]
            known = self.values[place]
            if value not in known:
                known.append(value)
                is_full = is_full or len(known) == self._most
        if is_full:
            self._open = [place for place in self._open if len(self.values[place]) < self._most]
        return not self._open

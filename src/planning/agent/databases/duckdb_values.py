"""The values of DuckDB as JSON values and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from sys import getsizeof
from typing import Any

__all__ = ["plain", "size_of"]


def plain(value: Any) -> Any:
    """A value as JSON has it, or bytes; any other becomes a string."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else str(value)


def _number(value: Decimal) -> int | float | str:
    """A decimal as a number, or as a string if no number is equal."""
    if value.is_finite() and value.as_tuple().exponent == 0:
        return int(value)
    number = float(value)
    return number if Decimal(repr(number)) == value else str(value)


def size_of(row: Sequence[Any]) -> int:
    """The bytes of a row in memory: an empty dict in a list takes more there than in a file."""
    size, left = 0, list(row)
    while left:
        value = left.pop()
        size += getsizeof(value)
        if isinstance(value, (list, dict, tuple)):
            left += value.values() if isinstance(value, dict) else value
    return size

"""The values of DuckDB as JSON values and bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

__all__ = ["converter", "plain"]

_PLAIN: Final = frozenset({bool, int, float, str, bytes, type(None)})
_NAMES: Final = """
    BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT FLOAT DOUBLE
    VARCHAR BLOB NULL
"""
_SIMPLE: Final = frozenset(_NAMES.split())


def converter(types: Iterable[str]) -> Callable[[Sequence[Any]], list[Any]] | None:
    """A function that makes values of these types plain; None if they are plain."""
    if all(each in _SIMPLE for each in types):
        return None
    return lambda rows: [[plain(value) for value in row] for row in rows]


def plain(value: Any) -> Any:
    """A value as JSON has it, or bytes; any other becomes a string."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    return str(value)


def _number(value: Decimal) -> int | float | str:
    """A decimal as a number, or as a string if no number is equal."""
    if value == value.to_integral_value() and value.as_tuple().exponent == 0:
        return int(value)
    number = float(value)
    return number if Decimal(repr(number)) == value else str(value)

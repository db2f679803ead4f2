"""Fetching rows within limits, and a few values of each column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import islice
from marshal import dumps
from sys import getsizeof
from typing import Any, Final

from planning.agent.sql.guard import Failure
from planning.agent.sql.schema import MOST_COUNTED, quoted, select

MOST_BYTES: Final = 16_000_000
SAMPLED: Final = 100
"""The rows that values of columns are taken from."""

_BATCH: Final = 16
_NUMBERS: Final = ("TINY", "SMALL", "INT", "BIG", "HUGE", "UINT", "UBIG", "FLOAT", "DOUBLE", "DEC", "BOOL")
_LONGEST: Final = 200  # the schema shows fewer characters


def _size(rows: Sequence[Any]) -> int:
    return len(dumps(tuple(rows), 2))  # the quickest measure of plain values


def fetched(
    rows: Iterable[Sequence[Any]], most_rows: int, size: Callable[[Sequence[Any]], int] = _size
) -> tuple[list[list[Any]], bool]:
    """Fetch rows until there are no more, or enough.

    Returns:
        The rows, and whether there are more.

    Raises:
        Failure: The first row alone is too large.
    """
    kept: list[list[Any]] = []
    room, left = MOST_BYTES, iter(rows)
    while batch := tuple(islice(left, _BATCH)):
        if len(kept) + len(batch) <= most_rows and (weight := size(batch)) <= room:
            room -= weight
            kept += map(list, batch)
            continue
        for row in batch:
            room -= size(row)
            if room < 0 and not kept:
                raise Failure("large")
            if room < 0 or len(kept) == most_rows:
                return kept, True
            kept.append(list(row))
    return kept, False


def new_table(name: str, kind: str, schema: str = "") -> dict[str, Any]:
    """The description of a table or view, without columns."""
    return {"name": name, "schema": schema, "kind": kind, "columns": [], "foreign_keys": [], "rows": None}


def add_column(table: dict[str, Any], name: str, kind: str, not_null: object, primary: int = 0) -> None:
    """Add a column to the description of a table; ``primary`` is its place in the primary key."""
    column = {"name": name, "type": kind, "not_null": bool(not_null), "primary": primary, "samples": []}
    table["columns"].append(column)


def counting(source: str) -> str:
    """The query that counts the rows of a table, up to one more than are shown."""
    return select("count(*)", f"({select('1', source, MOST_COUNTED + 1)})", 1)


def sampling(table: dict[str, Any], source: str, choose: Callable[[dict[str, Any]], str]) -> str:
    """The query of the rows that values are taken from; ``choose`` writes a column."""
    return select(", ".join(map(choose, table["columns"])), source, SAMPLED)


def as_shown(column: dict[str, Any]) -> str:
    """A column of a database with types as it can be shown: long values cut, all but numbers as text."""
    name, kind = quoted(column["name"]), column["type"]
    shown = "NULL" if kind == "BLOB" else f"left(CAST({name} AS VARCHAR), 200)"
    return name if kind.startswith(_NUMBERS) else shown


def add_samples(table: dict[str, Any], rows: Iterable[Sequence[Any]], most: int) -> None:
    """Give each column of a table a few of its values."""
    open_columns = list(enumerate(table["columns"]))
    for row in rows:
        for place, column in open_columns:
            value, samples = row[place], column["samples"]
            if value is None or isinstance(value, bytes):
                continue
            value = value[:_LONGEST] if isinstance(value, str) else value
            if value not in samples and len(samples) < most:
                samples.append(value)
        open_columns = [each for each in open_columns if len(each[1]["samples"]) < most]
        if not open_columns:
            return


def plain(value: Any) -> Any:
    """A value as JSON has it, or bytes; a decimal as a number if one is equal, any other as a string."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Decimal) and Decimal(repr(float(value))) == value:
        return float(value)
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else str(value)


def memory_of(row: Sequence[Any]) -> int:
    """The bytes of a row in memory: an empty dict in a list takes more there than in a file."""
    size, left = 0, list(row)
    while left:
        value = left.pop()
        size += getsizeof(value)
        if isinstance(value, (list, dict, tuple)):
            left += value.values() if isinstance(value, dict) else value
    return size

"""An opened database: whether its file has changed, its rows within limits, and what its tables are like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import islice
from marshal import dumps
from pathlib import Path
from stat import S_ISREG
from sys import getsizeof
from time import monotonic, time_ns
from typing import Any, Final

from planning.agent.sql.guard import Failure
from planning.agent.sql.schema import MOST_COUNTED, quoted, select

Row = Sequence[Any]
Table = dict[str, Any]
Answer = tuple[list[str], list[list[Any]], bool]

MOST_BYTES: Final = 16_000_000
_LOGS: Final = {"sqlite": "-wal", "duckdb": ".wal"}
_KEPT: Final = 60
"""The seconds that the schema of a server, whose changes do not show, is kept."""
_SAMPLED: Final = 100
"""The rows that values of columns are taken from."""
_BATCH: Final = 16
_LONGEST: Final = 200  # the schema shows fewer characters


class OpenDatabase(ABC):
    """A database, and the connection to it, which is made when it is needed; one thread uses it.

    Attributes:
        deadline: When the current statement has to end, on the monotonic clock.
        version: The version of the database, known once it was read.
    """

    version: str

    def __init__(self, place: str) -> None:
        self.deadline = 0.0
        self._place = place
        self._connection: Any = None

    @abstractmethod
    def run(self, sql: str, most_rows: int) -> Answer:
        """Run one statement: the names of its columns, its rows, and whether there are more; or a Failure."""

    @abstractmethod
    def tables(self, samples: int, until: float) -> list[Table]:
        """Read the tables; with numbers of rows, and values, if ``samples`` is not negative; or a Failure."""

    @abstractmethod
    def interrupt(self) -> None:
        """Stop the current statement; called from another thread."""

    def rest(self) -> None:
        """Release what other programs may wait for."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def stamp(path: str, dialect: str) -> tuple[int, ...]:
    """A stamp that differs once a file was changed or replaced: its identity, size, times, and its log's.

    A change in the same tick of the clock as the one before does not show.
    """
    if dialect == "postgres":
        return (int(monotonic() / _KEPT),) * 4
    try:
        # Before `resolve`, which has an error of its own for a loop of links until Python 3.13.
        found = Path(path).stat()
        file = Path(path).resolve() if Path(path).is_symlink() else Path(path)  # logs are at the target
    except FileNotFoundError:
        raise Failure("missing") from None
    except PermissionError:
        raise Failure("denied") from None
    except OSError as error:
        raise Failure("unreadable", error.strerror or "") from None
    if not S_ISREG(found.st_mode):  # reading a pipe would wait for a writer
        raise Failure("unreadable", "it is not a file")
    known = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    try:
        changes = Path(f"{file}{_LOGS[dialect]}").stat()
    except OSError:
        return (*known, 0, 0)
    return (*known, changes.st_size, changes.st_mtime_ns if changes.st_size else 0)


def is_settled(known: tuple[int, ...], seconds: float) -> bool:
    """True if the last change that a stamp shows is older than that: a later one would show."""
    return max(known[3], known[-1]) < time_ns() - seconds * 1e9


# Rows


def _size(rows: Row) -> int:
    return len(dumps(tuple(rows), 2))  # the quickest measure of plain values


def fetched(
    rows: Iterable[Row], most_rows: int, size: Callable[[Row], int] = _size
) -> tuple[list[list[Any]], bool]:
    """Rows until there are no more, or enough, and whether there are more; one row may be too much."""
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


def memory_of(row: Row) -> int:
    """The bytes of a row in memory: an empty dict in a list takes more there than in a file."""
    size, left = 0, list(row)
    while left:
        value = left.pop()
        size += getsizeof(value)
        if isinstance(value, (list, dict, tuple)):
            left += value.values() if isinstance(value, dict) else value
    return size


# Tables


def new_table(name: str, kind: str, schema: str = "") -> Table:
    """The description of a table or view, without columns."""
    return {"name": name, "schema": schema, "kind": kind, "columns": [], "foreign_keys": [], "rows": None}


def add_column(table: Table, name: str, kind: str, not_null: object, primary: int = 0) -> None:
    """Add a column to the description of a table; ``primary`` is its place in the primary key."""
    column = {"name": name, "type": kind, "not_null": bool(not_null), "primary": primary, "samples": []}
    table["columns"].append(column)


def count_rows(table: Table, source: str, rows_of: Callable[[str], Any]) -> None:
    """Count the rows of a table, up to one more than are shown."""
    counted = select("count(*)", f"({select('1', source, MOST_COUNTED + 1)}) AS t", 1)
    ((table["rows"],),) = rows_of(counted)


def add_samples(
    table: Table,
    source: str,
    rows_of: Callable[[str], Iterable[Row]],
    limit: int,
    choose: Callable[[Table], str] = lambda column: quoted(column["name"]),
) -> None:
    """Give each column of a table a few of its values; ``choose`` writes a column as it can be shown."""
    open_columns = list(enumerate(table["columns"]))
    for row in rows_of(select(", ".join(map(choose, table["columns"])), source, _SAMPLED)):
        for place, column in open_columns:
            value, samples = plain(row[place]), column["samples"]
            if value is None or isinstance(value, bytes):
                continue
            value = value[:_LONGEST] if isinstance(value, str) else value
            if value not in samples and len(samples) < limit:
                samples.append(value)
        open_columns = [each for each in open_columns if len(each[1]["samples"]) < limit]
        if not open_columns:
            return


def as_shown(column: Table, *, is_hidden: bool, is_number: bool) -> str:
    """A column of a database with types: all but numbers as text, whose long values are cut."""
    name = quoted(column["name"])
    return "NULL" if is_hidden else name if is_number else f"left(CAST({name} AS VARCHAR), {_LONGEST})"

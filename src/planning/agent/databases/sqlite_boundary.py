"""The boundary of an SQLite file: its connection can only read.

Each of these holds by itself: the file is opened for reading (``mode=ro``), the connection takes queries
only, and an authorizer lets through what reads and denies all else. Limits bound what one call of a function
may take, since SQLite cannot be interrupted within one.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import quote

from planning.agent.sql.schema import quoted, select

_LONGEST_VALUE: Final = 32_000_000
_LARGEST_ROW: Final = 256_000_000
_MOST_VALUES: Final = 2_000  # columns
_LONGEST_SQL: Final = 500_000
_LONGEST_PATTERN: Final = 500
_OPERATIONS: Final = 20_000  # between two looks at the clock: about a millisecond
_LENGTH: Final = sqlite3.SQLITE_LIMIT_LENGTH
# What a call of these takes grows with the square of its values: the most bytes of a value beside them.
_SLOW: Final = {
    "glob": 1_000_000, "like": 1_000_000, "instr": 200_000, "replace": 200_000, "json_patch": 50_000,
    "json_group_object": 1_000_000, "ltrim": 50_000, "rtrim": 50_000, "trim": 50_000, "unhex": 50_000,
}  # fmt: skip
_UNSAFE: Final = frozenset(
    {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "fsdir", "lsmode", "sqlite_log"}
)
_READ, _SELECT, _FUNCTION = 20, 21, 31
_READING: Final = frozenset({_READ, _SELECT, _FUNCTION, 33})  # 33: a recursive SELECT
# Functions and virtual tables in views need no switch of their own (trusted_schema): the authorizer sees
# those in views too, and there are none but SQLite's. With it no view of a full-text table could be read.
_PRAGMAS: Final = ("query_only = 1", "cell_size_check = ON")
_LIMITS: Final = (
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST_SQL),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _LONGEST_PATTERN),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 1_000),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 500),
    (sqlite3.SQLITE_LIMIT_VDBE_OP, 10_000_000),
    (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
)
_VIRTUAL: Final = """
    SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0
    UNION ALL VALUES ('json_each'), ('json_tree'), ('generate_series'), ('dbstat')
"""


class Boundary:
    """What a connection may do.

    Attributes:
        connection: The connection.
        denied: The action that the current statement was denied; empty if there is none.
    """

    def __init__(self, connection: sqlite3.Connection, is_late: Callable[[], bool]) -> None:
        """Bind the connection.

        Args:
            connection: The connection.
            is_late: Whether the time of the current statement is over.

        Raises:
            sqlite3.Error: The file cannot be read; the connection is closed.
        """
        self.denied = ""
        self.connection = connection
        self._is_lifted = False
        self._is_late = is_late
        try:
            connection.set_progress_handler(is_late, _OPERATIONS)
            for name, value in _LIMITS:
                connection.setlimit(name, value)
            for pragma in _PRAGMAS:
                connection.execute(f"PRAGMA {pragma}").close()
            connection.set_authorizer(self._authorize)
            with self.lifted():  # connecting a virtual table takes more rights than reading it
                for (table,) in connection.execute(_VIRTUAL).fetchall():
                    with suppress(sqlite3.DatabaseError):  # this SQLite may lack its module
                        connection.execute(select("1", quoted(table), 0)).close()
        except BaseException:
            connection.close()
            raise

    def begin(self, sql: str = "") -> None:
        """Begin a statement: the more values it may hold at once, the smaller each of them has to be."""
        self.denied = ""
        values = 1 + min(_MOST_VALUES, sql.count(",") + sql.count("("))
        self.connection.setlimit(_LENGTH, min(_LONGEST_VALUE, _LARGEST_ROW // values))

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Let statements of this package read the description of the tables."""
        self.begin()
        self._is_lifted = True
        try:
            yield
        finally:
            self._is_lifted = False

    def _authorize(self, action: int, _first: str | None, second: str | None, *_: object) -> int:
        if self._is_late():  # while the statement is prepared: views of views may take forever
            return sqlite3.SQLITE_DENY
        if self._is_lifted:
            return sqlite3.SQLITE_OK
        name = (second or "").lower() if action == _FUNCTION else ""
        if action in _READING and name not in _UNSAFE:
            if name in _SLOW:
                self.connection.setlimit(_LENGTH, min(_SLOW[name], self.connection.getlimit(_LENGTH)))
            return sqlite3.SQLITE_OK
        self.denied = self.denied or (second if action == _FUNCTION and second else "more than reading")
        return sqlite3.SQLITE_DENY


def connect(path: str, options: str, seconds: float = 0.0) -> sqlite3.Connection:
    """Open a file for reading.

    Args:
        path: The file.
        options: More options of its URI.
        seconds: How long to wait for the locks of other programs.
    """
    return sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode=ro&{options}",
        uri=True,
        timeout=seconds,
        isolation_level=None,
        check_same_thread=False,  # another thread may interrupt it, and close it while it is idle
        cached_statements=0,  # each statement passes the authorizer again
    )

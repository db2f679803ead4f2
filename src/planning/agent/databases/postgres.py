"""A PostgreSQL database that statements can only read.

Each of these holds by itself: the transaction is read-only, which cannot be changed after its first query,
and is always rolled back; the server takes one statement at a time, and only as a query in brackets; and a
statement calls no volatile function but a few that change nothing.

Rows are sent one by one and counted. FETCH from a cursor would have the server store them all before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from decimal import Decimal
from math import isfinite
from time import monotonic
from typing import Any, Final

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from planning.agent.databases.postgres_calls import check_calls
from planning.agent.databases.postgres_tables import add_values, read_tables
from planning.agent.databases.rows import MOST_BYTES, fetched
from planning.agent.sql.guard import Failure
from session.errors import StoreError
from session.stores.postgres_link import Connections, reason_of

_BEGIN: Final = (
    "BEGIN READ ONLY; SET LOCAL statement_timeout = {0}; SET LOCAL lock_timeout = {1}; "
    "SET LOCAL idle_in_transaction_session_timeout = {0}; SET LOCAL standard_conforming_strings = on; "
    "SET LOCAL datestyle = ISO; SET LOCAL intervalstyle = postgres; SET LOCAL bytea_output = hex"
)
_LONGEST_WAIT: Final = 2_000  # milliseconds, for a lock
_LARGE: Final = "a row is too large"
_SHORT: Final = frozenset({16, 18, 19, 20, 21, 23, 26, 700, 701, 1082, 1083, 1114, 1184, 1186, 1266, 2950})
_STRINGS: Final = frozenset({17, 25, 1042, 1043})  # their length is known without reading them
_LOST: Final = frozenset({"08", "28", "3D", "40", "53", "57", "58"})
_KINDS: Final = {
    "57014": "timeout",
    "55P03": "locked",
    "25001": "refused",
    "25006": "refused",
    "53200": "memory",
    "53400": "memory",
    "54000": "large",
    "XX000": "broken",
}
_HINTED: Final = frozenset({"42883"})  # an unknown function or operator: its hint says nothing new
_REFUSED: Final = {"multiple commands": "more than one statement", "data-modifying": "writing"}
_PLAIN: Final = frozenset({"bool", "int2", "int4", "int8", "oid", "bytea"})
_NUMBERS: Final = frozenset({"numeric", "float4", "float8"})
_MOST_DIGITS: Final = 40
_MOST_DECIMALS: Final = 6  # more are those of a division


class PostgresDatabase:
    """One database, and the connection to it, which is made when it is needed.

    Attributes:
        deadline: See ``SqliteFile``.
        version: That of the server; empty before it was connected.
    """

    version = ""

    def __init__(self, address: str) -> None:
        self.deadline = 0.0
        self._address = address
        self._connections: Connections | None = None
        self._connection: psycopg.Connection[Any] | None = None
        self._is_stopped = False

    def run(self, sql: str, most_rows: int) -> tuple[list[str], list[list[Any]], bool]:
        """Run one statement; see ``SqliteFile``."""
        with self._session() as connection:
            columns = _prepared(connection, sql)
            check_calls(connection, sql)
            rows_of: Any = connection.cursor().stream(f"{_measured(sql, columns)} LIMIT {most_rows + 1}")
            with closing(rows_of) as stream:
                rows, is_more = fetched((row[:-1] for row in stream), most_rows)
                if is_more and len(rows) < most_rows:
                    self.close()  # the server would send the other rows, too
                else:
                    next(stream, None)  # the end, so that no cancel is sent
            return [name for name, _ in columns], rows, is_more

    def tables(self, samples: int, until: float) -> list[dict[str, Any]]:
        """Read the tables; see ``SqliteFile``."""
        with self._session() as connection:
            tables = read_tables(connection)
        if not tables:
            raise Failure("server", "its role may read no table on the search path: grant it SELECT")
        for table in tables if samples >= 0 else ():
            try:
                with self._session(until) as connection:
                    add_values(connection, table, samples)
            except Failure as failure:  # such as a lock: the other tables may be read
                if failure.kind == "server" or monotonic() > min(until, self.deadline):
                    break
        return tables

    def interrupt(self) -> None:
        """Stop the current statement; called from another thread."""
        connection, self._is_stopped = self._connection, True
        if connection is not None:
            with suppress(psycopg.Error):  # it was closed just now
                connection.cancel_safe(timeout=1)

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    rest = close

    @contextmanager
    def _session(self, until: float | None = None) -> Iterator[psycopg.Connection[Any]]:
        """The connection in a transaction that reads; errors of the block are raised as a ``Failure``."""
        try:
            if self._is_stopped:  # the server may stop the next statement, too
                self.close()
                self._is_stopped = False
            left = min(until or self.deadline, self.deadline) - monotonic()
            if left <= 0:
                raise Failure("timeout")
            if self._connection is None or self._connection.closed:
                self._connections = self._connections or Connections(self._address, 1)
                self._connection = _with_loaders(self._connections.open(left / 2))
                self.version = "{}.{}".format(*divmod(self._connection.info.server_version, 10_000))
            connection, milliseconds = self._connection, max(1, int(left * 1_000))
            connection.execute(_BEGIN.format(milliseconds, min(_LONGEST_WAIT, milliseconds // 2 + 1)))
            yield connection
        except StoreError as error:  # the address cannot be read
            raise Failure("server", str(error)) from None
        except psycopg.Error as error:
            raise self._failure(error) from None
        except MemoryError:
            raise Failure("memory") from None
        finally:
            self._roll_back()

    def _roll_back(self) -> None:
        if self._connection is not None:
            try:
                self._connection.execute("ROLLBACK")
            except psycopg.Error:
                self.close()

    def _failure(self, error: psycopg.Error) -> Failure:
        code, text = error.sqlstate or "", error.diag.message_primary or ""
        kinds = [what for words, what in _REFUSED.items() if words in text]
        if code in _KINDS or kinds:
            return Failure(_KINDS.get(code, "refused"), *(kinds or ["writing"]))
        if self._connection is None or self._connection.closed or code[:2] in _LOST:
            return Failure("timeout" if self._is_stopped else "server", reason_of(error))
        if text.endswith(f'"{_LARGE}"'):
            return Failure("large")
        hint = None if code in _HINTED else error.diag.message_hint
        return Failure("sql", f"{text or error}; {hint.rstrip('.')}" if hint else text or str(error))


def _prepared(connection: psycopg.Connection[Any], sql: str) -> list[tuple[str, int]]:
    """The names and types of the columns of a statement, which the server only reads.

    In this protocol it takes one statement.
    """
    _check(connection.pgconn.prepare(b"", sql.encode()))
    result = connection.pgconn.describe_prepared(b"")
    _check(result)
    if result.nparams:
        raise Failure("sql", "Values were not provided")
    names = [(result.fname(number) or b"").decode("utf-8", "replace") for number in range(result.nfields)]
    return [(name, result.ftype(number)) for number, name in enumerate(names)]


def _check(result: PGresult) -> None:
    if result.status != ExecStatus.COMMAND_OK:
        raise psycopg.errors.error_from_result(result)


def _measured(sql: str, columns: list[tuple[str, int]]) -> str:
    """A statement that fails where a row is too large for an answer, before the row is sent."""
    names = [f"c{number}" for number in range(len(columns))]
    sizes = [
        f"coalesce(pg_catalog.octet_length({name}), 0)"
        if kind in _STRINGS
        else f"pg_catalog.octet_length(pg_catalog.concat({name}))"
        for name, (_, kind) in zip(names, columns, strict=True)
        if kind not in _SHORT
    ]
    size = " + ".join(["0::bigint", *sizes])
    check = (
        f"CASE WHEN {size} > {MOST_BYTES} THEN ('{_LARGE}' || pg_catalog.left(({size})::text, 0))::int END"
    )
    renamed = f"b({', '.join(names)})" if names else "b"
    return f"SELECT {', '.join([*names, check])} FROM (SELECT * FROM (\n{sql}\n) AS a OFFSET 0) AS {renamed}"  # noqa: S608 - the statement itself, in brackets


class _Text(Loader):
    """A value as PostgreSQL writes it: Python has no year 10000, and JSON no dates."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode("utf-8", "replace")


class _Number(Loader):
    """A number; a string if JSON has no such number."""

    def load(self, data: Buffer) -> int | float | str:
        text = bytes(data).decode()
        if text.removeprefix("-").isdecimal() and len(text) < _MOST_DIGITS:
            return int(text)
        number = float(text)
        is_near = len(text.partition(".")[2]) >= _MOST_DECIMALS or Decimal(repr(number)) == Decimal(text)
        return number if isfinite(number) and is_near else text


def _with_loaders(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    connection.prepare_threshold = None  # a pooler may give the next statement to another connection
    for kind in connection.adapters.types:
        if kind.name not in _PLAIN:
            connection.adapters.register_loader(kind.oid, _Number if kind.name in _NUMBERS else _Text)
    connection.adapters.register_loader(0, _Text)  # any other type
    return connection

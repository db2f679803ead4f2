"""A PostgreSQL database that statements can only read.

Each of these holds by itself: the transaction is read-only, which cannot be changed after its first query,
and is always rolled back; the server takes one statement at a time, and only as a query in brackets; and a
statement calls no volatile function but a few that change nothing: a read-only transaction still stops other
sessions, takes advisory locks, and writes files.

Rows are sent one by one and counted. FETCH from a cursor would have the server store them all before.
"""

from __future__ import annotations

import json
import re
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

from planning.agent.databases.opened import (
    MOST_BYTES,
    Answer,
    OpenDatabase,
    Table,
    add_samples,
    as_shown,
    count_rows,
    fetched,
)
from planning.agent.sql.guard import Failure
from planning.agent.sql.schema import MOST_COUNTED, ExactName, literal, quoted
from session.errors import StoreError
from session.stores.postgres_link import Connections, reason_of

_BEGIN: Final = (
    "BEGIN READ ONLY; SET LOCAL statement_timeout = {0}; SET LOCAL lock_timeout = {1}; "
    "SET LOCAL idle_in_transaction_session_timeout = {0}; SET LOCAL standard_conforming_strings = on; "
    "SET LOCAL datestyle = ISO; SET LOCAL intervalstyle = postgres; SET LOCAL bytea_output = hex"
)
_LONGEST_WAIT: Final = 2_000  # milliseconds, for a lock
_LARGE: Final = "a row is too large"
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


class PostgresDatabase(OpenDatabase):
    """One database of a server."""

    _connections: Connections | None = None
    _is_stopped = False

    def run(self, sql: str, most_rows: int) -> Answer:
        """See ``OpenDatabase``."""
        with self._session() as connection:
            columns = _prepare(connection, sql)
            _check_calls(connection, sql)
            rows_of: Any = connection.cursor().stream(f"{_limit_rows(sql, columns)} LIMIT {most_rows + 1}")
            with closing(rows_of) as stream:
                rows, is_more = fetched((row[:-1] for row in stream), most_rows)
                if is_more and len(rows) < most_rows:
                    self.close()  # the server would send the other rows, too
                else:
                    next(stream, None)  # the end, so that no cancel is sent
            return [name for name, _ in columns], rows, is_more

    def tables(self, samples: int, until: float) -> list[Table]:
        """See ``OpenDatabase``."""
        with self._session() as connection:
            tables = _read_tables(connection)
        if not tables:
            raise Failure("server", "its role may read no table on the search path: grant it SELECT")
        for table in tables if samples >= 0 else ():
            try:
                with self._session(until) as connection:
                    _add_values(connection, table, samples)
            except Failure as failure:  # such as a lock: the other tables may be read
                if failure.kind == "server" or monotonic() > min(until, self.deadline):
                    break
        return tables

    def interrupt(self) -> None:
        """See ``OpenDatabase``."""
        connection, self._is_stopped = self._connection, True
        if connection is not None:
            with suppress(psycopg.Error):  # it was closed just now
                connection.cancel_safe(timeout=1)

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
                self._connections = self._connections or Connections(self._place, 1)
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


def _prepare(connection: psycopg.Connection[Any], sql: str) -> list[tuple[str, int]]:
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


def _limit_rows(sql: str, columns: list[tuple[str, int]]) -> str:
    """A statement that fails where a row is too large for an answer, before the row is sent."""
    names = [f"c{number}" for number in range(len(columns))]
    sizes = [
        f"coalesce(pg_catalog.octet_length({name}), 0)"
        if kind in _STRINGS
        else f"pg_catalog.octet_length(pg_catalog.concat({name}))"
        for name, (_, kind) in zip(names, columns, strict=True)
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


# The functions that a statement calls, as PostgreSQL reads its text. What changes something is a volatile
# function, or runs a statement that it is given as text (crosstab, connectby, xpath_table).

_HARMLESS: Final = [
    *("random", "random_normal", "gen_random_uuid", "uuidv4", "uuidv7", "clock_timestamp", "timeofday"),
    *("pg_relation_size", "pg_table_size", "pg_indexes_size", "pg_total_relation_size", "pg_database_size"),
    *("bernoulli", "system"),
]
_VOLATILE: Final = """
    SELECT p.proname FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
    WHERE (p.proname = ANY(%s)
            OR p.proname = ANY(%s) AND p.pronargs > 0 AND p.pronargs - p.pronargdefaults < 2)
        AND p.prorettype NOT IN ('trigger'::pg_catalog.regtype, 'event_trigger'::pg_catalog.regtype)
        AND (pg_catalog.pg_function_is_visible(p.oid) OR n.nspname = ANY(%s))
        AND (p.provolatile = 'v' OR p.proname ~ '^(txid_current|pg_current_xact_id|connectby|xpath_table)$'
            OR p.proname ~ '^crosstab')
        AND NOT (n.nspname = 'pg_catalog' AND p.proname = ANY(%s)) LIMIT 1
"""
_LETTER: Final = "A-Za-z_\x80-\U0010ffff"
_ESCAPED: Final = r"'(?:[^'\\]|\\.|'')*+'"
_TOKEN: Final = re.compile(  # what does not end is an error of PostgreSQL
    rf"""(?P<space>[\ \t\r\n\f\v]++|--[^\r\n]*+|/\*(?:(?!/\*|\*/).)*+\*/)
    |(?P<string>[eE]{_ESCAPED}(?:(?:[\ \t\r\n\f\v]|--[^\r\n]*+)*+{_ESCAPED})*+|'(?:[^']|'')*+'
        |(?P<mark>\$(?:[{_LETTER}][{_LETTER}0-9]*+)?\$).*?(?P=mark))
    |(?P<odd>/\*|[uU]&")
    |(?P<name>[{_LETTER}][{_LETTER}0-9$]*+|"(?:[^"]|"")*+")
    |(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)


def _check_calls(connection: psycopg.Connection[Any], sql: str) -> None:
    """Refuse calls of functions that may change something: ``name(...)``, or of one value ``(x).name``."""
    tokens = [token for token in _TOKEN.finditer(sql) if token.lastgroup != "space"]
    if any(token["odd"] for token in tokens):
        raise Failure("refused", "a comment in a comment, or a name in Unicode escapes,")
    texts = ["", *(token[0] for token in tokens), ""]
    names, called, dotted = list[str](), list[str](), list[str]()
    for before, token, after in zip(texts, tokens, texts[2:], strict=False):
        if token["name"]:
            is_quoted = token[0].startswith('"')
            # The server cuts what is too long for a name, as in a statement.
            names.append(token[0][1:-1].replace('""', '"') if is_quoted else token[0].lower())
            if after == "(":
                called.append(names[-1])
            elif before == ".":
                dotted.append(names[-1])
    for (name,) in connection.execute(_VOLATILE, (called, dotted, names, _HARMLESS)):
        raise Failure("refused", f"calling {name}, which may change something,")


# Columns that the role may read; of keys, those between such columns. Partitions are in their table.
_TABLES: Final = """
    WITH readable AS (
        SELECT c.*, n.nspname, CASE WHEN pg_table_is_visible(c.oid) THEN '' ELSE n.nspname END AS prefix
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'f', 'm', 'v') AND NOT c.relispartition
            AND n.nspname = ANY(current_schemas(false))
    ), columns AS (
        SELECT a.attrelid, a.attnum, a.attname, json_build_object(
            'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'not_null', a.attnotnull,
            'primary', coalesce(array_position(k.conkey, a.attnum), 0),
            'comment', col_description(a.attrelid, a.attnum), 'samples', ARRAY[]::text[],
            'values', ARRAY(SELECT e.enumlabel FROM pg_enum AS e WHERE e.enumtypid = coalesce(
                nullif(t.typbasetype, 0), nullif(t.typelem, 0), t.oid) ORDER BY e.enumsortorder)) AS described
        FROM readable AS r JOIN pg_attribute AS a ON a.attrelid = r.oid
            JOIN pg_type AS t ON t.oid = a.atttypid
            LEFT JOIN pg_constraint AS k ON k.conrelid = a.attrelid AND k.contype = 'p'
        WHERE a.attnum > 0 AND NOT a.attisdropped AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
    ), keys AS MATERIALIZED (
        SELECT k.conrelid, k.conname, json_build_object('table', r.relname, 'columns', json_agg(c.attname
            ORDER BY u.place), 'targets', json_agg(d.attname ORDER BY u.place)) AS described
        FROM pg_constraint AS k JOIN readable AS r ON r.oid = k.confrelid
            CROSS JOIN unnest(k.conkey, k.confkey) WITH ORDINALITY AS u(from_number, to_number, place)
            LEFT JOIN columns AS c ON c.attrelid = k.conrelid AND c.attnum = u.from_number
            LEFT JOIN columns AS d ON d.attrelid = k.confrelid AND d.attnum = u.to_number
        WHERE k.contype = 'f' AND k.conparentid = 0
        GROUP BY k.oid, k.conrelid, k.conname, r.relname
        HAVING count(c.*) = count(*) AND count(d.*) = count(*)
    )
    SELECT json_build_object('name', r.relname, 'schema', r.prefix, 'rows', null, 'stored', r.relkind,
        'kind', CASE WHEN r.relkind IN ('m', 'v') THEN 'view' ELSE 'table' END, 'is_large', r.reltuples > %s,
        'comment', obj_description(r.oid, 'pg_class'), 'columns', json_agg(c.described ORDER BY c.attnum),
        'foreign_keys', ARRAY(SELECT k.described FROM keys AS k WHERE k.conrelid = r.oid ORDER BY k.conname))
    FROM readable AS r JOIN columns AS c ON c.attrelid = r.oid
    GROUP BY r.oid, r.relname, r.prefix, r.relkind, r.reltuples, r.nspname
    ORDER BY r.relkind IN ('m', 'v'), array_position(current_schemas(false), r.nspname), r.relname
"""
_SHORT_TYPES: Final = ("smallint", "integer", "bigint", "numeric", "real", "double", "bool")


def _read_tables(connection: psycopg.Connection[Any]) -> list[Table]:
    """The tables that a role may read, from the catalogue."""
    rows = connection.execute(_TABLES, (2 * MOST_COUNTED,))
    tables = [json.loads(table, object_hook=_exact) for (table,) in rows]
    for column in [column for table in tables for column in table["columns"]]:
        if column["values"]:
            column["type"] += f" ({', '.join(map(literal, column['values']))})"
    return tables


def _add_values(connection: psycopg.Connection[Any], table: Table, samples: int) -> None:
    """Add values to a table, and how many rows it has. Those of views and foreign tables cost too much."""
    source = ".".join(quoted(name) for name in (table["schema"], table["name"]) if name)
    if samples and table["stored"] in "rpm":
        add_samples(table, source, connection.execute, samples, _as_shown)
    if table["stored"] in "rp" and table["is_large"]:  # by the statistics
        table["rows"] = MOST_COUNTED + 1
    elif table["stored"] in "rp":
        count_rows(table, source, connection.execute)


def _exact(described: Table) -> Table:
    """A table, a column or a key with its names marked: they may need quotes."""
    for key in ("name", "schema", "table"):
        described |= {key: ExactName(described[key])} if key in described else {}
    for key in ("columns", "targets"):
        names = described.get(key, [])
        described |= {key: [*map(ExactName, names)]} if all(isinstance(name, str) for name in names) else {}
    return described


def _as_shown(column: Table) -> str:
    kind = column["type"]
    is_number = kind.startswith(_SHORT_TYPES) and not kind.endswith("]")
    return as_shown(column, is_hidden=kind == "bytea" or bool(column["values"]), is_number=is_number)

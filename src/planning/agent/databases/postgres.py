"""A PostgreSQL database that statements can only read.

Each of these holds by itself: the transaction is read-only, which cannot be changed after its first query,
and is always rolled back; the server takes one statement at a time, and only as the query of a cursor; and
a statement calls no volatile function but a few that change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from decimal import Decimal
from math import isfinite
from time import monotonic
from typing import Any, Final

import psycopg
from psycopg.adapt import Loader
from psycopg.pq import ExecStatus

from planning.agent.databases.rows import MOST_BYTES, SAMPLED, add_samples, fetched
from planning.agent.sql.failures import Failure
from planning.agent.sql.schema import MOST_COUNTED, literal, quoted, select
from session.errors import StoreError
from session.stores.postgres_link import Connections, reason_of

_BEGIN: Final = (
    "BEGIN READ ONLY; SET LOCAL statement_timeout = {0}; SET LOCAL lock_timeout = {1}; "
    "SET LOCAL idle_in_transaction_session_timeout = {0}; SET LOCAL standard_conforming_strings = on; "
    "SET LOCAL datestyle = ISO; SET LOCAL intervalstyle = postgres; SET LOCAL bytea_output = hex"
)
_HARMLESS: Final = (
    "random random_normal clock_timestamp timeofday gen_random_uuid uuidv4 uuidv7 bernoulli system "
    "pg_relation_size pg_table_size pg_indexes_size pg_total_relation_size pg_database_size"
).split()
_CALLED: Final = """
    SELECT p.proname FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.proname = ANY(%s) AND (pg_catalog.pg_function_is_visible(p.oid) OR n.nspname = ANY(%s))
        AND (p.provolatile = 'v' OR p.proname IN ('txid_current', 'pg_current_xact_id'))
        AND NOT (n.nspname = 'pg_catalog' AND p.proname = ANY(%s)) LIMIT 1
"""
_LETTER: Final = "A-Za-z_\x80-\U0010ffff"
_ESCAPED: Final = r"'(?:[^'\\]|\\.|'')*+'"
_TOKEN: Final = re.compile(  # as PostgreSQL reads them; it refuses what does not end
    rf"""(?P<space>[\ \t\r\n\f\v]++|--[^\r\n]*+|/\*(?:(?!/\*|\*/).)*+\*/)
    |(?P<string>[eE]{_ESCAPED}(?:(?:[\ \t\r\n\f\v]|--[^\r\n]*+)*+{_ESCAPED})*+|'(?:[^']|'')*+'
        |(?P<mark>\$(?:[{_LETTER}][{_LETTER}0-9]*+)?\$).*?(?P=mark))
    |(?P<odd>/\*|[uU]&")|(?P<name>[{_LETTER}][{_LETTER}0-9$]*+|"(?:[^"]|"")*+")|(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_SHORT: Final = frozenset({16, 18, 19, 20, 21, 23, 26, 700, 701, 1082, 1083, 1114, 1184, 1186, 1266, 2950})
_STRINGS: Final = frozenset({17, 25, 1042, 1043})  # their length is known without reading them
_LARGE: Final = "a row of the answer is too large"
_SERVER: Final = frozenset({"08", "28", "3D", "40", "53", "57", "58"})
_KINDS: Final = {
    "57014": "timeout",
    "55P03": "locked",
    "25006": "refused",
    "53200": "memory",
    "53400": "memory",
    "54000": "large",
    "XX000": "broken",
}
_NUMBERS: Final = ("smallint", "integer", "bigint", "numeric", "real", "double", "bool")
_DIGITS: Final = 40
_DECIMALS: Final = 6
_TABLES: Final = """
    SELECT c.oid, CASE WHEN pg_table_is_visible(c.oid) THEN '' ELSE n.nspname END, c.relname, c.relkind::text,
        c.reltuples > %s, obj_description(c.oid, 'pg_class'), a.attname, format_type(a.atttypid, a.atttypmod),
        a.attnotnull, coalesce(array_position(k.conkey, a.attnum), 0), col_description(c.oid, a.attnum),
        ARRAY(SELECT enumlabel FROM pg_enum WHERE enumtypid = coalesce(nullif(t.typbasetype, 0),
            nullif(t.typelem, 0), t.oid) ORDER BY enumsortorder)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN pg_attribute AS a ON a.attrelid = c.oid JOIN pg_type AS t ON t.oid = a.atttypid
        LEFT JOIN pg_constraint AS k ON k.conrelid = c.oid AND k.contype = 'p'
    WHERE c.relkind IN ('r', 'p', 'f', 'm', 'v') AND NOT c.relispartition AND a.attnum > 0
        AND NOT a.attisdropped AND n.nspname = ANY(current_schemas(false))
        AND has_column_privilege(c.oid, a.attnum, 'SELECT')
    ORDER BY c.relkind IN ('m', 'v'), array_position(current_schemas(false), n.nspname), c.relname, a.attnum
"""
_KEYS: Final = """
    SELECT conrelid, confrelid, ARRAY(SELECT attname FROM unnest(conkey) WITH ORDINALITY AS u(number, place)
            JOIN pg_attribute ON attrelid = conrelid AND attnum = number ORDER BY place),
        ARRAY(SELECT attname FROM unnest(confkey) WITH ORDINALITY AS u(number, place)
            JOIN pg_attribute ON attrelid = confrelid AND attnum = number ORDER BY place)
    FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 ORDER BY conrelid, conname
"""


class PostgresDatabase:
    """One database, and the connection to it, which is made when it is needed.

    Attributes:
        deadline: See ``SqliteFile``.
    """

    def __init__(self, address: str) -> None:
        self.deadline = 0.0
        self._address = address
        self._connections: Connections | None = None
        self._connection: psycopg.Connection[Any] | None = None
        self._is_stopped = False

    def run(self, sql: str, most_rows: int) -> tuple[list[str], list[list[Any]], bool]:
        """Run one statement; see ``SqliteFile``."""
        with self._session() as connection:
            columns = _prepare(connection, sql)
            _check_calls(connection, sql)
            _send(connection, f"DECLARE answer NO SCROLL CURSOR FOR {_measured(sql, columns)}")
            with closing(connection.cursor().stream(f"FETCH {most_rows + 1} FROM answer")) as rows:
                return [name for name, _ in columns], *fetched((row[:-1] for row in rows), most_rows)

    def probe(self, sql: str) -> str:
        """The error of a statement that is only prepared; see ``SqliteFile``."""
        try:
            with self._session() as connection:
                _prepare(connection, sql)
        except Failure as failure:
            return failure.text or failure.kind
        return ""

    def tables(self, samples: int, until: float) -> list[dict[str, Any]]:
        """Read the tables; see ``SqliteFile``."""
        found: dict[int, dict[str, Any]] = {}
        kinds: dict[int, tuple[str, bool]] = {}
        with self._session() as connection:
            rows = connection.execute(_TABLES, (2 * MOST_COUNTED,)).fetchall()
            for oid, schema, name, kind, is_large, comment, *column in rows:
                kinds[oid] = kind, is_large
                found.setdefault(oid, _table(schema, name, kind, comment))["columns"].append(_column(*column))
            for oid, target, names, targets in connection.execute(_KEYS).fetchall():
                known = {column["name"] for column in found.get(oid, {"columns": ()})["columns"]}
                if target in found and known.issuperset(names):
                    key = {"columns": names, "table": found[target]["name"], "targets": targets}
                    found[oid]["foreign_keys"].append(key)
        if not found:
            raise Failure("server", "this role may read no table on its search path: grant it SELECT on some")
        for oid, table in found.items():
            kind, is_large = kinds[oid]
            if samples >= 0 and kind in "rpm" and monotonic() < until:
                try:
                    self._add_values(table, samples, until, is_large=is_large)
                except Failure as failure:  # such as a lock: the others may be read
                    if failure.kind == "server":
                        raise
        return list(found.values())

    def _add_values(self, table: dict[str, Any], samples: int, until: float, *, is_large: bool) -> None:
        source = ".".join(quoted(name) for name in (table["schema"], table["name"]) if name)
        with self._session(until) as connection:
            if samples:
                chosen = ", ".join(map(_chosen, table["columns"]))
                add_samples(table, connection.execute(select(chosen, source, SAMPLED)).fetchall(), samples)
            counted = select("count(*)", f"({select('1', source, MOST_COUNTED + 1)}) AS t", 1)
            rows = [(MOST_COUNTED + 1,)] if is_large else connection.execute(counted).fetchall()
            ((table["rows"],),) = rows if table["kind"] == "table" else [(None,)]

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
            if self._is_stopped:  # to stop a statement, the server may take until the next one
                self.close()
                self._is_stopped = False
            left = min(until or self.deadline, self.deadline) - monotonic()
            if self._connection is None or self._connection.closed:
                self._connections = self._connections or Connections(self._address, 1)
                self._connection = _with_loaders(self._connections.open(left / 2))
            connection, milliseconds = self._connection, max(1, int(left * 1_000))
            connection.execute(_BEGIN.format(milliseconds, min(2_000, milliseconds // 2 + 1)))
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
        code, text = error.sqlstate or "", error.diag.message_primary or str(error)
        if code in _KINDS:
            return Failure(_KINDS[code], "writing")
        if self._connection is None or self._connection.closed or code[:2] in _SERVER:
            return Failure("timeout" if self._is_stopped else "server", reason_of(error))
        if "multiple commands" in text:
            return Failure("refused", "more than one statement")
        if text.endswith(f'"{_LARGE}"'):
            return Failure("large")
        hint = error.diag.message_hint
        return Failure("sql", f"{text}; {hint}" if hint else text)


def _prepare(connection: psycopg.Connection[Any], sql: str) -> list[tuple[str, int]]:
    """Have the server read one statement: the names and types of its columns."""
    _checked(connection.pgconn.prepare(b"", sql.encode()))
    result = connection.pgconn.describe_prepared(b"")
    _checked(result)
    names = [(result.fname(number) or b"").decode("utf-8", "replace") for number in range(result.nfields)]
    return [(name, result.ftype(number)) for number, name in enumerate(names)]


def _send(connection: psycopg.Connection[Any], sql: str) -> None:
    """Run one statement: in this protocol the server takes no second one."""
    _checked(connection.pgconn.exec_params(sql.encode(), []))


def _checked(result: Any) -> None:
    if result.status != ExecStatus.COMMAND_OK:
        raise psycopg.errors.error_from_result(result)


def _check_calls(connection: psycopg.Connection[Any], sql: str) -> None:
    """Refuse a statement that calls what may change something.

    A function is called by ``name(...)``, and one with a single parameter by ``(value).name`` too.
    """
    tokens = [token for token in _TOKEN.finditer(sql) if token.lastgroup != "space"]
    if any(token["odd"] for token in tokens):
        raise Failure("refused", "a comment in a comment, or a name in Unicode escapes,")
    names, called = list[str](), list[str]()
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if token["name"]:
            name = token[0][1:-1].replace('""', '"') if token[0][0] == '"' else token[0].lower()
            names.append(name.encode()[:63].decode(errors="ignore"))
            called += names[-1:] if before and before[0] == "." or after and after[0] == "(" else []
    for (name,) in connection.execute(_CALLED, (called, names, _HARMLESS)):
        raise Failure("refused", f"calling {name}, which may change something,")


def _measured(sql: str, columns: list[tuple[str, int]]) -> str:
    """A statement that fails where a row is too large for an answer, before the row is sent."""
    names = [f"c{number}" for number in range(len(columns))]
    sizes = [
        f"coalesce(octet_length({name}), 0)" if kind in _STRINGS else f"octet_length(concat({name}))"
        for name, (_, kind) in zip(names, columns, strict=True)
        if kind not in _SHORT
    ]
    size = " + ".join(["0::bigint", *sizes])
    guard = f"CASE WHEN {size} > {MOST_BYTES} THEN concat('{_LARGE}', left(({size})::text, 0))::int END"
    return (
        f"SELECT {', '.join([*names, guard])} FROM "  # noqa: S608 - the statement itself, in brackets
        f"(SELECT * FROM (\n{sql}\n) AS a OFFSET 0) AS b" + (f"({', '.join(names)})" if names else "")
    )


def _table(schema: str, name: str, kind: str, comment: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "schema": schema,
        "kind": "view" if kind in "vm" else "table",
        "comment": comment or "",
        "columns": [],
        "foreign_keys": [],
        "rows": None,
    }


def _column(
    name: str, kind: str, not_null: bool, primary: int, comment: str | None, values: list[str]
) -> dict[str, Any]:
    return {
        "name": name,
        "type": f"{kind} ({', '.join(map(literal, values))})" if values else kind,
        "not_null": not_null,
        "primary": primary,
        "comment": comment or "",
        "samples": [],
    }


def _chosen(column: dict[str, Any]) -> str:
    """A column as it can be shown: long values cut, and all but numbers as text."""
    name, kind = quoted(column["name"]), column["type"]
    if kind.startswith(_NUMBERS) and not kind.endswith("]"):
        return name
    return "NULL" if kind == "bytea" else f"left({name}::text, 200)"


class _Text(Loader):
    """Any other type, as PostgreSQL writes it: Python has no year 10000, nor an infinite date."""

    def load(self, data: Any) -> str:
        return bytes(data).decode("utf-8", "replace")


class _Number(Loader):
    """A number; a string if JSON has no such number."""

    def load(self, data: Any) -> int | float | str:
        text = bytes(data).decode()
        if text.removeprefix("-").isdecimal() and len(text) < _DIGITS:
            return int(text)
        number = float(text)
        is_near = len(text.partition(".")[2]) > _DECIMALS or Decimal(repr(number)) == Decimal(text)
        return number if isfinite(number) and is_near else text


class _Float(Loader):
    def load(self, data: Any) -> float | str:
        number = float(data)
        return number if isfinite(number) else bytes(data).decode()


def _with_loaders(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    connection.prepare_threshold = None
    for kind in connection.adapters.types:
        if kind.name not in {"bool", "int2", "int4", "int8", "oid", "bytea"}:
            connection.adapters.register_loader(kind.oid, _LOADERS.get(kind.name, _Text))
    connection.adapters.register_loader(0, _Text)
    return connection


_LOADERS: Final[dict[str, type[Loader]]] = {"numeric": _Number, "float4": _Float, "float8": _Float}

"""A store in a PostgreSQL database: for many sessions, and the processes of several machines."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import attrs
import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from session.errors import StoreError, TransactionError, shown
from session.events import SessionId
from session.stores.base import Store
from session.stores.chain import (
    NESTED,
    Checkpoint,
    StoredChange,
    StoredSession,
    check_of,
    key_of,
    no_session,
    refuse_copy,
    stale,
)
from session.stores.postgres_link import (
    Connection,
    Connections,
    GivenConnections,
    Listener,
    explained,
    parts_of,
)
from session.stores.watch import Watch

__all__ = ["PostgresStore"]

_FORMAT = 1
_POLLED = 1.0
"""How many seconds a watch waits for a notification before it looks by itself."""
_SCHEMA = """DO $session$
BEGIN
PERFORM pg_advisory_xact_lock(hashtextextended({name}, 0));
IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = {name}) THEN
    CREATE SCHEMA {schema};
END IF;
CREATE TABLE IF NOT EXISTS {schema}.store (format integer NOT NULL);
CREATE TABLE IF NOT EXISTS {schema}.sessions (
    key bigint PRIMARY KEY,
    id text NOT NULL,
    version bigint NOT NULL,
    hash bytea NOT NULL,
    changed_at text COLLATE "C" NOT NULL,
    about text NOT NULL,
    checked bytea NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS {schema}.changes (
    session bigint NOT NULL,
    version bigint NOT NULL,
    text text NOT NULL,
    hash bytea NOT NULL,
    rewound_to bigint,
    idempotency_key text,
    PRIMARY KEY (session, version)
);
CREATE INDEX IF NOT EXISTS changes_idempotency_key ON {schema}.changes (session, md5(idempotency_key))
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS changes_rewound_to ON {schema}.changes (session, version, rewound_to)
    WHERE rewound_to IS NOT NULL;
CREATE TABLE IF NOT EXISTS {schema}.checkpoints (
    session bigint NOT NULL,
    version bigint NOT NULL,
    text text NOT NULL,
    checked bytea NOT NULL,
    PRIMARY KEY (session, version)
);
CREATE TABLE IF NOT EXISTS {schema}.claims (
    session bigint NOT NULL,
    id text NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL,
    checked bytea NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS claims_name ON {schema}.claims (session, md5(name));
INSERT INTO {schema}.store SELECT {format} WHERE NOT EXISTS (SELECT FROM {schema}.store);
END
$session$"""
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = %s; "
_HEAD = (
    "SELECT id, version, hash, changed_at, about, checked, (SELECT format FROM {s}.store LIMIT 1)"
    " FROM {s}.sessions WHERE key = %s"
)
_LOST = (  # in one statement: the session may begin between two
    "SELECT EXISTS (SELECT FROM {s}.changes WHERE session = %s)"
    " AND NOT EXISTS (SELECT FROM {s}.sessions WHERE key = %s), (SELECT format FROM {s}.store LIMIT 1)"
)
_WRITE_HEAD = (
    "INSERT INTO {s}.sessions VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (key) DO UPDATE SET"
    " version = excluded.version, hash = excluded.hash, changed_at = excluded.changed_at,"
    " about = excluded.about, checked = excluded.checked; "
)
_WRITE_CHANGE = "INSERT INTO {s}.changes VALUES (%s, %s, %s, %s, %s, %s); "
_WRITE_CHECKPOINT = (
    "INSERT INTO {s}.checkpoints VALUES (%s, %s, %s, %s) ON CONFLICT (session, version) DO UPDATE SET"
    " text = excluded.text, checked = excluded.checked; "
)
# Notified after the commit: one that notifies within it would make all others of the database wait for it.
_COMMIT = "COMMIT; SELECT pg_notify(%s, %s)"

# The transactions of this thread, by the place that they write to: a thread must not wait for itself.
_here = threading.local()


@attrs.define
class _Held:
    """A transaction of this thread: a session's lock, or a snapshot to read from.

    Attributes:
        connection: What it is on.
        session_id: The session that is locked; None for a snapshot.
        row: What ``_HEAD`` says of the session, else ``_LOST``.
        is_spent: Whether it has taken a change.
        process: Where it was begun.
    """

    connection: Connection
    session_id: SessionId | None = None
    row: tuple[Any, ...] = ()
    is_spent: bool = False
    process: int = attrs.field(factory=os.getpid)

    @property
    def version(self) -> int:
        """The version of the session that is locked."""
        version: int = self.row[1] if len(self.row) > 2 else 0
        return version


class PostgresStore(Store):
    """Keeps sessions in a schema of a PostgreSQL database: many writers at once, one to each session.

    Open one for each process. Nothing is asked of the server before the store is used.

    Attributes:
        name: What the store is called in messages: the address without user and password.
    """

    def __init__(
        self, conninfo: str | Any, *, schema: str = "sessions", size: int = 8, timeout: float = 5.0
    ) -> None:
        """Name the database.

        Args:
            conninfo: A ``postgresql://`` URL or ``name=value`` words, as libpq takes them; or an open
                ``psycopg_pool.ConnectionPool``, which stays the host's.
            schema: Where the tables are; ``create`` makes it.
            size: How many connections the store opens at most; one more for its watches. A pool has its own.
            timeout: How many seconds a writer waits for another, or for a connection.

        Raises:
            StoreError: The address cannot be read.
            ValueError: ``schema``, ``size`` or ``timeout`` is not one.
        """
        super().__init__()
        if not timeout >= 0:
            raise ValueError(f"timeout must be seconds of 0 or more, got {shown(timeout)}")
        if size < 1:
            raise ValueError(f"size must be 1 or more connections, got {shown(size)}")
        self._create = self.schema_sql(schema)
        self._schema, self._timeout = schema, float(timeout)
        is_address = isinstance(conninfo, str)
        of_pool = getattr(conninfo, "conninfo", "")
        parts = parts_of(conninfo if is_address else of_pool if isinstance(of_pool, str) else "")
        host, port = parts.get("hostaddr") or parts.get("host") or "", parts.get("port") or ""
        where = f"{host}:{port}" if port else host
        self.name = f"postgresql://{where}/{parts.get('dbname') or ''}"
        self._connections = Connections(conninfo, size) if is_address else GivenConnections(conninfo)
        weakref.finalize(self, self._connections.close)
        self._place = (conninfo if is_address else id(conninfo), schema)
        self._listener = Listener(self._connections, schema)
        self._known: tuple[tuple[Any, ...], StoredSession | None] = ((), None)
        self._quoted = sql.Identifier(schema).as_string()

    def __repr__(self) -> str:
        return f"PostgresStore({self.name!r}, schema={self._schema!r})"

    # The schema

    @staticmethod
    def schema_sql(schema: str = "sessions") -> str:
        """The statement that makes the tables where they are not: what an administrator may run instead.

        A program needs USAGE of the schema, and SELECT, INSERT, UPDATE and DELETE of its tables.

        Raises:
            ValueError: It is not the name of a schema.
        """
        is_long = not 1 <= len(schema.encode("utf-8", "replace")) <= 63
        if is_long or not schema.isprintable() or "$" in schema or "%" in schema:
            raise ValueError(f"schema must be 1 to 63 bytes of text without $ and %, got {shown(schema)}")
        values = {
            "schema": sql.Identifier(schema),
            "name": sql.Literal(schema),
            "format": sql.Literal(_FORMAT),
        }
        return sql.SQL(_SCHEMA).format(**values).as_string()

    def create(self) -> None:
        """Make the tables, in one transaction, where they are not.

        Raises:
            StoreError: The user may not, the server cannot be reached, or has tables of a newer format.
        """
        with self._explaining(), self._connections.taken(self._timeout) as connection:
            connection.execute(self._create.encode())
            self._head(connection, "-")  # which looks at the format

    # Writing

    @contextmanager
    def lock(self, session_id: SessionId, timeout: float | None = None) -> Iterator[None]:
        """Keep other writers of the session away; see ``Store.lock``."""
        if self._place in _transactions():
            raise TransactionError(NESTED)
        timeout = self._timeout if timeout is None else timeout
        with self._begun(timeout, partial(self._locked, session_id=session_id, timeout=timeout)):
            yield

    @contextmanager
    def _begun(self, timeout: float, begin: Callable[[Connection], _Held]) -> Iterator[None]:
        """A transaction of this thread, within a ``with`` block."""
        with self._explaining(timeout):
            connection = self._connections.take(timeout)
        process = os.getpid()
        try:
            with self._explaining(timeout):
                _transactions()[self._place] = begin(connection)
            yield
        finally:
            _transactions().pop(self._place, None)
            if os.getpid() == process:  # in a forked child the transaction is the parent's
                _roll_back(connection)
                self._connections.give(connection)

    def _locked(self, connection: Connection, session_id: SessionId, timeout: float) -> _Held:
        """Begin a transaction that has the lock of a session."""
        key, patience = key_of(session_id), max(round(timeout * 1000), 1)
        rows = self._run(connection, f"{_BEGIN}{_HEAD} FOR UPDATE", patience, key)
        if not rows:  # no row that could be locked: those who begin the session come one after the other
            self._run(connection, "SELECT pg_advisory_xact_lock(%s)", key)
            rows = self._run(connection, f"{_HEAD} FOR UPDATE", key)
        row = rows[0] if rows else self._run(connection, _LOST, key, key)[0]
        self._require_format(row[-1])
        return _Held(connection, session_id, row)

    @contextmanager
    def _writing(self, session_id: SessionId) -> Iterator[_Held]:
        """A transaction that has the lock, for statements that belong together; the last one commits."""
        with self.lock(session_id):
            held = _transactions()[self._place]
            try:
                yield held
            except (psycopg.Error, UnicodeError) as error:
                refusal = explained(error, self.name, self._timeout)
                refusal.outcome = "unknown" if held.connection.closed else "refused"
                raise refusal from error

    def append(
        self,
        head: StoredSession,
        change: StoredChange | None,
        *,
        expected: int,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Write a change, durably, or nothing; see ``Store.append``."""
        held = _transactions().get(self._place)
        if held is None:
            with self.lock(head.session_id):
                return self.append(head, change, expected=expected, checkpoint=checkpoint)
        if held.process != os.getpid():
            raise TransactionError("this process was forked inside the transaction, which is its parent's")
        if held.is_spent or str(held.session_id) != str(head.session_id):
            raise TransactionError("a lock takes one change: leave it and take it again")
        if held.version != expected:
            raise stale(expected, held.version)
        key, row = key_of(head.session_id), head.row()
        statement, values = _WRITE_HEAD, [key, *row]
        if change is not None:
            statement += _WRITE_CHANGE
            found_by = (change.rewound_to, change.idempotency_key)
            values += [key, change.version, change.text, change.hash, *found_by]
        if checkpoint is not None:
            statement += _WRITE_CHECKPOINT
            values += [key, checkpoint.version, checkpoint.text, checkpoint.check]
        with self._explaining():
            try:
                self._run(held.connection, statement + _COMMIT, *values, self._schema, str(key))
            except psycopg.Error as error:
                self._settle(held, head, change, error)
        held.is_spent, held.row = True, (*row, _FORMAT)
        self._known = (row, head)
        return None

    def _settle(
        self, held: _Held, head: StoredSession, change: StoredChange | None, error: psycopg.Error
    ) -> None:
        """Look for what was committed where the answer is an error.

        The server may still be about to commit: it holds the session's lock as long, and this waits for it.

        Raises:
            StoreError: Nothing was, or the server cannot be asked.
        """
        refusal = explained(error, self.name, self._timeout)
        _roll_back(held.connection)
        try:
            connection = self._connections.open()
            try:
                found = self._locked(connection, head.session_id, self._timeout)
                at = "SELECT hash FROM {s}.changes WHERE session = %s AND version = %s"
                hashes = self._run(connection, at, key_of(head.session_id), head.version)
            finally:
                self._connections.discard(connection)
        except (StoreError, psycopg.Error):
            refusal.outcome = "unknown"
            raise refusal from error
        if found.row[:-1] != head.row() if change is None else hashes != [(change.hash,)]:
            raise refusal from error

    def drop_checkpoints(self, session_id: SessionId) -> None:
        """Forget the checkpoints of a session; see ``Store.drop_checkpoints``."""
        with self._writing(session_id) as held:
            statement = "DELETE FROM {s}.checkpoints WHERE session = %s; COMMIT"
            self._run(held.connection, statement, key_of(session_id))

    def claim(self, session_id: SessionId, name: str) -> bool:
        """Record a name, durably; see ``Store.claim``."""
        with self._writing(session_id) as held:
            row = (str(session_id), name, held.version)
            statement = (
                "INSERT INTO {s}.claims VALUES (%s, %s, %s, %s, %s)"
                " ON CONFLICT (session, md5(name)) DO NOTHING RETURNING 1"
            )
            is_new = bool(self._run(held.connection, statement, key_of(session_id), *row, check_of(row)))
            self._run(held.connection, "COMMIT")
        return is_new

    def copy(self, source: SessionId, fork: StoredSession) -> None:
        """Begin a session with the changes of another; see ``Store.copy``."""
        with self._writing(source) as held:
            head = self._found(held.row, source)
            if head is None:
                raise no_session(source)
            refuse_copy(head, fork, self._head(held.connection, fork.session_id))
            new, between = key_of(fork.session_id), (key_of(source), fork.version)
            self._begin_session(held.connection, fork)
            for table, columns in (
                ("changes", "version, text, hash, rewound_to, idempotency_key"),
                ("checkpoints", "version, text, checked"),
            ):
                copied = f"SELECT %s, {columns} FROM {{s}}.{table} WHERE session = %s AND version <= %s"  # noqa: S608 - constants
                self._run(held.connection, f"INSERT INTO {{s}}.{table} {copied}", new, *between)
            early = [claim for claim in self.claims(source) if claim[1] <= fork.version]
            self._write_claims(held.connection, fork.session_id, early)
            self._run(held.connection, "COMMIT")

    def restore(
        self,
        head: StoredSession,
        changes: Iterable[StoredChange],
        checkpoints: Iterable[Checkpoint],
        claims: Iterable[tuple[str, int]],
    ) -> None:
        """Write a whole session, durably, or nothing; see ``Store.restore``."""
        key = key_of(head.session_id)
        with self._writing(head.session_id) as held:
            refuse_copy(head, head, self._found(held.row, head.session_id))
            self._begin_session(held.connection, head)
            rows = ((key, *attrs.astuple(change)) for change in changes)
            columns = "session, version, text, hash, idempotency_key, rewound_to"
            self._copy_in(held.connection, f"changes ({columns})", rows)
            rows = ((key, *attrs.astuple(checkpoint)) for checkpoint in checkpoints)
            self._copy_in(held.connection, "checkpoints", rows)
            self._write_claims(held.connection, head.session_id, claims)
            self._run(held.connection, "COMMIT")

    def _begin_session(self, connection: Connection, head: StoredSession) -> None:
        """Write the record of a session that has none, or wait until another writer has begun it.

        Raises:
            StoreError: Another writer has.
        """
        statement = (
            "INSERT INTO {s}.sessions VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING 1"
        )
        if not self._run(connection, statement, key_of(head.session_id), *head.row()):
            refuse_copy(head, head, head)

    def _write_claims(
        self, connection: Connection, session_id: SessionId, claims: Iterable[tuple[str, int]]
    ) -> None:
        rows = ((str(session_id), *claim) for claim in claims)
        self._copy_in(connection, "claims", ((key_of(session_id), *row, check_of(row)) for row in rows))

    def _copy_in(self, connection: Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        statement = f"COPY {self._quoted}.{table} FROM STDIN".encode()
        with connection.cursor().copy(statement) as copied:
            for row in rows:
                copied.write_row(row)

    def delete(self, session_id: SessionId) -> bool:
        """Delete a session; see ``Store.delete``."""
        key = key_of(session_id)
        with self._writing(session_id) as held:
            for table in ("changes", "checkpoints", "claims"):
                self._run(held.connection, f"DELETE FROM {{s}}.{table} WHERE session = %s", key)  # noqa: S608 - constants
            found = self._run(held.connection, "DELETE FROM {s}.sessions WHERE key = %s RETURNING 1", key)
            self._run(held.connection, _COMMIT, self._schema, str(key))
        return bool(found)

    # Reading

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let all that this thread reads be of one moment; see ``Store.reading``."""
        held = _transactions().get(self._place)
        if held is not None and held.process == os.getpid():
            yield  # the lock is held, or the moment is there already
            return
        with self._begun(self._timeout, self._at_one_moment):
            yield

    def _at_one_moment(self, connection: Connection) -> _Held:
        self._run(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return _Held(connection)

    def verify(self, session_id: SessionId) -> int:
        """Check all that is kept of a session, its claims too; see ``Store.verify``."""
        with self.reading():
            versions = super().verify(session_id)
            every = "SELECT id, name, version, checked FROM {s}.claims WHERE session = %s"
            for *values, checked in self._read(every, key_of(session_id)):
                if checked != check_of(tuple(values)):
                    raise StoreError(
                        f"the claim {shown(values[1])} of the session is damaged: restore it from a backup"
                    )
        return versions

    def head(self, session_id: SessionId) -> StoredSession | None:
        """What there is of a session; see ``Store.head``."""
        held = self._held()
        if held is not None and str(held.session_id) == str(session_id):
            return self._found(held.row, session_id)
        with self._reader() as connection:
            return self._head(connection, session_id)

    def changes(self, session_id: SessionId, first: int, last: int) -> Sequence[StoredChange]:
        """The changes from a version to another; see ``Store.changes``."""
        rows = self._read(
            "SELECT version, text, hash, idempotency_key, rewound_to FROM {s}.changes"
            " WHERE session = %s AND version BETWEEN %s AND %s ORDER BY version",
            key_of(session_id),
            first,
            last,
        )
        return [StoredChange(*row) for row in rows]

    def checkpoints(self, session_id: SessionId, last: int, most: int) -> Sequence[Checkpoint]:
        """The newest checkpoints up to a version; see ``Store.checkpoints``."""
        rows = self._read(
            "SELECT version, text, checked FROM {s}.checkpoints"
            " WHERE session = %s AND version <= %s ORDER BY version DESC LIMIT %s",
            key_of(session_id),
            last,
            most,
        )
        return [Checkpoint(*row) for row in rows]

    def with_key(self, session_id: SessionId, key: str) -> Sequence[int]:
        """The versions that have a key; see ``Store.with_key``."""
        rows = self._read(
            "SELECT version FROM {s}.changes WHERE session = %s AND md5(idempotency_key) = md5(%s)"
            " AND idempotency_key = %s ORDER BY version DESC",
            key_of(session_id),
            key,
            key,
        )
        return [version for (version,) in rows]

    def rewinds(self, session_id: SessionId) -> Sequence[tuple[int, int]]:
        """The rewinds of a session; see ``Store.rewinds``."""
        return self._read(
            "SELECT version, rewound_to FROM {s}.changes"
            " WHERE session = %s AND rewound_to IS NOT NULL ORDER BY version",
            key_of(session_id),
        )

    def claims(self, session_id: SessionId) -> Sequence[tuple[str, int]]:
        """The names that are recorded; see ``Store.claims``."""
        return self._read("SELECT name, version FROM {s}.claims WHERE session = %s", key_of(session_id))

    def sessions(self, most: int | None = None) -> Sequence[StoredSession]:
        """The sessions that were changed last; see ``Store.sessions``."""
        rows = self._read(
            "SELECT id, version, hash, changed_at, about, checked FROM {s}.sessions"
            " ORDER BY changed_at DESC LIMIT %s",
            most,
        )
        return [StoredSession.listed(row) for row in rows]

    def listen(self, watch: Watch) -> float:
        """Wake a watch at each change of its session; see ``Store.listen``."""
        self._listener.add(watch)
        return _POLLED

    def close(self) -> None:
        """Close the connections; whoever uses the store again opens them again."""
        self._connections.close()

    # The server

    def _head(self, connection: Connection, session_id: SessionId) -> StoredSession | None:
        key = key_of(session_id)
        rows = self._run(connection, _HEAD, key) or self._run(connection, _LOST, key, key)
        self._require_format(rows[0][-1])
        return self._found(rows[0], session_id)

    def _found(self, row: tuple[Any, ...], session_id: SessionId) -> StoredSession | None:
        """The session of a row of ``_HEAD``; None for one of ``_LOST`` that says that there is none.

        Raises:
            StoreError: It is damaged, or lost.
        """
        record = row[:-1]
        if record == (True,):
            raise StoreError(
                f"the record of session {shown(str(session_id))} is missing: the database is damaged"
            )
        if record == (False,):
            return None
        known, found = self._known
        if found is None or record != known:
            found = StoredSession.of(record)
            self._known = (record, found)
        if str(found.session_id) != str(session_id):
            raise StoreError(f"the record of session {shown(str(session_id))} is damaged")
        return found

    def _require_format(self, found: int | None) -> None:
        """Refuse tables of another format.

        Raises:
            StoreError: They are.
        """
        if found is None or found > _FORMAT:
            raise StoreError(
                f"{self.name} has format {found}; this release reads formats up to {_FORMAT}: use a newer one"
            )

    def _held(self) -> _Held | None:
        """This thread's transaction, unless it is that of the process that this one was forked from."""
        held = _transactions().get(self._place)
        return held if held is not None and held.process == os.getpid() else None

    @contextmanager
    def _reader(self) -> Iterator[Connection]:
        """The connection of this thread's transaction, else one of the pool."""
        held = self._held()
        with self._explaining():
            if held is not None:
                yield held.connection
                return
            with self._connections.taken(self._timeout) as connection:
                yield connection

    def _read(self, statement: str, *values: Any) -> list[Any]:
        with self._reader() as connection:
            return self._run(connection, statement, *values)

    def _run(self, connection: Connection, statements: str, *values: Any) -> list[Any]:
        """Run statements in one round trip; returns the rows of the last.

        The values are put in by the client: nothing is prepared on the server, so that a pooler may give each
        transaction another connection.
        """
        cursor = psycopg.ClientCursor(connection, row_factory=tuple_row)
        cursor.execute(statements.replace("{s}", self._quoted).encode(), values)
        while cursor.nextset():
            pass
        return cursor.fetchall() if cursor.description else []

    @contextmanager
    def _explaining(self, timeout: float | None = None) -> Iterator[None]:
        """Make a StoreError of what psycopg raises."""
        try:
            yield
        except (psycopg.Error, UnicodeError) as error:
            raise explained(error, self.name, self._timeout if timeout is None else timeout) from error


def _transactions() -> dict[object, _Held]:
    """Those of this thread, by the place that they write to."""
    found: dict[object, _Held] | None = getattr(_here, "transactions", None)
    if found is None:
        found = _here.transactions = {}
    return found


def _roll_back(connection: Connection) -> None:
    """End a transaction that was not committed."""
    if connection.info.transaction_status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")

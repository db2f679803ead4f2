"""A store in a PostgreSQL database: for many sessions, and the processes of several machines."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

import attrs
import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from session.address import show_address
from session.errors import StoreError, TransactionError, shown
from session.events import SessionId
from session.locks import Ending, scoped
from session.stores.chain import (
    Checkpoint,
    StoredChange,
    StoredSession,
    check_timeout,
    key_of,
    nested_error,
    stale_error,
)
from session.stores.postgres_link import (
    Connection,
    Connections,
    GivenConnections,
    Listener,
    ended_at,
    explained,
)
from session.stores.sql import (
    CHANGE,
    CHANGES,
    CHECKPOINT,
    CHECKPOINTS,
    REWINDS,
    IsThere,
    Run,
    SqlStore,
    change_row,
)
from session.stores.watch import Watch

FORMAT: Final = 1
"""The format of the tables."""
_CREATION: Final = """DO $session$
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
CREATE INDEX IF NOT EXISTS changes_idempotency_key ON {schema}.changes (session, idempotency_key)
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
    id text NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL,
    checked bytea NOT NULL,
    PRIMARY KEY (id, name)
);
INSERT INTO {schema}.store SELECT {format} WHERE NOT EXISTS (SELECT FROM {schema}.store);
END
$session$"""


def creation(schema: str) -> str:
    """One statement, which is one transaction, that makes the tables where they are not.

    Raises:
        ValueError: It is not the name of a schema.
    """
    is_long = not 1 <= len(schema.encode("utf-8", "replace")) <= 63
    if is_long or not schema.isprintable() or set(schema) & set("$%?{}"):
        raise ValueError(f"schema must be 1 to 63 bytes of text without $ % ? {{ }}, got {shown(schema)}")
    name, quoted = sql.Literal(schema), sql.Identifier(schema)
    return sql.SQL(_CREATION).format(name=name, schema=quoted, format=FORMAT).as_string()


_POLLED = 1.0
"""The seconds that a watch waits for a notification before it looks by itself."""
_HEAD = (
    "SELECT id, version, hash, changed_at, about, checked, (SELECT format FROM {s}store)"
    " FROM {s}sessions WHERE key = ? FOR UPDATE"
)
_WAITS = "SET LOCAL lock_timeout = ?; "
_BEGIN = f"BEGIN ISOLATION LEVEL READ COMMITTED; {_WAITS}"
_BEGIN_READING = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_WAITS}"
_ANSWERS = 8  # that are kept: a slice is read for each of its reducers
_YOUNG = 32  # versions: as many as are read at a time
_GRACE = 0.25  # seconds that the server has to say itself that a lock is not free
_LEAST = 1.0  # seconds for a commit, and for the look for it, however long the lock took
_WRITE_HEAD = (
    "INSERT INTO {s}sessions VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
    " version = excluded.version, hash = excluded.hash, changed_at = excluded.changed_at,"
    " about = excluded.about, checked = excluded.checked"
)
# Notified after the commit: one that notifies within it would make all others of the database wait for it.
_COMMIT = "COMMIT; SELECT pg_notify(?, ?)"

# The transactions of this thread, by the place that they write to: a thread must not wait for itself.
_here = threading.local()


@attrs.define
class _Held:
    """A transaction of this thread: a session's lock, or a snapshot to read from."""

    connection: Connection
    left: float
    session_id: SessionId | None
    row: tuple[Any, ...]
    is_spent: bool = False
    process: int = attrs.field(factory=os.getpid)
    answers: dict[tuple[Any, ...], list[Any]] = attrs.field(factory=dict)


class PostgresStore(SqlStore):
    """Keeps sessions in a schema of a PostgreSQL database: many writers at once, one to each session.

    Open one for each process. Nothing is asked of the server before the store is used.

    Attributes:
        name: What the store is called in messages: the address without user and password.
    """

    where = "database"
    claim_row = "xmin"  # the transaction that wrote it

    def __init__(
        self, conninfo: str | Any, *, schema: str = "sessions", size: int = 8, timeout: float = 5.0
    ) -> None:
        """Choose the database; it is connected on first use.

        Args:
            conninfo: A ``postgresql://`` URL or ``name=value`` words, as libpq takes them; or an open
                ``psycopg_pool.ConnectionPool``, which stays the host's.
            schema: Where the tables are; ``create`` makes it.
            size: How many connections the store opens at most; one more for its watches. A pool has its own.
            timeout: How many seconds a writer waits for another, or for a connection.

        Raises:
            StoreError: The address cannot be read.
            TypeError: It is neither an address nor a pool.
            ValueError: ``schema``, ``size`` or ``timeout`` is not one.
        """
        super().__init__()
        self._timeout = check_timeout(timeout)
        if size < 1:
            raise ValueError(f"size must be 1 or more connections, got {shown(size)}")
        self._create = self.schema_sql(schema)
        self._schema = schema
        self._tables = f"{sql.Identifier(schema).as_string()}."
        is_address = isinstance(conninfo, str)
        address = conninfo if is_address else getattr(conninfo, "conninfo", "")
        self.name = show_address(address if isinstance(address, str) else "")
        self._connections = Connections(conninfo, size) if is_address else GivenConnections(conninfo)
        self._listener = Listener(self._connections, schema)
        self._place = (conninfo if is_address else id(conninfo), schema)
        self._has_tables = False  # of this format, as far as is known
        weakref.finalize(self, self._connections.close)

    def __repr__(self) -> str:
        return f"PostgresStore({self.name!r}, schema={self._schema!r})"

    @property
    def place(self) -> Hashable:
        """The database and the schema."""
        return self._place

    # The tables

    @staticmethod
    def schema_sql(schema: str = "sessions") -> str:
        """The statement that makes the tables where they are not: what an administrator may run instead.

        A program needs USAGE of the schema, and SELECT, INSERT, UPDATE and DELETE of its tables.

        Raises:
            ValueError: It is not the name of a schema.
        """
        return creation(schema)

    def create(self) -> None:
        """Make the tables, in one transaction, where they are not.

        Raises:
            StoreError: The user may not, the server cannot be reached, or has tables of a newer format.
        """
        with self._explaining(), self._connections.taken(self._timeout) as connection:
            try:
                self._run(connection, self._timeout, self._create)
            except psycopg.Error as error:
                self._settle(None, self._is_created, explained(error, self.name, self._timeout), error)
        with self._querying() as run:
            self._require_format(run)

    def _is_created(self, run: Run) -> bool:
        run("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", self._schema)  # of what creates them
        found = "SELECT FROM pg_tables WHERE schemaname = ? AND tablename = 'claims'"
        return run(found, self._schema).fetchone() is not None

    def _require_format(self, run: Run) -> None:
        """Refuse tables of a different format."""
        (found,) = run("SELECT format FROM {s}store").fetchone()
        if found != FORMAT:
            raise StoreError(
                f"{self.name} has format {found}; this release reads formats up to {FORMAT}: use a newer one"
            )
        self._has_tables = True

    # Writing

    @scoped
    def lock(self, session_id: SessionId, timeout: float | None = None) -> Iterator[None]:
        """Keep other writers of the session away; see ``Store.lock``."""
        if self._place in _transactions():
            raise nested_error()
        with self._begun(session_id, self._timeout if timeout is None else timeout):
            yield

    @scoped
    def reading(self) -> Iterator[None]:
        """Let all that this thread reads be of one moment; see ``Store.reading``."""
        if self._place in _transactions():
            yield  # the lock is held, or the moment is there already
            return
        with self._begun(None, self._timeout):
            yield

    @scoped
    def _begun(self, session_id: SessionId | None, timeout: float) -> Iterator[None]:
        """A transaction of this thread within a ``with`` block: with the lock of a session, or to read."""
        started = time.monotonic()
        with (
            self._connections.taken(timeout, self._explaining) as connection,
            Ending(partial(self._let_go, connection, os.getpid())),
        ):
            with self._explaining(timeout):
                left = timeout - (time.monotonic() - started)
                if session_id is None:
                    self._run(connection, left, _BEGIN_READING, _milliseconds(left))
                row = () if session_id is None else self._lock(connection, session_id, left)
            left = max(self._timeout - (time.monotonic() - started), min(_LEAST, self._timeout))
            _transactions()[self._place] = _Held(connection, left, session_id, row)
            yield

    def _let_go(self, connection: Connection, process: int) -> None:
        """End this thread's transaction."""
        _transactions().pop(self._place, None)
        if os.getpid() == process:  # in a forked child the transaction is the parent's
            self._roll_back(connection)

    def _lock(self, connection: Connection, session_id: SessionId, timeout: float) -> tuple[Any, ...]:
        """Begin a transaction that has the lock of a session; returns its record."""
        run, key = self._runner(connection, timeout), key_of(session_id)
        row = run(_BEGIN + _HEAD, _milliseconds(timeout), key).fetchone()
        if row is None:  # no row that could be locked: those who begin the session come one after the other
            run("SELECT pg_advisory_xact_lock(?)", key)
            row = run(_HEAD, key).fetchone()
        if row is None or row[-1] != FORMAT:
            self._require_format(run)
        return row[:-1] if row else ()

    @scoped
    def _writing(self, session_id: SessionId, is_there: IsThere) -> Iterator[Run]:
        """A connection that writes, with a session's lock; committed at the end of the block, and settled."""
        with self.lock(session_id), self._explaining():
            held = _transactions()[self._place]
            yield self._runner(held.connection, held.left)
            self._commit(held, session_id, is_there, _COMMIT, self._schema, str(key_of(session_id)))

    def _commit(
        self, held: _Held, session_id: SessionId, is_there: IsThere, statements: str, *values: Any
    ) -> None:
        """Run statements that commit; if the answer is an error, look for what was committed."""
        started = time.monotonic()
        try:
            self._run(held.connection, held.left, statements, *values)
        except psycopg.Error as error:
            self._roll_back(held.connection)
            held.left = max(held.left - (time.monotonic() - started), min(_LEAST, self._timeout))
            self._settle(session_id, is_there, explained(error, self.name, self._timeout), error)

    @scoped
    def _asking(self, session_id: SessionId | None) -> Iterator[Run]:
        """A new connection that reads, after a commit was answered by an error.

        A server that is still about to commit holds the lock of the session, and this waits for it.
        """
        held = self._find_held()
        left = self._timeout if held is None else held.left
        with self._explaining():
            connection = self._connections.open(left)
            try:
                if session_id is not None:
                    self._lock(connection, session_id, left)
                yield self._runner(connection, left)
            finally:
                self._connections.discard(connection)

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
            raise TransactionError("a lock allows one change: release it and take it again")
        known = held.row[1] if held.row else 0
        if known != expected:
            raise stale_error(expected, known)
        key, row = key_of(head.session_id), head.row()
        statements, values = [_WRITE_HEAD], [key, *row]
        if change is not None:
            statements.append(CHANGE)
            values += change_row(key, change)
        if checkpoint is not None:
            statements.append(CHECKPOINT)
            values += [key, checkpoint.version, checkpoint.text, checkpoint.check]
        statements.append(_COMMIT)
        held.is_spent = True
        with self._explaining():
            there = partial(self._is_appended, head, change)
            self._commit(held, head.session_id, there, "; ".join(statements), *values, self._schema, str(key))
        held.row = row
        self._known = (row, head)
        return None

    # Reading

    def head(self, session_id: SessionId) -> StoredSession | None:
        """The record of a session; see ``Store.head``."""
        held = self._find_held()
        if held is not None and held.row and str(held.session_id) == str(session_id):
            return self._make_session(held.row, session_id)
        return super().head(session_id)

    def _select(self, statement: str, *values: Any) -> list[Any]:
        held = self._find_held()
        if held is None or held.is_spent:
            return super()._select(statement, *values)
        asked = (statement, *values)
        if asked not in held.answers:
            questions = [asked]
            if statement == CHECKPOINTS and held.session_id is not None:
                # A reader that begins with a session asks next what a young one has.
                key, last, _ = values
                changes = (CHANGES.format(self.change_columns), key, 1, last)
                questions += [(REWINDS, key), *([changes] if last <= _YOUNG else [])]
            if len(held.answers) + len(questions) > _ANSWERS:
                held.answers.clear()
            with self._explaining():
                statements = "; ".join(statement for statement, *_ in questions)
                values = tuple(value for _, *each in questions for value in each)
                found = [*self._answers(held.connection, self._timeout, statements, *values)]
            held.answers.update(zip(questions, found, strict=True))
        return held.answers[asked]

    def listen(self, watch: Watch) -> float:
        """Wake a watch at each change of its session; see ``Store.listen``."""
        self._listener.add(watch)
        return _POLLED

    def close(self) -> None:
        """Close the connections; the next use opens new ones."""
        self._connections.close()

    # The server

    def _find_held(self) -> _Held | None:
        """This thread's transaction, unless it is that of the process that this one was forked from."""
        held = _transactions().get(self._place)
        return held if held is not None and held.process == os.getpid() else None

    @scoped
    def _querying(self) -> Iterator[Run]:
        """A connection that reads: in this thread's transaction, if it is in one."""
        held = self._find_held()
        with self._explaining():
            if held is not None:
                yield self._runner(held.connection, self._timeout)
                return
            with self._connections.taken(self._timeout) as connection:
                run = partial(self._read, connection)
                if not self._has_tables:
                    self._require_format(run)
                yield run

    def _runner(self, connection: Connection, seconds: float) -> Run:
        """A connection that runs statements, each for at most so many seconds."""
        return partial(self._run, connection, seconds)

    def _read(self, connection: Connection, statement: str, *values: Any) -> psycopg.ClientCursor[Any]:
        return self._run(connection, self._timeout, _WAITS + statement, _milliseconds(self._timeout), *values)

    def _run(
        self, connection: Connection, seconds: float, statements: str, *values: Any
    ) -> psycopg.ClientCursor[Any]:
        """Run statements in one round trip; returns the result of the last.

        A connection whose server does not answer in so many seconds, and a little more, is closed.

        The values are put in by the client: nothing is prepared on the server, so that a pooler may give each
        transaction another connection.
        """
        cursor = self._execute(connection, seconds, statements, *values)
        while cursor.nextset():
            pass
        return cursor

    def _answers(
        self, connection: Connection, seconds: float, statements: str, *values: Any
    ) -> Iterator[list[Any]]:
        """The rows that each of several statements finds, in one round trip."""
        cursor = self._execute(connection, seconds, statements, *values)
        yield cursor.fetchall()
        while cursor.nextset():
            yield cursor.fetchall()

    def _execute(
        self, connection: Connection, seconds: float, statements: str, *values: Any
    ) -> psycopg.ClientCursor[Any]:
        cursor = psycopg.ClientCursor(connection, row_factory=tuple_row)
        with ended_at(connection, time.monotonic() + seconds + _GRACE):
            cursor.execute(statements.replace("{s}", self._tables).replace("?", "%s").encode(), values)
        return cursor

    def _roll_back(self, connection: Connection) -> None:
        """End a transaction that was not committed."""
        if connection.info.transaction_status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
            with suppress(psycopg.Error):
                self._run(connection, min(_LEAST, self._timeout), "ROLLBACK")

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


def _milliseconds(seconds: float) -> int:
    return max(round(seconds * 1000), 1)  # 0 would be for ever

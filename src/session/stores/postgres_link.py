"""The connections of a PostgreSQL store: a pool, what listens for its watches, and what errors mean.

psycopg_pool connects in threads of its own: its caller waits the whole timeout and never learns why, and a
fork leaves it without threads. So a store that is given an address connects where it is called.
"""

from __future__ import annotations

import math
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, TypeVar
from weakref import WeakSet

import psycopg
from psycopg import sql
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from session.errors import StoreError, locked_error, shown
from session.locks import Ending, Held, ProcessLock, scoped
from session.stores.chain import key_of
from session.stores.watch import Watch

Connection = psycopg.Connection[Any]
T = TypeVar("T")

_UNREADABLE = (
    "the address cannot be read: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, and in a "
    "password %40 for @, %3A for :, %2F for / and %25 for %"
)
_LISTENED = 1.0  # seconds after which the thread that listens looks whether anything still watches
_LOST = "the server cannot be reached, or has ended the connection: check whether it runs, and try again"
_DENIED = "its user or password is refused: correct them in the address, or ask the administrator"
_RESTARTS = "the server is starting or ending: try again when it runs"
_NO_FORM = "text with a NUL or a lone surrogate has no form in the database: remove it"
_REASONS = {
    "22021": _NO_FORM,
    "22P05": _NO_FORM,
    "08": _LOST,
    "28": _DENIED,
    "3D000": "there is no such database: create it, or name another in the address",
    "42P01": "its tables do not exist: run `planning store create URL` once, or call store.create()",
    "3F000": "its tables do not exist: run `planning store create URL` once, or call store.create()",
    "42501": "the user lacks the rights: ask the administrator for them, or to run store.schema_sql()",
    "25006": "the server is read-only, such as a replica: connect to the primary "
    "(target_session_attrs=read-write finds it)",
    "25P02": "a statement of the transaction has failed: end it, and try again",
    "25P03": "the server ended a transaction that was idle for too long "
    "(idle_in_transaction_session_timeout): try again",
    "25P04": "the server ended a transaction that took too long (transaction_timeout): try again",
    "57014": "the server stopped a statement that took too long (statement_timeout): try again",
    "57P01": _RESTARTS,
    "57P02": _RESTARTS,
    "57P03": _RESTARTS,
    "57P05": _LOST,
    "53100": "the server's disk is full: free some space and try again",
    "53200": "the server is out of memory: try again later",
    "53300": "the server has too many connections: raise its max_connections, lower the stores' size, or "
    "put a pooler before it",
    "40": "the server rolled back the transaction because of another: try again",
    "54000": "a key, or the name of a claim, is longer than 2,600 bytes: use a shorter one",
    "XX001": "the database is damaged: restore it from a backup",
    "XX002": "an index of the database is damaged: run REINDEX, or restore it from a backup",
}
_DEFAULTS = {  # a host that is gone is noticed within 20 seconds; what the address says comes first
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "application_name": "session-planning",
    "client_encoding": "UTF8",
}


def _parts_of(conninfo: str) -> dict[str, Any]:
    """The parts of an address."""
    found: dict[str, Any] | None = None
    with suppress(psycopg.Error, ValueError):
        found = conninfo_to_dict(conninfo)
    if found is None or "\0" in conninfo:
        raise StoreError(_UNREADABLE)
    ports = str(found.get("port", "")).replace(",", "")
    if "@" in f"{found.get('host')}{found.get('dbname')}" or not (ports.isdecimal() or not ports):
        raise StoreError(_UNREADABLE)  # a part of a password
    return found


def explained(error: Exception, name: str, timeout: float) -> StoreError:
    """The ``StoreError`` for an error of psycopg or of the server; without what the address says."""
    if getattr(error, "sqlstate", None) == "55P03":
        return locked_error(timeout)
    return StoreError(f"the store {name} cannot be used: {reason_of(error)}")


def reason_of(error: Exception) -> str:
    """The cause of an error of psycopg or of the server, and what to do; without what the address says."""
    code = getattr(error, "sqlstate", None) or ""
    reason = _REASONS.get(code) or _REASONS.get(code[:2])
    if reason is None and code and isinstance(error, psycopg.Error):
        reason = f"the server says {shown(error.diag.message_primary)} ({code})"
    if reason is None and isinstance(error, (psycopg.DataError, UnicodeError)):
        reason = _NO_FORM
    return reason or next((why for words, why in _SAID if words in str(error)), _LOST)


_SILENT = "no answer in time"
# libpq gives no code for a connection that the server refuses: the words of PostgreSQL are all there is.
_SAID = (
    ("password authentication failed", _DENIED),
    ("no password supplied", _DENIED),
    ("no pg_hba.conf entry", _DENIED),
    ("permission denied for database", "its user may not connect: ask the administrator for CONNECT"),
    ('role "', _DENIED),
    ('database "', _REASONS["3D000"]),
    ("too many clients", _REASONS["53300"]),
    ("remaining connection slots", _REASONS["53300"]),
    ("too many connections", _REASONS["53300"]),
    ("starting up", _RESTARTS),
    ("shutting down", _RESTARTS),
    ("in recovery", _RESTARTS),
    (_SILENT, "the server does not answer: check whether it runs, and try again"),
    ("session is read-only", _REASONS["25006"]),
    ("does not support SSL", "the server has no TLS: correct sslmode in the address"),
)


class Connections(ProcessLock):
    """A pool of at most so many connections, each opened when it is needed and kept.

    A child process has none of its parent's: they are closed there, and stay whole in the parent.
    """

    def __init__(self, conninfo: str, size: int) -> None:
        """Prepare to connect."""
        super().__init__(size)
        self._conninfo = {**_DEFAULTS, **_parts_of(conninfo)}
        self._opened: WeakSet[Connection] = WeakSet()
        self.forget_other_threads()

    def forget_other_threads(self) -> None:
        """In a forked child: let go of the parent's connections, without a word to the server."""
        self.holders.clear()
        self._at: dict[int, Connection] = {}  # by the place in the pool
        null = os.open(os.devnull, os.O_RDWR) if self._opened else -1
        for connection in tuple(self._opened):
            with suppress(psycopg.Error):  # it was closed
                os.dup2(null, connection.fileno())
            connection.pgconn.finish()
        if null >= 0:
            os.close(null)
        self._opened = WeakSet()

    def open(self, timeout: float = math.inf) -> Connection:
        """A connection beside those of the pool, if it takes no longer than so many seconds.

        Raises:
            psycopg.Error: There is none to be had.
        """
        parts, given = self._conninfo, str(self._conninfo["connect_timeout"])
        hosts = str(parts.get("hostaddr") or parts.get("host")).count(",") + 1
        if timeout < math.inf:
            known = int(given) if given.isdecimal() and int(given) else math.inf
            given = str(math.ceil(min(known, max(timeout / hosts, 1))))
        found = psycopg.connect(**{**parts, "connect_timeout": given}, autocommit=True)
        self._opened.add(found)
        return found

    def discard(self, connection: Connection) -> None:
        """Close a connection that ``open`` returned."""
        connection.close()

    def refusal(self, timeout: float) -> StoreError:
        """The error when all connections are in use."""
        return StoreError(
            f"all {self.places} connections of the store are in use for more than {timeout:g} s: try "
            "again, or open the store with a greater size"
        )

    @scoped
    def taken(
        self, timeout: float, explaining: Callable[[float], AbstractContextManager[Any]] = nullcontext
    ) -> Iterator[Connection]:
        """A connection of the pool within a ``with`` block.

        Raises:
            StoreError: All are in use for so many seconds.
            psycopg.Error: The server cannot be reached.
        """
        until = time.monotonic() + timeout
        with Held(self, timeout) as held:
            with explaining(timeout):
                connection = self._at.get(held.place)
                if connection is None or not _is_alive(connection):
                    self._discard_at(held.place)
                    connection = self._at[held.place] = self.open(until - time.monotonic())
            with Ending(partial(_rest, connection, os.getpid())):
                yield connection

    def _discard_at(self, place: int) -> None:
        connection = self._at.get(place)
        if connection is not None:
            connection.close()
            del self._at[place]

    def close(self) -> None:
        """Close the connections that are not in use."""
        held = Held(self)
        with Ending(partial(self.give, held)):
            for place in tuple(self._at):
                if self.holders.setdefault(place, held) is held:
                    self._discard_at(place)


class GivenConnections(Connections):
    """The same of a pool that the host has made, with ``getconn`` and ``putconn``."""

    def __init__(self, pool: Any) -> None:
        """Use a pool.

        Raises:
            TypeError: It is not one.
        """
        if not hasattr(pool, "getconn") or iscoroutinefunction(pool.getconn):
            raise TypeError(f"a store needs an address or a psycopg_pool.ConnectionPool, got {shown(pool)}")
        super().__init__("", 1)
        self._pool, self._process = pool, os.getpid()

    def open(self, timeout: float = math.inf) -> Connection:
        """A connection that is kept for longer; see ``Connections.open``."""
        return self._take(min(timeout, self._pool.timeout), [])

    def discard(self, connection: Connection) -> None:
        """Close a connection, and tell the pool; see ``Connections.discard``."""
        connection.pgconn.finish()  # a pool may take what ``close`` closes for returned
        self._pool.putconn(connection)

    @scoped
    def taken(
        self, timeout: float, explaining: Callable[[float], AbstractContextManager[Any]] = nullcontext
    ) -> Iterator[Connection]:
        """A connection of the pool; see ``Connections.taken``."""
        found: list[Connection] = []
        with Ending(partial(self._give, found, os.getpid())):
            with explaining(timeout):
                self._take(timeout, found)
            yield found[0]

    def _take(self, timeout: float, found: list[Connection]) -> Connection:
        if os.getpid() != self._process:
            raise StoreError(
                "the pool belongs to the process that this one was forked from: open a store here, with a "
                "pool of its own or with an address"
            )
        try:
            found.extend(map(self._pool.getconn, (timeout,)))  # one step: Ctrl-C comes before or after it
        except psycopg.OperationalError as error:
            raise StoreError(
                f"the pool has no connection after {timeout:g} s: check whether the server runs, whether it "
                "accepts the user and password, and whether the pool is large enough"
            ) from error
        self._opened.add(found[0])
        found[0].autocommit = True
        return found[0]

    def _give(self, found: list[Connection], process: int) -> None:
        """Return what was taken, once."""
        if found and os.getpid() == process:  # in a forked child it is the parent's
            with suppress(ValueError):  # Ctrl-C came after it was returned
                self._pool.putconn(found[0])
            found.clear()

    def close(self) -> None:
        """Leave the pool to the host."""


@contextmanager
def ended_at(connection: Connection, moment: float) -> Iterator[None]:
    """Close a connection whose server has not answered at a moment, within a ``with`` block.

    The server itself ends what waits for a lock. It cannot end what has not come to it: a pooler keeps a
    statement until the server is back, and a host that is gone says nothing.
    """
    waits = vars(connection)
    waits["wait"] = own = partial(_wait_until, connection, moment)
    try:
        yield
    finally:
        if waits.get("wait") is own:  # a block that Ctrl-C cut short may end late, in another's
            del waits["wait"]


def _wait_until(connection: Connection, moment: float, work: PQGen[T], *how: Any, **more: Any) -> T:
    return type(connection).wait(connection, _limit(connection, moment, work), *how, **more)


def _limit(connection: Connection, moment: float, work: PQGen[T]) -> PQGen[T]:
    ready: Any = None
    try:
        while True:
            ready = yield work.send(ready)
            if not ready and time.monotonic() > moment:
                connection.close()
                raise psycopg.OperationalError(_SILENT)
    except StopIteration as end:
        result: T = end.value
        return result


def _rest(connection: Connection, process: int) -> None:
    """Close a connection that is not at rest."""
    is_here = os.getpid() == process  # in a forked child it is the parent's
    if is_here and connection.info.transaction_status != TransactionStatus.IDLE:
        connection.close()


def _is_alive(connection: Connection) -> bool:
    """True if a connection at rest is open: the server says nothing to one, unless it ends it."""
    poll = select.poll()
    with suppress(psycopg.Error):
        poll.register(connection.fileno(), select.POLLIN)
        return not poll.poll(0)
    return False


class Listener(ProcessLock):
    """One thread, with one connection, that wakes the watches of a store: it ends after the last of them.

    What is not heard, while the connection is lost or where a pooler passes no notifications on, the watches
    find by themselves.
    """

    def __init__(self, connections: Connections, channel: str) -> None:
        """Prepare to listen."""
        super().__init__()
        self._connections = connections
        self._channel = channel
        self._watches: WeakSet[Watch] = WeakSet()
        self._thread: threading.Thread | None = None

    def forget_other_threads(self) -> None:
        """In a forked child the thread is not there."""
        self._thread = None

    def add(self, watch: Watch) -> None:
        """Wake a watch at each change of its session, from now on."""
        with self.lock:
            self._watches.add(watch)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="session watches", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while self._is_watched():
            try:
                self._listen()
            except (psycopg.Error, StoreError):
                time.sleep(_LISTENED)
            else:
                return

    def _listen(self) -> None:
        """Wake watches as long as there are some."""
        connection = self._connections.open()
        try:
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
            self._wake("")  # what was notified before
            while self._is_watched():
                for found in connection.notifies(timeout=_LISTENED):
                    self._wake(found.payload)
        finally:
            self._connections.discard(connection)

    def _is_watched(self) -> bool:
        with self.lock:
            watches = [watch for watch in self._watches if not watch.closed]
            if not watches:
                self._thread = None
            return bool(watches)

    def _wake(self, payload: str) -> None:
        with self.lock:
            watches = tuple(self._watches)
        for watch in watches:
            if payload in {"", str(key_of(watch.session_id))}:
                watch.wake()

"""What a PostgreSQL store says when the server fails, and that it goes on afterwards."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest
from cutting_proxy import cutting
from postgres_server import ESCAPED, PASSWORD, PostgresServer, running
from session_records import Note
from store_places import PLAN, call, open_session, refused, state_of

from session import Session, StoreError
from session.stores import PostgresStore, StoreBusy

pytestmark = pytest.mark.postgres
NAME = "postgresql://127.0.0.1:{port}/postgres"
ENDED = "the server cannot be reached, or has ended the connection: check whether it runs, and try again"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of this module's own: it is restarted, and set up in other ways."""
    with running() as server:
        yield server


@pytest.fixture
def store(server: PostgresServer) -> Iterator[PostgresStore]:
    store = PostgresStore(server.url, schema=server.schema(), timeout=2)
    store.create()
    yield store
    store.close()


def again(server: PostgresServer, store: PostgresStore, **options: Any) -> PostgresStore:
    """Another store on the same tables, as another process has it."""
    return PostgresStore(server.url, schema=store._schema, **options)


def admin(server: PostgresServer, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def cannot(server: PostgresServer, reason: str) -> str:
    return f"the store {NAME.format(port=server.port)} cannot be used: {reason}"


def begun(store: PostgresStore) -> Session:
    """A session with one change, and the connection that made it at rest in the pool."""
    session = open_session(store)
    session.dispatch(Note("first"))
    return session


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["restart", "crash"])
def test_a_server_that_is_away_is_an_error_and_what_comes_after_needs_no_reopening(
    server: PostgresServer, store: PostgresStore, how: signal.Signals
) -> None:
    session = begun(store)
    server.stop(how)
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            session.dispatch(Note("lost"))
        assert (str(caught.value), caught.value.outcome) == (cannot(server, ENDED), "refused")
        assert refused(lambda: store.head("run-7")) == cannot(server, ENDED)
    assert session.version == 1
    server.start()
    session.dispatch(Note("second"))
    assert (session.version, store.verify("run-7")) == (2, 2)


def test_a_restart_in_the_middle_of_a_transaction_changes_nothing(
    server: PostgresServer, store: PostgresStore
) -> None:
    session = begun(store)
    with pytest.raises(StoreError) as caught, session.transaction() as transaction:
        transaction.dispatch(Note("lost"))
        server.restart()
    assert (caught.value.outcome, session.version) == ("refused", 1)
    session.dispatch(Note("second"))
    assert again(server, store).verify("run-7") == 2


def test_a_commit_that_cannot_be_looked_for_is_unknown_until_it_is_settled(
    server: PostgresServer, store: PostgresStore
) -> None:
    session = begun(store)
    with pytest.raises(StoreError) as caught, session.transaction() as transaction:
        transaction.dispatch(Note("lost"))
        server.stop(signal.SIGQUIT)
    assert (str(caught.value), caught.value.outcome) == (cannot(server, ENDED), "unknown")
    server.start()
    assert refused(lambda: session.dispatch(Note("early"))) == (
        "it is not known whether the last change was written: call session.refresh() when the store can be "
        "reached"
    )
    assert session.refresh() == 1
    session.dispatch(Note("second"))
    assert session.version == 2


READS: dict[str, Callable[[PostgresStore, Session], object]] = {
    "refresh": lambda _, session: session.refresh(),
    "history": lambda _, session: session.history(),
    "at": lambda _, session: session.at(1).select_all(Note),
    "find_call": lambda _, session: session.find_call("key"),
    "fork": lambda _, session: session.fork(),
    "open": lambda store, _: open_session(store, "other"),
    "sessions": lambda store, _: store.sessions(),
    "verify": lambda store, _: store.verify("run-7"),
    "claims": lambda store, _: store.claims("run-7"),
    "watch": lambda store, _: list(store.watch("run-7", after=0, timeout=9)),
    "mark": lambda _, session: session.dispatch(Note("late")),
}


def in_time(work: Callable[[], object]) -> StoreError | None:
    """The error of what ends long before it would without a timeout."""
    caught: list[StoreError | None] = []

    def run() -> None:
        try:
            work()
        except StoreError as error:
            caught.append(error)
        else:
            caught.append(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(8)
    assert not thread.is_alive()
    return caught[0]


def ended(store: PostgresStore, session: Session) -> dict[str, str | None]:
    """The messages of all reads, and of a mark; None for those that need nothing of the server."""
    errors = {name: in_time(partial(read, store, session)) for name, read in READS.items()}
    return {name: None if error is None else str(error) for name, error in errors.items()}


@pytest.mark.parametrize(
    ("table", "free"),
    [("sessions", {"history", "at", "claims"}), ("changes", {"refresh", "sessions", "claims"})],
)
def test_every_call_ends_while_a_table_is_locked(
    server: PostgresServer, store: PostgresStore, table: str, free: set[str]
) -> None:
    store = again(server, store, timeout=0.2)
    session = open_session(store)
    call(session, *PLAN)
    with psycopg.connect(server.conninfo) as lock:
        lock.execute(f'LOCK TABLE "{store._schema}".{table} IN ACCESS EXCLUSIVE MODE'.encode())
        busy = "another worker or program is writing to the store, for more than 0.2 s: try again"
        assert ended(store, session) == {name: None if name in free else busy for name in READS}
        assert call(session, "planning_read_plan", {}).success is True
    session.dispatch(Note("later"))
    assert store.verify("run-7") == session.version


def test_every_call_ends_while_a_pooler_waits_for_its_server(
    server: PostgresServer, store: PostgresStore
) -> None:
    with cutting(server.port) as proxy:
        kept = PostgresStore(server.url_at(proxy.port), schema=store._schema, timeout=0.2)
        session = open_session(kept)
        session.dispatch(Note("first"))
        proxy.is_silent = True
        for name in ("mark", "refresh", "sessions"):
            assert in_time(partial(READS[name], kept, session)) is not None
        proxy.is_silent = False
        session.dispatch(Note("second"))
    assert store.verify("run-7") == 2


def test_a_commit_that_a_pooler_keeps_is_unknown_in_time(
    server: PostgresServer, store: PostgresStore
) -> None:
    with cutting(server.port) as proxy:
        session = open_session(PostgresStore(server.url_at(proxy.port), schema=store._schema, timeout=0.2))
        session.dispatch(Note("first"))

        def commit() -> None:
            with session.transaction() as transaction:
                transaction.dispatch(Note("second"))
                proxy.is_silent = True

        error = in_time(commit)
        assert error is not None
        assert error.outcome == "unknown"
        proxy.is_silent = False
        session.refresh()
        session.dispatch(Note("third"))
    assert store.verify("run-7") == session.version


READ_ONLY = (
    "the server is read-only, such as a replica: connect to the primary "
    "(target_session_attrs=read-write finds it)"
)
TOO_LONG = "the server stopped a statement that took too long (statement_timeout): try again"


@pytest.mark.parametrize(
    ("setting", "reason"),
    [("default_transaction_read_only=on", READ_ONLY), ("statement_timeout=50", TOO_LONG)],
)
def test_what_the_server_is_set_to_is_said(
    server: PostgresServer, store: PostgresStore, setting: str, reason: str
) -> None:
    session = begun(store)
    before = state_of(session)
    server.restart(setting)
    try:
        if reason == TOO_LONG:
            slow = "CREATE RULE slow AS ON INSERT TO {}.changes DO ALSO SELECT pg_sleep(9)"
            admin(server, slow.format(f'"{store._schema}"'))
        assert refused(lambda: session.dispatch(Note("lost"))) == cannot(server, reason)
        assert state_of(open_session(again(server, store))) == before
    finally:
        server.restart()


def test_a_transaction_that_is_idle_for_too_long_is_refused(
    server: PostgresServer, store: PostgresStore
) -> None:
    session = begun(store)
    server.restart("idle_in_transaction_session_timeout=50")
    try:
        with pytest.raises(StoreError) as caught, session.transaction() as transaction:
            transaction.dispatch(Note("lost"))
            until_closed(server)
        assert (caught.value.outcome, session.version) == ("refused", 1)
        assert str(caught.value) == cannot(
            server,
            "the server ended a transaction that was idle for too long "
            "(idle_in_transaction_session_timeout): try again",
        )
        session.dispatch(Note("second"))
    finally:
        server.restart()


def until_closed(server: PostgresServer) -> None:
    """Wait until the server has ended every transaction that was idle."""
    idle = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
    while admin(server, idle) != [(0,)]:
        pass


def test_wrong_addresses_say_what_is_wrong_and_never_the_password(server: PostgresServer) -> None:
    server_at = f"127.0.0.1:{server.port}"
    denied = "its user or password is refused: correct them in the address, or ask the administrator"
    wrong: dict[str, Callable[[], object]] = {
        denied: PostgresStore(f"postgresql://planning:secret-word@{server_at}/postgres").create,
        "there is no such database: create it, or name another in the address": PostgresStore(
            f"postgresql://planning:{ESCAPED}@{server_at}/secret-word"
        ).create,
        ENDED: PostgresStore("postgresql://planning:secret-word@127.0.0.1:1/postgres").create,
    }
    for reason, work in wrong.items():
        with pytest.raises(StoreError) as caught:
            work()
        assert str(caught.value).endswith(f" cannot be used: {reason}")
        assert PASSWORD not in told(caught.value)
    assert "secret-word" not in repr(PostgresStore("postgresql://u:secret-word@h/d?sslpassword=secret-word"))
    unreadable = (
        "postgresql//u:secret-word@h/d",
        "postgresql://u:secret-word%zz@h/d",
        "postgresql://u:secret@word@h/d",
        "postgresql://u:secret/word@h/d",
        "host=h password='secret-word",
        "host=h passwort=secret-word",
        "host=h\0 password=secret-word",
    )
    for address in unreadable:
        with pytest.raises(StoreError) as caught:
            PostgresStore(address)
        assert str(caught.value) == (
            "the address cannot be read: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
            "and in a password %40 for @, %3A for :, %2F for / and %25 for %"
        )
        assert "secret" not in told(caught.value)
        assert "word" not in told(caught.value).replace("a password %40", "").replace("USER:PASSWORD", "")


def told(error: BaseException) -> str:
    """All that an error and those before it say, without the lines of the program."""
    words = []
    found: BaseException | None = error
    while found is not None:
        words += [str(found), repr(found), *getattr(found, "__notes__", ())]
        found = found.__cause__ or found.__context__
    return "\n".join(words)


def test_tables_that_are_absent_or_of_a_newer_format_are_refused(
    server: PostgresServer, store: PostgresStore
) -> None:
    absent = PostgresStore(server.url, schema="nothing here")
    missing = "its tables do not exist: run `planning store create URL` once, or call store.create()"
    assert refused(absent.sessions) == cannot(server, missing)
    assert refused(lambda: open_session(absent)) == cannot(server, missing)
    session = begun(store)
    newer_format = 'UPDATE "{}".store SET format = 2'
    admin(server, newer_format.replace("{}", store._schema))
    name = NAME.format(port=server.port)
    newer = f"{name} has format 2; this release reads formats up to 1: use a newer one"
    assert refused(lambda: session.dispatch(Note("lost"))) == newer
    assert refused(again(server, store).sessions) == newer
    assert refused(again(server, store).create) == newer


def test_the_pool_is_bounded_and_says_when_it_is_empty(server: PostgresServer, store: PostgresStore) -> None:
    small = again(server, store, size=1, timeout=0.2)
    go, begun = threading.Event(), threading.Event()

    def hold() -> None:
        with small.lock("one"):
            begun.set()
            go.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait(20)
    assert refused(lambda: small.head("two")) == (
        "all 1 connections of the store are in use for more than 0.2 s: try again, or open the store with a "
        "greater size"
    )
    with pytest.raises(StoreBusy) as caught, again(server, store, timeout=0.2).lock("one"):
        pass
    assert (
        str(caught.value)
        == "another worker or program is writing to the store, for more than 0.2 s: try again"
    )
    go.set()
    thread.join(20)
    assert small.head("two") is None


def test_a_server_without_free_connections_says_so(server: PostgresServer, store: PostgresStore) -> None:
    server.restart("max_connections=6", "superuser_reserved_connections=0")
    taken = []
    try:
        with pytest.raises(psycopg.OperationalError):
            while True:
                taken.append(psycopg.connect(server.conninfo))
        assert refused(lambda: again(server, store).head("a")) == cannot(
            server,
            "the server has too many connections: raise its max_connections, lower the stores' size, or put "
            "a pooler before it",
        )
    finally:
        for connection in taken:
            connection.close()
        server.restart()
    assert store.head("a") is None


def test_a_text_that_the_database_cannot_hold_is_refused_and_nothing_changes(
    server: PostgresServer, store: PostgresStore
) -> None:
    session = begun(store)
    no_form = "text with a NUL or a lone surrogate has no form in the database: remove it"
    assert refused(lambda: session.claim("a\0b")) == cannot(server, no_form)
    assert refused(lambda: session.claim("\ud800")) == cannot(server, no_form)
    too_long = "a key, or the name of a claim, is longer than 2,600 bytes: use a shorter one"
    unlike = "".join(map(chr, range(0x100, 0x2000)))
    assert refused(lambda: session.claim(unlike)) == cannot(server, too_long)
    assert (session.claim("a"), store.claims("run-7")) == (True, [("a", 1)])


def test_what_is_no_address_no_pool_or_no_schema_is_refused(server: PostgresServer) -> None:
    with pytest.raises(TypeError) as wrong:
        PostgresStore(None)
    assert str(wrong.value) == "a store needs an address or a psycopg_pool.ConnectionPool, got None"
    for options, message in (
        ({"schema": "a$b"}, "schema must be 1 to 63 bytes of text without $ % ? { }, got 'a$b'"),
        ({"schema": ""}, "schema must be 1 to 63 bytes of text without $ % ? { }, got ''"),
        ({"size": 0}, "size must be 1 or more connections, got 0"),
        ({"timeout": -1}, "timeout must be seconds of 0 or more, got -1"),
    ):
        with pytest.raises(ValueError, match="must be") as refusal:
            PostgresStore(server.url, **options)
        assert str(refusal.value) == message
    odd = PostgresStore(server.url, schema='we"ird')
    odd.create()
    odd.create()
    assert odd.sessions() == []


def test_a_statement_that_fails_within_a_transaction_ends_it(
    server: PostgresServer, store: PostgresStore
) -> None:
    session = begun(store)
    with pytest.raises(StoreError) as caught, session.transaction() as transaction:
        transaction.dispatch(Note("lost"))
        assert "text with a NUL or a lone surrogate has no form" in refused(
            lambda: store.with_key("run-7", "\0")
        )
        assert refused(lambda: store.checkpoints("run-7", 1, -1)) == cannot(
            server, "the server says 'LIMIT must not be negative' (2201W)"
        )
    assert str(caught.value) == cannot(
        server, "a statement of the transaction has failed: end it, and try again"
    )
    assert (caught.value.outcome, session.version) == ("refused", 1)

"""A PostgreSQL store: what it says when the server fails, and several processes, threads and forks on it."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock
from urllib.parse import quote

import psycopg
import pytest
from cutting_proxy import cutting
from postgres_server import ESCAPED, PASSWORD, PostgresServer, running
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from session_records import Note, Ping, elsewhere, give_up, in_child, texts, words_of
from store_places import BUSY, PLAN, call, open_session, outcome_of, refused
from syrupy.assertion import SnapshotAssertion

from session import Session, StoreError
from session.stores import MemoryStore, PostgresStore, copy_session
from session.stores.postgres_link import ended_at

pytestmark = pytest.mark.postgres
NAME = "postgresql://127.0.0.1:{port}/postgres"
ENDED = "the server cannot be reached, or has ended the connection: check whether it runs, and try again"

SILENT = "the server does not answer: check whether it runs, and try again"
DENIED = "its user or password is refused: correct them in the address, or ask the administrator"
ABSENT = "there is no such database: create it, or name another in the address"
MISSING = "its tables do not exist: run `planning store create URL` once, or call store.create()"
NO_FORM = "text with a NUL or a lone surrogate has no form in the database: remove it"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of this module's own: it is restarted, and set up in other ways."""
    with running() as server:
        yield server


class Pg:
    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.schema = server.schema()
        self.store = self.again(timeout=2)
        self.store.create()

    def again(self, port: int | None = None, **options: Any) -> PostgresStore:
        """Another store on the same tables, as another process has it."""
        return PostgresStore(self.server.url_at(port or self.server.port), schema=self.schema, **options)

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement as the administrator; ``{}`` is the schema."""
        with psycopg.connect(self.server.conninfo, autocommit=True) as connection:
            cursor = connection.execute(statement.replace("{}", f'"{self.schema}"').encode())
            return cursor.fetchall() if cursor.description else []

    def cannot(self, reason: str) -> str:
        return f"the store {NAME.format(port=self.server.port)} cannot be used: {reason}"


@pytest.fixture
def pg(server: PostgresServer) -> Iterator[Pg]:
    pg = Pg(server)
    yield pg
    pg.store.close()


def begun(pg: Pg) -> Session:
    """A session with one change, and the connection that made it at rest in the pool."""
    session = open_session(pg.store)
    session.dispatch(Note("first"))
    return session


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["restart", "crash"])
def test_a_server_that_is_away_is_an_error_and_needs_no_reopening(pg: Pg, how: signal.Signals) -> None:
    session = begun(pg)
    pg.server.stop(how)
    for work in (partial(session.dispatch, Note("lost")), partial(pg.store.head, "run-7")) * 2:
        assert outcome_of(work) == (pg.cannot(ENDED), "refused")
    assert session.version == 1
    pg.server.start()
    session.dispatch(Note("second"))
    assert (session.version, pg.store.verify("run-7")) == (2, 2)


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
    (result,) = elsewhere(work)
    assert not isinstance(result, Exception) or isinstance(result, StoreError)
    return result if isinstance(result, StoreError) else None


@pytest.mark.parametrize(
    ("table", "free"),
    [("sessions", {"history", "at", "claims"}), ("changes", {"refresh", "sessions", "claims"})],
)
def test_every_call_ends_while_a_table_is_locked(pg: Pg, table: str, free: set[str]) -> None:
    store = pg.again(timeout=0.05)
    session = open_session(store)
    call(session, *PLAN)
    with psycopg.connect(pg.server.conninfo) as lock:
        lock.execute(f'LOCK TABLE "{pg.schema}".{table} IN ACCESS EXCLUSIVE MODE'.encode())
        for name, read in READS.items():
            error = in_time(partial(read, store, session))
            assert (name, error and str(error)) == (name, None if name in free else BUSY.format(0.05))
        assert call(session, "planning_read_plan", {}).success is True
    session.dispatch(Note("later"))
    assert store.verify("run-7") == session.version


@pytest.mark.slow
def test_every_call_ends_while_a_pooler_waits_for_its_server(pg: Pg) -> None:
    with cutting(pg.server.port) as proxy:
        kept, other = (pg.again(proxy.port, timeout=0.2) for _ in range(2))
        session = open_session(kept)
        session.dispatch(Note("first"))
        assert len(other.sessions()) == 1
        silent = f"the store {NAME.format(port=proxy.port)} cannot be used: {SILENT}"

        def commit() -> None:
            with session.transaction() as transaction:
                transaction.dispatch(Note("second"))
                proxy.is_silent = True

        for work, outcome in (
            (partial(session.dispatch, Note("lost")), "refused"),
            (other.sessions, "refused"),
            (commit, "unknown"),
        ):
            proxy.is_silent = work != commit
            error = in_time(work)
            assert (str(error), error and error.outcome) == (silent, outcome)
            proxy.is_silent = False
        session.refresh()
        session.dispatch(Note("third"))
    assert pg.store.verify("run-7") == session.version


def test_a_commit_that_the_server_makes_late_is_waited_for(pg: Pg, monkeypatch: pytest.MonkeyPatch) -> None:
    with cutting(pg.server.port) as proxy:
        store = pg.again(proxy.port, timeout=1)
        session = open_session(store)
        session.dispatch(Note("first"))

        def open_beside(timeout: float) -> psycopg.Connection[Any]:
            threading.Timer(0.1, setattr, (proxy, "is_silent", False)).start()
            return pg.store._connections.open(timeout)

        monkeypatch.setattr(store._connections, "open", open_beside)
        with session.transaction() as transaction:
            transaction.dispatch(Note("second"))
            proxy.is_silent = True
    assert (session.version, pg.store.verify("run-7")) == (2, 2)


CODES = (
    "08006 22021 22P05 25006 25P03 25P04 28000 3D000 3F000 40001 42501 42P01 53100 53200 53300 54000 57014 "
    "57P01 57P02 57P03 57P05 XX000 XX001 XX002"
)


def test_what_the_server_refuses_a_change_for_is_said_with_what_to_do(
    pg: Pg, snapshot: SnapshotAssertion
) -> None:
    session, lines = begun(pg), list[str]()
    for code in CODES.split():
        pg.execute(
            "CREATE OR REPLACE FUNCTION {}.refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'some words' USING ERRCODE = '{code}'; END $$"
        )
        pg.execute(
            "CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON {}.changes EXECUTE FUNCTION {}.refuse()"
        )
        message, outcome = outcome_of(partial(session.dispatch, Note("lost")))
        lines.append(f"{code}: {message} ({outcome})".replace(pg.cannot(""), ""))
    assert session.version == 1
    assert "\n".join(lines) == snapshot


WORDS = (
    'password authentication failed for user "ann"',
    "fe_sendauth: no password supplied",
    "no pg_hba.conf entry for host",
    'role "ann" does not exist',
    "permission denied for database",
    'database "plans" does not exist',
    "sorry, too many clients already",
    "remaining connection slots are reserved",
    "too many connections for role",
    *(f"the database system is {what}" for what in ("starting up", "shutting down", "in recovery mode")),
    "session is read-only",
    "server does not support SSL, but",
    "other words",
)


def test_what_the_server_refuses_a_connection_for_is_said_with_what_to_do(
    snapshot: SnapshotAssertion,
) -> None:
    lines = list[str]()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse() -> None:
            for words in WORDS:
                client, _ = listening.accept()
                with client:
                    client.recv(8192)
                    fields = b"SFATAL\0VFATAL\0C00000\0M" + words.encode() + b"\0\0"
                    client.sendall(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)

        thread = threading.Thread(target=refuse)
        thread.start()
        place = f"127.0.0.1:{listening.getsockname()[1]}/plans"
        for words in WORDS:
            store = PostgresStore(f"postgresql://ann:word@{place}?sslmode=disable&gssencmode=disable")
            message = refused(partial(store.head, "run-7"))
            lines.append(f"{words}: {message}".replace(place, "PLACE"))
        thread.join()
    assert "\n".join(lines) == snapshot


PATIENT = (
    "host=h dbname=d connect_timeout=5 keepalives_idle=5 keepalives_interval=5 keepalives_count=3 "
    "tcp_user_timeout=20000 application_name=session-planning client_encoding=UTF8"
)


@pytest.mark.parametrize(
    ("more", "timeout", "asked"),
    [
        ("", 60, ""),
        ("", 2.5, "connect_timeout=3"),
        ("", 0, "connect_timeout=1"),
        ("connect_timeout=30", 60, "connect_timeout=30"),
        ("connect_timeout=0", 60, "connect_timeout=60"),
        ("host=h,i,j", 6, "host=h,i,j connect_timeout=2"),
        ("host=h,i port=1,2", 6, "host=h,i port=1,2 connect_timeout=3"),
        ("hostaddr=1.1.1.1,1.1.1.2", 6, "hostaddr=1.1.1.1,1.1.1.2 connect_timeout=3"),
        ("application_name=mine keepalives_count=9", 60, "application_name=mine keepalives_count=9"),
    ],
)
def test_a_host_that_is_gone_is_noticed_and_what_the_address_says_comes_first(
    more: str, timeout: float, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = Mock(side_effect=psycopg.OperationalError)
    monkeypatch.setattr("psycopg.connect", connect)
    store = PostgresStore(f"host=h dbname=d {more}", timeout=timeout)
    for use in (store.head, lambda name: store.lock(name).__enter__()):
        assert refused(partial(use, "run-7")).endswith(f"cannot be used: {ENDED}")
    assert connect.call_args.kwargs == {**conninfo_to_dict(f"{PATIENT} {asked}"), "autocommit": True}


def test_wrong_addresses_say_what_is_wrong_and_never_the_password(pg: Pg) -> None:
    at = f"127.0.0.1:{pg.server.port}"
    for address, reason in (
        (f"planning:secret-word@{at}/postgres", DENIED),
        (f"planning:{ESCAPED}@{at}/secret-word", ABSENT),
        ("planning:secret-word@127.0.0.1:1/postgres", ENDED),
    ):
        with pytest.raises(StoreError) as caught:
            PostgresStore(f"postgresql://{address}").create()
        assert str(caught.value).endswith(f" cannot be used: {reason}")
        assert PASSWORD not in chain_of(caught.value)
    assert "secret-word" not in repr(PostgresStore("postgresql://u:secret-word@h/d?sslpassword=secret-word"))
    unreadable = (
        *("postgresql//u:secret-word@h/d", "postgresql://u:secret-word%zz@h/d"),
        *("postgresql://u:secret@word@h/d", "postgresql://u:secret/word@h/d", "postgresql://u:1/word@h/d"),
        *("postgresql://h:secret-word/d", "host=\ud800 password=secret-word"),
        *("host=h password='secret-word", "host=h passwort=secret-word", "host=h\0 password=secret-word"),
    )
    for address in unreadable:
        with pytest.raises(StoreError) as caught:
            PostgresStore(address)
        assert str(caught.value) == (
            "the address cannot be read: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
            "and in a password %40 for @, %3A for :, %2F for / and %25 for %"
        )
        assert "secret" not in chain_of(caught.value)
        assert "word" not in chain_of(caught.value).replace("a password %40", "").replace("USER:PASSWORD", "")


def chain_of(error: BaseException) -> str:
    """All that an error and those before it say, without the lines of the program."""
    words = []
    found: BaseException | None = error
    while found is not None:
        words += [str(found), repr(found), *getattr(found, "__notes__", ())]
        found = found.__cause__ or found.__context__
    return "\n".join(words)


def test_tables_that_are_absent_or_of_a_newer_format_are_refused(pg: Pg) -> None:
    absent = PostgresStore(pg.server.url, schema="nothing here")
    assert refused(absent.sessions) == pg.cannot(MISSING)
    assert refused(lambda: open_session(absent)) == pg.cannot(MISSING)
    session = begun(pg)
    pg.execute("UPDATE {}.store SET format = 2")
    name = NAME.format(port=pg.server.port)
    newer = f"{name} has format 2; this release reads formats up to 1: use a newer one"
    assert refused(lambda: session.dispatch(Note("lost"))) == newer
    assert refused(pg.again().sessions) == newer
    assert refused(pg.again().create) == newer


def test_a_child_has_connections_of_its_own_and_its_parent_keeps_those_that_it_has(
    pg: Pg, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = pg.again(size=1, timeout=10)
    session = open_session(store)
    session.dispatch(Note("first"))
    with store.lock("other"):
        assert in_child(partial(store.verify, "run-7")) == 0
    monkeypatch.setattr("psycopg.connect", Mock(side_effect=psycopg.OperationalError))
    session.dispatch(Note("second"))
    assert (texts(session), pg.store.verify("run-7")) == (["first", "second"], 2)


def test_a_record_that_is_missing_is_damage(pg: Pg) -> None:
    begun(pg)
    pg.execute("DELETE FROM {}.sessions")
    missing = "the record of session 'run-7' is missing: the database is damaged"
    assert refused(lambda: pg.store.verify("run-7")) == missing


def test_the_pool_is_bounded_and_says_when_it_is_empty(pg: Pg) -> None:
    small = pg.again(size=1, timeout=0.2)
    with small.lock("one"):
        (caught,) = elsewhere(lambda: small.head("two"))
        assert (type(caught), str(caught)) == (
            StoreError,
            "all 1 connections of the store are in use for more than 0.2 s: try again, or open the store "
            "with a greater size",
        )
    assert small.head("two") is None


def test_closing_takes_no_connection_that_is_in_use(pg: Pg, monkeypatch: pytest.MonkeyPatch) -> None:
    store, connect = pg.again(size=2, timeout=10), Mock(wraps=psycopg.connect)
    session, read = open_session(store, "one"), partial(store.head, "two")
    monkeypatch.setattr("psycopg.connect", connect)
    with session.transaction() as transaction:
        transaction.dispatch(Note("kept"))
        assert [elsewhere(read), elsewhere(read), connect.call_count] == [[None], [None], 1]
        store.close()
        assert [elsewhere(read), elsewhere(read), connect.call_count] == [[None], [None], 2]
    assert [session.version, elsewhere(read), connect.call_count] == [1, [None], 2]


def test_a_text_that_the_database_cannot_hold_is_refused_and_nothing_changes(pg: Pg) -> None:
    session = begun(pg)
    for name in ("a\0b", "\ud800"):
        assert refused(partial(session.claim, name)) == pg.cannot(NO_FORM)
    too_long = "a key, or the name of a claim, is longer than 2,600 bytes: use a shorter one"
    unlike = "".join(map(chr, range(0x100, 0x2000)))
    assert refused(lambda: session.claim(unlike)) == pg.cannot(too_long)
    assert (session.claim("a"), pg.store.claims("run-7")) == (True, [("a", 1)])
    assert (pg.store.claim("later", "a"), pg.store.claims("later")) == (True, [("a", 0)])


LONG = "ab" * 31 + "é"  # 64 bytes


def test_what_is_no_address_no_pool_or_no_schema_is_refused(pg: Pg) -> None:
    assert words_of(TypeError, PostgresStore, 5) == (
        "a store needs an address or a psycopg_pool.ConnectionPool, got 5"
    )
    pool = AsyncConnectionPool(open=False)
    assert words_of(TypeError, PostgresStore, pool) == (
        f"a store needs an address or a psycopg_pool.ConnectionPool, got {pool!r}"
    )
    for options, message in (
        ({"schema": "a$b"}, "schema must be 1 to 63 bytes of text without $ % ? { }, got 'a$b'"),
        ({"schema": ""}, "schema must be 1 to 63 bytes of text without $ % ? { }, got ''"),
        ({"schema": "\ud800"}, "schema must be 1 to 63 bytes of text without $ % ? { }, got '\\ud800'"),
        ({"schema": LONG}, f"schema must be 1 to 63 bytes of text without $ % ? {{ }}, got {LONG!r}"),
        ({"size": 0}, "size must be 1 or more connections, got 0"),
        ({"timeout": -1}, "timeout must be seconds of 0 or more, got -1"),
    ):
        assert words_of(ValueError, PostgresStore, pg.server.url, **options) == message
    assert "x" in PostgresStore.schema_sql("x")
    assert LONG[1:] in PostgresStore.schema_sql(LONG[1:])
    nameless = PostgresStore(SimpleNamespace(getconn=len, conninfo=len))
    assert repr(nameless) == "PostgresStore('postgresql:///', schema='sessions')"
    odd = PostgresStore(pg.server.url, schema='X-we"ird')
    odd.create()
    odd.create()
    assert odd.sessions() == []


def test_a_transaction_given_up_leaves_a_connection_at_rest(pg: Pg, monkeypatch: pytest.MonkeyPatch) -> None:
    session, connect = begun(pg), Mock(wraps=psycopg.connect)
    monkeypatch.setattr("psycopg.connect", connect)
    for _ in range(3):
        give_up(session, lambda transaction: transaction.dispatch(Note("lost")))
    session.dispatch(Note("second"))
    assert (session.version, connect.call_count) == (2, 0)


def test_a_connection_that_is_not_at_rest_is_not_used_again(pg: Pg, monkeypatch: pytest.MonkeyPatch) -> None:
    session, connect = begun(pg), Mock(wraps=psycopg.connect)
    monkeypatch.setattr("psycopg.connect", connect)
    with monkeypatch.context() as patch:
        patch.setattr(pg.store, "_roll_back", Mock())
        give_up(session, lambda transaction: transaction.dispatch(Note("lost")))
    session.dispatch(Note("second"))
    assert (session.version, connect.call_count) == (2, 1)


def test_a_statement_that_fails_within_a_transaction_ends_it(pg: Pg) -> None:
    session = begun(pg)

    def fail() -> None:
        with session.transaction() as transaction:
            transaction.dispatch(Note("lost"))
            assert refused(lambda: pg.store.with_key("run-7", "\0")) == pg.cannot(NO_FORM)
            refusal = refused(lambda: pg.store.checkpoints("run-7", 1, -1))
            reason = pg.cannot("the server says 'LIMIT must not be negative' (2201W)")
            assert refusal == reason  # enough: the end of the block raises

    ended = "a statement of the transaction has failed: end it, and try again"
    assert outcome_of(fail) == (pg.cannot(ended), "refused")
    assert session.version == 1


def test_a_limit_that_ctrl_c_left_behind_takes_no_other_limit_away() -> None:
    connection: Any = SimpleNamespace()
    left = ended_at(connection, 1)
    left.__enter__()
    with ended_at(connection, 2):
        limit = connection.wait
        left.__exit__(None, None, None)
        assert connection.wait is limit
    assert vars(connection) == {}


# Several processes


def test_sessions_do_not_wait_for_each_other(pg: Pg) -> None:
    one, two = (open_session(pg.store, name) for name in ("one", "two"))
    with one.transaction() as transaction:
        transaction.dispatch(Ping(1))
        assert (elsewhere(lambda: two.dispatch(Ping(1))), two.version) == ([None], 1)
    assert one.version == 1


def test_a_change_that_no_notification_tells_of_is_found(pg: Pg, monkeypatch: pytest.MonkeyPatch) -> None:
    there = pg.again()
    monkeypatch.setattr(there._listener, "_channel", "another")
    monkeypatch.setattr("session.stores.postgres._POLLED", 0.1)
    with closing(there.watch("run-7", timeout=20)) as watch:
        threading.Timer(0.05, open_session(pg.store).dispatch, args=(Ping(1),)).start()
        assert next(watch).version == 1


def test_a_change_while_a_store_begins_to_listen_wakes_it(pg: Pg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session.stores.postgres._POLLED", 60)
    store, session = pg.again(), open_session(pg.store)
    with closing(store.watch("run-7", timeout=20)) as watch:
        connect, woken = store._connections.open, list[bool]()

        def open_late() -> psycopg.Connection[Any]:
            time.sleep(0.1)  # the watch waits by then
            session.dispatch(Ping(1))
            return connect()

        monkeypatch.setattr(store._connections, "open", open_late)
        watch.on_wake = partial(woken.append, True)
        assert (next(watch).version, woken) == (1, [True])


def test_a_watch_hears_at_once_of_a_session_that_is_restored_changed_or_deleted(
    pg: Pg, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("session.stores.postgres._POLLED", 60)
    source = MemoryStore()
    open_session(source).dispatch(Ping(1))
    patient = PostgresStore(f"{pg.server.url}?connect_timeout=0", schema=pg.schema)
    with ThreadPoolExecutor(1) as thread, closing(patient.watch("run-7")) as watch:
        found = thread.submit(next, watch)
        time.sleep(0.3)  # it waits by then
        copy_session(source, pg.store, "run-7")
        assert found.result(20).version == 1
        found = thread.submit(next, watch)
        time.sleep(0.1)
        open_session(pg.store).dispatch(Ping(2))
        assert found.result(20).version == 2
        found = thread.submit(next, watch)
        time.sleep(0.1)
        pg.store.delete("run-7")
        assert refused(partial(found.result, 20)) == "session 'run-7' was deleted"


@pytest.mark.slow
def test_watches_go_on_after_the_server_was_away(pg: Pg) -> None:
    with closing(pg.store.watch("run-7", timeout=20)) as watch:
        session = begun(pg)
        assert next(watch).version == 1
        pg.server.stop()
        assert refused(partial(next, watch)) == pg.cannot(ENDED)
        pg.server.start()
        session.dispatch(Ping(2))
        assert next(watch).version == 2


def test_watches_of_tasks_share_one_thread_and_hear_at_once(pg: Pg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session.stores.postgres._POLLED", 60)
    before, store = {*threading.enumerate()}, pg.again()

    async def follow() -> list[int]:
        found = []
        async for change in store.awatch("run-7", after=0, timeout=120):
            found.append(change.version)
            if len(found) == 2:
                break
        return found

    async def seen() -> list[list[int]]:
        tasks = [asyncio.create_task(follow()) for _ in range(40)]
        session = await asyncio.to_thread(open_session, store)
        for number in (1, 2):
            await asyncio.sleep(0.05)
            await session.run_in_worker(partial(session.dispatch, Ping(number)))
        started = [each for each in threading.enumerate() if each not in before and "watch" in each.name]
        assert [(each.name, each.daemon) for each in started] == [("session watches", True)]
        return list(await asyncio.gather(*tasks))

    assert asyncio.run(asyncio.wait_for(seen(), 30), debug=True) == [[1, 2]] * 40


def test_an_address_names_a_store_and_its_schema(pg: Pg) -> None:
    url = f"{pg.server.url}?schema={quote(pg.schema)}"
    one, same = (Session(session_id="run-7", store=url) for _ in range(2))
    assert one.store is same.store
    one.publish(Ping(1))
    name = f"PostgresStore({NAME.format(port=pg.server.port)!r}, schema={pg.schema!r})"
    assert (repr(one.store), same.version) == (name, 1)


def test_a_pool_of_the_host_is_used_and_left_to_it(pg: Pg) -> None:
    more: dict[str, Any] = {"kwargs": {"row_factory": dict_row}, "open": True, "timeout": 5}
    with ConnectionPool(pg.server.conninfo, min_size=1, max_size=2, **more) as pool:
        store = PostgresStore(pool, schema=pg.schema)
        place = f"postgresql://{pg.server.folder}:{pg.server.port}/postgres"
        assert repr(store) == f"PostgresStore({place!r}, schema={pg.schema!r})"
        session = open_session(store)
        session.dispatch(Ping(1))
        with closing(store.watch("run-7", after=0, timeout=20)) as watch:
            assert next(watch).version == 1

        def asked() -> None:
            assert refused(lambda: store.head("run-7")) == (
                "the pool belongs to the process that this one was forked from: open a store here, with a "
                "pool of its own or with an address"
            )

        assert in_child(asked) == 0
        store.close()
        session.dispatch(Ping(2))
        with pool.connection(), pool.connection():
            assert refused(lambda: PostgresStore(pool, schema=pg.schema, timeout=0.2).head("run-7")) == (
                "the pool has no connection after 0.2 s: check whether the server runs, whether it "
                "accepts the user and password, and whether the pool is large enough"
            )
        assert store.verify("run-7") == 2

"""Several processes, threads, pools and forks on one PostgreSQL store."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from postgres_server import PostgresServer, running, schema_for
from psycopg_pool import ConnectionPool
from session_records import Ping, elsewhere
from store_places import open_session, refused

from session import StoreError
from session.stores import MemoryStore, PostgresStore, Watch, copy_session

pytestmark = pytest.mark.postgres


@pytest.fixture
def schema(tmp_path: Path, postgres: PostgresServer) -> str:
    return schema_for(tmp_path)


@pytest.fixture
def store(postgres: PostgresServer, schema: str) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres.conninfo, schema=schema)
    yield store
    store.close()


def test_sessions_do_not_wait_for_each_other(store: PostgresStore) -> None:
    one, two = (open_session(store, name) for name in ("one", "two"))
    with one.transaction() as transaction:
        transaction.dispatch(Ping(1))
        assert (elsewhere(lambda: two.dispatch(Ping(1))), two.version) == ([None], 1)
    assert one.version == 1


def test_fifty_watches_have_one_connection_and_see_every_change(
    postgres: PostgresServer, store: PostgresStore, schema: str
) -> None:
    there = PostgresStore(postgres.conninfo, schema=schema)
    watches = [there.watch("run-7", timeout=20) for _ in range(50)]
    before = {*threading.enumerate()}
    found: list[list[int]] = [[] for _ in watches]

    def follow(watch: Watch, numbers: list[int]) -> None:
        numbers += [change.version for _, change in zip(range(3), watch, strict=False)]

    threads = [threading.Thread(target=follow, args=each) for each in zip(watches, found, strict=True)]
    for thread in threads:
        thread.start()
    session = open_session(store)
    session.dispatch(Ping(1))
    started = [thread for thread in threading.enumerate() if thread not in {*before, *threads}]
    assert [(thread.name, thread.daemon) for thread in started] == [("session watches", True)]
    session.dispatch(Ping(2))
    session.dispatch(Ping(3))
    for thread in threads:
        thread.join(20)
    assert found == [[1, 2, 3]] * 50


def test_a_change_that_no_notification_tells_of_is_found(
    postgres: PostgresServer, store: PostgresStore, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = PostgresStore(postgres.conninfo, schema=schema)
    monkeypatch.setattr(there._listener, "_channel", "another")
    monkeypatch.setattr("session.stores.postgres._POLLED", 0.1)
    watch = there.watch("run-7", timeout=20)
    threading.Timer(0.05, open_session(store).dispatch, args=(Ping(1),)).start()
    assert next(watch).version == 1
    watch.close()


def test_a_watch_hears_at_once_of_a_session_that_is_restored_or_deleted(
    postgres: PostgresServer, store: PostgresStore, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("session.stores.postgres._POLLED", 60)
    source = MemoryStore()
    open_session(source).dispatch(Ping(1))
    watch = PostgresStore(postgres.conninfo, schema=schema).watch("run-7")
    with ThreadPoolExecutor(1) as thread, closing(watch):
        found = thread.submit(next, watch)
        time.sleep(0.3)  # it waits by then
        copy_session(source, store, "run-7")
        assert found.result(20).version == 1
        found = thread.submit(next, watch)
        time.sleep(0.1)
        store.delete("run-7")
        with pytest.raises(StoreError, match=r"^session 'run-7' was deleted$"):
            found.result(20)


@pytest.mark.slow
def test_watches_go_on_after_the_server_was_away(schema: str) -> None:
    with running() as server:
        store = PostgresStore(server.conninfo, schema=schema)
        store.create()
        watch, session = store.watch("run-7", timeout=20), open_session(store)
        session.dispatch(Ping(1))
        assert next(watch).version == 1
        server.stop()
        with pytest.raises(StoreError, match="check whether it runs, and try again"):
            next(watch)
        server.start()
        session.dispatch(Ping(2))
        assert next(watch).version == 2
        watch.close()


def test_watches_of_tasks_hold_no_thread_while_they_wait_and_hear_at_once(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("session.stores.postgres._POLLED", 60)

    async def seen() -> list[list[int]]:
        async def follow() -> list[int]:
            found = []
            async for change in store.awatch("run-7", after=0, timeout=20):
                found.append(change.version)
                if len(found) == 2:
                    break
            return found

        tasks = [asyncio.create_task(follow()) for _ in range(40)]
        session = await asyncio.to_thread(open_session, store)
        for number in (1, 2):
            await asyncio.sleep(0.05)
            await session.run_in_worker(lambda number=number: session.dispatch(Ping(number)))  # type: ignore[misc]
        return list(await asyncio.gather(*tasks))

    assert asyncio.run(seen()) == [[1, 2]] * 40


def test_a_pool_of_the_host_is_used_and_left_to_it(postgres: PostgresServer, schema: str) -> None:
    with ConnectionPool(postgres.conninfo, min_size=1, max_size=2, open=True, timeout=5) as pool:
        store = PostgresStore(pool, schema=schema)
        assert repr(store) == (
            f"PostgresStore('postgresql://{postgres.folder}:{postgres.port}/postgres', schema={schema!r})"
        )
        session = open_session(store)
        session.dispatch(Ping(1))
        watch = store.watch("run-7", after=0, timeout=20)
        assert next(watch).version == 1
        watch.close()
        child = os.fork()
        if not child:
            message = refused(lambda: store.head("run-7"))
            os._exit(0 if message.startswith("the pool belongs to the process that this one was") else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        store.close()
        session.dispatch(Ping(2))
        with ExitStack() as held:
            for _ in range(2):
                held.enter_context(pool.connection())
            assert refused(lambda: PostgresStore(pool, schema=schema, timeout=0.2).head("run-7")) == (
                "the pool has no connection after 0.2 s: check whether the server runs, whether it "
                "accepts the user and password, and whether the pool is large enough"
            )
        assert store.verify("run-7") == 2

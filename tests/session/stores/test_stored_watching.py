"""Watching a session in every store: each change once, in order, from whichever process."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from session_records import Note
from store_places import Place, open_session, registered

from session import Session, VersionError
from session.records import Unread
from session.stores import SqliteStore, StoreError


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session.stores.watch._BATCH", 8)


def test_a_slow_watcher_loses_nothing_and_sees_what_the_history_has(place: Place) -> None:
    session = open_session(place.open())
    store = place.open()
    watch = store.watch("run-7", after=0, timeout=0)
    assert list(watch) == []
    for number in range(30):
        session.dispatch(Note(str(number)))
        if number % 5 == 0:
            assert next(watch).version == number // 5 + 1
    found = list(watch)
    assert [change.version for change in found] == list(range(7, 31))
    assert found[0].events == (Unread("session_records:Note", {"text": "6"}),)
    assert watch.version == 30
    reader = registered(Session(session_id="run-7", store=store))
    assert list(store.watch("run-7", after=0, timeout=0)) == list(reader.history())
    assert [change.version for change in store.watch("run-7", timeout=0)] == []
    assert [change.version for change in store.watch("run-7", after=28, timeout=0)] == [29, 30]


def test_a_watch_begins_before_the_session_and_ends_by_close_from_another_thread(place: Place) -> None:
    watch = place.open().watch("run-7")
    found, done = list[int](), threading.Event()

    def follow() -> None:
        with watch:
            found.extend(change.version for change in watch)
        done.set()

    thread = threading.Thread(target=follow)
    thread.start()
    session = open_session(place.open())
    for number in range(3):
        session.dispatch(Note(str(number)))
    while watch.version < 3:
        assert not done.wait(0.01)
    watch.close()
    assert done.wait(20)
    thread.join()
    assert found == [1, 2, 3]
    assert list(watch) == []


def test_watching_in_async_code_ends_by_time_and_by_leaving(place: Place) -> None:
    session, store = open_session(place.open()), place.open()
    for number in range(20):
        session.dispatch(Note(str(number)))

    async def some(after: int, limit: int) -> list[int]:
        found = list[int]()
        async for change in store.awatch("run-7", after=after, timeout=0.1):
            found.append(change.version)
            if len(found) == limit:
                break
        return found

    assert asyncio.run(some(0, 1000)) == list(range(1, 21))
    assert asyncio.run(some(15, 2)) == [16, 17]


def test_a_version_that_the_session_does_not_have_is_refused(place: Place) -> None:
    store = place.open()
    session = open_session(store)
    session.dispatch(Note("1"))

    async def begun(after: int) -> None:
        async for _ in store.awatch("run-7", after=after):
            pass

    for after in (2, -1, "1", True):
        for watch in (partial(store.watch, "run-7"), lambda after: asyncio.run(begun(after))):
            with pytest.raises(VersionError) as caught:
                watch(after=after)  # type: ignore[arg-type]  # what a caller without types may pass
            assert str(caught.value) == f"the session has the versions 0 to 1, got {after!r}"
    with pytest.raises(VersionError) as caught:
        store.watch("run-8", after=1)
    assert str(caught.value) == "the session has the versions 0 to 0, got 1"


@pytest.mark.parametrize("text", ["replace(text, '6', '7')", "CAST(x'7bff7d' AS TEXT)", "12"])
def test_what_is_before_a_damaged_change_is_given_out_first(path: Path, text: str) -> None:
    session = open_session(SqliteStore(path))
    for number in range(9):
        session.dispatch(Note(str(number)))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE changes SET text = {text} WHERE version = 7")  # noqa: S608 - above
    watch = SqliteStore(path).watch("run-7", after=0, timeout=0)
    assert [next(watch).version for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            next(watch)
        assert caught.value.version == 7

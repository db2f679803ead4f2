"""Writes whose answer is lost, in a file and in PostgreSQL: looked for, refused, or of unknown outcome."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock

import pytest
from session_records import Note, in_child, texts, words_of
from store_places import PLAN, Place, PostgresPlace, SqlitePlace, call, mark, open_session, state_of, statuses

from session import Session, StoreError, TransactionError
from session.stores import MemoryStore, SqliteStore, Store, StoredSession, copy_session


@pytest.fixture(params=[SqlitePlace, pytest.param(PostgresPlace, marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    made: Place = request.param(tmp_path)
    return made


both = pytest.mark.parametrize(
    ("is_done", "is_gone"), [(False, False), (False, True), (True, False), (True, True)]
)


class Wrapped:
    """A connection whose statements another function runs."""

    def __init__(self, inner: Any, execute: Callable[..., object]) -> None:
        self.inner, self.execute = inner, execute

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def fail(then: Callable[[], object] = lambda: None) -> NoReturn:
    then()
    raise sqlite3.OperationalError("disk I/O error")


@contextmanager
def losing(
    store: Any, *, is_done: bool, is_gone: bool = False, then: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Lose the answer to the next commit, after it is done or before; and then all others, or none."""
    lost = list[str]()

    def run(work: Callable[[], object], statement: str, lose: Callable[[], NoReturn]) -> object:
        if not lost and re.search("COMMIT(;|$)|CREATE TABLE", statement):
            lost.append(statement)
            if is_done:
                work()
            lose()
        if lost and is_gone and statement != "ROLLBACK":
            lose()
        return work()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("session.stores.sql._PATIENCE", 0.02)
        if isinstance(store, SqliteStore):
            inner = store._writer.connected()

            def execute(statement: str, *values: Any) -> object:
                return run(partial(inner.execute, statement, *values), statement, partial(fail, then))

            patch.setattr(store._writer, "connection", Wrapped(inner, execute))
            yield
            if inner.in_transaction:
                inner.execute("ROLLBACK")
            return
        import psycopg

        before = store._run

        def run_all(connection: Any, seconds: float, statements: str, *values: Any) -> object:
            def lose() -> NoReturn:
                connection.close()
                then()
                raise psycopg.OperationalError("the connection is lost")

            return run(partial(before, connection, seconds, statements, *values), statements, lose)

        patch.setattr(store, "_run", run_all)
        yield


@both
def test_a_mark_whose_answer_is_lost_is_looked_for(place: Place, is_done: bool, is_gone: bool) -> None:
    session = open_session(place.open())
    call(session, *PLAN)
    store = session.store
    assert store is not None
    with losing(store, is_done=is_done, is_gone=is_gone):
        result = mark(session, "S001", idempotency_key="c1")
        assert result.success is (is_done and not is_gone)
        if is_gone:
            assert result.message == (
                "It is not known whether planning_mark_step took effect. Check before you call it again."
            )
    if is_gone:
        with pytest.raises(StoreError) as error:
            session.dispatch(Note("waits"))
        assert (str(error.value), error.value.outcome, session.version) == (
            "it is not known whether the last change was written: call session.refresh() when the store can "
            "be reached",
            "unknown",
            1,
        )
        assert session.refresh() == 1 + is_done
    assert mark(session, "S001", idempotency_key="c1").success
    expected = 2 if is_done or is_gone else 3  # if it was certain, the refusal is a version of its own
    assert session.version == expected
    session.dispatch(Note("after"))
    assert store.verify("run-7") == expected + 1
    there = open_session(place.open())
    assert state_of(there) == state_of(session)
    assert statuses(there) == ["done", "pending", "pending"]


def copied(store: Store) -> int:
    source = MemoryStore()
    open_session(source, "copied").dispatch(Note("first"))
    return copy_session(source, store, "copied").version


WRITES: dict[str, tuple[Callable[[Any, Session], object], object]] = {
    "claim": (lambda store, _: store.claim("run-7", "mail"), True),
    "fork": (lambda _, session: session.fork(session_id="fork").version, 2),
    "delete": (lambda store, _: store.delete("run-7"), True),
    "drop_checkpoints": (lambda store, _: store.drop_checkpoints("run-7"), None),
    "restore": (lambda store, _: copied(store), 1),
    "create": (lambda store, _: store.create(), None),
}


@pytest.mark.parametrize("write", WRITES)
@both
def test_a_write_without_answer_is_looked_for(place: Place, write: str, is_done: bool, is_gone: bool) -> None:
    work, right = WRITES[write]
    store = place.open()
    session = open_session(store)
    session.dispatch(Note("first"))
    session.rewind(0)  # with a checkpoint
    if write == "create":
        if not isinstance(place, PostgresPlace):
            pytest.skip("a file is created when it is opened")
        place.drop()
    with losing(store, is_done=is_done, is_gone=is_gone):
        if is_done and not is_gone:
            assert work(store, session) == right
            return
        with pytest.raises(StoreError) as error:
            work(store, session)
        assert error.value.outcome == ("unknown" if is_gone else "refused")
    if not is_done or write == "claim":  # which is known to be ours
        assert work(store, session) == right
    if write == "claim":
        assert work(store, session) is False


def test_a_change_that_another_has_continued_when_it_is_looked_for_is_there(place: Place) -> None:
    session, other = (open_session(place.open()) for _ in range(2))

    def continue_there() -> None:
        with ThreadPoolExecutor() as threads:
            threads.submit(other.dispatch, Note("theirs")).result()

    with losing(session.store, is_done=True, then=continue_there):
        session.dispatch(Note("ours"))
    assert (session.refresh(), texts(session)) == (2, ["ours", "theirs"])


def test_a_look_that_fails_is_made_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store: Any = place.open()
    session, asking = open_session(store), store._asking
    session.dispatch(Note("first"))
    with losing(store, is_done=True):
        monkeypatch.setattr("session.stores.sql._PATIENCE", 60)
        monkeypatch.setattr(store, "_asking", Mock(side_effect=[StoreError("gone"), asking("run-7")]))
        session.dispatch(Note("second"))
    assert (session.version, store.verify("run-7")) == (2, 2)


def test_a_lock_allows_one_change(place: Place) -> None:
    store, now = place.open(), datetime(2026, 1, 1, tzinfo=UTC)
    head = StoredSession("run-7", 0, b"", now, now)
    with store.lock("run-7"):
        store.append(head, None, expected=0)
        assert words_of(TransactionError, store.append, head, None, expected=0) == (
            "a lock allows one change: release it and take it again"
        )


@pytest.mark.postgres
def test_a_claim_that_another_made_after_ours_was_lost_is_not_ours(tmp_path: Path) -> None:
    store, other = PostgresPlace(tmp_path).open(), PostgresPlace(tmp_path).open()

    def claim_there() -> None:
        with ThreadPoolExecutor() as threads:
            assert threads.submit(other.claim, "run-7", "mail").result() is True

    with losing(store, is_done=False, then=claim_there), pytest.raises(StoreError) as caught:
        store.claim("run-7", "mail")
    assert caught.value.outcome == "refused"
    assert store.claim("run-7", "mail") is False


def test_a_child_does_not_commit_the_transaction_of_its_parent(place: Place) -> None:
    session = open_session(place.open())
    opened = session.transaction()
    opened.__enter__().dispatch(Note("parent"))

    def commit() -> None:
        assert words_of(TransactionError, opened.__exit__, None, None, None) == (
            "this process was forked inside the transaction, which is its parent's"
        )

    assert in_child(commit) == 0
    opened.__exit__(None, None, None)
    assert texts(open_session(place.open())) == ["parent"]


def test_memory_that_runs_out_hides_no_commit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store: Any = place.open()
    session, commit = open_session(store), store._commit

    def commit_and_fail(*values: Any) -> None:
        commit(*values)
        raise MemoryError

    monkeypatch.setattr(store, "_commit", commit_and_fail)
    with pytest.raises(MemoryError):
        session.dispatch(Note("first"))
    assert session.select_all(Note) == (Note("first"),)
    assert call(session, *PLAN).message == (
        "It is not known whether planning_setup_plan took effect. Check before you call it again."
    )
    assert statuses(session) == ["pending", "pending", "pending"]
    assert state_of(session) == state_of(open_session(place.open()))


def test_a_transaction_that_a_disk_does_not_even_roll_back_ends_with_its_connection(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "plans.db", timeout=0.2)
    session = open_session(store)
    session.dispatch(Note("first"))

    def execute(inner: Any, statement: str, *values: Any) -> object:
        return fail() if statement in {"COMMIT", "ROLLBACK"} else inner.execute(statement, *values)

    links: tuple[Any, ...] = (store._writer, store._reader)
    for link in links:
        link.connection = Wrapped(link.connected(), partial(execute, link.connected()))
    with pytest.raises(StoreError, match="disk I/O error"):
        session.dispatch(Note("lost"))
    assert store.verify("run-7") == 1
    open_session(SqliteStore(tmp_path / "plans.db", timeout=0.2)).dispatch(Note("theirs"))
    session.dispatch(Note("second"))
    assert [note.text for note in session.select_all(Note)] == ["first", "theirs", "second"]
    assert store.verify("run-7") == 3

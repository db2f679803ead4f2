"""Transactions: all or nothing, nested, seen by others only when they are committed."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from session_records import Count, Note, OnPurposeError, Ping, elsewhere, note_session, numbers, ping, texts

from session import ReducerError, replace_latest


def test_code_inside_reads_the_events_of_all_the_blocks_that_it_is_in() -> None:
    session = note_session()
    session.publish(ping(session, 1))
    with session.transaction() as outer:
        outer.publish(ping(session, 2))
        with session.transaction() as inner:
            inner.publish(ping(session, 3))
            inner.dispatch(ping(session, 4))
            assert numbers(session.select_all(Ping)) == [1, 2, 3, 4]
            assert session.select_latest(Ping) == inner.latest(Ping) == session.select_all(Ping)[-1]
            assert elsewhere(lambda: numbers(session.select_all(Ping))) == [[1]]
            assert elsewhere(lambda: session.select_latest(Ping)) == list(session.select_all(Ping)[:1])
        assert numbers(session.select_all(Ping)) == [1, 2, 3, 4]
    assert numbers(session.select_all(Ping)) == [1, 2, 3, 4]


def test_another_thread_that_writes_waits_for_the_end() -> None:
    session = note_session()
    started = threading.Event()

    def write() -> None:
        started.set()
        session.dispatch(Note("other"))

    thread = threading.Thread(target=write)
    with session.transaction() as transaction:
        thread.start()
        started.wait()
        transaction.dispatch(Note("a"))
        transaction.dispatch(Note("b"))
    thread.join()
    assert texts(session) == ["a", "b", "other"]


def test_a_reducer_that_raises_leaves_the_transaction_as_it_was_before_that_dispatch() -> None:
    session = note_session()

    def refuse(slice_: tuple[Any, ...], event: Any) -> tuple[Any, ...]:
        raise OnPurposeError

    session.register_reducer(Count, replace_latest)
    session.register_reducer(Count, refuse, slice_type=Note)
    session.register_reducer(Ping, refuse, slice_type=Note)
    heard: list[Ping] = []
    session.bus.subscribe(Ping, heard.append)
    with session.transaction() as transaction:
        transaction.dispatch(Note("a"))
        with pytest.raises(OnPurposeError):
            transaction.dispatch(Count(1))
        with pytest.raises(OnPurposeError):
            transaction.publish(ping(session))
        transaction.dispatch(Note("b"))
    assert texts(session) == ["a", "b"]
    assert session.select_all(Count) == ()
    assert session.select_all(Ping) == ()
    assert heard == []


def returns_a_list(slice_: tuple[Any, ...], event: Any) -> Any:
    return [event]


class ReturnsNothing:
    def __call__(self, slice_: tuple[Any, ...], event: Any) -> Any:
        return None

    def __repr__(self) -> str:
        return "ReturnsNothing()"


@pytest.mark.parametrize(
    ("reducer", "message"),
    [
        (returns_a_list, "reducer returns_a_list returned list; it must return a tuple"),
        (ReturnsNothing(), "reducer ReturnsNothing() returned NoneType; it must return a tuple"),
    ],
    ids=["list", "None"],
)
def test_a_reducer_that_returns_no_tuple_is_refused(reducer: Any, message: str) -> None:
    session = note_session()
    session.register_reducer(Count, reducer)
    with pytest.raises(ReducerError) as caught, session.transaction() as transaction:
        transaction.dispatch(Note("a"))
        transaction.dispatch(Count(1))
    assert str(caught.value) == message
    assert texts(session) == []
    assert session.select_all(Count) == ()


def test_a_reducer_that_gives_its_slice_back_changes_nothing() -> None:
    session = note_session()
    session.register_reducer(Count, lambda slice_, event: slice_, slice_type=Note)
    session.dispatch(Note("a"))
    before = session.select_all(Note)
    session.dispatch(Count(1))
    assert session.select_all(Note) is before
    session.dispatch(Note("b"))
    assert texts(session) == ["a", "b"]

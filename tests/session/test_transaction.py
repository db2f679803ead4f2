"""Transactions: all or nothing, nested, seen by others only when they are committed."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from session_records import Count, Note, Ping, elsewhere, note_session, numbers, ping, texts

from session import ReducerError, TransactionError


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


def returns_a_list(slice_: tuple[Any, ...], event: Any) -> Any:
    return [event]


class ReturnsNothing:
    def __call__(self, slice_: tuple[Any, ...], event: Any) -> Any:
        return None

    def __repr__(self) -> str:
        return "ReturnsNothing()"


@pytest.mark.parametrize(
    ("reducer", "what"),
    [
        (returns_a_list, "returns_a_list returned list"),
        (ReturnsNothing(), "ReturnsNothing() returned NoneType"),
    ],
)
def test_a_reducer_that_returns_no_tuple_is_refused(reducer: Any, what: str) -> None:
    session = note_session()
    session.register_reducer(Count, reducer)
    with pytest.raises(ReducerError) as caught, session.transaction() as transaction:
        transaction.dispatch(Note("a"))
        transaction.dispatch(Count(1))
    assert str(caught.value) == f"reducer {what}; it must return a tuple"
    assert (texts(session), session.select_all(Count)) == ([], ())


def test_a_reducer_that_gives_its_slice_back_changes_nothing() -> None:
    session = note_session()
    session.register_reducer(Count, lambda slice_, event: slice_, slice_type=Note)
    session.dispatch(Note("a"))
    before = session.select_all(Note)
    session.dispatch(Count(1))
    assert session.select_all(Note) is before
    session.dispatch(Note("b"))
    assert texts(session) == ["a", "b"]


def test_a_block_that_goes_on_after_memory_ran_out_within_a_change_changes_nothing() -> None:
    session = note_session()

    def fill(_slice: tuple[Count, ...], _count: Count) -> tuple[Count, ...]:
        raise MemoryError

    session.register_reducer(Count, fill)
    message = "a change in the transaction was interrupted: begin it again"
    with pytest.raises(TransactionError, match=message), session.transaction() as transaction:
        transaction.dispatch(Note("a"))
        with pytest.raises(MemoryError):
            transaction.dispatch(Count(1))
    assert (texts(session), session.version) == ([], 0)

"""Transactions: all or nothing, nested, seen by others only when they are committed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from session_records import Count, Note, Ping, note_session, numbers, ping

from session import (
    ReducerError,
    Session,
    TransactionError,
    append,
    replace_latest,
)

NOT_HERE = "the transaction is not open here: use it inside its own with block, and not inside a nested one"


class OnPurposeError(Exception):
    """Raised to give a transaction up."""


def give_up(session: Session, body: Callable[[Any], object]) -> None:
    """Run a body in a transaction and raise at its end."""
    with pytest.raises(OnPurposeError), session.transaction() as transaction:
        body(transaction)
        raise OnPurposeError


def elsewhere(work: Callable[[], object]) -> list[object]:
    """What the work returns, or raises, in another thread."""
    got: list[object] = []

    def run() -> None:
        try:
            got.append(work())
        except Exception as error:  # noqa: BLE001 - the tests look at it
            got.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return got


def texts(session: Session) -> list[str]:
    return [note.text for note in session.select_all(Note)]


def test_what_is_dispatched_inside_is_there_when_the_block_has_ended() -> None:
    session = note_session()
    with session.transaction() as transaction:
        transaction.dispatch(Note("a"))
        transaction.dispatch(Note("b"))
    assert texts(session) == ["a", "b"]


def test_nothing_stays_of_a_block_that_raises() -> None:
    session = note_session()
    session.dispatch(Note("before"))

    def body(transaction: Any) -> None:
        transaction.dispatch(Note("a"))
        transaction.publish(ping(session))
        session.dispatch(Note("b"))

    heard: list[Ping] = []
    session.bus.subscribe(Ping, heard.append)
    give_up(session, body)
    assert texts(session) == ["before"]
    assert session.select_all(Ping) == ()
    assert heard == []


def test_code_inside_reads_its_own_changes() -> None:
    session = note_session()
    with session.transaction() as transaction:
        assert transaction.latest(Note) is None
        transaction.dispatch(Note("a"))
        assert transaction.latest(Note) == Note("a")
        assert texts(session) == ["a"]
        assert session.select_latest(Note) == Note("a")
        assert session.snapshot().select_all(Note) == (Note("a"),)


def test_other_threads_see_only_what_is_committed() -> None:
    session = note_session()
    session.dispatch(Note("before"))
    with session.transaction() as transaction:
        transaction.dispatch(Note("inside"))
        assert elsewhere(lambda: texts(session)) == [["before"]]
        assert elsewhere(lambda: session.select_latest(Note)) == [Note("before")]
        assert elsewhere(lambda: session.snapshot().select_all(Note)) == [(Note("before"),)]
    assert elsewhere(lambda: texts(session)) == [["before", "inside"]]


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


def test_a_nested_transaction_is_committed_with_the_outer_one() -> None:
    session = note_session()
    with session.transaction() as outer:
        outer.dispatch(Note("a"))
        with session.transaction() as inner:
            assert inner.latest(Note) == Note("a")
            inner.dispatch(Note("b"))
        assert outer.latest(Note) == Note("b")
        assert elsewhere(lambda: texts(session)) == [[]]
        outer.dispatch(Note("c"))
    assert texts(session) == ["a", "b", "c"]


def test_a_nested_transaction_that_raises_takes_back_only_its_own_part() -> None:
    session = note_session()
    heard: list[Ping] = []
    session.bus.subscribe(Ping, heard.append)
    with session.transaction() as outer:
        outer.dispatch(Note("a"))
        outer.publish(ping(session, 1))

        def body(inner: Any) -> None:
            inner.dispatch(Note("b"))
            inner.publish(ping(session, 2))

        give_up(session, body)
        assert texts(session) == ["a"]
        outer.dispatch(Note("c"))
        outer.publish(ping(session, 3))
    assert texts(session) == ["a", "c"]
    assert numbers(tuple(heard)) == numbers(session.select_all(Ping)) == [1, 3]


def test_an_outer_transaction_that_raises_takes_the_inner_ones_with_it() -> None:
    session = note_session()
    heard: list[Ping] = []
    session.bus.subscribe(Ping, heard.append)

    def body(outer: Any) -> None:
        with session.transaction() as inner:
            inner.dispatch(Note("b"))
            inner.publish(ping(session))

    give_up(session, body)
    assert (texts(session), heard) == ([], [])


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


def test_a_value_that_no_reducer_answers_changes_nothing() -> None:
    session = note_session()
    before = session.snapshot()
    with session.transaction() as transaction:
        transaction.dispatch(Count(1))
    assert session.snapshot() == before


def assert_refused(work: Callable[[], object]) -> None:
    with pytest.raises(TransactionError) as caught:
        work()
    assert str(caught.value) == NOT_HERE


def test_a_transaction_that_is_over_or_was_never_entered_is_refused() -> None:
    session = note_session()
    never = session.transaction()
    with session.transaction() as over:
        over.dispatch(Note("a"))
    for transaction in (never, over):
        assert_refused(partial(transaction.dispatch, Note("b")))
        assert_refused(partial(transaction.publish, ping(session)))
        assert_refused(partial(transaction.replace, {}))
    assert texts(session) == ["a"]
    assert session.select_all(Ping) == ()


def test_the_outer_transaction_is_refused_while_an_inner_one_is_open() -> None:
    session = note_session()
    with session.transaction() as outer:
        with session.transaction() as inner:
            assert_refused(lambda: outer.dispatch(Note("lost")))
            inner.dispatch(Note("a"))
        outer.dispatch(Note("b"))
    assert texts(session) == ["a", "b"]


def test_another_thread_cannot_use_the_transaction() -> None:
    session = note_session()
    with session.transaction() as transaction:
        (error,) = elsewhere(lambda: transaction.dispatch(Note("other")))
        transaction.dispatch(Note("a"))
    assert isinstance(error, TransactionError)
    assert str(error) == NOT_HERE
    assert texts(session) == ["a"]


def test_one_transaction_can_be_entered_again_after_its_end() -> None:
    session = note_session()
    transaction = session.transaction()
    for text in ("a", "b"):
        with transaction:
            transaction.dispatch(Note(text))
    assert texts(session) == ["a", "b"]


def test_transactions_of_two_sessions_are_independent() -> None:
    one, two = note_session(), note_session()
    with one.transaction() as outer:
        outer.dispatch(Note("one"))
        with two.transaction() as inner:
            inner.dispatch(Note("two"))
            one.dispatch(Note("one again"))
        assert elsewhere(lambda: texts(two)) == [["two"]]
        assert elsewhere(lambda: texts(one)) == [[]]
    assert (texts(one), texts(two)) == (["one", "one again"], ["two"])


def test_a_reducer_may_be_registered_inside(session: Session) -> None:
    with session.transaction() as transaction:
        transaction.dispatch(Note("unanswered"))
        session.register_reducer(Note, append)
        transaction.dispatch(Note("a"))
    assert texts(session) == ["a"]

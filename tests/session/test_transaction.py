"""Transactions: all or nothing, nested, seen by others only when they are committed."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from session_records import Count, Note, Ping, called, elsewhere, note_session, numbers, ping

from session import (
    ReducerError,
    Session,
    Snapshot,
    ToolInvoked,
    TransactionError,
    append,
    replace_latest,
)

NOT_HERE = "the transaction is not open here: use it inside its own with block, and not inside a nested one"
OPEN_ALREADY = "the transaction is open already: call session.transaction() for a nested one"
IN_A_REDUCER = "a reducer must not dispatch or publish: return the next slice instead"


class OnPurposeError(Exception):
    """Raised to give a transaction up."""


def give_up(session: Session, body: Callable[[Any], object]) -> None:
    """Run a body in a transaction and raise at its end."""
    with pytest.raises(OnPurposeError), session.transaction() as transaction:
        body(transaction)
        raise OnPurposeError


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


def test_code_inside_reads_the_events_of_all_the_blocks_that_it_is_in() -> None:
    session = note_session()
    session.publish(ping(session, 1))
    with session.transaction() as outer:
        outer.publish(ping(session, 2))
        with session.transaction() as inner:
            inner.publish(ping(session, 3))
            inner.dispatch(ping(session, 4))
            assert numbers(session.select_all(Ping)) == [1, 2, 3, 4]
            assert session.select_latest(Ping) == session.select_all(Ping)[-1]
            assert elsewhere(lambda: numbers(session.select_all(Ping))) == [[1]]
            assert elsewhere(lambda: session.select_latest(Ping)) == list(session.select_all(Ping)[:1])
        assert numbers(session.select_all(Ping)) == [1, 2, 3, 4]
    assert numbers(session.select_all(Ping)) == [1, 2, 3, 4]


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
        assert_refused(partial(transaction.latest, Note))
    assert texts(session) == ["a"]
    assert session.select_all(Ping) == ()


def test_a_transaction_that_was_given_up_is_refused() -> None:
    session = note_session()
    kept: list[Any] = []
    give_up(session, kept.append)
    assert_refused(partial(kept[0].latest, Note))
    assert_refused(partial(kept[0].dispatch, Note("a")))
    assert texts(session) == []


def test_the_outer_transaction_is_refused_while_an_inner_one_is_open() -> None:
    session = note_session()
    with session.transaction() as outer:
        with session.transaction() as inner:
            assert_refused(lambda: outer.dispatch(Note("lost")))
            assert_refused(lambda: outer.publish(ping(session)))
            assert_refused(lambda: outer.replace({}))
            assert_refused(lambda: outer.latest(Note))
            inner.dispatch(Note("a"))
        outer.dispatch(Note("b"))
    assert texts(session) == ["a", "b"]


def test_another_thread_cannot_use_the_transaction() -> None:
    session = note_session()
    with session.transaction() as transaction:
        errors = elsewhere(lambda: transaction.dispatch(Note("other")))
        errors += elsewhere(lambda: transaction.publish(ping(session)))
        errors += elsewhere(lambda: transaction.replace({}))
        transaction.dispatch(Note("a"))
    assert [type(error) for error in errors] == [TransactionError] * 3
    assert [str(error) for error in errors] == [NOT_HERE] * 3
    assert texts(session) == ["a"]
    assert session.select_all(Ping) == ()


def test_a_copied_context_does_not_carry_a_transaction_into_another_thread() -> None:
    session = note_session()
    with session.transaction() as transaction:
        transaction.dispatch(Note("inside"))
        context = contextvars.copy_context()
        assert elsewhere(lambda: context.run(texts, session)) == [[]]
        (error,) = elsewhere(lambda: context.run(transaction.dispatch, Note("other")))
    assert isinstance(error, TransactionError)
    assert str(error) == NOT_HERE
    assert texts(session) == ["inside"]


def test_a_transaction_cannot_be_entered_while_it_is_open() -> None:
    session = note_session()
    with session.transaction() as transaction:
        for _ in range(2):
            with pytest.raises(TransactionError) as caught, transaction:
                raise AssertionError("it was entered")
            assert str(caught.value) == OPEN_ALREADY
        with session.transaction(), pytest.raises(TransactionError) as caught, transaction:
            raise AssertionError("it was entered")
        assert str(caught.value) == OPEN_ALREADY
        transaction.dispatch(Note("a"))
    assert elsewhere(lambda: session.dispatch(Note("lock is free"))) == [None]
    assert texts(session) == ["a", "lock is free"]


def test_another_thread_that_enters_the_same_transaction_waits_for_its_end() -> None:
    session = note_session()
    transaction = session.transaction()
    started = threading.Event()

    def write() -> None:
        started.set()
        with transaction:
            transaction.dispatch(Note("other"))

    thread = threading.Thread(target=write)
    with transaction:
        thread.start()
        started.wait()
        transaction.dispatch(Note("a"))
    thread.join()
    assert texts(session) == ["a", "other"]


@pytest.mark.parametrize(
    "act",
    [
        lambda session: session.dispatch(Note("inner")),
        lambda session: session.publish(ping(session)),
        lambda session: session.bus.publish(ping(session)).raise_for_failures(),
        lambda session: session.rollback(Snapshot(slices={}, session_id=session.session_id)),
        lambda session: session.transaction().__enter__(),
    ],
    ids=["dispatch", "publish", "bus", "rollback", "transaction"],
)
def test_a_reducer_cannot_change_its_session(act: Callable[[Session], object]) -> None:
    session = note_session()

    def reduce(slice_: tuple[Any, ...], event: Any) -> tuple[Any, ...]:
        act(session)
        return (*slice_, event)

    session.register_reducer(Count, reduce)
    with pytest.raises((TransactionError, ExceptionGroup)) as caught:
        session.dispatch(Count(1))
    error = caught.value.exceptions[0] if isinstance(caught.value, ExceptionGroup) else caught.value
    assert type(error) is TransactionError
    assert str(error) == IN_A_REDUCER
    assert session.snapshot() == Session().snapshot()
    assert session.select_all(Ping) == ()
    assert elsewhere(lambda: session.dispatch(Note("lock is free"))) == [None]


def test_a_reducer_cannot_use_the_transaction_that_it_runs_in() -> None:
    session = note_session()
    transaction = session.transaction()

    def reduce(slice_: tuple[Any, ...], event: Any) -> tuple[Any, ...]:
        assert_refused(lambda: transaction.dispatch(Note("inner")))
        assert_refused(lambda: transaction.publish(ping(session)))
        assert_refused(lambda: transaction.replace({}))
        return (*slice_, event)

    session.register_reducer(Count, reduce)
    with transaction:
        transaction.dispatch(Count(1))
    assert (texts(session), session.select_all(Count), session.select_all(Ping)) == ([], (Count(1),), ())


def test_a_reducer_may_read_its_session_and_change_another() -> None:
    session, other = note_session(), note_session()
    seen: list[list[str]] = []

    def reduce(slice_: tuple[Any, ...], event: Any) -> tuple[Any, ...]:
        seen.append(texts(session))
        other.dispatch(Note("told"))
        return (*slice_, event)

    session.register_reducer(Count, reduce)
    with session.transaction() as transaction:
        transaction.dispatch(Note("a"))
        transaction.dispatch(Count(1))
    assert (seen, texts(other)) == ([["a"]], ["told"])


def test_an_event_of_another_session_is_refused() -> None:
    session, other = note_session(), note_session()
    heard: list[Ping] = []
    session.bus.subscribe(Ping, heard.append)
    message = f"the event belongs to another session, {other.session_id}"
    with session.transaction() as transaction:
        transaction.dispatch(Note("a"))
        with pytest.raises(TransactionError) as caught:
            transaction.publish(ping(other))
        assert str(caught.value) == message
        with pytest.raises(TransactionError) as caught:
            transaction.dispatch(ping(other))
        assert str(caught.value) == message
    assert texts(session) == ["a"]
    assert (session.select_all(Ping), other.select_all(Ping), heard) == ((), (), [])


def test_publishing_a_tool_call_reduces_its_value_too() -> None:
    session = note_session()
    event = called(session, Note("value"))
    with session.transaction() as transaction:
        transaction.publish(event)
        assert texts(session) == ["value"]
        assert session.select_all(ToolInvoked) == (event,)
    assert texts(session) == ["value"]
    assert session.select_all(ToolInvoked) == (event,)


def test_a_value_that_was_the_last_thing_dispatched_is_not_reduced_again() -> None:
    session = note_session()
    value = Note("value")
    with session.transaction() as transaction:
        transaction.dispatch(value)
        transaction.publish(called(session, value))
    assert texts(session) == ["value"]
    assert len(session.select_all(ToolInvoked)) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], ["value"]),
        ([Note("value")], ["value", "value"]),
        ([None, Note("other")], ["value", "other", "value"]),
        ([None, Count(1)], ["value", "value"]),
    ],
    ids=["nothing", "an equal one", "and then another", "and then one without a reducer"],
)
def test_only_the_object_that_was_dispatched_last_counts_as_reduced(
    before: list[object], after: list[str]
) -> None:
    session = note_session()
    value = Note("value")
    with session.transaction() as transaction:
        for other in before:
            transaction.dispatch(value if other is None else other)
        transaction.publish(called(session, value))
    assert texts(session) == after


def test_a_value_that_travels_with_two_events_is_reduced_twice() -> None:
    session = note_session()
    value = Note("value")
    with session.transaction() as transaction:
        transaction.dispatch(value)
        for _ in range(2):
            transaction.publish(called(session, value))
    assert texts(session) == ["value", "value"]


def test_a_value_that_an_earlier_use_of_the_transaction_dispatched_is_reduced_again() -> None:
    session = note_session()
    value = Note("value")
    transaction = session.transaction()
    with transaction:
        transaction.dispatch(value)
    with transaction:
        transaction.publish(called(session, value))
    assert texts(session) == ["value", "value"]


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


def test_a_reducer_cannot_be_registered_inside(session: Session) -> None:
    with session.transaction() as transaction:
        with pytest.raises(TransactionError) as caught:
            session.register_reducer(Note, append)
        transaction.dispatch(Note("unanswered"))
    assert str(caught.value) == "register reducers outside of transactions"
    assert texts(session) == []

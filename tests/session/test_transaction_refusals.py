"""Transactions: who may use one, and when; what publishing inside one means."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from session_records import Count, Note, Ping, called, elsewhere, give_up, note_session, ping, texts

from session import Session, Snapshot, Transaction, TransactionError, append
from session.history import Reset

NOT_HERE = "the transaction is not open here: use it inside its own with block, and not inside a nested one"
OPEN_ALREADY = "the transaction is open already: call session.transaction() for a nested one"
IN_A_REDUCER = "a reducer must not dispatch or publish: return the next slice instead"


def assert_refused(transaction: Transaction, session: Session) -> None:
    works = (
        partial(transaction.dispatch, Note("lost")),
        partial(transaction.publish, ping(session)),
        partial(transaction.restore, Reset({})),
        partial(transaction.latest, Note),
    )
    for work in works:
        with pytest.raises(TransactionError) as caught:
            work()
        assert str(caught.value) == NOT_HERE


def test_a_transaction_that_is_over_or_was_never_entered_is_refused() -> None:
    session = note_session()
    never = session.transaction()
    with session.transaction() as over:
        over.dispatch(Note("a"))
    given_up: list[Transaction] = []
    give_up(session, given_up.append)
    for transaction in (never, over, *given_up):
        assert_refused(transaction, session)
    assert texts(session) == ["a"]
    assert session.select_all(Ping) == ()


def test_the_outer_transaction_is_refused_while_an_inner_one_is_open() -> None:
    session = note_session()
    with session.transaction() as outer:
        with session.transaction() as inner:
            assert_refused(outer, session)
            inner.dispatch(Note("a"))
        outer.dispatch(Note("b"))
    assert texts(session) == ["a", "b"]


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


def test_an_event_of_another_session_is_refused() -> None:
    session, other = note_session(), note_session()
    heard: list[Ping] = []
    session.bus.subscribe(Ping, heard.append)
    message = f"the event belongs to another session, {other.session_id}"
    with session.transaction() as transaction:
        transaction.dispatch(Note("a"))
        with pytest.raises(TransactionError) as caught:
            transaction.publish(called(other, Note("its value")))
        assert str(caught.value) == message
        with pytest.raises(TransactionError) as caught:
            transaction.dispatch(ping(other))
        assert str(caught.value) == message
    assert texts(session) == ["a"]
    assert (session.select_all(Ping), other.select_all(Ping), heard) == ((), (), [])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], ["value"]),
        ([None], ["value"]),
        ([Note("value")], ["value", "value"]),
        ([None, Note("other")], ["value", "other", "value"]),
        ([None, Count(1)], ["value", "value"]),
    ],
    ids=["nothing", "itself", "an equal one", "and then another", "and then one without a reducer"],
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


def test_a_reducer_cannot_be_registered_inside(session: Session) -> None:
    with session.transaction() as transaction:
        with pytest.raises(TransactionError) as caught:
            session.register_reducer(Note, append)
        transaction.dispatch(Note("unanswered"))
    assert str(caught.value) == "register reducers outside of transactions"
    assert texts(session) == []

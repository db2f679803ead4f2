"""Transactions and events: what a block published, it sees; what it lost, is nowhere."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from uuid import uuid4

import pytest
from session_records import Note, Ping, called, note_session, numbers, ping, texts

from session import Session, ToolInvoked, Transaction, TransactionError


def test_a_publishing_that_is_refused_takes_its_value_back() -> None:
    session = note_session()
    foreign = ToolInvoked("tool", None, None, Note("value"), session_id=uuid4())
    with session.transaction() as transaction:
        with pytest.raises(TransactionError):
            transaction.publish(foreign)
        transaction.dispatch(Note("after"))
    assert texts(session) == ["after"]


def test_another_task_cannot_dispatch_through_a_transaction_that_is_open() -> None:
    session = note_session()

    async def other(transaction: Transaction) -> None:
        with pytest.raises(TransactionError):
            transaction.dispatch(Note("other"))

    async def main() -> None:
        with session.transaction() as transaction:
            await asyncio.create_task(other(transaction))

    asyncio.run(main())
    assert texts(session) == []


def test_publishing_tells_of_its_own_event_also_when_a_subscriber_publishes_in_its_turn(
    session: Session,
) -> None:
    def answer(event: Ping) -> None:
        if event.number == 1:
            session.publish(ping(session, 2))

    session.bus.subscribe(Ping, answer)
    first = ping(session, 1)
    result = session.publish(first)
    assert result.event is first
    assert answer in result.handlers
    assert numbers(session.select_all(Ping)) == [1, 2]


def test_a_snapshot_within_a_transaction_does_not_change_with_it() -> None:
    session = note_session()
    with session.transaction() as transaction:
        transaction.dispatch(Note("a"))
        snapshot = session.snapshot()
        transaction.dispatch(Note("b"))
    assert snapshot.select_all(Note) == (Note("a"),)


@pytest.mark.parametrize("is_given_up", [False, True])
def test_an_event_whose_own_reducer_fails_takes_its_value_back(*, is_given_up: bool) -> None:
    session = note_session()
    session.dispatch(Note("before"))

    def refuse(_slice: tuple[object, ...], _event: object) -> tuple[object, ...]:
        raise ValueError("refused")

    session.register_reducer(ToolInvoked, refuse, int)
    with suppress(KeyError), session.transaction() as transaction:
        if not is_given_up:
            transaction.dispatch(Note("first"))
        with pytest.raises(ValueError, match=r"^refused$"):
            transaction.publish(called(session, Note("value")))
        transaction.dispatch(Note("last"))
        if is_given_up:
            raise KeyError
    assert texts(session) == (["before"] if is_given_up else ["before", "first", "last"])

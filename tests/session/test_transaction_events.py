"""Transactions and events: what a block published, it sees; what it lost, is nowhere."""

from __future__ import annotations

import asyncio
import sys
from uuid import uuid4

import pytest
from session_records import Note, Ping, called, note_session, numbers, ping

from session import Session, ToolInvoked, Transaction, TransactionError
from session.slices import items_of


def test_a_transaction_sees_the_events_that_it_published_and_those_before(session: Session) -> None:
    session.publish(ping(session, 1))
    with session.transaction() as transaction:
        assert transaction.latest(Ping) == session.select_all(Ping)[0]
        transaction.publish(ping(session, 2))
        with session.transaction() as inner:
            inner.publish(ping(session, 3))
            assert numbers(session.select_all(Ping)) == [1, 2, 3]
            newest = inner.latest(Ping)
    assert newest is not None
    assert newest.number == 3


def test_the_events_and_slices_of_one_commit_appear_in_one_step() -> None:
    session = note_session()
    seen: list[tuple[int, ...]] = []

    def look(_frame: object, event: str, _argument: object) -> None:
        """What another thread would see, at each call and return on the way."""
        slices = session._store.slices
        seen.append(tuple(len(items_of(slices.get(kind, ()))) for kind in (Note, Ping, ToolInvoked)))

    with session.transaction() as transaction:
        transaction.dispatch(Note("a"))
        transaction.publish(ping(session, 1))
        transaction.publish(called(session, Note("b")))
        sys.setprofile(look)
    sys.setprofile(None)
    assert set(seen) == {(0, 0, 0), (2, 1, 1)}


def test_events_of_several_types_in_one_commit_are_all_logged(session: Session) -> None:
    with session.transaction() as transaction:
        transaction.publish(ping(session, 1))
        transaction.publish(ToolInvoked("a", None, None, session_id=session.session_id))
        transaction.publish(ping(session, 2))
    assert numbers(session.select_all(Ping)) == [1, 2]
    assert [event.name for event in session.select_all(ToolInvoked)] == ["a"]


def test_a_publishing_that_is_refused_takes_its_value_back() -> None:
    session = note_session()
    foreign = ToolInvoked("tool", None, None, Note("value"), session_id=uuid4())
    with session.transaction() as transaction:
        with pytest.raises(TransactionError):
            transaction.publish(foreign)
        transaction.dispatch(Note("after"))
    assert [note.text for note in session.select_all(Note)] == ["after"]


def test_another_task_cannot_dispatch_through_a_transaction_that_is_open() -> None:
    session = note_session()

    async def other(transaction: Transaction) -> None:
        with pytest.raises(TransactionError):
            transaction.dispatch(Note("other"))

    async def main() -> None:
        with session.transaction() as transaction:
            await asyncio.create_task(other(transaction))

    asyncio.run(main())
    assert [note.text for note in session.select_all(Note)] == []


def test_a_value_that_was_rolled_back_is_reduced_again() -> None:
    session = note_session()
    empty, note = session.snapshot(), Note("a")
    with session.transaction() as transaction:
        transaction.dispatch(note)
        session.rollback(empty)
        transaction.publish(ToolInvoked("tool", None, None, note, session_id=session.session_id))
    assert [note.text for note in session.select_all(Note)] == ["a"]


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

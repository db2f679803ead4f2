"""Transactions and events: what a block published, it sees; what it lost, is nowhere."""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

import pytest
from session_records import Note, called, note_session, texts

from session import ToolInvoked, TransactionError


def test_a_publishing_that_is_refused_takes_its_value_back() -> None:
    session = note_session()
    foreign = ToolInvoked("tool", None, None, Note("value"), session_id=uuid4())
    with session.transaction() as transaction:
        with pytest.raises(TransactionError):
            transaction.publish(foreign)
        transaction.dispatch(Note("after"))
    assert texts(session) == ["after"]


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

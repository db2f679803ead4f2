"""Transactions and events: what a block published, it sees; what it lost, is nowhere."""

from __future__ import annotations

from contextlib import suppress

import pytest
from session_records import Count, Note, OnPurposeError, Ping, called, note_session, texts

from session import Reducer, ToolInvoked, Transaction


def test_a_snapshot_within_a_transaction_does_not_change_with_it() -> None:
    session = note_session()
    with session.transaction() as transaction:
        transaction.dispatch(Note("a"))
        snapshot = session.snapshot()
        transaction.dispatch(Note("b"))
    assert snapshot.select_all(Note) == (Note("a"),)


def refuse_once() -> Reducer:
    """A reducer that refuses the first event and appends the others."""
    refusals = [ValueError("refused")]

    def reduce(slice_: tuple[object, ...], event: object) -> tuple[object, ...]:
        if refusals:
            raise refusals.pop()
        return (*slice_, event)

    return reduce


@pytest.mark.parametrize("is_given_up", [False, True])
def test_an_event_whose_own_reducer_fails_takes_its_value_back_and_can_be_published_again(
    *, is_given_up: bool
) -> None:
    session = note_session()
    session.register_reducer(ToolInvoked, refuse_once())
    event = called(session, Note("value"))
    with suppress(KeyError), session.transaction() as transaction:
        transaction.dispatch(Note("first"))
        with pytest.raises(ValueError, match=r"^refused$"):
            transaction.publish(event)
        assert (texts(session), session.select_all(ToolInvoked)) == (["first"], ())
        transaction.publish(event)
        transaction.dispatch(Note("last"))
        if is_given_up:
            raise KeyError
    assert texts(session) == ([] if is_given_up else ["first", "value", "last"])
    assert session.select_all(ToolInvoked) == (() if is_given_up else (event,))
    changes = [] if is_given_up else [(Note("first"), event, Note("last"))]
    assert [change.events for change in session.history()] == changes


@pytest.mark.parametrize("kind", [Note, ToolInvoked])
def test_what_was_taken_back_makes_no_version_and_says_nothing_of_who_made_the_next(kind: type) -> None:
    session = note_session()

    def fail(_slice: tuple[object, ...], _event: object) -> tuple[object, ...]:
        raise OnPurposeError

    session.register_reducer(kind, fail, Count)
    call = ToolInvoked("tool", None, None, Note("value"), call_id="c1", actor="ada", idempotency_key="k")
    for after in ((), (Ping(1),)):
        with session.transaction() as transaction:
            with pytest.raises(OnPurposeError):
                transaction.publish(call)
            for each in after:
                transaction.publish(each)
    (change,) = session.history()
    assert [type(event) for event in change.events] == [Ping]
    assert (change.actor, change.call_id, change.idempotency_key) == (None, None, None)
    assert session.find_call("k") is None


def test_what_a_guard_publishes_is_gone_where_the_event_is_refused() -> None:
    session, heard = note_session(), list[Ping]()
    session.bus.subscribe(Ping, heard.append)

    def note_call(_event: ToolInvoked, transaction: Transaction) -> tuple[()]:
        transaction.publish(Ping(1))
        return ()

    session.register_guard(ToolInvoked, note_call)
    session.register_reducer(ToolInvoked, refuse_once())
    with session.transaction() as transaction:
        with pytest.raises(ValueError, match="refused"):
            transaction.publish(called(session, Note("value")))
        transaction.dispatch(Note("kept"))
    assert (heard, session.select_all(Ping), texts(session)) == ([], (), ["kept"])
    session.publish(called(session, Note("value")))
    assert (len(heard), texts(session)) == (1, ["kept", "value"])

"""Transactions and events: what a block published, it sees; what it lost, is nowhere."""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

import pytest
from session_records import Count, Note, OnPurposeError, Ping, called, note_session, texts

from session import StoreError, ToolInvoked, Transaction, TransactionError
from session.slices import Slice
from session.state import State


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


def test_a_call_that_is_dispatched_is_reduced_as_it_is_when_it_is_published_and_as_the_past_has_it() -> None:
    session = note_session()
    session.dispatch(ToolInvoked("tool", None, None, Note("value")))
    session.dispatch(Note("later"))
    assert [texts(session.at(version)) for version in (1, 2)] == [["value"], ["value", "later"]]
    assert texts(session) == ["value", "later"]


def test_a_value_that_was_taken_back_is_reduced_when_it_is_published_again() -> None:
    session, refused = note_session(), [True]

    def refuse_once(slice_: tuple[object, ...], event: object) -> tuple[object, ...]:
        if refused.pop() if refused else False:
            raise ValueError("refused")
        return (*slice_, event)

    session.register_reducer(ToolInvoked, refuse_once)
    event = ToolInvoked("tool", None, None, Note("value"), session_id=session.session_id)
    with session.transaction() as transaction:
        with pytest.raises(ValueError, match="refused"):
            transaction.publish(event)
        transaction.publish(event)
    assert (texts(session), session.select_all(ToolInvoked)) == (["value"], (event,))
    assert session.history()[0].events == (event,)


@pytest.mark.parametrize("is_dispatched_before", [False, True])
def test_the_past_has_a_value_once_also_where_a_guard_of_its_event_dispatches(
    *, is_dispatched_before: bool
) -> None:
    session, value = note_session(), Note("value")

    def count_calls(_event: ToolInvoked, transaction: Transaction) -> tuple[Note, ...]:
        transaction.dispatch(Count(1))
        return (Note("entailed"),)

    session.register_guard(ToolInvoked, count_calls)
    with session.transaction() as transaction:
        if is_dispatched_before:
            transaction.dispatch(value)
        transaction.publish(called(session, value))
    session.dispatch(Note("later"))
    assert texts(session.at(1)) == ["value", "entailed"]
    assert texts(session) == ["value", "entailed", "later"]
    assert (session.rewind(1), texts(session)) == (3, ["value", "entailed"])


def test_what_a_guard_publishes_is_gone_where_the_event_is_refused() -> None:
    session, heard, refused = note_session(), list[Ping](), [True]
    session.bus.subscribe(Ping, heard.append)

    def note_call(_event: ToolInvoked, transaction: Transaction) -> tuple[()]:
        transaction.publish(Ping(1))
        return ()

    def refuse_once(slice_: tuple[object, ...], event: object) -> tuple[object, ...]:
        if refused.pop() if refused else False:
            raise ValueError("refused")
        return (*slice_, event)

    session.register_guard(ToolInvoked, note_call)
    session.register_reducer(ToolInvoked, refuse_once)
    with session.transaction() as transaction:
        with pytest.raises(ValueError, match="refused"):
            transaction.publish(called(session, Note("value")))
        transaction.dispatch(Note("kept"))
    assert (heard, session.select_all(Ping), texts(session)) == ([], (), ["kept"])
    with session.transaction() as transaction:
        transaction.publish(called(session, Note("value")))
    assert (len(heard), texts(session)) == (1, ["kept", "value"])


def test_an_event_whose_log_cannot_be_read_takes_back_what_its_reducer_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = note_session()
    session.register_reducer(Ping, lambda slice_, _event: (*slice_, Note("of the event")), Note)
    first = State.first

    def unread(state: State, kind: type) -> Slice:
        if kind is Ping:
            raise StoreError("the store cannot be read")
        return first(state, kind)

    monkeypatch.setattr(State, "first", unread)
    with session.transaction() as transaction:
        transaction.dispatch(Note("first"))
        with pytest.raises(StoreError):
            transaction.publish(Ping(session_id=session.session_id))
        transaction.dispatch(Note("last"))
    assert texts(session) == ["first", "last"]
    assert session.history()[0].events == (Note("first"), Note("last"))

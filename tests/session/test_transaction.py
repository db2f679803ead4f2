"""Transactions: all or nothing, nested, under asyncio; who may use one; what the bus is told, and when."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from session_records import (
    Count,
    LoudPing,
    Note,
    OnPurposeError,
    Ping,
    called,
    elsewhere,
    give_up,
    note_session,
    numbers,
    ping,
    texts,
    words_of,
)

from session import (
    InProcessEventBus,
    PublishResult,
    Reducer,
    Session,
    SessionBusyError,
    SessionEvent,
    Snapshot,
    SubscriberFailure,
    ToolInvoked,
    Transaction,
    TransactionError,
    append,
)
from session.history import Reset

NOT_HERE = "the transaction is not open here: use it inside its own with block, and not inside a nested one"
OPEN_ALREADY = "the transaction is open already: call session.transaction() for a nested one"
IN_A_REDUCER = "a reducer must not dispatch or publish: return the next slice instead"


def changes_of(transaction: Transaction, session: Session) -> list[Callable[[], object]]:
    return [
        partial(transaction.dispatch, Note("lost")),
        partial(transaction.publish, ping(session)),
        partial(transaction.restore, Reset({})),
    ]


def assert_refused(transaction: Transaction, session: Session) -> None:
    works = changes_of(transaction, session)
    works += [partial(transaction.latest, Note), partial(transaction.select_all, Note)]
    for work in works:
        assert words_of(TransactionError, work) == NOT_HERE


def test_a_transaction_is_changed_by_no_other_thread() -> None:
    session = note_session()
    with session.transaction() as transaction:
        refused = [error for work in changes_of(transaction, session) for error in elsewhere(work)]
        transaction.dispatch(Note("a"))
    assert [(type(error), str(error)) for error in refused] == [(TransactionError, NOT_HERE)] * 3
    assert (session.version, texts(session)) == (1, ["a"])


def test_a_transaction_is_changed_by_no_other_task() -> None:
    session = note_session()

    async def refused(transaction: Transaction) -> list[str]:
        return [words_of(TransactionError, work) for work in changes_of(transaction, session)]

    async def main() -> list[str]:
        with session.transaction() as transaction:
            return await asyncio.create_task(refused(transaction))

    assert asyncio.run(main()) == [NOT_HERE] * 3


def test_a_transaction_whose_block_never_begins_is_over_and_changes_nothing() -> None:
    session = note_session()
    transaction = session.transaction()
    for _ in range(2):
        leave = transaction.__exit__  # a with statement holds this, and lets go of it where memory runs out
        transaction.__enter__().dispatch(Note("lost"))
        del leave
    with session.transaction() as outer:
        leave, inner = (each := session.transaction()).__exit__, each.__enter__()
        inner.dispatch(Note("lost"))
        del leave
        outer.dispatch(Note("a"))
    assert (session.version, texts(session)) == (1, ["a"])


def test_nobody_hears_of_what_was_given_up() -> None:
    session, heard = note_session(), list[Ping]()
    session.bus.subscribe(Ping, heard.append)
    give_up(session, lambda transaction: transaction.publish(ping(session)))
    assert (heard, session.version) == ([], 0)


def test_a_call_in_an_inner_transaction_repeats_nothing_and_its_key_is_found() -> None:
    session, note = note_session(), Note("a")
    session.register_view(Count, lambda select: (Count(len(select(Note))),))
    call = ToolInvoked("tool", None, None, note, idempotency_key="k")
    with session.transaction() as transaction:
        transaction.dispatch(note)
        with session.transaction() as inner:
            inner.publish(call)
            inner.dispatch(note)
        transaction.publish(ToolInvoked("other", None, None, note))
        assert transaction.latest(Count) == Count(2)
    assert texts(session) == ["a", "a"]
    found = session.find_call("k")
    assert found is not None and found.name == "tool"


def test_a_transaction_is_refused_before_and_after_its_block_and_while_an_inner_one_is_open() -> None:
    session = note_session()
    never = session.transaction()
    with session.transaction() as over:
        with session.transaction() as inner:
            assert_refused(over, session)
            inner.dispatch(Note("a"))
        over.dispatch(Note("b"))
    given_up: list[Transaction] = []
    give_up(session, given_up.append)
    for transaction in (never, over, *given_up):
        assert_refused(transaction, session)
    assert (texts(session), session.select_all(Ping)) == (["a", "b"], ())


def test_a_block_that_goes_on_after_memory_ran_out_within_a_change_changes_nothing() -> None:
    session = note_session()

    def fill(_slice: tuple[Count, ...], _count: Count) -> tuple[Count, ...]:
        raise MemoryError

    session.register_reducer(Count, fill)
    message = "^a change in the transaction was interrupted: begin it again$"
    with pytest.raises(TransactionError, match=message), session.transaction() as transaction:
        transaction.dispatch(Note("a"))
        with pytest.raises(MemoryError):
            transaction.dispatch(Count(1))
    assert (texts(session), session.version) == ([], 0)


def test_a_transaction_cannot_be_entered_while_it_is_open() -> None:
    session = note_session()
    with session.transaction() as transaction:
        for _ in range(2):
            assert words_of(TransactionError, transaction.__enter__) == OPEN_ALREADY
        with session.transaction():
            assert words_of(TransactionError, transaction.__enter__) == OPEN_ALREADY
        transaction.dispatch(Note("a"))
    assert elsewhere(lambda: session.dispatch(Note("lock is free"))) == [None]
    assert texts(session) == ["a", "lock is free"]


ACTS: list[Callable[[Session], object]] = [
    lambda session: session.dispatch(Note("inner")),
    lambda session: session.publish(ping(session)),
    lambda session: session.bus.publish(ping(session)).raise_for_failures(),
    lambda session: session.rollback(Snapshot(slices={}, session_id=session.session_id)),
    lambda session: session.transaction().__enter__(),
]


@pytest.mark.parametrize("act", ACTS)
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
        assert words_of(TransactionError, transaction.publish, called(other, Note("its value"))) == message
        assert words_of(TransactionError, transaction.dispatch, ping(other)) == message
    assert texts(session) == ["a"]
    assert (session.select_all(Ping), other.select_all(Ping), heard) == ((), (), [])
    session.publish(event := ping(other))  # which only publishes it
    assert (session.select_all(Ping), session.version, heard) == ((), 1, [event])


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
def test_only_what_was_dispatched_last_counts_as_reduced(before: list[object], after: list[str]) -> None:
    session = note_session()
    value = Note("value")
    with session.transaction() as transaction:
        for other in before:
            transaction.dispatch(value if other is None else other)
        transaction.publish(called(session, value))
    assert texts(session) == after


def test_a_reducer_cannot_be_registered_inside(session: Session) -> None:
    with session.transaction() as transaction:
        message = "register reducers outside of transactions"
        assert words_of(TransactionError, session.register_reducer, Note, append) == message
        transaction.dispatch(Note("unanswered"))
    assert texts(session) == []


def refuse_once() -> Reducer:
    refusals = [ValueError("refused")]

    def reduce(slice_: tuple[object, ...], event: object) -> tuple[object, ...]:
        if refusals:
            raise refusals.pop()
        return (*slice_, event)

    return reduce


@pytest.mark.parametrize("is_given_up", [False, True])
def test_an_event_whose_reducer_fails_takes_its_value_back_and_can_come_again(*, is_given_up: bool) -> None:
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


def test_a_bus_with_a_publish_of_its_own_that_raises_undoes_nothing_and_is_logged_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = OnPurposeError("the secret")

    class BrokenBus(InProcessEventBus):
        def publish(self, event: object) -> PublishResult:
            raise error

    session = Session(bus=BrokenBus())
    with caplog.at_level(logging.DEBUG), session.transaction() as transaction:
        transaction.publish(ping(session, 1))
        transaction.publish(ping(session, 2))
    event, publish = ping(session, 3), session.bus.publish
    with caplog.at_level(logging.CRITICAL):
        assert session.publish(event) == PublishResult(
            event, (publish,), (SubscriberFailure(publish, error),)
        )
    assert numbers(session.select_all(Ping)) == [1, 2, 3]
    assert caplog.record_tuples == [("session.session", logging.ERROR, "bus_failed")] * 2
    for record in caplog.records:
        assert (vars(record)["event"], vars(record)["error"]) == ("Ping", "OnPurposeError")
        assert vars(record)["handler"] == f"{__name__}.{publish.__qualname__}"
        assert (record.exc_info, record.exc_text, record.stack_info) == (None, None, None)
        assert "secret" not in repr(vars(record))


def test_what_is_published_inside_is_told_with_the_commit() -> None:
    session, heard = note_session(), list[Ping]()
    session.bus.subscribe(Ping, heard.append)
    with session.transaction():
        with session.transaction() as inner:
            inner.publish(ping(session, 1))
            event = ping(session, 2)
            assert session.publish(event) == PublishResult(event)
            assert (inner.session_id, inner.version) == (session.session_id, 0)
            assert numbers(inner.select_all(Ping)) == [1, 2]
        assert (numbers(session.select_all(Ping)), heard) == ([1, 2], [])
    assert (numbers(tuple(heard)), session.version) == ([1, 2], 1)


@pytest.mark.parametrize("inside", [True, False], ids=["in a transaction", "by the session"])
def test_every_subscriber_hears_events_in_the_order_of_commits_also_of_its_own(inside: bool) -> None:
    session = note_session()
    told: list[tuple[str, int]] = []
    results: list[PublishResult] = []

    def publish(number: int) -> None:
        if inside:
            with session.transaction() as transaction:
                transaction.publish(ping(session, number))
        else:
            results.append(session.publish(ping(session, number)))

    def answer(event: Ping) -> None:
        told.append(("first", event.number))
        if event.number < 3:
            publish(2 * event.number)
            publish(2 * event.number + 1)
        assert event.number in numbers(session.select_all(Ping))

    session.bus.subscribe(Ping, answer)
    session.bus.subscribe(Ping, lambda event: told.append(("second", event.number)))
    publish(1)
    assert numbers(session.select_all(Ping)) == [1, 2, 3, 4, 5]
    assert told == [(name, number) for number in range(1, 6) for name in ("first", "second")]
    if not inside:
        assert [(result.ok, len(result.subscribers)) for result in results] == [(True, 0)] * 4 + [(True, 3)]


def test_an_event_is_delivered_to_who_subscribes_before_its_turn_and_to_no_one_who_has_left() -> None:
    session = note_session()
    heard: list[SessionEvent] = []

    def follow(event: Ping) -> None:
        session.bus.subscribe(LoudPing, heard.append)
        session.publish(LoudPing(event.number))
        session.bus.unsubscribe(Ping, follow)

    assert session.publish(ping(session)) == PublishResult(session.select_all(Ping)[0])
    session.bus.subscribe(Ping, follow)
    for number in (1, 2):
        session.publish(ping(session, number))
    session.bus.unsubscribe(LoudPing, heard.append)
    session.publish(LoudPing(3))
    assert heard == list(session.select_all(LoudPing))[:1]
    assert numbers(session.select_all(Ping)) == [0, 1, 2]


OPEN_ELSEWHERE = "another task holds a transaction of this session open: never await inside one"


async def hold(session: Session, entered: asyncio.Event, leave: asyncio.Event) -> None:
    """Await inside a transaction: what nobody should do."""
    with session.transaction() as transaction:
        transaction.dispatch(Note("held"))
        entered.set()
        await leave.wait()
        transaction.dispatch(Note("held to the end"))


def test_a_task_cannot_slip_into_a_transaction_that_another_left_open() -> None:
    session = note_session()

    async def main() -> None:
        entered, leave = asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(hold(session, entered, leave))
        await entered.wait()
        uses: dict[Callable[[], object], type[Exception]] = {
            session.transaction().__enter__: TransactionError,
            partial(session.dispatch, Note("lost")): TransactionError,
            partial(session.publish, ping(session)): TransactionError,
            session.require_free: SessionBusyError,
        }
        for use, kind in uses.items():
            assert words_of(kind, use) == OPEN_ELSEWHERE
        result = session.bus.publish(ping(session))
        assert [str(failure.error) for failure in result.failures] == [OPEN_ELSEWHERE]
        assert session.select_all(Note) == ()
        assert session.select_latest(Note) is None
        leave.set()
        await holder
        session.require_free()
        session.dispatch(Note("free"))

    asyncio.run(main())
    assert elsewhere(lambda: session.dispatch(Note("elsewhere"))) == [None]
    assert texts(session) == ["held", "held to the end", "free", "elsewhere"]


def test_a_transaction_that_was_opened_outside_any_task_is_bound_to_its_thread_only() -> None:
    session = note_session()

    async def main() -> None:
        session.dispatch(Note("task"))
        with session.transaction() as nested:
            nested.dispatch(Note("nested"))
        assert session.select_all(Note) == (Note("outside"), Note("task"), Note("nested"))
        assert await asyncio.to_thread(session.select_all, Note) == ()

    with session.transaction() as transaction:
        transaction.dispatch(Note("outside"))
        asyncio.run(main())
        transaction.dispatch(Note("outside again"))
    assert [note.text for note in session.select_all(Note)] == ["outside", "task", "nested", "outside again"]

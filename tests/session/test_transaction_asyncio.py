"""Transactions under asyncio: tasks of one thread share its lock, so a transaction never awaits."""

from __future__ import annotations

import asyncio
import threading

import pytest
from session_records import Count, Note, note_session, ping

from session import InProcessEventBus, Session, TransactionError, replace_latest

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
        with pytest.raises(TransactionError) as caught, session.transaction():
            raise AssertionError("it was entered")
        assert str(caught.value) == OPEN_ELSEWHERE
        with pytest.raises(TransactionError) as caught:
            session.dispatch(Note("lost"))
        assert str(caught.value) == OPEN_ELSEWHERE
        result = session.publish(ping(session))
        assert [str(failure.error) for failure in result.failures] == [OPEN_ELSEWHERE]
        assert session.select_all(Note) == ()
        assert session.select_latest(Note) is None
        leave.set()
        await holder

    asyncio.run(main())
    assert session.select_all(Note) == (Note("held"), Note("held to the end"))


def test_the_lock_is_free_again_after_a_task_was_refused() -> None:
    session = note_session()

    async def main() -> None:
        entered, leave = asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(hold(session, entered, leave))
        await entered.wait()
        for _ in range(3):
            with pytest.raises(TransactionError):
                session.dispatch(Note("lost"))
        leave.set()
        await holder
        session.dispatch(Note("same thread"))

    asyncio.run(main())
    thread = threading.Thread(target=session.dispatch, args=(Note("other thread"),), daemon=True)
    thread.start()
    thread.join(1)
    assert session.select_all(Note)[2:] == (Note("same thread"), Note("other thread"))


def test_the_lock_is_free_again_after_the_holder_was_cancelled() -> None:
    session = note_session()

    async def main() -> None:
        entered, leave = asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(hold(session, entered, leave))
        await entered.wait()
        holder.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holder
        session.dispatch(Note("after"))

    asyncio.run(main())
    assert session.select_all(Note) == (Note("after"),)


def test_a_transaction_of_one_session_does_not_bar_another_session() -> None:
    bus = InProcessEventBus()
    session, other = note_session(), Session(bus=bus)

    async def main() -> None:
        entered, leave = asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(hold(session, entered, leave))
        await entered.wait()
        other.register_reducer(Note, replace_latest)
        other.dispatch(Note("free"))
        leave.set()
        await holder

    asyncio.run(main())
    assert other.select_all(Note) == (Note("free"),)


def test_tasks_that_check_and_change_in_short_transactions_lose_nothing() -> None:
    session = Session()
    session.register_reducer(Count, replace_latest)

    async def count() -> None:
        for _ in range(25):
            with session.transaction() as transaction:
                before = transaction.latest(Count) or Count(0)
                transaction.dispatch(Count(before.total + 1))
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(count() for _ in range(8)))

    asyncio.run(main())
    assert session.select_all(Count) == (Count(200),)


def test_tasks_and_threads_together_lose_nothing() -> None:
    session = Session()
    session.register_reducer(Count, replace_latest)

    def count_once() -> None:
        with session.transaction() as transaction:
            before = transaction.latest(Count) or Count(0)
            transaction.dispatch(Count(before.total + 1))

    async def count(*, in_thread: bool) -> None:
        for _ in range(25):
            if in_thread:
                await asyncio.to_thread(count_once)
            else:
                count_once()
                await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(count(in_thread=number % 2 == 0) for number in range(8)))

    asyncio.run(main())
    assert session.select_all(Count) == (Count(200),)

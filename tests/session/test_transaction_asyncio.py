"""Transactions under asyncio: tasks of one thread share its lock, so a transaction never awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from session_records import Note, elsewhere, note_session, ping, printed, texts

from session import Session, SessionBusyError, TransactionError

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
            with pytest.raises(kind) as caught:
                use()
            assert str(caught.value) == OPEN_ELSEWHERE
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


def test_a_task_that_was_started_inside_does_not_join_the_transaction() -> None:
    session = note_session()
    seen: list[tuple[Note, ...]] = []

    async def child() -> None:
        seen.append(session.select_all(Note))
        session.dispatch(Note("child"))

    async def main() -> None:
        with session.transaction() as transaction:
            transaction.dispatch(Note("inside"))
            await asyncio.create_task(child())

    with pytest.raises(TransactionError) as caught:
        asyncio.run(main())
    assert str(caught.value) == OPEN_ELSEWHERE
    assert seen == [()]
    assert session.select_all(Note) == ()


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


def test_a_session_works_where_asyncio_was_never_imported() -> None:
    program = """
import sys
from session import Session, append
session = Session()
session.register_reducer(int, append)
with session.transaction() as transaction:
    transaction.dispatch(1)
    session.dispatch(2)
    assert session.select_all(int) == (1, 2)
print(session.select_all(int), "asyncio.events" in sys.modules)
"""
    assert printed(program) == "(1, 2) False\n"

"""Many threads, one session: nothing is lost, and subscribers hear events in the order of commits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from session_records import Count, Note, Ping, note_session, numbers, ping

from session import Session, replace_latest

WRITERS = 8
TURNS = 200


@pytest.fixture(autouse=True)
def _impatient_interpreter() -> Iterator[None]:
    """Let threads take turns far more often than they do by themselves."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*works: Callable[[], object]) -> None:
    """Run each in a thread of its own, all from the same moment; raise what any of them raised."""
    barrier = threading.Barrier(len(works))
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        barrier.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_counting_in_transactions_loses_no_update(session: Session) -> None:
    session.register_reducer(Count, replace_latest)

    def write() -> None:
        for _ in range(TURNS):
            with session.transaction() as transaction:
                before = transaction.latest(Count) or Count(0)
                transaction.dispatch(Count(before.total + 1))

    together(*[write] * WRITERS)
    assert session.select_all(Count) == (Count(WRITERS * TURNS),)


def test_subscribers_hear_the_events_of_transactions_in_the_order_of_commits(session: Session) -> None:
    session.register_reducer(Count, replace_latest)
    heard: list[int] = []
    session.bus.subscribe(Ping, lambda event: heard.append(event.number))

    def write() -> None:
        for _ in range(TURNS):
            with session.transaction() as transaction:
                before = transaction.latest(Count) or Count(0)
                transaction.dispatch(Count(before.total + 1))
                transaction.publish(ping(session, before.total))

    together(*[write] * WRITERS)
    assert heard == list(range(WRITERS * TURNS))
    assert numbers(session.select_all(Ping)) == heard


def test_readers_see_whole_transactions_and_no_halves() -> None:
    session = note_session()
    session.register_reducer(Count, replace_latest)
    done = threading.Event()

    def write() -> None:
        for turn in range(1, TURNS + 1):
            with session.transaction() as transaction:
                transaction.dispatch(Note(str(turn)))
                transaction.dispatch(Count(turn))
        done.set()

    def read() -> None:
        while not done.is_set():
            snapshot = session.snapshot()
            count = snapshot.select_latest(Count) or Count(0)
            assert len(snapshot.select_all(Note)) == count.total

    together(write, read, read)
    assert session.select_latest(Count) == Count(TURNS)


def test_transactions_that_are_given_up_leave_no_trace_among_the_others() -> None:
    session = note_session()

    def keep() -> None:
        for _ in range(TURNS):
            session.dispatch(Note("kept"))

    def give_up() -> None:
        for _ in range(TURNS):
            with pytest.raises(KeyError), session.transaction() as transaction:
                transaction.dispatch(Note("given up"))
                raise KeyError

    together(*[keep] * 4, *[give_up] * 4)
    assert session.select_all(Note) == (Note("kept"),) * (4 * TURNS)


def test_events_that_a_session_publishes_are_told_in_the_order_of_commits(session: Session) -> None:
    heard: list[int] = []
    session.bus.subscribe(Ping, lambda event: heard.append(event.number))

    def writer(name: int) -> Callable[[], None]:
        def write() -> None:
            for turn in range(TURNS):
                session.publish(ping(session, name * TURNS + turn))

        return write

    together(*(writer(name) for name in range(WRITERS)))
    assert heard == numbers(session.select_all(Ping))
    assert len(heard) == WRITERS * TURNS


@pytest.mark.parametrize("way", ["clone", "rollback"])
def test_sessions_with_a_common_past_never_share_what_they_add(way: str) -> None:
    for _ in range(TURNS):
        one = note_session()
        one.dispatch(Note("base"))
        if way == "clone":
            two = one.clone()
        else:
            two = note_session()
            two.rollback(one.snapshot())
        together(lambda one=one: one.dispatch(Note("one")), lambda two=two: two.dispatch(Note("two")))  # type: ignore[misc]  # bound early
        assert one.select_all(Note) == (Note("base"), Note("one"))
        assert two.select_all(Note) == (Note("base"), Note("two"))

"""Many threads, one session: nothing is lost, and subscribers hear events in the order of commits."""

from __future__ import annotations

import threading
from collections.abc import Callable

from session_records import Count, Note, note_session

from session import replace_latest

TURNS = 200


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

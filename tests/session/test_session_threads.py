"""Many threads, one session: readers see whole transactions."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from session_records import Count, Note, note_session

from session import replace_latest

TURNS = 200


def test_readers_see_whole_transactions_and_no_halves() -> None:
    session = note_session()
    session.register_reducer(Count, replace_latest)
    together, done = threading.Barrier(3), threading.Event()

    def write() -> None:
        together.wait()
        for turn in range(1, TURNS + 1):
            with session.transaction() as transaction:
                transaction.dispatch(Note(str(turn)))
                transaction.dispatch(Count(turn))
        done.set()

    def read() -> None:
        together.wait()
        while not done.is_set():
            snapshot = session.snapshot()
            count = snapshot.select_latest(Count) or Count(0)
            assert len(snapshot.select_all(Note)) == count.total

    with ThreadPoolExecutor(3) as threads:
        for work in [threads.submit(each) for each in (write, read, read)]:
            work.result()
    assert session.select_latest(Count) == Count(TURNS)

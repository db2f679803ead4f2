"""Locks that no exception leaves locked: their blocks, the order of those that wait, pools."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import ExitStack
from functools import partial
from time import monotonic, sleep

import pytest
from interrupting import interrupt, points, shown
from session_records import elsewhere

from session import Session, ToolInvoked
from session.errors import StoreBusy
from session.locks import Ending, Held, ProcessLock, scoped


def is_free(lock: ProcessLock) -> bool:
    def take() -> bool:
        held = Held(lock)
        is_taken = lock.take(held, 0)
        lock.give(held)
        return is_taken

    return elsewhere(take) == [True]


def use(lock: ProcessLock, ended: list[str]) -> None:
    @scoped
    def scope() -> Generator[str, None, None]:
        with lock.lock, Ending(lambda: ended.append("end")):
            yield "given"

    with scope() as given, lock.lock:
        assert given == "given"


@pytest.mark.interrupting
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_lock_is_free_at_once_wherever_an_exception_comes() -> None:
    lock = ProcessLock()
    use(lock, [])
    found = points(partial(use, lock, []))
    assert len(found) > 100
    for point, time in found:
        ended: list[str] = []
        struck = interrupt(partial(use, lock, ended), point, time)
        assert struck.is_raised, shown(point, time)
        assert is_free(lock), shown(point, time)
        assert len(ended) <= 2
    assert lock.holders == {}


def test_a_block_whose_end_was_cut_short_ends_again() -> None:
    ends: list[int] = []

    def end() -> None:
        ends.append(len(ends))
        if len(ends) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Ending(end):
        pass
    assert ends == [0, 1]


def test_those_that_wait_take_a_lock_in_the_order_in_which_they_came() -> None:
    lock, order, threads = ProcessLock(), list[int](), list[threading.Thread]()

    def take(number: int) -> None:
        with lock.lock:
            order.append(number)

    with lock.lock:
        for number in range(8):
            threads.append(threading.Thread(target=take, args=(number,)))
            threads[-1].start()
            while len(lock.waiting) <= number:
                sleep(0.001)
    take(8)
    for thread in threads:
        thread.join()
    assert order == list(range(9))


def test_a_lock_that_is_not_free_in_time_is_refused_and_waits_no_more() -> None:
    lock = ProcessLock()
    with lock.lock:
        (refusal,) = elsewhere(Held(lock, 0.01).__enter__)
    assert (type(refusal), str(refusal)) == (
        StoreBusy,
        "another worker or program has been writing to the store for more than 0.01 s: try again",
    )
    assert not lock.waiting
    assert is_free(lock)


def test_a_thread_takes_its_lock_again_but_no_more_places_than_a_pool_has() -> None:
    lock, pool = ProcessLock(), ProcessLock(2)
    with lock.lock, lock.lock:
        assert not is_free(lock)
    with Held(pool, 0) as one, Held(pool, 0) as two:
        assert {one.place, two.place} == {0, 1}
        with pytest.raises(StoreBusy), Held(pool, 0):
            pass
    assert pool.holders == {}


def test_a_wake_up_that_was_lost_costs_less_than_a_second() -> None:
    lock = ProcessLock()
    held = Held(lock)
    lock.take(held)
    thread = threading.Thread(target=use, args=(lock, []))
    thread.start()
    while not lock.waiting:
        sleep(0.001)
    del lock.holders[0]  # what Ctrl-C leaves between giving back and waking
    started = monotonic()
    thread.join()
    assert monotonic() - started < 1


@pytest.mark.parametrize("is_by_hand", [False, True])
def test_a_transaction_can_be_entered_by_an_exit_stack_or_by_hand(*, is_by_hand: bool) -> None:
    session, stack = Session(), ExitStack()
    transaction = session.transaction()
    entered = transaction.__enter__() if is_by_hand else stack.enter_context(transaction)
    entered.publish(ToolInvoked("host", {}, None))
    assert not is_free(session._state)
    if is_by_hand:
        transaction.__exit__(None, None, None)
    stack.close()
    assert session.version == 1
    assert is_free(session._state)

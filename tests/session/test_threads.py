"""Locks that no exception leaves locked, threads that do the work of sessions in async code, and forks."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack
from contextvars import ContextVar
from functools import partial
from operator import getitem
from time import monotonic, sleep
from typing import Any
from unittest.mock import Mock

import pytest
from interrupting import SHARE, Fault, drawn, interrupt, points, shown
from session_records import Count, Note, Ping, elsewhere, in_child, note_session, numbers, ping, texts

from session import Session, StoreError, ToolInvoked, append, pool
from session.errors import StoreBusy
from session.locks import Ending, Held, ProcessLock, scoped
from session.pool import Pool

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it forks with threads


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


# Threads of async code

HELD_UP = 0.02


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_HELD_UP", HELD_UP)


def test_work_of_a_lane_is_done_in_order_with_the_callers_context() -> None:
    who, done = ContextVar[int]("who"), list[tuple[int, int]]()
    threads = Pool()

    def work(number: int) -> int:
        done.append((number, who.get()))
        return number

    async def ask(number: int) -> int:
        who.set(number)
        return await threads.run("lane", partial(work, number))

    async def main() -> list[int]:
        return await asyncio.gather(*map(ask, range(50)))

    assert asyncio.run(main()) == list(range(50))
    assert done == [(number, number) for number in range(50)]


def begun(threads: Pool, lane: object, *works: Callable[[], object]) -> list[asyncio.Future[object]]:
    return [asyncio.ensure_future(threads.run(lane, work)) for work in works]


def test_lanes_take_turns() -> None:
    threads, done, gate = Pool(), list[str](), threading.Event()

    async def main() -> None:
        busy = begun(threads, "busy", gate.wait, *[partial(done.append, "busy")] * 3)
        await asyncio.sleep(0)
        await asyncio.gather(*(threads.run(n, partial(done.append, "other")) for n in range(3)))
        await asyncio.sleep(3 * HELD_UP)  # a thread looks for work, and there is none that it may do
        gate.set()
        await asyncio.gather(*busy)

    asyncio.run(main())
    assert done == ["other"] * 3 + ["busy"] * 3


def test_lanes_that_are_held_up_keep_no_other_waiting_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, gate = Pool(), threading.Event()

    async def main() -> tuple[str, int]:
        held = [task for n in range(20) for task in begun(threads, n, gate.wait)]
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            said = await threads.run("other", lambda: "done")
            held += [task for n in range(20, 60) for task in begun(threads, n, gate.wait)]
            while len(threads._began) < 32:
                await asyncio.sleep(HELD_UP)
        await asyncio.sleep(3 * HELD_UP)
        most = len(threads._began)
        monkeypatch.setattr(pool, "_HELD_UP", 60)
        others = [task for n in range(60, 460) for task in begun(threads, n, partial(sleep, 0.005))]
        gate.set()
        async with asyncio.timeout(20):
            while len(threads._began) > 4:
                await asyncio.sleep(0.001)
        assert not all(task.done() for task in others)  # there is work, and four are enough for it
        await asyncio.gather(*held, *others)
        return said, most

    assert asyncio.run(main()) == ("done", 32)


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_call_that_is_cancelled_is_not_made_or_is_waited_for(*, has_begun: bool) -> None:
    threads, gate, there, made = Pool(), threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        there.set()
        gate.wait()
        made.append("made")

    async def main() -> None:
        before = [] if has_begun else begun(threads, "lane", gate.wait)
        (call,) = begun(threads, "lane", work)
        while has_begun and not there.is_set():
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)
        for _ in range(3):  # as anyio does, again and again
            call.cancel()
            await asyncio.sleep(0.001)
        assert call.done() is not has_begun
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert made == (["made"] if has_begun else [])
        await asyncio.gather(*before, threads.run("lane", lambda: None))

    asyncio.run(main())
    assert made == (["made"] if has_begun else [])


def cut_short(end: Any) -> None:
    end.__self__.state = "over"  # and there was no memory for the rest


@pytest.mark.parametrize("told", [Mock(side_effect=RuntimeError), cut_short])
def test_an_end_that_the_loop_is_not_told_of_is_seen(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:

    async def main() -> str:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_soon_threadsafe", told)
        return await asyncio.wait_for(Pool().run("lane", lambda: "made"), 20)

    assert asyncio.run(main()) == "made"


def test_calls_whose_event_loop_has_ended_are_not_made() -> None:
    threads, gate, there, made = Pool(), threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        there.set()
        gate.wait()

    async def main() -> None:
        calls = begun(threads, "lane", work, partial(made.append, "no"))
        while not there.is_set():
            await asyncio.sleep(0.001)
        threading.Timer(0.05, gate.set).start()
        del calls

    asyncio.run(main())
    assert asyncio.run(threads.run("lane", lambda: made)) == []


def refuse(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_call_that_no_thread_can_make_is_refused_and_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, made = Pool(), list[str]()

    async def main() -> None:
        monkeypatch.setattr("threading.Thread.start", refuse)
        with pytest.raises(StoreError) as refused:
            await threads.run("lane", partial(made.append, "refused"))
        assert str(refused.value) == (
            "no thread can be started for the store (can't start new thread): try again later"
        )
        monkeypatch.undo()
        await threads.run("lane", partial(made.append, "again"))

    asyncio.run(main())
    assert made == ["again"]


def test_a_thread_that_cannot_start_beside_others_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, gate, made = Pool(), threading.Event(), list[int]()

    async def main() -> None:
        await threads.run("lane", lambda: None)
        monkeypatch.setattr("threading.Thread.start", refuse)
        held = begun(threads, "held", partial(gate.wait, 60))
        held += [task for n in range(3) for task in begun(threads, n, partial(made.append, n))]
        await asyncio.sleep(3 * HELD_UP)
        gate.set()
        await asyncio.gather(*held)

    asyncio.run(main())
    assert made == [0, 1, 2]


def test_calls_at_once_start_no_more_threads_than_work(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, started, start = Pool(), list[object](), threading.Thread.start
    gate = threading.Event()

    def count(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)

    async def main() -> None:
        calls = [task for n in range(2_000) for task in begun(threads, n, partial(gate.wait, 60))]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*calls)

    monkeypatch.setattr("threading.Thread.start", count)
    monkeypatch.setattr(pool, "_HELD_UP", 60)
    asyncio.run(main())
    assert len(started) == min(max(os.cpu_count() or 1, 2), 4)


def test_a_thread_without_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_IDLE", 0.01)
    threads = Pool()
    for _ in range(2):
        thread = asyncio.run(threads.run("lane", threading.current_thread))
        thread.join(10)
        assert (thread.is_alive(), thread.daemon) == (False, True)


class Fatal:  # a lane that ends the first thread that takes its work
    is_over = False

    def __hash__(self) -> int:
        if not self.is_over and threading.current_thread() is not threading.main_thread():
            self.is_over = True
            sys.exit()
        return 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_call_whose_thread_ends_is_made_by_another_if_it_was_not_begun_and_else_refused() -> None:
    threads, fresh, made = Pool(), Pool(), list[str]()

    async def main() -> None:
        for _ in range(5):  # more than there are threads
            await threads.run(Fatal(), partial(made.append, "made"))
        with pytest.MonkeyPatch.context() as patch, pytest.raises(StoreError) as refused:
            patch.setattr(pool, "monotonic", sys.exit)
            await fresh.run("lane", partial(made.append, "never"))
        assert (str(refused.value), refused.value.outcome) == (
            "the thread that did this has ended, as without memory: look whether it was done",
            "unknown",
        )
        with pytest.raises(KeyError, match=r"^'no'$"):
            await fresh.run("lane", partial(getitem, {}, "no"))
        await fresh.run("lane", partial(made.append, "last"))

    asyncio.run(main())
    assert made == ["made"] * 5 + ["last"]


@pytest.mark.interrupting
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_call_ends_and_its_lane_is_free_wherever_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_IDLE", 1)
    fault = Fault(MemoryError, (str(pool.__file__),), is_in_any_thread=True)

    async def main(threads: Pool) -> list[Any]:
        calls = [threads.run(lane, partial("{}{}".format, lane, n)) for n in range(2) for lane in "ab"]
        async with asyncio.timeout(60):
            return await asyncio.gather(*calls, return_exceptions=True)

    def use(threads: Pool) -> list[Any]:
        return asyncio.run(main(threads))

    found, done = points(lambda: use(Pool()), fault), ["a0", "b0", "a1", "b1"]
    assert len(found) > 500
    for point, time in drawn(found, min(1, 20 * SHARE), "the pool"):
        threads = Pool()
        struck = interrupt(partial(use, threads), point, time, fault)
        assert not isinstance(struck.error, TimeoutError), shown(point, time)
        said = [each for each in struck.value or () if not isinstance(each, MemoryError | StoreError)]
        assert said == [each for each in done if each in said], (shown(point, time), struck.value)
        assert use(threads) == done, shown(point, time)


# Forks


class HalfMade(ProcessLock):
    missing: Callable[[], None]

    def forget_other_threads(self) -> None:
        self.missing()


def test_objects_that_are_half_made_leave_no_lock_of_others_held_in_a_forked_child() -> None:
    locks, others = [ProcessLock() for _ in range(9)], [HalfMade() for _ in range(9)]
    for lock in locks:
        lock.holders[0] = held = Held(lock)
        held.thread = 0  # another one

    def look() -> None:
        assert [lock.holders for lock in locks] == [{}] * len(others)

    assert in_child(look) == 0


def test_a_forked_child_has_threads_of_its_own() -> None:
    threads = Pool()
    work = partial(threads.run, "lane", threading.get_ident)
    asyncio.run(work())
    assert in_child(lambda: asyncio.run(work())) == 0


def work_with(session: Session) -> None:
    """Work with a session, whatever the threads that did not come along were doing."""
    heard, before = list[Ping](), texts(session)
    session.bus.subscribe(Ping, heard.append)
    session.dispatch(Note("child"))
    with session.transaction() as transaction:
        transaction.publish(ping(session, 7))
    session.register_reducer(Count, append)
    assert texts(session) == texts(session.clone()) == [*before, "child"]
    assert (numbers(tuple(heard)), numbers(session.select_all(Ping))[-1]) == ([7], 7)
    Session(parent=session, bus=session.bus).close()


def in_a_transaction(session: Session, pause: Callable[[], None]) -> None:
    with session.transaction() as transaction:
        transaction.dispatch(Note("half"))
        transaction.publish(ping(session, 1))
        pause()


def in_a_subscriber(session: Session, pause: Callable[[], None]) -> None:
    session.bus.subscribe(Ping, lambda event: None if event.number == 7 else pause())
    with session.transaction() as transaction:
        transaction.publish(ping(session, 1))
        transaction.publish(ping(session, 2))


def in_the_bus(session: Session, pause: Callable[[], None]) -> None:
    class Slow:
        def __call__(self, event: object) -> None: ...

        def __eq__(self, _other: object) -> bool:
            pause()
            return False

        __hash__ = object.__hash__

    session.bus.subscribe(Ping, Slow())
    session.bus.unsubscribe(Ping, print)


@pytest.mark.parametrize("hold", [in_a_transaction, in_a_subscriber, in_the_bus])
def test_a_child_works_with_the_last_commit_while_a_thread_was_inside(
    hold: Callable[[Session, Callable[[], None]], None],
) -> None:
    session, entered, leave = note_session(), threading.Event(), threading.Event()
    session.dispatch(Note("committed"))

    def pause() -> None:
        entered.set()
        leave.wait()

    thread = threading.Thread(target=hold, args=(session, pause), daemon=True)
    thread.start()
    entered.wait()
    assert in_child(lambda: work_with(session)) == 0
    assert in_child(lambda: os._exit(in_child(lambda: work_with(session)))) == 0
    leave.set()
    thread.join()
    work_with(session)


def test_a_fork_inside_a_transaction_goes_on_with_it_in_both_processes() -> None:
    session = note_session()
    transaction = session.transaction().__enter__()
    transaction.dispatch(Note("before"))

    def end(name: str) -> None:
        session.dispatch(Note("nested"))
        transaction.dispatch(Note(name))
        transaction.__exit__(None, None, None)
        session.dispatch(Note("after"))
        assert texts(session) == ["before", "nested", name, "after"]

    assert in_child(partial(end, "child")) == 0
    end("parent")


def test_a_fork_inside_a_subscriber_goes_on_telling_in_both_processes() -> None:
    session, heard, pids = note_session(), list[int](), list[int]()

    def fork(event: Ping) -> None:
        if event.number == 1:
            pids.append(os.fork())
            session.publish(ping(session, 3))
        heard.append(event.number)

    def tell() -> None:
        with session.transaction() as transaction:
            transaction.publish(ping(session, 1))
            transaction.publish(ping(session, 2))
        assert heard == numbers(session.select_all(Ping)) == [1, 2, 3]
        if pids[0]:
            assert os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]) == 0

    session.bus.subscribe(Ping, fork)
    assert in_child(tell) == 0

"""The threads that do the work of stored sessions in async code."""

from __future__ import annotations

import _thread
import asyncio
import os
import threading
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from session import StoreError, pool
from session.pool import Pool

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


def test_lanes_take_turns() -> None:
    threads, done, gate = Pool(), list[str](), threading.Event()

    async def main() -> None:
        first = [
            threads.run("busy", gate.wait),
            *(threads.run("busy", partial(done.append, "busy")) for _ in "abc"),
        ]
        tasks = [asyncio.ensure_future(each) for each in first]
        await asyncio.sleep(0)
        tasks += [
            asyncio.ensure_future(threads.run(f"other {n}", partial(done.append, "other"))) for n in range(3)
        ]
        await asyncio.wait(tasks[4:])
        gate.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert done == ["other"] * 3 + ["busy"] * 3


def test_lanes_that_are_held_up_keep_no_other_waiting_and_there_is_an_end_of_threads() -> None:
    threads, gate = Pool(), threading.Event()

    async def main() -> tuple[str, int]:
        held = [asyncio.ensure_future(threads.run(n, gate.wait)) for n in range(20)]
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            said = await threads.run("other", lambda: "done")
            held += [asyncio.ensure_future(threads.run(n, gate.wait)) for n in range(20, 60)]
            while len(threads._began) < 32:
                await asyncio.sleep(HELD_UP)
        await asyncio.sleep(3 * HELD_UP)
        most = len(threads._began)
        gate.set()
        await asyncio.gather(*held)
        return said, most

    assert asyncio.run(main()) == ("done", 32)


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_call_that_is_cancelled_is_not_made_or_is_waited_for(*, has_begun: bool) -> None:
    threads, gate, begun, made = Pool(), threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        begun.set()
        gate.wait()
        made.append("made")

    async def main() -> None:
        before = None if has_begun else asyncio.ensure_future(threads.run("lane", gate.wait))
        call = asyncio.ensure_future(threads.run("lane", work))
        while has_begun and not begun.is_set():
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
        if before is not None:
            await before
        await threads.run("lane", lambda: None)

    asyncio.run(main())
    assert made == (["made"] if has_begun else [])


def test_calls_whose_event_loop_has_ended_are_not_made() -> None:
    threads, gate, begun, made = Pool(), threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        begun.set()
        gate.wait()

    async def main() -> None:
        calls = [
            asyncio.ensure_future(threads.run("lane", each)) for each in (work, partial(made.append, "no"))
        ]
        while not begun.is_set():
            await asyncio.sleep(0.001)
        threading.Timer(0.05, gate.set).start()
        del calls

    asyncio.run(main())
    assert asyncio.run(threads.run("lane", lambda: made)) == []


def refuse(*_: Any) -> int:
    raise RuntimeError("can't start new thread")


def test_a_call_for_which_no_thread_can_be_started_is_refused_and_never_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, made = Pool(), list[str]()

    async def main() -> None:
        monkeypatch.setattr("_thread.start_new_thread", refuse)
        with pytest.raises(StoreError) as refused:
            await threads.run("lane", partial(made.append, "refused"))
        assert str(refused.value) == (
            "no thread can be started for the store (can't start new thread): try again later"
        )
        monkeypatch.undo()
        await threads.run("lane", partial(made.append, "again"))

    asyncio.run(main())
    assert made == ["again"]


def test_a_thread_that_cannot_be_started_beside_others_refuses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, gate, made = Pool(), threading.Event(), list[int]()

    async def main() -> None:
        await threads.run("lane", lambda: None)
        monkeypatch.setattr("_thread.start_new_thread", refuse)
        held = asyncio.ensure_future(threads.run("held", partial(gate.wait, 60)))
        rest = [asyncio.ensure_future(threads.run(n, partial(made.append, n))) for n in range(3)]
        await asyncio.sleep(3 * HELD_UP)
        gate.set()
        await asyncio.gather(held, *rest)

    asyncio.run(main())
    assert made == [0, 1, 2]


def test_calls_at_once_start_no_more_threads_than_work(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, started, start = Pool(), list[object](), _thread.start_new_thread

    def count(*given: Any) -> int:
        started.append(given)
        return start(*given)

    async def main() -> None:
        await asyncio.gather(*(threads.run(n, lambda: None) for n in range(2_000)))

    monkeypatch.setattr("_thread.start_new_thread", count)
    monkeypatch.setattr(pool, "_HELD_UP", 60)
    asyncio.run(main())
    assert len(started) == pool._AT_WORK


def test_what_is_raised_is_raised_where_it_was_called() -> None:
    def fail() -> None:
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        asyncio.run(Pool().run("lane", fail))


def test_a_forked_child_has_threads_of_its_own() -> None:
    threads = Pool()
    asyncio.run(threads.run("lane", threading.get_ident))
    if (child := os.fork()) == 0:
        os._exit(asyncio.run(threads.run("lane", lambda: 7)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

"""Calls of one turn that run at the same time take their turns."""

from __future__ import annotations

import asyncio
from threading import Barrier, Thread

import pytest

from planning.integrations import _order
from planning.integrations._order import TurnOrder

IDS = [f"c{number}" for number in range(8)]


def test_threads_run_in_order_of_their_calls() -> None:
    order, done, barrier = TurnOrder(), list[str](), Barrier(len(IDS))

    def run(place: int) -> None:
        barrier.wait()
        with order.turn_of("turn", IDS[place], IDS[:place]):
            done.append(IDS[place])

    threads = [Thread(target=run, args=(place,)) for place in reversed(range(len(IDS)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == IDS


def test_tasks_run_in_order_of_their_calls() -> None:
    order, done = TurnOrder(), list[str]()

    async def run(place: int) -> None:
        async with order.aturn_of("turn", IDS[place], IDS[:place]):
            await asyncio.sleep(0)
            done.append(IDS[place])

    async def main() -> None:
        await asyncio.gather(*map(run, reversed(range(len(IDS)))))

    asyncio.run(main())
    assert done == IDS


def test_a_call_that_fails_lets_the_next_one_begin() -> None:
    order = TurnOrder()
    with pytest.raises(KeyError), order.turn_of("turn", "a", []):
        raise KeyError("a")
    with order.turn_of("turn", "b", ["a"]):
        pass


@pytest.mark.parametrize("is_async", [False, True])
def test_an_earlier_call_that_never_comes_is_waited_for_a_while(
    monkeypatch: pytest.MonkeyPatch, is_async: bool
) -> None:
    monkeypatch.setattr(_order, "_GRACE", 0.01)
    order, done = TurnOrder(), list[str]()

    async def run() -> None:
        async with order.aturn_of("turn", "b", ["a"]):
            done.append("b")

    if is_async:
        asyncio.run(run())
    else:
        with order.turn_of("turn", "b", ["a"]):
            done.append("b")
    assert done == ["b"]

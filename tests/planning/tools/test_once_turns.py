"""Calls of one turn: the key of each, and the order in which they run."""

from __future__ import annotations

import asyncio
import time
from itertools import count
from threading import Barrier, Thread

import pytest

from planning.tools import once
from planning.tools.once import LastUsed, Turn, TurnOrder, guessed_key

IDS = [f"c{number}" for number in range(8)]


@pytest.mark.parametrize(
    ("name", "calls", "has_key"),
    [
        ("turn", ["a", "b"], True),
        ("turn", ["a", "b", "a"], False),
        ("turn", ["b"], False),
        (None, ["a"], False),
        ("", ["a"], False),
    ],
)
def test_a_call_has_a_key_if_its_turn_has_a_name_and_no_other_call_its_id(
    name: str | None, calls: list[str], has_key: bool
) -> None:
    assert Turn(name, calls).key_of("a") == (guessed_key("turn", "a") if has_key else None)


def enter(order: TurnOrder, call_id: str, earlier: list[str], done: list[str]) -> None:
    with order.place_of("turn", call_id, earlier) as pauses:
        for seconds in pauses:
            time.sleep(seconds)
        done.append(call_id)


def test_threads_run_in_order_of_their_calls() -> None:
    order, done, barrier = TurnOrder(), list[str](), Barrier(len(IDS))

    def run(place: int) -> None:
        barrier.wait()
        enter(order, IDS[place], IDS[:place], done)

    threads = [Thread(target=run, args=(place,)) for place in reversed(range(len(IDS)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == IDS


def test_tasks_run_in_order_of_their_calls() -> None:
    order, done = TurnOrder(), list[str]()

    async def run(place: int) -> None:
        with order.place_of("turn", IDS[place], IDS[:place]) as pauses:
            for seconds in pauses:
                await asyncio.sleep(seconds)
            done.append(IDS[place])

    async def main() -> None:
        await asyncio.gather(*map(run, reversed(range(len(IDS)))))

    asyncio.run(main())
    assert done == IDS


def test_a_call_that_fails_lets_the_next_one_begin() -> None:
    order, done = TurnOrder(), list[str]()
    with pytest.raises(KeyError), order.place_of("turn", "a", []):
        raise KeyError("a")
    enter(order, "b", ["a"], done)
    assert done == ["b"]


def test_an_earlier_call_that_never_comes_is_waited_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "_GRACE", 0.01)
    done = list[str]()
    enter(TurnOrder(), "b", ["a"], done)
    assert done == ["b"]


def test_what_belongs_to_a_key_is_made_once_and_forgotten_when_others_were_used_since() -> None:
    last, numbers = LastUsed[int](2), count()
    assert [last.of(key, lambda: next(numbers)) for key in "abacaba"] == [0, 1, 0, 2, 0, 3, 0]

"""One mark beside the peers: a status change of one step, at three sizes of the plan."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from typing import Any

from benchmarks.harness import (
    OURS,
    Section,
    at_least,
    at_most,
    awaited,
    bullets,
    medians,
    microseconds,
    table,
)
from benchmarks.peers.contest import Door, Prepared, middle
from benchmarks.peers.floor import FLOOR
from benchmarks.peers.ours import JSON, TYPED
from benchmarks.peers.with_agentscope import AGENTSCOPE
from benchmarks.peers.with_langchain import LANGCHAIN
from benchmarks.peers.with_pydantic_ai import HARNESS
from benchmarks.peers.with_weakincentives import WEAKINCENTIVES

__all__ = ["measure"]

DOORS = (TYPED, WEAKINCENTIVES, AGENTSCOPE, LANGCHAIN, HARNESS, FLOOR, JSON)
SIZES = (10, 100, 1_000)
MOST_MARKS, SECONDS = 200, 0.2
"""A round times so many marks of one door, and about so long: slow doors get fewer marks."""
TIMES_FASTER, TIMES_FLOOR = 4.6, 5.0

METHOD = """\
Microseconds for one status change of one step, the middle one of the plan, from the call to the state that
can be read; in parentheses, times ours. Marks finish the step and reopen it in turn. Every round visits all
doors once, each with a fresh plan and a warm-up; a figure is the median of the rounds, a round the mean of
its marks. After each round the plan is read back, and the run stops if the marks did not do what they say.
Async doors are awaited in one running loop. Arguments are typed objects, except where the name says JSON
text."""


def measure(rounds: int) -> Section:
    """Time every door at every size."""
    figures: dict[tuple[str, int], float] = {}
    with asyncio.Runner() as runner:
        for steps in SIZES:
            visits = {(door.name, steps): _Visit(door, steps, runner) for door in DOORS}
            figures |= medians(visits, rounds)
    rows = [
        [
            door.name,
            *(
                f"{figures[door.name, n]:,.1f} ({figures[door.name, n] / figures[OURS, n]:,.2f})"
                for n in SIZES
            ),
        ]
        for door in DOORS
    ]
    nearest = WEAKINCENTIVES.name  # the same six tools on the same kind of session
    checks = [
        at_least(
            f"a mark at {n:,} steps, faster than {nearest}",
            figures[nearest, n] / figures[OURS, n],
            TIMES_FASTER,
        )
        for n in SIZES
    ]
    floor = figures[OURS, SIZES[-1]] / figures[FLOOR.name, SIZES[-1]]
    checks.append(at_most(f"a mark at {SIZES[-1]:,} steps beside the floor", floor, TIMES_FLOOR))
    return Section(
        "One mark",
        ("session-planning", "weakincentives", "agentscope", "langchain", "pydantic-ai-harness"),
        [
            METHOD,
            table(["door", *(f"{steps:,} steps" for steps in SIZES)], rows),
            bullets({door.name: door.description for door in DOORS}),
        ],
        checks,
    )


class _Visit:
    """One door at one size: what a round calls."""

    def __init__(self, door: Door, steps: int, runner: asyncio.Runner) -> None:
        self._door, self._steps, self._runner = door, steps, runner
        self._marks = 3

    def __call__(self) -> float:
        """Microseconds of a mark: a fresh plan, a warm-up, the timed marks, and a look at the plan."""
        prepared: Prepared = self._settled(self._door.prepare(self._steps))
        self._require(prepared, "pending")
        self._timed(prepared, 0, 1)
        self._require(prepared, self._door.words[0])
        warm = max(2, self._marks // 4)
        self._timed(prepared, 1, warm)
        figure = self._timed(prepared, 1 + warm, self._marks)
        self._require(prepared, self._door.words[(warm + self._marks) % 2])
        self._marks = max(3, min(MOST_MARKS, int(SECONDS * 1e6 / figure)))
        return figure

    def _timed(self, prepared: Prepared, first: int, marks: int) -> float:
        numbers, mark = iter(range(first, first + marks)), prepared.mark
        if self._door.is_async:
            return awaited(self._runner, lambda: mark(next(numbers)), marks)
        return microseconds(lambda: mark(next(numbers)), marks)

    def _require(self, prepared: Prepared, expected: str) -> None:
        """Refuse to report a door whose plan is not what the marks should have made of it."""
        statuses = list(self._settled(prepared.statuses()))
        marked = statuses.pop(middle(self._steps)) if len(statuses) == self._steps else None
        if marked != expected or any(status != "pending" for status in statuses):
            raise RuntimeError(
                f"{self._door.name}: a plan of {self._steps} steps should have its middle step {expected}"
                f" and the others pending; it is {marked}"
            )

    def _settled(self, result: Any) -> Any:
        return self._runner.run(_awaited(result)) if inspect.isawaitable(result) else result


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result

"""The mark benchmark: one status change of one step, every door in turn, several rounds."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Any

from benchmarks.door import Door, Prepared, middle

__all__ = ["SIZES", "MarkFigure", "measure_marks"]

SIZES = (10, 100, 1_000, 10_000)

FEWEST_MARKS = 3


@dataclass(frozen=True, slots=True)
class MarkFigure:
    """What one mark cost at one door, at one plan size.

    Attributes:
        door: The door that was measured.
        steps: The size of the plan.
        marks: How many marks one round timed, after the warm-up ones.
        rounds: Microseconds per mark, one figure for each round.
    """

    door: Door
    steps: int
    marks: int
    rounds: tuple[float, ...]

    @property
    def microseconds(self) -> float:
        """The median of the rounds: the figure that the tables show and the ratios use."""
        return median(self.rounds)

    @property
    def best(self) -> float:
        """The fastest round."""
        return min(self.rounds)


def measure_marks(
    doors: Iterable[Door],
    *,
    rounds: int,
    most_marks: int,
    seconds_per_block: float,
    tell: Callable[[str], None],
) -> list[MarkFigure]:
    """Time every door at every size.

    Rounds are interleaved: every round visits all doors once, each with a fresh plan, so that a slow
    moment of the machine falls on all of them and not on one.

    Args:
        doors: The contestants.
        rounds: How many times each door is visited at each size.
        most_marks: The most marks that one visit times.
        seconds_per_block: About how long one visit may take; slow doors get fewer marks.
        tell: Hears which size is being measured.
    """
    figures: list[MarkFigure] = []
    with asyncio.Runner() as runner:
        for steps in SIZES:
            tell(f"marks at {steps:,} steps")
            blocks = [_Block(door, steps, runner) for door in doors]
            for block in blocks:
                block.calibrate(most_marks, seconds_per_block)
            for _ in range(rounds):
                for block in blocks:
                    block.run()
            figures += [block.figure() for block in blocks]
    return figures


class _Block:
    """One door at one size, visited once a round."""

    def __init__(self, door: Door, steps: int, runner: asyncio.Runner) -> None:
        self.door = door
        self.steps = steps
        self.runner = runner
        self.marks = FEWEST_MARKS
        self.rounds: list[float] = []

    def calibrate(self, most_marks: int, seconds: float) -> None:
        """Choose how many marks a visit times, from a first visit that is not counted."""
        prepared = self._prepare()
        # The first marks load what a door imports late: timed, they would make it look slow.
        self._time(prepared, 0, FEWEST_MARKS)
        nanoseconds = self._time(prepared, FEWEST_MARKS, FEWEST_MARKS) / FEWEST_MARKS
        self.marks = max(FEWEST_MARKS, min(most_marks, int(seconds * 1e9 / nanoseconds)))

    def run(self) -> None:
        """Visit the door: a fresh plan, a few marks to warm up, the timed marks, and a look at the plan."""
        prepared = self._prepare()
        self._require(prepared, "pending")
        self._time(prepared, 0, 1)
        self._require(prepared, self.door.words[0])
        warm = max(1, self.marks // 4)
        with _collector_at_rest():
            self._time(prepared, 1, warm)
            total = self._time(prepared, 1 + warm, self.marks)
        self._require(prepared, self.door.words[(warm + self.marks) % 2])
        self.rounds.append(total / self.marks / 1_000)

    def figure(self) -> MarkFigure:
        """The figure of all visits."""
        return MarkFigure(self.door, self.steps, self.marks, tuple(self.rounds))

    def _prepare(self) -> Prepared:
        prepared: Prepared = self._settle(self.door.prepare(self.steps))
        return prepared

    def _require(self, prepared: Prepared, expected: str) -> None:
        """Refuse to report a door whose plan is not what the marks should have made of it."""
        statuses = list(self._settle(prepared.statuses()))
        marked = statuses.pop(middle(self.steps)) if len(statuses) == self.steps else None
        if marked != expected or any(status != "pending" for status in statuses):
            raise RuntimeError(
                f"{self.door.name} ({self.door.takes}): a plan of {self.steps} steps should have its "
                f"middle step {expected} and the others pending; it is {marked}"
            )

    def _settle(self, result: Any) -> Any:
        return self.runner.run(_awaited(result)) if inspect.isawaitable(result) else result

    def _time(self, prepared: Prepared, first: int, marks: int) -> int:
        """The nanoseconds of so many marks."""
        numbers = range(first, first + marks)
        if self.door.is_async:
            return self.runner.run(_time_async(prepared.mark, numbers))
        return _time_sync(prepared.mark, numbers)


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Collect once, then keep the garbage collector from starting while the clock runs, as timeit does.

    Collecting comes before the warm-up: it empties the processor's caches.
    """
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _time_sync(mark: Callable[[int], object], numbers: range) -> int:
    begun = perf_counter_ns()
    for n in numbers:
        mark(n)
    return perf_counter_ns() - begun


async def _time_async(mark: Callable[[int], Any], numbers: range) -> int:
    begun = perf_counter_ns()
    for n in numbers:
        await mark(n)
    return perf_counter_ns() - begun


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result

"""What every part of the benchmarks is made of: a clock, tables, targets, floors, a section."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from time import perf_counter_ns, process_time_ns
from typing import Any, TypeVar

__all__ = [
    "OURS",
    "QUICK_ROUNDS",
    "ROUNDS",
    "Check",
    "Cost",
    "Section",
    "amicroseconds",
    "at_least",
    "at_most",
    "awaited",
    "bullets",
    "elapsed",
    "fastest",
    "is_quick",
    "microseconds",
    "no_slower",
    "table",
]

OURS = "session-planning"
ROUNDS, QUICK_ROUNDS = 9, 2
TOLERANCE = 1.05
"""How many times an older figure a newer one may be and count as no slower: clocks differ by so much."""

Key = TypeVar("Key")
Cell = str | int | float


@dataclass(frozen=True, slots=True)
class Check:
    """A target beside the measured figure."""

    target: str
    figure: str
    is_met: bool


@dataclass(frozen=True, slots=True)
class Cost:
    """A figure of ours beside its floor: the least that the same work takes here, measured in the same run.

    Attributes:
        what: The work.
        ours: Microseconds.
        floor: What the least consists of.
        least: Its microseconds.
    """

    what: str
    ours: float
    floor: str
    least: float

    @property
    def times(self) -> float:
        """How many times the floor ours is; the guard compares it with that of the last release."""
        return self.ours / self.least


@dataclass(frozen=True, slots=True)
class Section:
    """What one part measured, ready to be printed.

    Attributes:
        title: The heading.
        packages: The distributions whose versions decide the figures.
        blocks: Paragraphs and tables, in order.
        checks: The part's targets.
        costs: What is shown beside its floor, and guarded.
        data: The figures that README and docs show, as JSON; a part without such figures has none.
    """

    title: str
    packages: tuple[str, ...]
    blocks: Sequence[str]
    checks: Sequence[Check] = ()
    costs: Sequence[Cost] = ()
    data: Mapping[str, Any] | None = None

    def render(self, measured: str) -> str:
        """Write the section as Markdown, with a line that says when and with what it was measured."""
        blocks = [f"## {self.title}", measured, *self.blocks]
        if self.costs:
            floors: list[list[Cell]] = [
                [each.what, each.ours, each.floor, each.least, each.times] for each in self.costs
            ]
            blocks.append(table(["beside its floor", "microseconds", "floor", "its own", "times"], floors))
        if self.checks:
            rows = [[check.target, check.figure, "met" if check.is_met else "SHORT"] for check in self.checks]
            blocks.append(table(["target", "measured", ""], rows))
        return "\n\n".join(map(_wrapped, blocks)) + "\n"


def _wrapped(block: str) -> str:
    return block if block.startswith(("|", "- ")) else fill(block, 110, break_on_hyphens=False)


def at_most(what: str, figure: float, most: float, unit: str = "times") -> Check:
    """A target that a figure stays below."""
    return Check(f"{what}: at most {most:g} {unit}", f"{_shown(figure)} {unit}", figure <= most)


def no_slower(what: str, figure: float, than: float | None, tolerance: float = TOLERANCE) -> list[Check]:
    """The target that something takes no longer than in 0.1.0, where that could be measured."""
    if than is None:
        return []
    target = f"{what}: no slower than in 0.1.0, within {tolerance - 1:.0%}"
    return [Check(target, f"{_shown(figure / than)} times", figure <= tolerance * than)]


def at_least(what: str, figure: float, least: float, unit: str = "times") -> Check:
    """A target that a figure reaches."""
    return Check(f"{what}: at least {least:g} {unit}", f"{_shown(figure)} {unit}", figure >= least)


def table(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Write a Markdown table that also reads as plain text: numbers on the right, with three digits."""
    cells = [head, *([_shown(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        first, *others = row
        padded = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        return f"| {' | '.join([first.ljust(widths[0]), *padded])} |"

    rule = "|".join(["-" * (widths[0] + 2), *(f"{'-' * (width + 1)}:" for width in widths[1:])])
    return "\n".join([line(cells[0]), f"|{rule}|", *map(line, cells[1:])])


def _shown(cell: Cell) -> str:
    if isinstance(cell, float):
        digits = 3 if cell < 1 else 2 if cell < 10 else 1 if cell < 100 else 0
        return f"{cell:,.{digits}f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def bullets(descriptions: Mapping[str, str]) -> str:
    """Describe each contestant on a line of its own."""
    return "\n".join(f"- {name}: {description}." for name, description in descriptions.items())


def fastest(runs: Mapping[Key, Callable[[], float]], rounds: int) -> dict[Key, float]:
    """The least figure of each run: what else the machine does only adds to it.

    Every round visits all of them once, so that they share a slow moment. The round before the first loads
    what is imported late, and is not counted. The garbage collector is off, as in timeit.
    """
    figures: dict[Key, list[float]] = {key: [] for key in runs}
    gc.collect()
    gc.freeze()  # what is loaded already is not looked through before each run
    gc.disable()
    try:
        for number in range(rounds + 1):
            for key, run in runs.items():
                gc.collect()
                figure = run()
                if number:
                    figures[key].append(figure)
    finally:
        gc.enable()
        gc.unfreeze()
    return {key: min(each) for key, each in figures.items()}


def is_quick(rounds: int) -> bool:
    """Whether a part is to take seconds only: then what takes long is done with less."""
    return rounds <= QUICK_ROUNDS


def microseconds(
    call: Callable[[], object], times: int = 1, clock: Callable[[], int] = process_time_ns
) -> float:
    """The microseconds of the processor that one call takes, or of another clock, the mean of so many."""
    started = clock()
    for _ in range(times):
        call()
    return (clock() - started) / times / 1_000


elapsed = partial(microseconds, clock=perf_counter_ns)
"""By the clock on the wall, which counts waiting for disks and processes, too."""


async def amicroseconds(
    call: Callable[[], Any], times: int, clock: Callable[[], int] = process_time_ns
) -> float:
    """The same of a coroutine function, in the running loop."""
    started = clock()
    for _ in range(times):
        await call()
    return (clock() - started) / times / 1_000


def awaited(runner: asyncio.Runner, call: Callable[[], Any], times: int = 1) -> float:
    """The same in the loop of the runner."""
    return runner.run(amicroseconds(call, times))

"""One mark beside 0.1.0 and the peers, at three sizes of the plan; a refused one; and their memory."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any

from benchmarks.harness import (
    OURS,
    Check,
    Cost,
    Section,
    at_least,
    at_most,
    awaited,
    bullets,
    fastest,
    is_quick,
    microseconds,
    no_slower,
    table,
)
from benchmarks.peers import floor, versions
from benchmarks.peers.both import WRONG
from benchmarks.peers.contest import Door, Prepared, middle
from benchmarks.peers.ours import JSON, TYPED
from benchmarks.peers.versions import NEW, OLD
from benchmarks.peers.with_agentscope import AGENTSCOPE
from benchmarks.peers.with_langchain import LANGCHAIN
from benchmarks.peers.with_pydantic_ai import HARNESS
from benchmarks.peers.with_weakincentives import WEAKINCENTIVES
from benchmarks.times.growth import measure_growth

__all__ = ["measure"]

DOORS = (TYPED, WEAKINCENTIVES, AGENTSCOPE, LANGCHAIN, HARNESS, floor.FLOOR, JSON)
SIZES = (10, 100, 1_000)
MOST_MARKS, SECONDS = 500, 0.2
"""A round times so many marks of one door, and about so long: slow doors get fewer marks."""
BOTH = {"mark 10": 500, "mark 100": 500, "mark 1000": 500, "text": 500, "refusal": 100}
TEXT = '{"step_id": "S051", "status": "done"}'
FLOORS = {
    "a dictionary update": floor.updating(),
    "json.loads of the text": floor.loads(TEXT),
    "pydantic's validation of the text": floor.validating(TEXT),
    "pydantic's refusal of the text": floor.refusing(WRONG),
}
TIMES_FASTER, TIMES_FLOOR, TEXT_MICROSECONDS, REFUSAL_MICROSECONDS = 3.3, 5.0, 15.0, 45.0
TOLERANCE = 1.3  # for readable code: see CHANGELOG, "Removed"
MANY, QUICK_MANY = 1_000_000, 20_000

METHOD = """\
Microseconds to change the status of the middle step of a plan, from the call until the new state can be
read; in parentheses, the ratio to ours. Marks finish the step and reopen it in turn. Every round measures
each entry point once, with a fresh plan and a warm-up, and takes the mean of its marks; a figure is the
lowest of the rounds. After each round the benchmark reads the plan, and stops if a mark had no effect.
Async entry points are awaited in one running loop. Arguments are typed objects, except where the name says
JSON text."""
VERSIONS = """\
The same compared with version 0.1.0, each version in its own process, in the same rounds. The refused call
has two mistakes: a step that is not in the plan, and a synonym of a status. The second table has the floors
of the same run:"""


def measure(rounds: int) -> Section:
    """Time every door at every size, with the doors of both versions and the floors in the same rounds."""
    seconds = SECONDS / 8 if is_quick(rounds) else SECONDS
    with asyncio.Runner() as runner, versions.doors(BOTH) as both:
        visits: dict[tuple[str, Any], Any] = {
            (door.name, steps): _Visit(door, steps, runner, seconds) for steps in SIZES for door in DOORS
        }
        floors = {(name, 0): partial(microseconds, call, 1_000) for name, call in FLOORS.items()}
        figures = fastest({**visits, **both, **floors}, rounds)
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
    grown, growth = measure_growth(QUICK_MANY if is_quick(rounds) else MANY)
    return Section(
        "One mark",
        ("session-planning", "weakincentives", "agentscope", "langchain", "pydantic-ai-harness"),
        [
            METHOD,
            table(["call", *(f"{steps:,} steps" for steps in SIZES)], rows),
            bullets({door.name: door.description for door in DOORS}),
            VERSIONS,
            versions.compared(figures, BOTH),
            table(["floor", "microseconds"], [[name, figures[name, 0]] for name in FLOORS]),
            *grown,
        ],
        [*_checks(figures), *growth],
        _costs(figures),
    )


def _checks(figures: Mapping[tuple[str, Any], float]) -> list[Check]:
    nearest = WEAKINCENTIVES.name  # the same six tools on the same kind of session
    checks = []
    for n in SIZES:
        faster = figures[nearest, n] / figures[OURS, n]
        checks += no_slower(
            f"a mark at {n:,} steps", figures[NEW, f"mark {n}"], figures.get((OLD, f"mark {n}")), TOLERANCE
        )
        checks.append(at_least(f"a mark at {n:,} steps, faster than {nearest}", faster, TIMES_FASTER))
    by_hand = figures[OURS, SIZES[-1]] / figures[floor.FLOOR.name, SIZES[-1]]
    return [
        *checks,
        at_most(f"a mark at {SIZES[-1]:,} steps beside the floor", by_hand, TIMES_FLOOR),
        at_most("a mark as JSON text, 100 steps", figures[NEW, "text"], TEXT_MICROSECONDS, "microseconds"),
        at_most("a refusal with two faults", figures[NEW, "refusal"], REFUSAL_MICROSECONDS, "microseconds"),
    ]


def _costs(figures: Mapping[tuple[str, Any], float]) -> list[Cost]:
    _, _, validation, refusal = FLOORS
    marks = [
        Cost(f"a mark at {n:,} steps", figures[NEW, f"mark {n}"], "by hand", figures[floor.FLOOR.name, n])
        for n in SIZES
    ]
    text = figures[floor.FLOOR.name, 100] + figures[validation, 0]
    return [
        *marks,
        Cost("a mark as JSON text", figures[NEW, "text"], f"by hand, and {validation}", text),
        Cost("a refusal with two faults", figures[NEW, "refusal"], refusal, figures[refusal, 0]),
    ]


class _Visit:
    """One door at one size: what a round calls."""

    def __init__(self, door: Door, steps: int, runner: asyncio.Runner, seconds: float) -> None:
        self._door, self._steps, self._runner, self._seconds = door, steps, runner, seconds
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
        self._marks = max(3, min(MOST_MARKS, int(self._seconds * 1e6 / figure)))
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

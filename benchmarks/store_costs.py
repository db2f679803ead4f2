"""What a store costs: a durable mark, opening, the past, a watch, many sessions, and restoring."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic_ns, perf_counter_ns, process_time_ns
from typing import Literal

from pydantic_ai_harness.planning import PlanItem, SqlitePlanStore, TaskStatus

from benchmarks.check import Check
from benchmarks.door import title
from benchmarks.store_plans import STEPS, mark_text, open_stored, plan_of, set_up
from planning import Plan, Toolbox, register_plan
from session import InProcessEventBus, Session, Snapshot, select_latest
from session.stores import SqliteStore

__all__ = ["STORES", "StoreFigures", "StoreTime", "measure_stores", "store_checks"]

STORES = """\
Milliseconds: the fastest round by the clock, the median of the rounds, and the least processor time of this
process. Every round visits all once. A mark is a call with its arguments as JSON text, in a file of its own.
The peer's store opens the file for each statement and waits for the disk as SQLite does by itself: with a
rollback journal and synchronous full; it reads the item and writes it, and keeps no history. The worst
version and the slowest change are the worst of their round; a change of another process counts from the
beginning of its mark, without the writer's first, which loads what is loaded lazily."""

CHANGES = 10_000
MANY = 10_000
FEW = 10
ON_ONE_BUS = 1_000
VERSIONS = 50
RESTORED = 50
REPEATS = 20
WATCHED = 20
"""Marks of the other process in one round."""

MARK = "a durable mark, synchronous normal"
FULL = "a durable mark, synchronous full"
PEER = "pydantic-ai-harness, update_item of its SQLite store"
OPEN = f"opening a session of {CHANGES:,} changes, with its plan"
PAST = f"the worst at(v) of {VERSIONS} versions, with its plan"
WATCH = f"the slowest of {WATCHED} changes from another process"
ALONE = "a call in one session"
CROWD = f"a call among {ON_ONE_BUS:,} sessions on one bus"
AMONG_FEW = f"opening a session among {FEW}"
AMONG_MANY = f"opening a session among {MANY:,}"
READ = f"a plan of {RESTORED} steps from a snapshot's JSON"
READ_SESSION = "the same with a new session"

MOST: dict[str, float] = {MARK: 0.5, OPEN: 50, PAST: 20, WATCH: 250, READ: 0.1, READ_SESSION: 0.3}
"""Milliseconds that each stays under."""
TIMES_PEER = 2.0
TIMES_ALONE = 1.5
TIMES_FEW = 1.5
FILE_BYTES = 8_000_000


@dataclass(frozen=True, slots=True)
class StoreTime:
    """Milliseconds of one thing over several rounds.

    Attributes:
        least: The fastest round, by the clock.
        middle: The median of the rounds.
        processor: The processor time of this process in the round that needed least of it.
    """

    least: float
    middle: float
    processor: float


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """What was measured.

    Attributes:
        times: By what was done.
        file_bytes: The closed file of one session of 10,000 changes of a plan of 100 steps.
    """

    times: dict[str, StoreTime]
    file_bytes: int

    def rows(self) -> list[list[str]]:
        """The times as a table's rows."""
        return [
            [what, f"{time.least:.3f}", f"{time.middle:.3f}", f"{time.processor:.3f}"]
            for what, time in self.times.items()
        ]


Round = tuple[float, float]
"""Milliseconds by the clock, and of the processor."""


def measure_stores(*, rounds: int, marks: int) -> StoreFigures:
    """Time each in turn, several rounds.

    Args:
        rounds: How many times each is timed, after a round that is not counted.
        marks: How many marks or calls one round makes.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        file_bytes = _write_long(folder / "long.db")
        _write_many(folder / "few.db", FEW)
        _write_many(folder / "many.db", MANY)
        text = _snapshot()
        runs: dict[str, Callable[[], Round]] = {
            MARK: lambda: _marks(folder, marks, "normal"),
            FULL: lambda: _marks(folder, marks, "full"),
            PEER: lambda: asyncio.run(_peer_marks(folder, marks)),
            OPEN: lambda: _timed(lambda: _open(folder / "long.db", "long")),
            PAST: lambda: _past(folder / "long.db"),
            WATCH: lambda: _watch(folder),
            ALONE: lambda: _calls(1, max(marks, ON_ONE_BUS)),
            CROWD: lambda: _calls(ON_ONE_BUS, max(marks, ON_ONE_BUS)),
            AMONG_FEW: lambda: _timed(lambda: _open(folder / "few.db", f"s{FEW // 2}")),
            AMONG_MANY: lambda: _timed(lambda: _open(folder / "many.db", f"s{MANY // 2}")),
            READ: lambda: _timed(lambda: _read(text), REPEATS),
            READ_SESSION: lambda: _timed(lambda: _read_session(text), REPEATS),
        }
        taken: dict[str, list[Round]] = {what: [] for what in runs}
        for number in range(rounds + 1):
            for what, run in runs.items():
                gc.collect()
                one = run()
                if number:  # the first round loads what is loaded lazily
                    taken[what].append(one)
    return StoreFigures({what: _time_of(each) for what, each in taken.items()}, file_bytes)


def store_checks(figures: StoreFigures) -> Iterator[Check]:
    """The targets of stores: by the median of the rounds."""
    times = {what: time.middle for what, time in figures.times.items()}
    for what, most in MOST.items():
        yield Check(f"{what}, under {most:g} ms", f"{times[what]:.3f} ms", times[what] < most)
    size = figures.file_bytes
    yield Check(
        f"the file of {CHANGES:,} changes of a plan of {STEPS} steps under {FILE_BYTES / 1e6:g} MB",
        f"{size / 1e6:.2f} MB",
        size < FILE_BYTES,
    )
    faster = times[PEER] / times[MARK]
    yield Check(
        f"{MARK}: at least {TIMES_PEER:g} times faster than {PEER}",
        f"{faster:.2f} times",
        faster >= TIMES_PEER,
    )
    for what, base, most in ((CROWD, ALONE, TIMES_ALONE), (AMONG_MANY, AMONG_FEW, TIMES_FEW)):
        slower = times[what] / times[base]
        yield Check(f"{what}: at most {most:g} times {base}", f"{slower:.2f} times", slower <= most)


def _time_of(rounds: list[Round]) -> StoreTime:
    clock = [each for each, _ in rounds]
    return StoreTime(min(clock), median(clock), min(each for _, each in rounds))


def _timed(run: Callable[[], object], times: int = 1) -> Round:
    clock, processor = perf_counter_ns(), process_time_ns()
    for _ in range(times):
        run()
    return (perf_counter_ns() - clock) / times / 1e6, (process_time_ns() - processor) / times / 1e6


def _call(toolbox: Toolbox, number: int) -> None:
    result = toolbox.call("planning_mark_step", mark_text(number), context={"call_id": f"call_{number}"})
    if not result.success:
        raise RuntimeError(f"mark {number} was refused: {result.message}")


def _write_long(path: Path) -> int:
    store = SqliteStore(path)
    session, toolbox = open_stored(store, "long")
    set_up(toolbox)
    while session.version < CHANGES:
        before = session.version
        _call(toolbox, before)
        if session.version != before + 1:
            raise RuntimeError("a mark is not one change")
    store.close()
    return sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))


def _write_many(path: Path, count: int) -> None:
    store = SqliteStore(path)
    for number in range(count):
        _, toolbox = open_stored(store, f"s{number}")
        set_up(toolbox, 5)
    store.close()


def _marks(folder: Path, marks: int, synchronous: Literal["normal", "full"]) -> Round:
    with TemporaryDirectory(dir=folder) as fresh:
        store = SqliteStore(Path(fresh, "plans.db"), synchronous=synchronous)
        session, toolbox = open_stored(store, "marks")
        set_up(toolbox)
        _call(toolbox, 0)
        numbers = iter(range(1, marks + 1))
        time = _timed(lambda: _call(toolbox, next(numbers)), marks)
        if session.version != marks + 2:
            raise RuntimeError("the marks are not all in the store")
        store.close()
    return time


async def _peer_marks(folder: Path, marks: int) -> Round:
    with TemporaryDirectory(dir=folder) as fresh:
        store = SqlitePlanStore(str(Path(fresh, "plans.db")))
        await store.set_items([PlanItem(id=f"{n:08x}", content=title(n)) for n in range(STEPS)])
        words = (TaskStatus.completed, TaskStatus.in_progress)
        await store.update_item(f"{0:08x}", status=words[0])
        clock, processor = perf_counter_ns(), process_time_ns()
        step, word = 0, words[0]
        for number in range(1, marks + 1):
            step, word = number % (STEPS - 1), words[number // (STEPS - 1) % 2]
            await store.update_item(f"{step:08x}", status=word)
        time = (perf_counter_ns() - clock) / marks / 1e6, (process_time_ns() - processor) / marks / 1e6
        if (await store.get_items())[step].status is not word:
            raise RuntimeError("the peer's update is not in its store")
    return time


def _open(path: Path, session_id: str) -> None:
    store = SqliteStore(path)
    plan_of(store, session_id)
    store.close()


def _past(path: Path) -> Round:
    """The worst of the versions, each asked of a session that was just opened."""
    chosen = Random(7).sample(range(1, CHANGES + 1), VERSIONS)  # noqa: S311 - which versions is no secret
    worst = []
    for version in chosen:
        store = SqliteStore(path)
        session, _ = open_stored(store, "long")
        worst.append(_timed(partial(_plan_at, session, version)))
        store.close()
    return max(clock for clock, _ in worst), max(processor for _, processor in worst)


def _plan_at(session: Session, version: int) -> None:
    if session.at(version).select_latest(Plan) is None:
        raise RuntimeError(f"version {version} has no plan")


def _watch(folder: Path) -> Round:
    """From the beginning of a mark in the other process until its change is here."""
    with TemporaryDirectory(dir=folder) as fresh:
        path = Path(fresh, "plans.db")
        store = SqliteStore(path)
        session, toolbox = open_stored(store, "watched")
        set_up(toolbox)
        command = [sys.executable, "-m", "benchmarks.store_writer", str(path), "watched", str(WATCHED + 1)]
        processor = process_time_ns()
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer,
            store.watch("watched", after=session.version, timeout=60) as watch,
        ):
            seen = [monotonic_ns() for _, _ in zip(range(WATCHED + 1), watch, strict=False)]
            told, _ = writer.communicate(timeout=60)
        store.close()
    late = [there - begun for there, begun in zip(seen, json.loads(told), strict=True)]
    # The writer's first mark loads what is loaded lazily before it writes anything: that is not the watch.
    return max(late[1:]) / 1e6, (process_time_ns() - processor) / WATCHED / 1e6


def _calls(sessions: int, calls: int) -> Round:
    bus = InProcessEventBus()
    toolboxes = [open_stored(None, f"s{number}", bus)[1] for number in range(sessions)]
    for toolbox in toolboxes:
        set_up(toolbox, STEPS)
        _call(toolbox, 0)
    gc.collect()
    numbers = iter(range(calls))

    def one() -> None:
        number = next(numbers)
        _call(toolboxes[number % sessions], number // sessions + 1)

    return _timed(one, calls)


def _snapshot() -> str:
    session, toolbox = open_stored(None, "snapshot")
    set_up(toolbox, RESTORED)
    return session.snapshot().to_json()


def _read(text: str) -> Snapshot:
    snapshot = Snapshot.from_json(text)
    if snapshot.select_latest(Plan) is None:
        raise RuntimeError("the snapshot lost its plan")
    return snapshot


def _read_session(text: str) -> None:
    session = Session()
    register_plan(session)
    session.rollback(_read(text))
    if select_latest(session, Plan) is None:
        raise RuntimeError("the session lost its plan")

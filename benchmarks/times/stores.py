"""What a store costs: a durable mark, opening, the past, a watch, and restoring a plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic_ns, sleep
from typing import Literal

from pydantic_ai_harness.planning import PlanItem, SqlitePlanStore, TaskStatus

from benchmarks.harness import Section, at_least, at_most, awaited, medians, microseconds, table
from benchmarks.peers.contest import DONE, title
from benchmarks.peers.ours import current, open_plan, open_session, plan_of, set_up
from planning import Plan, Toolbox, register_plan
from session import Session, Snapshot
from session.stores import SqliteStore

__all__ = ["measure"]

STEPS, MARKS, CHANGES, VERSIONS, RESTORED = 100, 300, 10_000, 50, 50
WATCHED, PAUSE = 20, 0.08
"""Marks of another process, and seconds between them: no multiple of the time between looks of a watch."""
MARK = "a durable mark, synchronous normal"
FULL = "a durable mark, synchronous full"
PEER = "pydantic-ai-harness, update_item of its SQLite store"
OPEN = f"opening a session of {CHANGES:,} changes, with its plan"
PAST = f"the worst at(v) of {VERSIONS} versions, with its plan"
WATCH = f"the slowest of {WATCHED} changes from another process"
READ = f"a plan of {RESTORED} steps from a snapshot's JSON"
READ_SESSION = "the same with a new session"
MOST = {MARK: 0.5, OPEN: 50.0, PAST: 20.0, WATCH: 250.0, READ: 0.1, READ_SESSION: 0.3}
"""Milliseconds."""
TIMES_PEER, FILE_MEGABYTES = 2.0, 8.0
METHOD = f"""\
Milliseconds, the median of the rounds; every round visits all once. A mark is a call with its arguments as
JSON text, of a plan of {STEPS} steps, in a file of its own. The peer's store opens the file for each
statement and waits for the disk as SQLite does by itself: with a rollback journal and synchronous full; it
reads the item and writes it, and keeps no history. The worst version and the slowest change are the worst
of their round; a change of another process counts from the beginning of its mark."""


def measure(rounds: int) -> Section:
    """Time each in turn."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        megabytes = _write_long(folder / "long.db")
        text = _snapshot()
        runs: dict[str, Callable[[], float]] = {
            MARK: partial(_marks, folder, "normal"),
            FULL: partial(_marks, folder, "full"),
            PEER: partial(_peer_marks, folder),
            OPEN: partial(microseconds, partial(_open, folder / "long.db")),
            PAST: partial(_past, folder / "long.db"),
            WATCH: partial(_watch, folder),
            READ: partial(microseconds, partial(_read, text), 20),
            READ_SESSION: partial(microseconds, partial(_read_session, text), 20),
        }
        times = {what: time / 1_000 for what, time in medians(runs, rounds).items()}
    return Section(
        "Stores",
        ("session-planning", "pydantic-ai-harness"),
        [
            METHOD,
            table(["what", "milliseconds"], [[what, time] for what, time in times.items()]),
            f"The closed file of {CHANGES:,} changes has {megabytes:.2f} MB.",
        ],
        [
            *(at_most(what, times[what], most, "ms") for what, most in MOST.items()),
            at_most(f"the file of {CHANGES:,} changes", megabytes, FILE_MEGABYTES, "MB"),
            at_least(f"{MARK}, faster than {PEER}", times[PEER] / times[MARK], TIMES_PEER),
        ],
    )


def _call(toolbox: Toolbox, number: int) -> None:
    """The n-th mark: step after step is done, then step after step is reopened. The last one stays open."""
    step, word = number % (STEPS - 1) + 1, DONE[number // (STEPS - 1) % 2]
    result = toolbox.call("planning_mark_step", f'{{"step_id": "S{step:03}", "status": "{word}"}}')
    if not result.success:
        raise RuntimeError(f"mark {number} was refused: {result.message}")


def _write_long(path: Path) -> float:
    with closing(SqliteStore(path)) as store:
        session, toolbox = open_session(store, "long")
        set_up(toolbox, STEPS)
        for number in range(CHANGES - 1):
            _call(toolbox, number)
        if session.version != CHANGES:
            raise RuntimeError("a mark is not one change")
    return sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*")) / 1e6


def _marks(folder: Path, synchronous: Literal["normal", "full"]) -> float:
    with (
        TemporaryDirectory(dir=folder) as fresh,
        closing(SqliteStore(Path(fresh, "plans.db"), synchronous=synchronous)) as store,
    ):
        session, toolbox = open_session(store, "marks")
        set_up(toolbox, STEPS)
        _call(toolbox, 0)
        numbers = iter(range(1, MARKS + 1))
        took = microseconds(lambda: _call(toolbox, next(numbers)), MARKS)
        if session.version != MARKS + 2:
            raise RuntimeError("the marks are not all in the store")
    return took


def _peer_marks(folder: Path) -> float:
    with TemporaryDirectory(dir=folder) as fresh, asyncio.Runner() as runner:
        store = SqlitePlanStore(str(Path(fresh, "plans.db")))
        items = [PlanItem(id=f"{n:08x}", content=title(n)) for n in range(STEPS)]
        runner.run(store.set_items(items))
        numbers = iter(range(MARKS + 1))

        async def mark() -> None:
            number = next(numbers)
            word = (TaskStatus.completed, TaskStatus.in_progress)[number // STEPS % 2]
            await store.update_item(f"{number % STEPS:08x}", status=word)

        runner.run(mark())
        took = awaited(runner, mark, MARKS)
        if runner.run(store.get_items())[MARKS % STEPS].status is not TaskStatus.in_progress:
            raise RuntimeError("the peer's update is not in its store")
    return took


def _open(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        plan_of(store, "long")


def _past(path: Path) -> float:
    """The worst of the versions, each asked of a session that was just opened."""
    chosen = Random(7).sample(range(1, CHANGES + 1), VERSIONS)  # noqa: S311 - which versions is no secret
    worst = 0.0
    for version in chosen:
        with closing(SqliteStore(path)) as store:
            session, _ = open_session(store, "long")
            worst = max(worst, microseconds(partial(_plan_at, session, version)))
    return worst


def _plan_at(session: Session, version: int) -> None:
    if session.at(version).select_latest(Plan) is None:
        raise RuntimeError(f"version {version} has no plan")


def _watch(folder: Path) -> float:
    """From the beginning of a mark in the other process until its change is here."""
    with TemporaryDirectory(dir=folder) as fresh, closing(SqliteStore(Path(fresh, "plans.db"))) as store:
        session, toolbox = open_session(store, "watched")
        set_up(toolbox, STEPS)
        context = get_context("spawn")
        here, there = context.Pipe(duplex=False)
        writer = context.Process(target=_write, args=(Path(fresh, "plans.db"), there))
        with store.watch("watched", after=session.version, timeout=60) as watch:
            writer.start()
            seen = [monotonic_ns() for _, _ in zip(range(WATCHED + 1), watch, strict=False)]
        begun = here.recv()
        writer.join()
    # The writer's first mark loads what is imported late before it writes anything: that is not the watch.
    return max(end - start for end, start in list(zip(seen, begun, strict=True))[1:]) / 1_000


def _write(path: Path, answer: Connection) -> None:
    """Mark step after step, each after a pause, and send when each mark began."""
    begun: list[int] = []
    with closing(SqliteStore(path)) as store:
        _, toolbox = open_session(store, "watched")
        for number in range(WATCHED + 1):
            sleep(PAUSE)
            begun.append(monotonic_ns())
            _call(toolbox, number)
    answer.send(begun)


def _snapshot() -> str:
    session, _ = open_plan(RESTORED)
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
    current(session)

"""What a store costs: a durable mark, opening, the past, a long session, and restoring a plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter_ns
from typing import Literal

from pydantic_ai_harness.planning import PlanItem, SqlitePlanStore, TaskStatus

from benchmarks.harness import (
    Cost,
    Section,
    amicroseconds,
    at_least,
    at_most,
    elapsed,
    fastest,
    is_quick,
    microseconds,
    no_slower,
    table,
)
from benchmarks.peers import floor, versions
from benchmarks.peers.contest import DONE, title
from benchmarks.peers.ours import current, open_plan, open_session, set_up
from benchmarks.peers.versions import NEW, OLD
from planning import Plan, Toolbox, register_plan
from session import Session, Snapshot
from session.stores import SqliteStore

__all__ = ["measure"]

STEPS, MARKS, CHANGES, LONG, VERSIONS, RESTORED = 100, 300, 10_000, 100_000, 50, 50
MARK = "a durable mark, synchronous normal"
FULL = "a durable mark, synchronous full"
PEER = "pydantic-ai-harness, update_item of its SQLite store"
OPEN = f"opening a session of {CHANGES:,} changes, with its plan"
PAST = f"the worst at(v) of {VERSIONS} versions, with its plan"
READ = f"a plan of {RESTORED} steps from a snapshot's JSON"
READ_SESSION = "the same with a new session"
COMMIT = "the commit of the same rows"
FIRST, VERIFY = "the first call in an opened session", "verify"
READ_FILE, HASHED = (
    "the file opened, its last change read",
    "the file opened, all its changes read and hashed",
)
LOADS, SNAPSHOT = "json.loads of the snapshot", "snapshot"
MOST = {MARK: 0.25, OPEN: 5.0, PAST: 20.0, READ: 0.1, READ_SESSION: 0.3}
"""Milliseconds."""
FIRST_MILLISECONDS, VERIFY_SECONDS, TIMES_PEER, FILE_MEGABYTES = 50.0, 4.0, 2.0, 8.0
METHOD = f"""\
Wall-clock milliseconds, the lowest of the rounds; every round measures each once. A mark is a call with its
arguments as JSON text, in a plan of {STEPS} steps, in its own file. The peer's store opens the file for
each statement and uses SQLite's defaults, a rollback journal and synchronous full; it reads the item,
writes it, and keeps no history. The worst version is the worst of a round."""


def measure(rounds: int) -> Section:
    """Time each in turn; what takes seconds less often, and in a quick run of a shorter session."""
    long = LONG // 20 if is_quick(rounds) else LONG
    first, verify = (f"{each} of {long:,} changes" for each in (FIRST, VERIFY))
    with TemporaryDirectory() as name, versions.doors({SNAPSHOT: 20}) as both:
        folder = Path(name)
        megabytes = _write_long(folder / "many.db")
        _write_long(folder / "long.db", long)
        text = _snapshot()
        runs: dict[str, Callable[[], float]] = {
            MARK: partial(_marks, folder, "normal"),
            COMMIT: partial(_commits, folder),
            FULL: partial(_marks, folder, "full"),
            PEER: partial(_peer_marks, folder),
            OPEN: partial(elapsed, partial(_open, folder / "many.db")),
            READ_FILE: partial(elapsed, floor.reading(folder / "many.db", CHANGES - 1)),
            PAST: partial(_past, folder / "many.db"),
            READ: partial(microseconds, partial(_read, text), 20),
            LOADS: partial(microseconds, floor.loads(text), 20),
            READ_SESSION: partial(microseconds, partial(_read_session, text), 20),
            **{version: run for (version, _), run in both.items()},
        }
        seldom: dict[str, Callable[[], float]] = {
            first: partial(_first_call, folder / "long.db"),
            verify: partial(_verify, folder / "long.db"),
            HASHED: partial(elapsed, floor.reading(folder / "long.db")),
        }
        figures = fastest(runs, rounds) | fastest(seldom, max(1, rounds // 4))
    ms = {what: time / 1_000 for what, time in figures.items()}
    old, new = figures.pop(OLD, None), figures.pop(NEW)
    return Section(
        "Stores",
        ("session-planning", "pydantic-ai-harness"),
        [
            METHOD,
            table(["what", "milliseconds"], [[what, ms[what]] for what in figures]),
            f"{READ}, in a process of its own: {new:.1f} microseconds"
            + ("." if old is None else f"; in 0.1.0 {old:.1f}."),
            f"The closed file of {CHANGES:,} changes has {megabytes:.2f} MB.",
        ],
        [
            *(at_most(what, ms[what], most, "ms") for what, most in MOST.items()),
            *no_slower(READ, new, old),
            at_most(first, ms[first], FIRST_MILLISECONDS, "ms"),
            at_most(verify, ms[verify] / 1_000, VERIFY_SECONDS, "s"),
            at_most(f"the file of {CHANGES:,} changes", megabytes, FILE_MEGABYTES, "MB"),
            at_least(f"{MARK}, faster than {PEER}", ms[PEER] / ms[MARK], TIMES_PEER),
        ],
        [
            Cost(MARK, figures[MARK], COMMIT, figures[COMMIT]),
            Cost(OPEN, figures[OPEN], READ_FILE, figures[READ_FILE]),
            Cost(READ, new, LOADS, figures[LOADS]),
            Cost(FIRST, figures[first], COMMIT, figures[COMMIT]),
            Cost(VERIFY, figures[verify], HASHED, figures[HASHED]),
        ],
    )


def _call(toolbox: Toolbox, number: int) -> None:
    """The n-th mark: step after step is done, then step after step is reopened. The last one stays open."""
    step, word = number % (STEPS - 1) + 1, DONE[number // (STEPS - 1) % 2]
    result = toolbox.call("planning_mark_step", f'{{"step_id": "S{step:03}", "status": "{word}"}}')
    if not result.success:
        raise RuntimeError(f"mark {number} was refused: {result.message}")


def _write_long(path: Path, changes: int = CHANGES) -> float:
    with closing(SqliteStore(path)) as store:
        session, toolbox = open_session(store, "long")
        set_up(toolbox, STEPS)
        for number in range(changes - 1):
            _call(toolbox, number)
        if session.version != changes:
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
        took = elapsed(lambda: _call(toolbox, next(numbers)), MARKS)
        if session.version != MARKS + 2:
            raise RuntimeError("the marks are not all in the store")
    return took


def _commits(folder: Path) -> float:
    with TemporaryDirectory(dir=folder) as fresh:
        _write_long(Path(fresh, "plans.db"), 10)
        return floor.commits(Path(fresh, "plans.db"), MARKS)


def _first_call(path: Path) -> float:
    with closing(SqliteStore(path)) as store:
        session, toolbox = open_session(store, "long")
        return elapsed(lambda: _call(toolbox, session.version - 1))


def _verify(path: Path) -> float:
    with closing(SqliteStore(path)) as store:
        return elapsed(lambda: store.verify("long"))


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
        took = runner.run(amicroseconds(mark, MARKS, perf_counter_ns))
        if runner.run(store.get_items())[MARKS % STEPS].status is not TaskStatus.in_progress:
            raise RuntimeError("the peer's update is not in its store")
    return took


def _open(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        session = Session(store=store, session_id="long")
        register_plan(session)
        current(session)


def _past(path: Path) -> float:
    """The worst of the versions, each asked of a session that was just opened."""
    chosen = Random(7).sample(range(1, CHANGES + 1), VERSIONS)  # noqa: S311 - which versions is no secret
    worst = 0.0
    for version in chosen:
        with closing(SqliteStore(path)) as store:
            session, _ = open_session(store, "long")
            worst = max(worst, elapsed(partial(_plan_at, session, version)))
    return worst


def _plan_at(session: Session, version: int) -> None:
    if session.at(version).select_latest(Plan) is None:
        raise RuntimeError(f"version {version} has no plan")


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

"""What a store in PostgreSQL costs: a durable mark, and many processes on many sessions, with watchers."""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg
import psycopg
from pydantic_ai_harness.planning import PlanItem, PostgresPlanStore, TaskStatus

from benchmarks.harness import Cost, Section, at_least, at_most, fastest, is_quick, microseconds, table
from benchmarks.peers.contest import DONE, title
from benchmarks.peers.ours import open_session, set_up
from planning import Toolbox
from session.stores import PostgresStore, SqliteStore, Store, Watch

sys.path.append(str(Path(__file__).parents[2] / "tests" / "session" / "stores"))
from postgres_server import PostgresServer, running

__all__ = ["measure"]

STEPS, MARKS, PROCESSES, SESSIONS, TOTAL, WATCHED, FEW = 100, 300, 8, 500, 100_000, 50, 20
NAMES = [f"load:{number}" for number in range(SESSIONS)]
MARK, COMMIT = "a durable mark in PostgreSQL", "an UPDATE of one row, committed"
OURS, FILE, PEER = "PostgresStore", "SqliteStore, synchronous full", "pydantic-ai-harness, PostgresPlanStore"
MILLISECONDS, TIMES_PEER, SEEN = 1.0, 2.0, 50.0
METHOD = f"""\
A PostgreSQL server on the same machine, with its default settings (each commit waits for the disk), over
its socket. Wall-clock milliseconds, the lowest of the rounds. A mark is a call with its arguments as JSON
text, in a plan of {STEPS} steps."""
LOAD = """\
{processes} processes write {few}-step plans in {sessions} sessions, {total:,} marks in all, while another
process watches {watched} of the sessions. The peer has no watches and no history. A change counts as seen
when its watch returns it."""


@dataclass
class Load:
    """What processes did at once.

    Attributes:
        seconds: From the first to the last.
        took: The milliseconds of each mark, ascending.
        kept: How many of them the store has.
        seen: Milliseconds from the commit of a mark until a watch returned it, ascending.
    """

    seconds: float = 0.0
    took: list[float] = field(default_factory=list)
    kept: int = 0
    seen: list[float] = field(default_factory=list)


@dataclass
class Answer:
    """What one process did.

    Attributes:
        took: The milliseconds of each mark.
        committed: When each change was committed, by its session and version.
        kept: How many of the marks the store has.
    """

    took: list[float] = field(default_factory=list)
    committed: dict[tuple[str, int], float] = field(default_factory=dict)
    kept: int = 0


Place = tuple[str, int]
"""The folder of a server's socket, and its port."""
Write = Callable[[list[str], int, Barrier, Connection], None]


def measure(rounds: int) -> Section:
    """Time each in turn."""
    total = TOTAL // 50 if is_quick(rounds) else TOTAL
    with running(is_durable=True) as server, TemporaryDirectory() as folder:
        opened: dict[str, Callable[[], Store]] = {
            OURS: partial(PostgresStore, server.conninfo, timeout=60),
            FILE: partial(SqliteStore, Path(folder, "plans.db"), synchronous="full", timeout=60),
        }
        PostgresStore(server.conninfo).create()
        runs = {MARK: partial(_marks, opened[OURS]), COMMIT: partial(_commits, server)}
        figures = fastest(runs, rounds)
        loads = {name: _load(total, partial(_write, open_), open_()) for name, open_ in opened.items()}
        loads[PEER] = _load(total, partial(_write_peer, (str(server.folder), server.port)), None)
    rows = [
        [name, total / load.seconds, _at(load.took, 0.5), _at(load.took, 0.99), load.kept, *_seen(load)]
        for name, load in loads.items()
    ]
    ours = loads[OURS]
    sizes = {"processes": PROCESSES, "sessions": SESSIONS, "few": FEW, "watched": WATCHED}
    return Section(
        "PostgreSQL",
        ("session-planning", "psycopg", "pydantic-ai-harness", "asyncpg"),
        [
            METHOD,
            table(["what", "milliseconds"], [[what, time / 1_000] for what, time in figures.items()]),
            LOAD.format(total=total, **sizes),
            table(["store", "marks a second", "p50 ms", "p99 ms", "kept", "seen p50", "seen p99"], rows),
        ],
        [
            at_most(MARK, figures[MARK] / 1_000, MILLISECONDS, "ms"),
            at_most("half of the changes are seen", _at(ours.seen, 0.5), SEEN, "ms"),
            at_least("marks that are kept", ours.kept, total, "marks"),
            at_least(f"marks a second, as {PEER}", loads[PEER].seconds / ours.seconds, TIMES_PEER),
        ],
        [Cost(MARK, figures[MARK], COMMIT, figures[COMMIT])],
    )


def _at(ascending: Sequence[float], share: float) -> float:
    return ascending[int(len(ascending) * share)] if ascending else 0.0


def _seen(load: Load) -> list[float | str]:
    return [_at(load.seen, 0.5), _at(load.seen, 0.99)] if load.seen else ["-", "-"]


def _mark(toolbox: Toolbox, number: int, steps: int) -> None:
    """The n-th mark: step after step is done, then step after step is reopened. The last one stays open."""
    step, word = number % (steps - 1) + 1, DONE[number // (steps - 1) % 2]
    result = toolbox.call("planning_mark_step", f'{{"step_id": "S{step:03}", "status": "{word}"}}')
    if not result.success:
        raise RuntimeError(f"mark {number} was refused: {result.message}")


def _marks(open_: Callable[[], Store]) -> float:
    with closing(open_()) as store:
        _, toolbox = open_session(store, f"marks:{time.time_ns()}")
        set_up(toolbox, STEPS)
        _mark(toolbox, 0, STEPS)
        numbers = iter(range(1, MARKS + 1))
        return microseconds(lambda: _mark(toolbox, next(numbers), STEPS), MARKS, time.perf_counter_ns)


def _commits(server: PostgresServer) -> float:
    """The floor: what the server takes to keep one changed row."""
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS floor (key bigint PRIMARY KEY, value bigint)")
        connection.execute("INSERT INTO floor VALUES (1, 0) ON CONFLICT DO NOTHING")
        update = "UPDATE floor SET value = value + 1 WHERE key = 1"
        return microseconds(lambda: connection.execute(update), MARKS, time.perf_counter_ns)


# Many processes


def _load(total: int, write: Write, watched: Store | None) -> Load:
    """Write in processes, follow some of the sessions here, and count what there is afterwards."""
    context = multiprocessing.get_context("forkserver")
    barrier, pipes = context.Barrier(PROCESSES + 1), [context.Pipe(duplex=False) for _ in range(PROCESSES)]
    processes = [
        context.Process(target=write, args=(NAMES[number::PROCESSES], total // PROCESSES, barrier, there))
        for number, (_, there) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    for here, _ in pipes:
        here.recv()  # its sessions are there
    load, seen = Load(), dict[tuple[str, int], float]()
    watches = [] if watched is None else [watched.watch(name) for name in NAMES[:WATCHED]]
    threads = [threading.Thread(target=_follow, args=(watch, seen)) for watch in watches]
    for thread in threads:
        thread.start()
    barrier.wait()
    begun = time.perf_counter()
    answers: list[Answer] = [here.recv() for here, _ in pipes]
    load.seconds = time.perf_counter() - begun
    for process in processes:
        process.join()
    time.sleep(1)  # the last changes are seen
    for watch in watches:
        watch.close()
    for thread in threads:
        thread.join()
    committed = {change: at for answer in answers for change, at in answer.committed.items()}
    load.took = sorted(took for answer in answers for took in answer.took)
    load.kept = sum(answer.kept for answer in answers)
    load.seen = sorted(
        1_000 * (seen[change] - committed[change]) for change in seen.keys() & committed.keys()
    )
    return load


def _follow(watch: Watch, seen: dict[tuple[str, int], float]) -> None:
    for change in watch:
        seen[str(watch.session_id), change.version] = time.time()


def _write(
    open_: Callable[[], Store], names: list[str], marks: int, barrier: Barrier, there: Connection
) -> None:
    """Mark steps of each session in turn; the sessions were opened before."""
    answer = Answer()
    with closing(open_()) as store:
        opened = [open_session(store, name) for name in names]
        for _, toolbox in opened:
            set_up(toolbox, FEW)
        there.send(None)
        barrier.wait()
        for number in range(marks):
            session, toolbox = opened[number % len(names)]
            begun = time.perf_counter()
            _mark(toolbox, number // len(names), FEW)
            answer.took.append(1_000 * (time.perf_counter() - begun))
            answer.committed[str(session.session_id), session.version] = time.time()
        answer.kept = sum(store.verify(name) - 1 for name in names)
    there.send(answer)


def _write_peer(place: Place, names: list[str], marks: int, barrier: Barrier, there: Connection) -> None:
    asyncio.run(_update(place, names, marks, barrier, there))


async def _update(place: Place, names: list[str], marks: int, barrier: Barrier, there: Connection) -> None:
    """The same with the peer's store: it updates an item, one call after the other."""
    answer = Answer()
    host, port = place
    options = {"user": "planning", "database": "postgres", "min_size": 1, "max_size": 2}
    async with asyncpg.create_pool(host=host, port=port, **options) as pool:
        stores = [PostgresPlanStore(pool, session=name) for name in names]
        items = [PlanItem(id=f"{number:08x}", content=title(number)) for number in range(FEW)]
        for store in stores:
            await store.set_items(items)
        there.send(None)
        barrier.wait()
        for number in range(marks):
            turn = number // len(names)
            word = (TaskStatus.completed, TaskStatus.in_progress)[turn // FEW % 2]
            begun = time.perf_counter()
            updated = await stores[number % len(names)].update_item(f"{turn % FEW:08x}", status=word)
            answer.took.append(1_000 * (time.perf_counter() - begun))
            answer.kept += updated is not None
    there.send(answer)

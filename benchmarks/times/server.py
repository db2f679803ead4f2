"""What a server's requests cost: two worker processes, many users at once, the peers' stores beside ours."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.harness import (
    OURS,
    Check,
    Cost,
    Section,
    at_least,
    at_most,
    fastest,
    is_quick,
    microseconds,
    table,
)
from benchmarks.peers.served import CONNECTIONS, CONTESTANTS, HARNESS, SAVER, STEPS, Turn, opened, served
from planning import PlanningToolsSection, Toolbox
from session import Session

sys.path.append(str(Path(__file__).parents[2] / "tests" / "session" / "stores"))
from postgres_server import programs, running

__all__ = ["measure"]

WORKERS, AT_ONCE, MANY, USERS, SHARED = 2, 50, 400, 1_000, 50
SECONDS, ROUNDS, KEPT, MARKS = 2.5, 3, 10_000, 300
FILE, DATABASE = "SQLite", "PostgreSQL"
PEERS = ("pydantic-ai-harness", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres")
P99 = {FILE: 200.0, DATABASE: 150.0}
"""The milliseconds of a request that 1 of 100 may take longer than."""
LAG, THREADS, MEGABYTES, TIMES_MARK = 2.0, 40, 400.0, 2.5
REQUEST = "a request: a session opened, marked and let go"
MARK = "a mark on an open toolbox"
METHOD = f"""\
{WORKERS} worker processes have {AT_ONCE} requests under way at any time, of {USERS:,} users with {STEPS}-step
plans. 1 of 10 requests is of {SHARED} users whom both workers serve. A request of {OURS} is an `acall` on the
one toolbox of its process, whose session function opens the session from the store: it sets up the plan the
first time, then it marks a step with a note. The peers' requests are the bare work of their stores, in the
same event loop: {HARNESS}, updates an item, which it reads and writes; {SAVER}, gets the last checkpoint and
puts the next. PostgreSQL runs on the same machine, with its default settings; each process has at most
{CONNECTIONS} connections to it.
Times are by the clock on the wall, of the whole request; the lag is by how much a sleep of 10 ms in the event
loop was too long. Processor milliseconds, threads and megabytes are those of the workers: the mean for a
request, and the most of a worker. Contestants take turns, {ROUNDS} times."""
KEPT_METHOD = """\
Then one process makes one call in each of {kept:,} sessions and keeps them; another opens as many one after
another, and keeps none."""
COST_METHOD = """\
Processor time of one call in one process, on SQLite, with a plan of {steps} steps:"""


@dataclass
class Load:
    """What workers did.

    Attributes:
        seconds: How long.
        took: The milliseconds of each request that was not refused.
        lags: By how many milliseconds the event loop was late.
        refused: How many requests were refused.
        made: How many requests of each user were not.
        processor: The workers' processor seconds.
        threads: The most threads of a worker.
        megabytes: The most memory of a worker.
    """

    seconds: float = 0.0
    took: list[float] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)
    refused: int = 0
    made: Counter[str] = field(default_factory=Counter)
    processor: float = 0.0
    threads: int = 0
    megabytes: float = 0.0

    def add(self, other: Load) -> None:
        """Add what another worker did, or the same one later."""
        self.took += other.took
        self.lags += other.lags
        self.refused += other.refused
        self.made += other.made
        self.processor += other.processor
        self.threads = max(self.threads, other.threads)
        self.megabytes = max(self.megabytes, other.megabytes)

    def row(self) -> list[float | int]:
        """Its row of the table."""
        times = [_at(self.took, share) for share in (0.5, 0.99, 1.0)] + [
            _at(self.lags, share) for share in (0.5, 0.99)
        ]
        processor = 1_000 * self.processor / max(len(self.took), 1)
        return [
            len(self.took) / self.seconds,
            *times,
            processor,
            self.threads,
            round(self.megabytes),
            self.refused,
        ]


def measure(rounds: int) -> Section:
    """Let all serve, then ours with more at once, then count what it keeps, then time one request."""
    seconds, kept = (SECONDS / 3, KEPT // 10) if is_quick(rounds) else (SECONDS, KEPT)
    blocks, checks = [METHOD], list[Check]()
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder, numbers = Path(name), count()
        places: dict[str, Callable[[], str]] = {FILE: lambda: str(folder / f"plans-{next(numbers)}.db")}
        if programs() is None:
            blocks.append("PostgreSQL is not installed, and not measured.")
        else:
            server = stack.enter_context(running(is_durable=True))
            places[DATABASE] = lambda: _database(server.conninfo, next(numbers))
        rows, kept_rows = list[list[str | float]](), list[list[str | float]]()
        for where, make in places.items():
            loads = _loads(make, seconds, ROUNDS)
            many = _loads(make, seconds, 1, MANY, [OURS])[OURS]
            rows += [[f"{contestant}, {where}", *load.row()] for contestant, load in loads.items()]
            rows.append([f"{OURS}, {where}, {MANY} at once", *many.row()])
            threads, megabytes, files_left, threads_left = _counted(make(), kept)
            kept_rows.append([where, threads, round(megabytes), files_left, threads_left])
            ours, peer = loads[OURS], loads[HARNESS]
            checks += [
                at_least(f"requests a second on {where}, as {HARNESS}", len(ours.took) / len(peer.took), 1.0),
                at_most(f"99 of 100 requests on {where}", _at(ours.took, 0.99), P99[where], "ms"),
                at_most(f"the event loop's lag at the median on {where}", _at(ours.lags, 0.5), LAG, "ms"),
                at_most(f"{MANY} at once on {where}", many.refused, 0, "refused"),
                at_most(f"{kept:,} kept sessions on {where}", threads, THREADS, "threads"),
                at_most(f"{kept:,} kept sessions on {where}", megabytes, MEGABYTES, "MB"),
                at_most(f"{kept:,} opened one after another on {where}, left", files_left, 0, "open files"),
            ]
        costs = fastest(
            {MARK: lambda: _marks(folder, next(numbers)), REQUEST: lambda: _requests(folder, next(numbers))},
            max(2, rounds // 2),
        )
    head = [
        "", "requests/s", "p50 ms", "p99", "max", "lag p50 ms", "p99", "CPU ms", "threads", "MB", "refused",
    ]  # fmt: skip
    kept_head = ["kept", "threads", "MB", "files left open", "threads left"]
    blocks += [table(head, rows), KEPT_METHOD.format(kept=kept), table(kept_head, kept_rows)]
    blocks += [
        COST_METHOD.format(steps=STEPS),
        table(["one call", "microseconds"], [[what, time] for what, time in costs.items()]),
    ]
    checks.append(at_most(f"{REQUEST}, beside {MARK}", costs[REQUEST] / costs[MARK], TIMES_MARK))
    return Section(
        "A server",
        ("session-planning", *PEERS, "psycopg", "asyncpg"),
        blocks,
        checks,
        [Cost(REQUEST, costs[REQUEST], MARK, costs[MARK])],
    )


def _at(values: Sequence[float], share: float) -> float:
    ascending = sorted(values)
    return ascending[min(int(len(ascending) * share), len(ascending) - 1)] if ascending else 0.0


def _database(conninfo: str, number: int) -> str:
    """A new database of a server."""
    import psycopg  # noqa: PLC0415 - where there is a server

    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE server_{number}")
    return conninfo.replace("dbname=postgres", f"dbname=server_{number}")


# Requests in workers


def _loads(
    make: Callable[[], str],
    seconds: float,
    rounds: int,
    at_once: int = AT_ONCE,
    names: Sequence[str] = tuple(CONTESTANTS),
) -> dict[str, Load]:
    """What each contestant did, at a place of its own."""
    loads, places = {name: Load() for name in names}, {name: make() for name in names}
    for name, place in places.items():
        _prepare(name, place)
    for _ in range(rounds):
        for name, load in loads.items():
            answers = _in_processes(
                _work,
                [(name, places[name], worker, at_once // WORKERS, seconds) for worker in range(WORKERS)],
            )
            for answer in answers:
                load.add(answer)
            load.seconds += seconds
    if OURS in loads:
        _require_all(places[OURS], loads[OURS])
    return loads


def _prepare(name: str, place: str) -> None:
    """Let the tables be made by one process."""
    if name == OURS and "=" in place:
        with closing(opened(place)) as store:
            store.create()  # type: ignore[attr-defined]  # a database's

    async def begin() -> None:
        async with CONTESTANTS[name](place) as turn:
            await turn("first")

    asyncio.run(begin())


def _require_all(place: str, load: Load) -> None:
    """Compare what is in the store with what was answered.

    Raises:
        RuntimeError: A request is lost, or was carried out twice.
    """
    with closing(opened(place)) as store:
        kept = {str(each.session_id): each.version for each in store.sessions()}
        kept.pop("first")
        if kept != load.made:
            raise RuntimeError(
                f"{load.made.total():,} requests were answered, and {sum(kept.values()):,} kept"
            )
        for user in list(kept)[:: len(kept) // 20 + 1]:
            store.verify(user)


def _in_processes(work: Callable[..., None], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What the processes answer that do the work; they begin together."""
    context = multiprocessing.get_context("spawn")
    barrier, pipes = context.Barrier(len(arguments)), [context.Pipe(duplex=False) for _ in arguments]
    processes = [
        context.Process(target=work, args=(*given, barrier, there))
        for given, (_, there) in zip(arguments, pipes, strict=True)
    ]
    for process in processes:
        process.start()
    answers = []
    for (here, there), process in zip(pipes, processes, strict=True):
        there.close()
        try:
            answers.append(here.recv())
        except EOFError:
            raise RuntimeError("a worker ended without an answer: see its error above") from None
        process.join()
    return answers


def _work(
    name: str, place: str, worker: int, at_once: int, seconds: float, barrier: Any, there: Connection
) -> None:
    there.send(asyncio.run(_serve(name, place, worker, at_once, seconds, barrier)))


async def _serve(name: str, place: str, worker: int, at_once: int, seconds: float, barrier: Any) -> Load:
    load, chance = Load(), Random(worker)  # noqa: S311 - whose turn it is is no secret
    own = (USERS - SHARED) // WORKERS

    def user() -> str:
        if chance.random() < 0.1:
            return f"shared-{chance.randrange(SHARED)}"
        return f"user-{worker}-{chance.randrange(own)}"

    async def requests(turn: Turn, until: float) -> None:
        while (begun := time.perf_counter()) < until:
            who = user()
            if await turn(who):
                load.took.append(1_000 * (time.perf_counter() - begun))
                load.made[who] += 1
            else:
                load.refused += 1

    async def lags() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(0.01)
            load.lags.append(1_000 * (time.perf_counter() - begun - 0.01))
            load.threads = max(load.threads, _threads())

    async with CONTESTANTS[name](place) as turn:
        barrier.wait()
        begun, until = time.process_time(), time.perf_counter() + seconds
        watching = asyncio.create_task(lags())
        await asyncio.gather(*(requests(turn, until) for _ in range(at_once)))
        load.processor = time.process_time() - begun
        watching.cancel()
    load.megabytes = _megabytes()
    return load


# What is kept


def _counted(place: str, sessions: int) -> tuple[int, float, int, int]:
    """The threads and megabytes of kept sessions; the files and threads that opening leaves."""
    ((threads, megabytes),) = _in_processes(_keep, [(place, sessions)])
    ((files_left, threads_left),) = _in_processes(_open, [(place, sessions)])
    return threads, megabytes, files_left, threads_left


def _keep(place: str, sessions: int, barrier: Any, there: Connection) -> None:
    barrier.wait()
    if "=" in place:
        with closing(opened(place)) as store:
            store.create()  # type: ignore[attr-defined]  # a database's

    async def main() -> int:
        with closing(opened(place)) as store:
            toolbox, user = served(store)
            kept, most, numbers = list[Session](), 0, iter(range(sessions))

            async def begin() -> None:
                nonlocal most
                for number in numbers:
                    user.set(f"kept-{number}")
                    kept.append(Session(session_id=user.get(), store=store))
                    result = await toolbox.acall(
                        "planning_setup_plan", {"objective": "Stay", "initial_steps": ["a", "b"]}
                    )
                    if not result.success:
                        raise RuntimeError(result.message)
                    most = max(most, _threads())

            await asyncio.gather(*(begin() for _ in range(AT_ONCE)))
            return most

    threads = asyncio.run(main())
    there.send((threads, _megabytes()))


def _open(place: str, sessions: int, barrier: Any, there: Connection) -> None:
    barrier.wait()
    with closing(opened(place)) as store:
        Session(session_id="kept-0", store=store).refresh()
        with _left() as left:
            for number in range(sessions):
                if not Session(session_id=f"kept-{number}", store=store).version:
                    raise RuntimeError("a session is not there")
            gc.collect()
    there.send(tuple(left))


@contextmanager
def _left() -> Iterator[list[int]]:
    """How many files and threads there are more at the end of the block."""
    files, threads, left = _files(), _threads(), list[int]()
    yield left
    left += [_files() - files, _threads() - threads]


def _threads() -> int:
    with suppress(OSError):
        return len(list(Path("/proc/self/task").iterdir()))
    return threading.active_count()


def _files() -> int:
    with suppress(OSError):
        return len(list(Path("/proc/self/fd").iterdir()))
    return 0


def _megabytes() -> float:
    """The most memory of this process so far."""
    with suppress(OSError):  # the other figure is at least that of the process that started this one
        status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) / 1e3 for line in status if line.startswith("VmHWM:"))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most / 1e3


# One request


def _marks(folder: Path, number: int) -> float:
    with closing(opened(str(folder / f"marks-{number}.db"))) as store:
        session = Session(session_id="user", store=store)
        toolbox = Toolbox(PlanningToolsSection(session=session).tools())
        return _calls(toolbox)


def _requests(folder: Path, number: int) -> float:
    with closing(opened(str(folder / f"requests-{number}.db"))) as store:
        toolbox, user = served(store)
        user.set("user")
        return _calls(toolbox)


def _calls(toolbox: Toolbox) -> float:
    """Marks, each by its arguments as JSON text."""
    steps = [f"Step {number}" for number in range(STEPS)]
    numbers = count()

    def mark() -> None:
        number = next(numbers)
        word = ("in_progress", "pending")[number // STEPS % 2]
        given = f'{{"step_id": "S{number % STEPS + 1:03}", "status": "{word}"}}'
        if not toolbox.call("planning_mark_step", given).success:
            raise RuntimeError("a mark was refused")

    toolbox.call("planning_setup_plan", {"objective": "Serve", "initial_steps": steps})
    mark()
    return microseconds(mark, MARKS)

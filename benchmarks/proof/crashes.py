"""Acknowledged changes that are lost: to ``kill -9``, and to other processes that write at the same time."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Barrier
from pathlib import Path
from random import Random
from sqlite3 import Error as SqliteError
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.proof.files import KINDS

__all__ = ["EDITED", "KILLS", "ROUNDS", "WRITERS", "CrashFigures", "Kept", "measure_crashes"]

KILLS = 100
BEFORE = 200
"""Steps that the plan has at the beginning: what a change of the whole file writes again."""
MOST_CHANGES = 12
PAUSE = 0.003
"""Seconds after the last awaited change within which the process is killed."""
ROUNDS = 5
"""Plans that several processes write to, of each kind."""
WRITERS = 4
ADDED = 25
EDITED = 50
"""Steps that two processes change at the same time: one the title, one the status."""
BROKEN = (OSError, ValueError, IndexError, RuntimeError, SqliteError)
"""What a damaged file, or a change that cannot be made, raises."""


@dataclass(slots=True)
class Kept:
    """What became of changes.

    Attributes:
        acknowledged: How many a process was told are made.
        kept: How many of them are in the file afterwards.
        unreadable: How often the file could not be read afterwards.
        failed: How many changes raised an error, which is no loss: the process knows.
    """

    acknowledged: int = 0
    kept: int = 0
    unreadable: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class CrashFigures:
    """By way of keeping a plan.

    Attributes:
        killed: Steps added by processes that are killed.
        added: Steps added by four processes at once.
        edited: The title and the status of the same step changed by two processes at once.
    """

    killed: dict[str, Kept]
    added: dict[str, Kept]
    edited: dict[str, Kept]


def measure_crashes() -> CrashFigures:
    """Kill, and write at once, with each way to keep a plan.

    In a process of its own: what that has imported, each of the many started here imports too.
    """
    run = subprocess.run([sys.executable, "-m", __name__], stdout=subprocess.PIPE, text=True, check=True)
    figures = json.loads(run.stdout)
    return CrashFigures(
        **{what: {kind: Kept(**kept) for kind, kept in by_kind.items()} for what, by_kind in figures.items()}
    )


def main() -> int:
    """Print the figures as JSON."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.proof.files"])
    with TemporaryDirectory() as name:
        folder = Path(name)
        figures = CrashFigures(
            {kind: _killed(context, folder, kind) for kind in KINDS},
            {kind: _added(context, folder, kind) for kind in KINDS},
            {kind: _edited(context, folder, kind) for kind in KINDS},
        )
    print(json.dumps(asdict(figures)))
    return 0


def _begun(folder: Path, kind: str, what: str, steps: int) -> Path:
    path = folder / f"{what}-{list(KINDS).index(kind)}"
    KINDS[kind](path).begin([f"Step {number}" for number in range(steps)])
    return path


def _killed(context: ForkServerContext, folder: Path, kind: str) -> Kept:
    random, kept = Random(7), Kept()  # noqa: S311 - when to kill is no secret
    for number in range(KILLS):
        path = _begun(folder, kind, f"killed-{number}", BEFORE)
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_add_forever, args=(kind, path, there))
        process.start()
        there.close()
        last = -1
        with suppress(EOFError, OSError):
            for _ in range(random.randint(1, MOST_CHANGES)):
                last = here.recv()
            time.sleep(random.random() * PAUSE)
            process.kill()
            while True:
                last = here.recv()
        process.join()
        kept.acknowledged += last + 1
        try:
            titles = {title for title, _ in KINDS[kind](path).steps()}
        except BROKEN:
            kept.unreadable += 1
            continue
        kept.kept += sum(f"Added {change}" in titles for change in range(last + 1))
    return kept


def _add_forever(kind: str, path: Path, told: Connection) -> None:
    plan, change = KINDS[kind](path), 0
    while True:
        plan.add(f"Added {change}")
        told.send(change)
        change += 1


def _added(context: ForkServerContext, folder: Path, kind: str) -> Kept:
    kept = Kept()
    for number in range(ROUNDS):
        path = _begun(folder, kind, f"added-{number}", 1)
        barrier = context.Barrier(WRITERS)
        runs = [(_add_some, kind, path, barrier, writer) for writer in range(WRITERS)]
        _compare(kept, kind, path, *_together(context, runs))
    return kept


def _edited(context: ForkServerContext, folder: Path, kind: str) -> Kept:
    kept = Kept()
    for number in range(ROUNDS):
        path = _begun(folder, kind, f"edited-{number}", EDITED + 1)  # one stays open, and so does the plan
        barrier = context.Barrier(2)
        runs = [(_edit, kind, path, barrier, writer) for writer in range(2)]
        _compare(kept, kind, path, *_together(context, runs))
    return kept


def _compare(kept: Kept, kind: str, path: Path, told: list[str], failed: int) -> None:
    """What was acknowledged beside what the file says now: titles, and the places of finished steps."""
    kept.acknowledged += len(told)
    kept.failed += failed
    try:
        steps = KINDS[kind](path).steps()
    except BROKEN:
        kept.unreadable += 1
        return
    there = {title for title, _ in steps} | {f"{place} done" for place, (_, done) in enumerate(steps) if done}
    kept.kept += sum(change in there for change in told)


def _together(context: ForkServerContext, runs: list[tuple[Any, ...]]) -> tuple[list[str], int]:
    """Run each in a process of its own: what was acknowledged, and how many changes failed."""
    pipes = [context.Pipe(duplex=False) for _ in runs]
    processes = [
        context.Process(target=function, args=(*arguments, there))
        for (function, *arguments), (_, there) in zip(runs, pipes, strict=True)
    ]
    for process in processes:
        process.start()
    answers = [here.recv() for here, _ in pipes]
    for process in processes:
        process.join()
    return [change for told, _ in answers for change in told], sum(failed for _, failed in answers)


def _add_some(kind: str, path: Path, barrier: Barrier, writer: int, answer: Connection) -> None:
    plan, told, failed = KINDS[kind](path), list[str](), 0
    for number in range(ADDED):
        barrier.wait()
        title = f"Step {number} of writer {writer}"
        try:
            plan.add(title)
        except BROKEN:
            failed += 1
        else:
            told.append(title)
    answer.send((told, failed))


def _edit(kind: str, path: Path, barrier: Barrier, writer: int, answer: Connection) -> None:
    """Of every step, one process changes the title and the other the status."""
    plan, told, failed = KINDS[kind](path), list[str](), 0
    for place in range(EDITED):
        barrier.wait()
        try:
            if writer:
                plan.finish(place)
            else:
                plan.retitle(place, f"Better {place}")
        except BROKEN:
            failed += 1
        else:
            told.append(f"{place} done" if writer else f"Better {place}")
    answer.send((told, failed))


if __name__ == "__main__":
    sys.exit(main())

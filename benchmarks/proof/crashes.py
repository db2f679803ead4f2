"""Acknowledged changes that are lost: to ``kill -9``, and to other processes that write at the same time."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Barrier
from pathlib import Path
from random import Random
from sqlite3 import Error as SqliteError
from tempfile import TemporaryDirectory

from benchmarks.harness import Section, table
from benchmarks.proof.files import KINDS

__all__ = ["measure"]

KILLS, BEFORE, MOST_CHANGES, PAUSE = 100, 200, 12, 0.003
"""Killed processes; steps of their plans at the beginning; changes before the kill; seconds of its delay."""
ROUNDS, WRITERS, ADDED, EDITED = 5, 4, 25, 50
BROKEN = (OSError, ValueError, IndexError, RuntimeError, SqliteError)
"""What a damaged file, or a change that cannot be made, raises."""
METHODS = {
    "killed": f"""\
{KILLS} processes add steps to a plan of {BEFORE}, one call after the other; SIGKILL ends each at a random
moment. The JSON file is what a program without a library does: it reads the file, changes the value and
writes it with `write_text`:""",
    "added": f"""\
{WRITERS} processes add {ADDED} steps each to the same plan at the same time, in {ROUNDS} plans. A change
that raised an error is not acknowledged:""",
    "edited": f"""\
Two processes edit the same {EDITED} steps at the same time, one the titles and the other the statuses, in
{ROUNDS} plans. The numbers of the two others differ from run to run:""",
}

Edit = tuple[str, str, tuple[object, ...]]
"""How a reader recognises a change, the method that makes it, and the arguments."""


@dataclass(slots=True)
class Kept:
    """What became of changes.

    Attributes:
        acknowledged: How many changes returned to their process.
        kept: How many of them are in the file afterwards.
        unreadable: How often the file could not be read afterwards.
        failed: How many changes raised an error, which is not a loss: the process knows.
    """

    acknowledged: int = 0
    kept: int = 0
    unreadable: int = 0
    failed: int = 0

    def compare(self, kind: str, path: Path, acknowledged: list[str]) -> None:
        """Count the acknowledged changes, and those that the file has: titles, and finished steps."""
        self.acknowledged += len(acknowledged)
        try:
            steps = KINDS[kind](path).steps()
        except BROKEN:
            self.unreadable += 1
            return
        there = {title for title, _ in steps} | {f"{n} done" for n, (_, done) in enumerate(steps) if done}
        self.kept += sum(change in there for change in acknowledged)


def measure(_rounds: int) -> Section:
    """Kill, and write at once, with each way to keep a plan."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    added = [
        [(f"Step {n} of writer {writer}", "add", (f"Step {n} of writer {writer}",)) for n in range(ADDED)]
        for writer in range(WRITERS)
    ]
    edited = [
        [(f"Better {place}", "retitle", (place, f"Better {place}")) for place in range(EDITED)],
        [(f"{place} done", "finish", (place,)) for place in range(EDITED)],
    ]
    counts: dict[str, Callable[[Path, str], Kept]] = {
        "killed": lambda folder, kind: _killed(context, folder, kind),
        "added": lambda folder, kind: _raced(context, folder, kind, 1, added),
        "edited": lambda folder, kind: _raced(
            context, folder, kind, EDITED + 1, edited
        ),  # one step stays open
    }
    found: dict[str, dict[str, dict[str, int]]] = {what: {} for what in counts}
    for what, count in counts.items():
        for kind in KINDS:
            with TemporaryDirectory() as folder:
                found[what][kind] = asdict(count(Path(folder), kind))
    head = ["kept in", "acknowledged", "kept", "files that cannot be read", "changes that failed"]
    blocks = [
        block
        for what, by_kind in found.items()
        for block in (METHODS[what], table(head, [[kind, *kept.values()] for kind, kept in by_kind.items()]))
    ]
    packages = ("session-planning", "pydantic-ai-harness")
    return Section("Killed, and written at once", packages, blocks, data=found)


def _begun(path: Path, kind: str, steps: int) -> Path:
    KINDS[kind](path).begin([f"Step {number}" for number in range(steps)])
    return path


def _killed(context: ForkServerContext, folder: Path, kind: str) -> Kept:
    random, kept = Random(7), Kept()  # noqa: S311 - when to kill is no secret
    for number in range(KILLS):
        path = _begun(folder / f"{number}", kind, BEFORE)
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_add_forever, args=(kind, path, there))
        process.start()
        there.close()
        changes = 0
        with suppress(EOFError, OSError):
            for _ in range(random.randint(1, MOST_CHANGES)):
                changes = here.recv()
            time.sleep(random.random() * PAUSE)
            process.kill()
            while True:
                changes = here.recv()
        process.join()
        kept.compare(kind, path, [f"Added {change}" for change in range(changes)])
    return kept


def _add_forever(kind: str, path: Path, answer: Connection) -> None:
    plan, changes = KINDS[kind](path), 0
    while True:
        plan.add(f"Added {changes}")
        changes += 1
        answer.send(changes)


def _raced(
    context: ForkServerContext, folder: Path, kind: str, steps: int, writers: list[list[Edit]]
) -> Kept:
    """Make each writer's edits in a process of its own, all at the same time."""
    kept = Kept()
    for number in range(ROUNDS):
        path = _begun(folder / f"{number}", kind, steps)
        barrier = context.Barrier(len(writers))
        pipes = [context.Pipe(duplex=False) for _ in writers]
        processes = [
            context.Process(target=_edit, args=(kind, path, barrier, edits, there))
            for edits, (_, there) in zip(writers, pipes, strict=True)
        ]
        for process in processes:
            process.start()
        answers: list[list[str]] = [here.recv() for here, _ in pipes]
        for process in processes:
            process.join()
        kept.failed += sum(map(len, writers)) - sum(map(len, answers))
        kept.compare(kind, path, [change for answer in answers for change in answer])
    return kept


def _edit(kind: str, path: Path, barrier: Barrier, edits: list[Edit], answer: Connection) -> None:
    plan, acknowledged = KINDS[kind](path), list[str]()
    for change, method, arguments in edits:
        barrier.wait()
        with suppress(*BROKEN):
            getattr(plan, method)(*arguments)
            acknowledged.append(change)
    answer.send(acknowledged)

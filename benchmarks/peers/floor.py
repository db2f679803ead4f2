"""The floors: the least that the same work takes here, with nothing around it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass

from benchmarks.harness import elapsed
from benchmarks.peers.contest import DONE, Door, Prepared, middle, title

__all__ = ["FLOOR", "commits", "loads", "reading", "refusing", "tasks", "updating", "validating"]


@dataclass(frozen=True, slots=True)
class Step:
    """A plan step of the specified shape."""

    step_id: str
    title: str
    details: str | None
    status: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan of the specified shape."""

    objective: str
    status: str
    steps: tuple[Step, ...] = ()


def _prepare(steps: int) -> Prepared:
    index = middle(steps)
    plan = Plan(
        "Migrate", "active", tuple(Step(f"S{n + 1:03d}", title(n), None, "pending") for n in range(steps))
    )

    def mark(n: int) -> None:
        nonlocal plan
        old = plan.steps[index]
        # Through a list: of the three ways to replace one element of a tuple it copies least.
        changed = list(plan.steps)
        changed[index] = Step(old.step_id, old.title, old.details, DONE[n & 1], old.notes)
        plan = Plan(plan.objective, plan.status, tuple(changed))

    return Prepared(mark, lambda: [step.status for step in plan.steps])


FLOOR = Door(
    "floor",
    "two frozen dataclasses and a tuple built by hand; the index is known, nothing is checked, no event",
    _prepare,
)


@pydantic_dataclass(config=ConfigDict(extra="forbid"))
class Mark:
    """The arguments of a mark."""

    step_id: str
    status: Literal["pending", "in_progress", "blocked", "done"]
    note: str | None = None


_adapter = TypeAdapter(Mark)


def updating() -> Callable[[], object]:
    """A dictionary update."""
    statuses = {title(n): "pending" for n in range(100)}
    change = {title(50): "done"}
    return lambda: statuses.update(change)


def loads(text: str) -> Callable[[], object]:
    """``json.loads`` of a text."""
    return lambda: json.loads(text)


def validating(text: str) -> Callable[[], object]:
    """Pydantic's reading and validation of a mark's text."""
    return lambda: _adapter.validate_json(text)


def refusing(text: str) -> Callable[[], object]:
    """Pydantic's refusal of a mark's text, as a message."""

    def refuse() -> None:
        try:
            _adapter.validate_json(text)
        except ValidationError as error:
            str(error)
        else:
            raise RuntimeError("pydantic accepted what it should refuse")

    return refuse


def tasks(many: int) -> Callable[[], object]:
    """So many asyncio tasks that do nothing, in a loop of their own."""

    async def nothing() -> None:
        pass

    async def run() -> None:
        for task in [asyncio.create_task(nothing()) for _ in range(many)]:
            await task

    return lambda: asyncio.run(run())


def commits(path: Path, many: int) -> float:
    """Microseconds of a commit that writes the rows of the last mark in a store's file once more.

    The file keeps them with its tables and its write-ahead log, and synchronous is normal.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = normal")
        head = connection.execute("SELECT * FROM sessions").fetchone()
        found = connection.execute("SELECT * FROM changes ORDER BY version DESC LIMIT 1")
        names, row = [each[0] for each in found.description], list(found.fetchone())
        version = names.index("version")
        replacing = f"INSERT OR REPLACE INTO sessions VALUES ({', '.join('?' * len(head))})"  # noqa: S608 - marks
        inserting = f"INSERT INTO changes VALUES ({', '.join('?' * len(row))})"  # noqa: S608 - marks

        def commit() -> None:
            row[version] += 1
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(replacing, head)
            connection.execute(inserting, row)
            connection.execute("COMMIT")

        return elapsed(commit, many)


def reading(path: Path, first: int = 0) -> Callable[[], object]:
    """A store's file opened, and the texts of the changes from a version on read and hashed."""

    def read() -> None:
        with closing(sqlite3.connect(path)) as connection:
            rows = (
                "SELECT text, hash FROM changes WHERE session IN (SELECT key FROM sessions) AND version > ?"
            )
            for text, _ in connection.execute(rows, (first,)):
                sha256(text.encode() if isinstance(text, str) else text)

    return read

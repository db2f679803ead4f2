"""Plans in files, for processes that are killed and processes that write at once: three ways to keep one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from pydantic_ai_harness.planning import PlanItem, SqlitePlanStore, TaskStatus

from benchmarks.harness import OURS
from benchmarks.peers.ours import open_session, plan_of
from session.stores import SqliteStore

__all__ = ["KINDS", "PlanFile"]


class PlanFile(Protocol):
    """A plan in a file. A method that returns has acknowledged the change."""

    def begin(self, titles: list[str]) -> None:
        """Write a plan with these steps."""

    def add(self, title: str) -> None:
        """Append a step."""

    def retitle(self, place: int, title: str) -> None:
        """Change a step's title."""

    def finish(self, place: int) -> None:
        """Mark a step done."""

    def steps(self) -> list[tuple[str, bool]]:
        """Each step's title, and whether it is done."""


class _Ours:
    """A stored session, changed through the tools as a model does."""

    def __init__(self, path: Path) -> None:
        self._store = SqliteStore(path)
        _, self._toolbox = open_session(self._store, "plan")

    def _call(self, tool: str, arguments: dict[str, Any]) -> None:
        result = self._toolbox.call(f"planning_{tool}", arguments)
        if not result.success:
            raise RuntimeError(result.message)

    def begin(self, titles: list[str]) -> None:
        self._call("setup_plan", {"objective": "Migrate", "initial_steps": titles})

    def add(self, title: str) -> None:
        self._call("add_step", {"steps": [{"title": title}]})

    def retitle(self, place: int, title: str) -> None:
        self._call("update_step", {"step_id": f"S{place + 1:03}", "title": title})

    def finish(self, place: int) -> None:
        self._call("mark_step", {"step_id": f"S{place + 1:03}", "status": "done"})

    def steps(self) -> list[tuple[str, bool]]:
        return [(step.title, step.status == "done") for step in plan_of(self._store, "plan").steps]


class _Harness:
    """The SQLite store of pydantic-ai-harness."""

    def __init__(self, path: Path) -> None:
        self._store = SqlitePlanStore(str(path))
        self._run = asyncio.Runner().run

    def begin(self, titles: list[str]) -> None:
        items = [PlanItem(id=f"{place:08x}", content=title) for place, title in enumerate(titles)]
        self._run(self._store.set_items(items))

    def add(self, title: str) -> None:
        self._run(self._store.add_item(PlanItem(content=title)))

    def retitle(self, place: int, title: str) -> None:
        self._run(self._store.update_item(f"{place:08x}", content=title))

    def finish(self, place: int) -> None:
        self._run(self._store.update_item(f"{place:08x}", status=TaskStatus.completed))

    def steps(self) -> list[tuple[str, bool]]:
        items = self._run(self._store.get_items())
        return [(item.content, item.status is TaskStatus.completed) for item in items]


class _Json:
    """What is written without a library: the file is read, changed and written again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, titles: list[str]) -> None:
        self._write([(title, False) for title in titles])

    def _write(self, steps: list[tuple[str, bool]]) -> None:
        self._path.write_text(json.dumps(steps), encoding="utf-8")

    def add(self, title: str) -> None:
        self._write([*self.steps(), (title, False)])

    def retitle(self, place: int, title: str) -> None:
        steps = self.steps()
        steps[place] = (title, steps[place][1])
        self._write(steps)

    def finish(self, place: int) -> None:
        steps = self.steps()
        steps[place] = (steps[place][0], True)
        self._write(steps)

    def steps(self) -> list[tuple[str, bool]]:
        return [(title, done) for title, done in json.loads(self._path.read_text(encoding="utf-8"))]


KINDS: dict[str, Callable[[Path], PlanFile]] = {
    OURS: _Ours,
    "pydantic-ai-harness": _Harness,
    "a JSON file": _Json,
}

"""Acknowledged changes that are lost to other threads of one process, and ids that are given out twice."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

from agentscope.state import AgentState, TaskContext
from agentscope.tool import TaskCreate
from pydantic_ai_harness.planning import InMemoryPlanStore, PlanItem
from weakincentives.tools import planning as peer

from benchmarks.harness import OURS, Section, table
from benchmarks.peers.ours import current, open_plan
from benchmarks.peers.with_weakincentives import Opened

__all__ = ["measure"]

THREADS, ADDS = 4, 250
SWITCH = 1e-5
"""Seconds after which the interpreter looks at the next thread: often, for all alike."""
METHOD = f"""\
{THREADS} threads of one process add {ADDS} steps each to the same plan in memory, while the interpreter
switches threads often:"""

Steps = Callable[[], list[tuple[str, str]]]
"""The id and the title of each step."""
Opening = Callable[[], tuple[Callable[[str], object], Steps]]
"""Begins a plan: what adds a step to it, and what reads it."""


def measure(_rounds: int) -> Section:
    """Add steps from four threads at once, with the tool of each, in memory."""
    openings: dict[str, Opening] = {
        OURS: _ours,
        "weakincentives": _weakincentives,
        "pydantic-ai-harness": _harness,
        "agentscope": _agentscope,
    }
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        rows = [[name, *_added(opening)] for name, opening in openings.items()]
    finally:
        sys.setswitchinterval(interval)
    return Section(
        "Threads of one process",
        ("session-planning", "weakincentives", "pydantic-ai-harness", "agentscope"),
        [METHOD, table(["plan in memory", "acknowledged", "kept", "ids given out again"], rows)],
    )


def _added(opening: Opening) -> tuple[int, int, int]:
    """How many calls succeeded, how many of their steps are kept, how many ids name more than one step."""
    add, steps = opening()
    barrier, acknowledged = Barrier(THREADS), list[str]()

    def run(number: int) -> None:
        barrier.wait()
        for place in range(ADDS):
            title = f"Step {place} of thread {number}"
            add(title)
            acknowledged.append(title)

    threads = [Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = steps()
    titles, ids = {title for _, title in found}, [step_id for step_id, _ in found]
    return len(acknowledged), sum(title in titles for title in acknowledged), len(ids) - len(set(ids))


def _ours() -> tuple[Callable[[str], object], Steps]:
    session, toolbox = open_plan(1)

    def add(title: str) -> None:
        result = toolbox.call("planning_add_step", {"steps": [{"title": title}]})
        if not result.success:
            raise RuntimeError(result.message)

    return add, lambda: [(step.step_id, step.title) for step in current(session).steps]


def _weakincentives() -> tuple[Callable[[str], object], Steps]:
    opened = Opened()
    opened.set_up(1)

    def add(title: str) -> None:
        opened.invoke("planning_add_step", peer.AddStep((peer.NewPlanStep(title),)))

    return add, lambda: [(step.step_id, step.title) for step in opened.plan.steps]


def _harness() -> tuple[Callable[[str], object], Steps]:
    store = InMemoryPlanStore()

    def add(title: str) -> None:
        asyncio.run(store.add_item(PlanItem(content=title)))

    return add, lambda: [(item.id, item.content) for item in asyncio.run(store.get_items())]


def _agentscope() -> tuple[Callable[[str], object], Steps]:
    state = AgentState(tasks_context=TaskContext(tasks=[]))
    create: Any = TaskCreate()

    def add(title: str) -> None:
        asyncio.run(create(_agent_state=state, subject=title, description=title))

    return add, lambda: [(task.id, task.subject) for task in state.tasks_context.tasks]

"""What version 0.1.0 and this one both offer, timed in a process of each: they cannot be imported into one.

Run as a module it reads lines of standard input, each a door and how many calls to time, and answers each
with the microseconds of one call. It imports nothing but the version that its interpreter has.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from benchmarks.harness import microseconds
from benchmarks.peers.contest import DONE, Door, middle
from benchmarks.peers.ours import JSON, MARK, TYPED, open_plan
from planning import Plan, Toolbox
from planning.tools import Tool, tool
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Snapshot

WRONG = '{"step_id": "S777", "status": "completed"}'
"""Two faults: a step that is not in the plan, and a synonym of a status."""
STEPS = 1_000


def _marked(door: Door, steps: int) -> Callable[[], object]:
    prepared: Any = door.prepare(steps)
    prepared.mark(0)
    if list(prepared.statuses())[middle(steps)] != DONE[0]:
        raise RuntimeError("a mark did not do what it says")
    return map(prepared.mark, count(1)).__next__


def _called(toolbox: Toolbox, name: str, text: str, *, succeeds: bool = True) -> Callable[[], None]:
    call = toolbox.call

    def checked() -> None:
        if call(name, text).success is not succeeds:
            raise RuntimeError(f"a call of {name} did not end as it should")

    return checked


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


async def noop() -> int:
    """Do nothing."""
    return 1


def _workflow() -> Callable[[], object]:
    capabilities = Capabilities(tools=[Tool("noop", "Do nothing.", noop)])
    steps = tuple(
        WorkflowStep(step_id=f"step_{n}", description="Do nothing", type="tool", name="noop")
        for n in range(STEPS)
    )

    def run() -> None:
        if len(run_workflow(Workflow(goal="Measure", steps=steps), capabilities).outputs) != STEPS:
            raise RuntimeError("not every step was done")

    return run


def _snapshot(steps: int) -> Callable[[], object]:
    text = open_plan(steps)[0].snapshot().to_json()

    def read() -> None:
        if Snapshot.from_json(text).select_latest(Plan) is None:
            raise RuntimeError("the snapshot lost its plan")

    return read


DOORS: dict[str, Callable[[], Callable[[], object]]] = {
    **{f"mark {steps}": partial(_marked, TYPED, steps) for steps in (10, 100, 1_000)},
    "text": partial(_marked, JSON, 100),
    "refusal": lambda: _called(open_plan(100)[1], MARK, WRONG, succeeds=False),
    "own tool": lambda: _called(Toolbox([tool(double)]), "double", '{"number": 1}'),
    "workflow": _workflow,
    "snapshot": partial(_snapshot, 50),
}


def main() -> None:
    """Answer each line, from a fresh plan and after a warm-up."""
    with asyncio.Runner():  # the first one imports what the others do not
        pass
    for line in sys.stdin:
        door, _, times = line.strip().rpartition(" ")
        call = DOORS[door]()
        microseconds(call, max(1, int(times) // 4))
        gc.collect()
        gc.disable()
        print(microseconds(call, int(times)), flush=True)
        gc.enable()


if __name__ == "__main__":
    main()

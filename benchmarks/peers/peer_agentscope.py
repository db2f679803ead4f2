"""AgentScope: its task tools on an agent's state."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentscope.message import ToolCallBlock
from agentscope.state import AgentState, Task, TaskContext
from agentscope.tool import TaskUpdate, Toolkit

from benchmarks.door import COMPLETED, Door, Prepared, Takes, middle, title

__all__ = ["DOORS"]

PACKAGE = "agentscope"


def _open(steps: int) -> tuple[AgentState, str]:
    # Built whole: its create tool looks at every task for each new one, and creating is not timed.
    tasks = [Task(id=str(n + 1), subject=title(n), description=title(n), metadata={}) for n in range(steps)]
    return AgentState(tasks_context=TaskContext(tasks=tasks)), str(middle(steps) + 1)


def _prepare_typed(steps: int) -> Prepared:
    state, task_id = _open(steps)
    update = TaskUpdate()

    async def mark(n: int) -> object:
        return await update(_agent_state=state, task_id=task_id, status=COMPLETED[n & 1])

    return Prepared(mark, lambda: _statuses(state))


def _prepare_json(steps: int) -> Prepared:
    state, task_id = _open(steps)
    toolkit = Toolkit(tools=[TaskUpdate()])
    arguments = [json.dumps({"task_id": task_id, "status": status}) for status in COMPLETED]
    calls = [ToolCallBlock(id="call", name="TaskUpdate", input=text) for text in arguments]

    async def mark(n: int) -> None:
        async for _ in toolkit.call_tool(calls[n & 1], state):
            pass

    return Prepared(mark, lambda: _statuses(state))


def _statuses(state: AgentState) -> Sequence[str]:
    return [task.state for task in state.tasks_context.tasks]


DOORS = (
    Door(
        name=PACKAGE,
        package=PACKAGE,
        takes=Takes.TYPED,
        description=(
            "TaskUpdate awaited with keyword arguments on an AgentState; changes the task in place, "
            "keeps no events"
        ),
        prepare=_prepare_typed,
        words=COMPLETED,
        is_async=True,
    ),
    Door(
        name=PACKAGE,
        package=PACKAGE,
        takes=Takes.JSON,
        description="Toolkit.call_tool with a tool call block, its stream read to the end",
        prepare=_prepare_json,
        words=COMPLETED,
        is_async=True,
    ),
)

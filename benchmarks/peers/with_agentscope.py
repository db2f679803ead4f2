"""AgentScope: its task tools on an agent's state."""

from __future__ import annotations

from agentscope.state import AgentState, Task, TaskContext
from agentscope.tool import TaskUpdate

from benchmarks.peers.contest import COMPLETED, Door, Prepared, middle, title

__all__ = ["AGENTSCOPE"]


def _prepare(steps: int) -> Prepared:
    # Built whole: its create tool looks at every task for each new one, and creating is not timed.
    tasks = [Task(id=str(n + 1), subject=title(n), description=title(n), metadata={}) for n in range(steps)]
    state, task_id = AgentState(tasks_context=TaskContext(tasks=tasks)), str(middle(steps) + 1)
    update = TaskUpdate()

    async def mark(n: int) -> object:
        return await update(_agent_state=state, task_id=task_id, status=COMPLETED[n & 1])

    return Prepared(mark, lambda: [task.state for task in state.tasks_context.tasks])


AGENTSCOPE = Door(
    "agentscope",
    "TaskUpdate awaited with keyword arguments on an AgentState; changes the task in place, keeps no events",
    _prepare,
    words=COMPLETED,
    is_async=True,
)

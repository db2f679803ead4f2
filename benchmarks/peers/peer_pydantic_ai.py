"""pydantic-ai-harness: its planning toolset on the in-memory store, inside an agent's run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_harness.planning import InMemoryPlanStore, PlanItem, Planning

from benchmarks.door import COMPLETED, Door, Prepared, Takes, middle, title

__all__ = ["DOORS"]

PACKAGE = "pydantic-ai-harness"
TOOL = "update_task_status"


class _Opened:
    """A stored plan, and the context of a run that has the planning capability."""

    def __init__(self, planning: Planning, store: InMemoryPlanStore, context: RunContext[Any], task_id: str):
        self.planning = planning
        self.store = store
        self.context = context
        self.arguments = [{"task_id": task_id, "status": status} for status in COMPLETED]

    async def statuses(self) -> Sequence[str]:
        return [item.status.value for item in await self.store.get_items()]


async def _open(steps: int) -> _Opened:
    store = InMemoryPlanStore()
    items = [PlanItem(id=f"{n:08x}", content=title(n)) for n in range(steps)]
    await store.set_items(items)
    planning = Planning[Any](store=store)
    contexts: list[RunContext[Any]] = []

    def model(messages: object, info: object) -> ModelResponse:
        del messages, info
        return ModelResponse(parts=[TextPart("done") if contexts else ToolCallPart("hold_context", {})])

    agent = Agent(FunctionModel(model), capabilities=[planning])

    # Its tools emit events into the run's stream and refuse to work without one, so the marks use the
    # context of a real run, which a tool of that run hands out.
    @agent.tool
    async def hold_context(ctx: RunContext[Any]) -> str:
        contexts.append(ctx)
        return "held"

    await agent.run("Hold the context.")
    return _Opened(planning, store, contexts[0], items[middle(steps)].id)


async def _prepare_typed(steps: int) -> Prepared:
    opened = await _open(steps)
    toolset = opened.planning.get_toolset()
    if toolset is None:
        raise RuntimeError("the planning capability offers no toolset")
    context = replace(opened.context, tool_name=TOOL, tool_call_id="call")
    tool = (await toolset.get_tools(context))[TOOL]
    arguments = [tool.args_validator.validate_python(given) for given in opened.arguments]

    async def mark(n: int) -> object:
        return await toolset.call_tool(TOOL, arguments[n & 1], context, tool)

    return Prepared(mark, opened.statuses)


async def _prepare_json(steps: int) -> Prepared:
    opened = await _open(steps)
    manager = opened.context.tool_manager
    if manager is None:
        raise RuntimeError("the run has no tool manager")
    calls = [ToolCallPart(TOOL, json.dumps(given)) for given in opened.arguments]

    async def mark(n: int) -> object:
        return await manager.handle_call(calls[n & 1])

    return Prepared(mark, opened.statuses)


DOORS = (
    Door(
        name=PACKAGE,
        package=PACKAGE,
        takes=Takes.TYPED,
        description=(
            "PlanningToolset.call_tool for update_task_status with validated arguments, in the context of "
            "a run; nobody listens to the events it emits"
        ),
        prepare=_prepare_typed,
        words=COMPLETED,
        is_async=True,
    ),
    Door(
        name=PACKAGE,
        package=PACKAGE,
        takes=Takes.JSON,
        description="the run's ToolManager.handle_call with a tool call part, as its agent graph calls it",
        prepare=_prepare_json,
        words=COMPLETED,
        is_async=True,
    ),
)

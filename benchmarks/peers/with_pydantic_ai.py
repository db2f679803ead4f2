"""pydantic-ai-harness: its planning toolset on the in-memory store, inside an agent's run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import Agent, RunContext, UsageLimits
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai_harness.planning import InMemoryPlanStore, PlanItem, Planning, TaskStatus

from benchmarks.peers.contest import COMPLETED, TITLES, Conversation, Door, Prepared, compact, middle, title

__all__ = ["HARNESS", "converse", "held_context"]

TOOL = "update_task_status"


async def held_context(**options: Any) -> RunContext[Any]:
    """The context of a real run, which a tool of that run hands out.

    Tools of a run emit events into its stream, and refuse to work without one.
    """
    contexts: list[RunContext[Any]] = []

    def model(messages: object, info: object) -> ModelResponse:
        del messages, info
        return ModelResponse(parts=[TextPart("done") if contexts else ToolCallPart("hold_context", {})])

    agent = Agent(FunctionModel(model), **options)

    @agent.tool
    async def hold_context(ctx: RunContext[Any]) -> str:
        contexts.append(ctx)
        return "held"

    await agent.run("Hold the context.")
    return contexts[0]


async def _prepare(steps: int) -> Prepared:
    store = InMemoryPlanStore()
    items = [PlanItem(id=f"{n:08x}", content=title(n)) for n in range(steps)]
    await store.set_items(items)
    planning = Planning[Any](store=store)
    toolset = planning.get_toolset()
    if not isinstance(toolset, AbstractToolset):
        raise TypeError("the planning capability offers no toolset")
    held = await held_context(capabilities=[planning])
    context = replace(held, tool_name=TOOL, tool_call_id="call")
    tool = (await toolset.get_tools(context))[TOOL]
    given = [{"task_id": items[middle(steps)].id, "status": status} for status in COMPLETED]
    arguments = [tool.args_validator.validate_python(each) for each in given]

    async def mark(n: int) -> object:
        return await toolset.call_tool(TOOL, arguments[n & 1], context, tool)

    async def statuses() -> Sequence[str]:
        return [item.status.value for item in await store.get_items()]

    return Prepared(mark, statuses)


HARNESS = Door(
    "pydantic-ai-harness",
    (
        "PlanningToolset.call_tool for update_task_status with validated arguments, in the context of a run;"
        " the events that it emits have no listener"
    ),
    _prepare,
    words=COMPLETED,
    is_async=True,
)


def converse() -> Conversation:
    """Write the plan, read its ids and mark every step completed, in a run of its agent."""
    return asyncio.run(_converse())


async def _converse() -> Conversation:
    store = InMemoryPlanStore()
    calls: list[ToolCallPart] = []
    shown: list[tuple[str, list[dict[str, Any]]]] = []

    async def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del messages
        shown.append((info.instructions or "", [_definition(tool) for tool in info.function_tools]))
        number = len(calls)
        if number == 0:
            call = ToolCallPart("write_plan", compact({"items": [{"content": each} for each in TITLES]}))
        elif number == 1:  # as its instructions say: to see the ids, which writing the plan does not show
            call = ToolCallPart("read_plan", "{}")
        elif number < len(TITLES) + 2:
            item = (await store.get_items())[number - 2]
            call = ToolCallPart(TOOL, compact({"task_id": item.id, "status": "completed"}))
        else:
            return ModelResponse([TextPart("Done.")])
        calls.append(call)
        return ModelResponse([call])

    agent = Agent(FunctionModel(play), capabilities=[Planning[Any](store=store)])
    run = await agent.run("Go.", usage_limits=UsageLimits(request_limit=None))
    prompt, tools = shown[0]
    conversation = Conversation(len(prompt), len(compact(tools)))
    results = [
        part.model_response_str()
        for message in run.all_messages()
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    for call, result in zip(calls, results, strict=True):
        conversation.add(call.tool_name, json.loads(str(call.args)), result)
    if any(item.status is not TaskStatus.completed for item in await store.get_items()):
        raise RuntimeError("the plan did not end completed")
    return conversation


def _definition(tool: Any) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters_json_schema,
    }
    return {"type": "function", "function": function}

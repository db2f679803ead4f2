"""The conversation with the planning capability of pydantic-ai-harness."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness.planning import InMemoryPlanStore, Planning, TaskStatus

from benchmarks.characters import TITLES, Conversation, compact

__all__ = ["converse"]


def converse(*, start_steps: bool) -> Conversation:
    """Write the plan, read its ids and mark every step completed, in a run of its agent.

    Args:
        start_steps: Whether each step is also marked in progress first.
    """
    return asyncio.run(_converse(start_steps=start_steps))


async def _converse(*, start_steps: bool) -> Conversation:
    store = InMemoryPlanStore()
    calls: list[ToolCallPart] = []
    shown: list[tuple[str, list[dict[str, Any]]]] = []

    async def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del messages
        shown.append((info.instructions or "", [_definition(tool) for tool in info.function_tools]))
        if not calls:
            items = [{"content": title} for title in TITLES]
            calls.append(ToolCallPart("write_plan", compact({"items": items}), "c0"))
            return ModelResponse([calls[0]])
        if len(calls) == 1:  # as its instructions say: to see the ids, which writing the plan does not show
            calls.append(ToolCallPart("read_plan", "{}", "c1"))
            return ModelResponse([calls[1]])
        words = ("in_progress", "completed") if start_steps else ("completed",)
        marks = [(item.id, word) for item in await store.get_items() for word in words]
        if len(calls) - 2 == len(marks):
            return ModelResponse([TextPart("Done.")])
        task_id, word = marks[len(calls) - 2]
        arguments = compact({"task_id": task_id, "status": word})
        calls.append(ToolCallPart("update_task_status", arguments, f"c{len(calls)}"))
        return ModelResponse([calls[-1]])

    agent = Agent(FunctionModel(play), capabilities=[Planning[Any](store=store)])
    run = await agent.run("Go.", usage_limits=UsageLimits(request_limit=None))
    prompt, tools = shown[0]
    conversation = Conversation(
        name=f"pydantic-ai-harness, {'in progress and done' if start_steps else 'done only'}",
        package="pydantic-ai-harness",
        prompt=prompt,
        tools=compact(tools),
    )
    results = {
        part.tool_call_id: part.model_response_str()
        for message in run.all_messages()
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }
    for call in calls:
        conversation.add(call.tool_name, json.loads(str(call.args)), results[call.tool_call_id])
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

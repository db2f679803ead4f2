"""An agent of Pydantic AI: run, and iterated over as its plan follows the message history."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from frameworks import OWN, READING, Answer, Request, playing
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from planning import PlanPolicy
from planning.integrations.pydantic_ai import Planning
from planning.tools import Tool


class Run:
    follows = False

    def __init__(
        self, session: Any, tools: Iterable[Tool] = (), policy: PlanPolicy | None = None, others: Any = ()
    ) -> None:
        planning = Planning(
            session, tools=tools, follow_history=self.follows, policy=policy, read_only=READING
        )
        model = FunctionModel(self.play)
        self.agent = Agent(model, capabilities=[planning], tools=others, name="clerk", instructions=OWN)

    def play(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = [
            f"{part.part_kind}: {content[-1] if isinstance(content, list) else content}"
            for message in messages
            for part in message.parts
            for content in (getattr(part, "content", None) or [getattr(part, "args", None)],)
        ]
        kind, _, last = parts.pop().partition(": ")
        is_added = kind == "user-prompt" and last != "Go"
        calls = playing.get().next(
            Request(
                info.instructions or "",
                parts,
                last if is_added else "",
                {
                    each.name: (each.description or "", each.parameters_json_schema)
                    for each in info.function_tools
                },
                ["user" if each.kind == "request" else "assistant" for each in messages],
            )
        )
        return ModelResponse([ToolCallPart(*call, call_id) for call_id, call in calls] or [TextPart("Done.")])

    async def run(self, before: Any = None) -> tuple[list[Answer], Any]:
        result = await self.go(before)
        parts = [part for each in result.new_messages() for part in each.parts]
        answers = [
            Answer(str(part.tool_call_id), getattr(part, "outcome", "") == "success", str(part.content))
            for part in parts
            if isinstance(part, (ToolReturnPart, RetryPromptPart))
        ]
        return answers, result.all_messages()

    async def go(self, before: Any) -> Any:
        return await self.agent.run("Go", message_history=before)


class Followed(Run):
    follows = True

    async def go(self, before: Any) -> Any:
        async with self.agent.iter("Go", message_history=before) as nodes:
            async for _ in nodes:
                pass
        return nodes.result

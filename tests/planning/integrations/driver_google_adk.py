"""An agent of Google ADK: run async, streamed and sync."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from adk_models import ScriptedLlm, said, tail
from frameworks import READING, Answer, Request, playing
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai.types import Content, FunctionCall, Part

from planning import PlanPolicy
from planning.integrations.google_adk import PlanningToolset
from planning.tools import Tool

__all__ = ["Run", "Streamed", "Sync"]

SERVICE = (
    InMemorySessionService()
)  # the database of ADK's sessions: what runs in another process has the same
NAMED = 'You are an agent. Your internal name is "clerk".\n\n'  # which ADK says of each agent
GO = Content(role="user", parts=[Part(text="Go")])


class Run:
    """Runs by ``run_async``."""

    config = RunConfig()

    def __init__(
        self, session: Any, tools: Iterable[Tool] = (), policy: PlanPolicy | None = None, others: Any = ()
    ) -> None:
        planning = PlanningToolset(session, tools=tools, policy=policy, read_only=READING)
        agent = LlmAgent(name="clerk", model=ScriptedLlm(script=self.play), tools=[planning, *others])
        app = App(name="shop", root_agent=agent, plugins=[planning] if others or policy else [])
        self.runner = Runner(app=app, session_service=SERVICE, auto_create_session=True)

    def play(self, request: LlmRequest) -> LlmResponse:
        offered: list[Any] = request.config.tools or []
        texts = [each.model_dump_json(exclude_none=True) for each in request.contents[:-1]]
        turn = playing.get().next(
            Request(
                str(request.config.system_instruction).removeprefix(NAMED),
                texts,
                tail(request),
                {
                    each.name: (each.description, each.parameters_json_schema)
                    for tool in offered
                    for each in tool.function_declarations
                },
                ["user" if each.role == "user" else "assistant" for each in request.contents],
            )
        )
        # A server may send anything: the arguments are not checked.
        parts = [
            Part(function_call=FunctionCall.model_construct(id=call_id, name=name, args=args))
            for call_id, (name, args) in turn
        ]
        return LlmResponse(content=Content(role="model", parts=parts)) if parts else said()

    async def run(self, before: Any = None) -> tuple[list[Answer], Any]:
        """A run to its end; what continues it is the ADK session and the run that was its last one then."""
        of, last = before or ({"user_id": str(uuid4()), "session_id": "1"}, None)
        adk = await SERVICE.get_session(app_name="shop", **of)
        runs = list(dict.fromkeys(each.invocation_id for each in adk.events)) if adk else []
        if last in runs[:-1]:
            after = runs[runs.index(last) + 1]
            await self.runner.rewind_async(**of, rewind_before_invocation_id=after)
        events = await self.go(of)
        said = [each for event in events for each in event.get_function_responses()]
        answers = [
            Answer(each.id, "result" in each.response, str(next(iter(each.response.values()))))
            for each in said
        ]
        return answers, (of, events[-1].invocation_id)

    async def go(self, of: dict[str, Any]) -> list[Any]:
        ran = self.runner.run_async(**of, new_message=GO, run_config=self.config)
        return [event async for event in ran]


class Streamed(Run):
    config = RunConfig.model_validate({"streaming_mode": "sse"})


class Sync(Run):
    async def go(self, of: dict[str, Any]) -> list[Any]:
        return await asyncio.to_thread(lambda: list(self.runner.run(**of, new_message=GO)))

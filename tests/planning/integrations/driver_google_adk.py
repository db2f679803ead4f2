"""An agent of Google ADK, run async, streamed and sync; and a model that plays a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from frameworks import OWN, READING, Answer, Request, playing
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService
from google.genai.types import Content, FunctionCall, Part

from planning import PlanPolicy
from planning.integrations.google_adk import PlanningToolset
from planning.tools import Tool

ADA: dict[str, Any] = {"user_id": "ada", "session_id": "1"}


def turn(*calls: tuple[str, Any], prefix: str = "c") -> LlmResponse:
    made = [
        Part(function_call=FunctionCall(id=f"{prefix}{number}", name=name, args=args))
        for number, (name, args) in enumerate(calls, 1)
    ]
    return LlmResponse(content=Content(role="model", parts=made))


def said(text: str = "Done.") -> LlmResponse:
    return LlmResponse(content=Content(role="model", parts=[Part(text=text)]))


def tail(request: LlmRequest) -> str:
    """What a request adds to its last message, which is kept as one part or as answers to calls."""
    _, *added = request.contents[-1].parts or [Part()]
    return added[-1].text or "" if added else ""


class ScriptedLlm(BaseLlm):
    """Answers with the next turn of its script, or with what a function makes of the request."""

    model: str = "scripted"
    script: Any = ()
    requests: list[LlmRequest] = []  # noqa: RUF012 - pydantic copies it

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.requests.append(llm_request)
        script: Callable[[LlmRequest], LlmResponse] | Sequence[LlmResponse] = self.script
        answer = script(llm_request) if callable(script) else self.script.pop(0)
        if stream:
            for part in (answer.content and answer.content.parts) or ():
                content = Content(role="model", parts=[part])
                yield LlmResponse(content=content, partial=True)
        yield answer


def run_with(
    planning: PlanningToolset,
    *script: Any,
    service: BaseSessionService | None = None,
    tools: Iterable[Any] = (),
    **options: Any,
) -> tuple[Runner, ScriptedLlm]:
    model = ScriptedLlm(script=list(script))
    agent = LlmAgent(name="clerk", model=model, tools=[planning, *tools], **options)
    return Runner(app_name="shop", agent=agent, session_service=service or InMemorySessionService()), model


async def go(runner: Runner, of: dict[str, Any] = ADA, text: str = "Go", **options: Any) -> str:
    """A run to its end; the id of its invocation."""
    message = Content(role="user", parts=[Part(text=text)])
    if await runner.session_service.get_session(app_name="shop", **of) is None:
        await runner.session_service.create_session(app_name="shop", **of)
    async with aclosing(runner.run_async(**of, new_message=message, **options)) as events:
        return [event.invocation_id async for event in events][-1]


async def adk_of(runner: Runner, of: dict[str, Any] = ADA) -> Any:
    return await runner.session_service.get_session(app_name="shop", **of)


async def back(runner: Runner, invocation: str) -> None:
    await runner.rewind_async(**ADA, rewind_before_invocation_id=invocation)


SERVICE = InMemorySessionService()  # for what runs in another process, too
NAMED = 'You are an agent. Your internal name is "clerk".\n\n'  # which ADK says of each agent
GO = Content(role="user", parts=[Part(text="Go")])


class Run:
    """Runs by ``run_async``."""

    config = RunConfig()

    def __init__(
        self, session: Any, tools: Iterable[Tool] = (), policy: PlanPolicy | None = None, others: Any = ()
    ) -> None:
        planning = PlanningToolset(session, tools=tools, policy=policy, read_only=READING)
        model = ScriptedLlm(script=self.play)
        agent = LlmAgent(name="clerk", model=model, instruction=OWN, tools=[planning, *others])
        app = App(name="shop", root_agent=agent, plugins=[planning] if others or policy else [])
        self.runner = Runner(app=app, session_service=SERVICE, auto_create_session=True)

    def play(self, request: LlmRequest) -> LlmResponse:
        offered: list[Any] = request.config.tools or []
        texts = [each.model_dump_json(exclude_none=True) for each in request.contents[:-1]]
        turn = playing.get().next(
            Request(
                str(request.config.system_instruction).replace(NAMED, ""),
                texts,
                tail(request),
                {
                    each.name: (each.description, each.parameters_json_schema)
                    for tool in offered
                    for each in tool.function_declarations
                },
                [{"user": "user", "model": "assistant"}[str(each.role)] for each in request.contents],
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
            Answer(each.id, {"result": True, "error": False, "success": False}[kind], str(text))
            for each in said
            for kind, text in each.response.items()
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

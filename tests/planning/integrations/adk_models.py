"""Agents of Google ADK whose model plays a script, and remembers what it was sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService
from google.genai.types import Content, FunctionCall, Part

from planning.integrations.google_adk import PlanningToolset

__all__ = ["ADA", "ScriptedLlm", "adk_of", "back", "go", "run_with", "said", "tail", "turn"]

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
    planning: PlanningToolset, service: BaseSessionService, *script: Any, **options: Any
) -> tuple[Runner, ScriptedLlm]:
    model = ScriptedLlm(script=list(script))
    agent = LlmAgent(name="clerk", model=model, tools=[planning])
    return Runner(app_name="shop", agent=agent, session_service=service, **options), model


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

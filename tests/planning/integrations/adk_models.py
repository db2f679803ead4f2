"""A model for Google ADK's agents that plays a script, and remembers what it was sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai.types import Content, FunctionCall, Part

__all__ = ["ScriptedLlm", "said", "tail", "turn"]


def turn(*calls: tuple[str, Any], prefix: str = "c") -> LlmResponse:
    """A turn of the model that makes calls."""
    made = [
        Part(function_call=FunctionCall(id=f"{prefix}{number}", name=name, args=args))
        for number, (name, args) in enumerate(calls, 1)
    ]
    return LlmResponse(content=Content(role="model", parts=made))


def said(text: str = "Done.") -> LlmResponse:
    """A turn of the model that ends its run."""
    return LlmResponse(content=Content(role="model", parts=[Part(text=text)]))


def tail(request: LlmRequest) -> str:
    """The text of the last message."""
    return "".join(part.text or "" for part in request.contents[-1].parts or ())


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

"""A chat model for LangChain's agents that plays a script, and remembers what it was sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from frameworks import Call
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

__all__ = ["ScriptedModel", "said", "turn"]


def turn(*calls: Call, prefix: str = "c") -> AIMessage:
    made = [
        {"name": name, "args": args, "id": f"{prefix}{number}", "type": "tool_call"}
        for number, (name, args) in enumerate(calls, 1)
    ]
    return AIMessage("", tool_calls=made)


def said(text: str = "Done.") -> AIMessage:
    return AIMessage(text)


class ScriptedModel(BaseChatModel):
    """Answers with the next turn of its script, or with what a function makes of the conversation."""

    script: Any
    requests: list[list[BaseMessage]] = []  # noqa: RUF012 - pydantic copies it
    tools: list[dict[str, Any]] = []  # noqa: RUF012 - the same

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, Any]:
        """Remember the tools as a provider gets them."""
        self.tools = [convert_to_openai_tool(each) for each in tools]
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        self.requests.append(list(messages))
        script: Callable[[list[BaseMessage]], AIMessage] | list[AIMessage] = self.script
        answer = script(messages) if callable(script) else script.pop(0)
        return ChatResult(generations=[ChatGeneration(message=answer)])

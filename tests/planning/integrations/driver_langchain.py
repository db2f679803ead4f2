"""An agent of LangChain, invoked, awaited and streamed; and a chat model that plays a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import uuid4

from frameworks import OWN, READING, Answer, Call, Request, added_to, playing
from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import tool as langchain_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver

from planning import PlanPolicy
from planning.integrations.langchain import PlanningMiddleware
from planning.tools import Tool


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


ROLES = {"human": "user", "ai": "assistant", "tool": "tool"}
ASKED = {"messages": ["Go"]}
SAVER = InMemorySaver()  # the database of the checkpoints: what runs in another process has the same


class Awaited:
    def __init__(
        self, session: Any, tools: Iterable[Tool] = (), policy: PlanPolicy | None = None, others: Any = ()
    ) -> None:
        self.model = ScriptedModel(script=self.play)
        self.agent: Any = create_agent(
            self.model,
            list(map(langchain_tool, others)),
            middleware=[PlanningMiddleware(session, tools=tools, policy=policy, read_only=READING)],
            system_prompt=OWN,
            checkpointer=SAVER,
            name="clerk",
        )

    def play(self, messages: list[BaseMessage]) -> AIMessage:
        system, *others = messages
        offered = [each["function"] for each in self.model.tools]
        turn = playing.get().next(
            Request(
                str(system.content),
                [f"{each.type}: {each.content} {getattr(each, 'tool_calls', '')}" for each in others[:-1]],
                added_to(str(others[-1].content)),
                {each["name"]: (each["description"], each["parameters"]) for each in offered},
                [ROLES[each.type] for each in others],
            )
        )
        calls, broken = [], []
        for call_id, (name, args) in turn:
            if isinstance(args, str):
                kind = "invalid_tool_call"
                broken.append({"name": name, "args": args, "id": call_id, "error": None, "type": kind})
            else:
                calls.append({"name": name, "args": args, "id": call_id, "type": "tool_call"})
        named = f"run-{len(messages)}"  # as a server counts that names the messages of a stream
        return AIMessage("" if turn else "Done.", id=named, tool_calls=calls, invalid_tool_calls=broken)

    async def run(self, before: Any = None) -> tuple[list[Answer], Any]:
        config = before or {"configurable": {"thread_id": str(uuid4())}}
        seen = len(self.agent.get_state(config).values.get("messages", ()))
        await self.go(config)
        thread = {"configurable": {"thread_id": config["configurable"]["thread_id"]}}
        state = self.agent.get_state(thread)
        said = [each for each in state.values["messages"][seen:] if isinstance(each, ToolMessage)]
        answers = [Answer(each.tool_call_id, each.status == "success", each.text) for each in said]
        return answers, state.config

    async def go(self, config: Any) -> None:
        await self.agent.ainvoke(ASKED, config)


class Invoked(Awaited):
    async def go(self, config: Any) -> None:
        await asyncio.to_thread(self.agent.invoke, ASKED, config)


class Streamed(Awaited):
    async def go(self, config: Any) -> None:
        async for _ in self.agent.astream(ASKED, config, stream_mode="updates"):
            pass

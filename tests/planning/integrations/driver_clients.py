"""The loops of OPENAI.md and ANTHROPIC.md, with a model that is a script in place of the client."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from frameworks import Answer, Call, Request, added_to, is_success, playing

from planning import PlanningToolsSection, PlanPolicy, Toolbox
from planning.integrations import anthropic, openai
from planning.prompt import Prompt
from planning.tools import Tool
from planning.tools.errors import ContextInvalid
from session import StoreError


def sent(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def chat(turn_id: Any, *calls: tuple[Any, Call]) -> dict[str, Any]:
    """A completion that makes calls."""
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": sent(arguments)}}
        for call_id, (name, arguments) in calls
    ]
    message = {"role": "assistant", "content": None, "tool_calls": made}
    return {"id": turn_id, "choices": [{"finish_reason": "tool_calls", "message": message}]}


def items(turn_id: Any, *calls: tuple[Any, Call]) -> dict[str, Any]:
    """A response of the Responses API that makes them."""
    made = [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": sent(arguments)}
        for call_id, (name, arguments) in calls
    ]
    return {"id": turn_id, "output": made}


def blocks(turn_id: Any, *calls: tuple[Any, Call]) -> dict[str, Any]:
    """A message of Anthropic's API that makes them."""
    made = [
        {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        for call_id, (name, arguments) in calls
    ]
    return {"id": turn_id, "role": "assistant", "content": made, "stop_reason": "tool_use"}


class Completions:
    """A conversation by Chat Completions; the other APIs differ in these attributes."""

    module: Any = openai
    form: Any = staticmethod(chat)
    tools: Any = staticmethod(openai.tools)
    schema = "parameters"
    answer = ("tool_call_id", "content")

    def __init__(self, session: Any, tools: Iterable[Tool] = (), policy: PlanPolicy | None = None) -> None:
        self.section = PlanningToolsSection(session=session, policy=policy)
        self.box = Toolbox([*self.section.tools(), *tools], session=session)
        self.system = Prompt(ns="tests", key="clerk", sections=[self.section]).render().text

    async def run(self, before: Any = None) -> tuple[list[Answer], Any]:
        script, answers = playing.get(), list[Answer]()
        messages: list[Any] = [*(before or ()), {"role": "user", "content": "Go"}]
        while calls := script.next(self.request(messages)):
            response = self.form(f"response-{script.number}", *calls)
            results = await self.carry_out(response)
            messages += [*self.module.turn(response), *results]
            answers += map(self.answered, self.results_in(results))
        return answers, [*messages, {"role": "assistant", "content": "Done."}]

    def request(self, messages: list[Any]) -> Request:
        offered = [each.get("function", each) for each in self.tools(self.box)]
        tools = {each["name"]: (each["description"], each[self.schema]) for each in offered}
        try:
            sent = self.module.with_reminder(messages, self.section)
        except (ContextInvalid, StoreError):  # the host has no session for this call
            sent = messages
        kept = [json.dumps(each) for each in sent[:-1]]
        return Request(
            self.system, kept, added_to(self.text_of(sent[-1])), tools, list(map(self.role_of, sent))
        )

    def role_of(self, message: Any) -> str:
        return str(message["role"])

    def text_of(self, message: Any) -> str:
        return str(message["content"])

    async def carry_out(self, response: Any) -> list[Any]:
        done: list[Any] = self.module.run_calls(response, self.box, actor="clerk")
        return done

    def results_in(self, results: list[Any]) -> list[Any]:
        return results

    def answered(self, result: Any) -> Answer:
        call_id, text = (result[name] for name in self.answer)
        return Answer(call_id, is_success(text), text)


class Responses(Completions):
    """By the Responses API, in async code."""

    form = staticmethod(items)
    tools = staticmethod(partial(openai.tools, responses=True))
    answer = ("call_id", "output")

    async def carry_out(self, response: Any) -> list[Any]:
        return await openai.arun_calls(response, self.box, actor="clerk")

    def role_of(self, message: Any) -> str:
        return str(message.get("role") or {"function_call": "assistant"}.get(message["type"], "tool"))

    def text_of(self, message: Any) -> str:
        return str(message.get("content") or message["output"])


class Messages(Completions):
    """By Anthropic's Messages API."""

    module = anthropic
    form = staticmethod(blocks)
    tools = staticmethod(anthropic.tools)
    schema = "input_schema"

    def results_in(self, results: list[Any]) -> list[Any]:
        return [each for message in results for each in message["content"]]

    def text_of(self, message: Any) -> str:
        content = message["content"]
        if isinstance(content, str):
            return content
        return "\n\n".join(["(results)", *(each["text"] for each in content if each["type"] == "text")])

    def answered(self, result: Any) -> Answer:
        return Answer(result["tool_use_id"], "is_error" not in result, result["content"])

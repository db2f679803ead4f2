"""A turn of the providers' own clients, and a call of MCP, by hand and with our integrations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from anthropic import Anthropic
from mcp import Client
from mcp.server import MCPServer
from openai import OpenAI

from benchmarks.harness import amicroseconds, microseconds
from planning import PlanningToolsSection, Toolbox
from planning.integrations import anthropic, openai
from planning.integrations.mcp import build_server
from planning.testing import ScriptedModel
from planning.tools import Tool
from session import Session

__all__ = ["anthropic_calls", "mcp_calls", "openai_calls"]

NAMES = ("noop", *(f"other_{number}" for number in range(6)))
"""As many tools as ours and the planning tools are."""


def _noop() -> str:
    return ""


def _toolbox() -> Toolbox:
    session = Session()
    tools = PlanningToolsSection(session=session).tools()
    return Toolbox([*tools, Tool("noop", "Do nothing.", _noop, blocking=False)], session=session)


def _loop(calls: int, url: str, client: Any, ask: Callable[[Any, list[Any]], list[Any]]) -> float:
    """Microseconds of a turn, which asks for the next call, and adds it and its answer to the messages."""
    script: list[Any] = [[("noop", {})]] * (calls + 1)
    with ScriptedModel(*script) as model, client(base_url=getattr(model, url), api_key="bench") as connected:
        messages: list[Any] = [{"role": "user", "content": "Go"}]
        messages += ask(connected, messages)  # connects

        def turn() -> None:
            messages.extend(ask(connected, messages))

        took = microseconds(turn, calls)
        if model.turns_left or len(messages) != 2 * calls + 3:
            raise RuntimeError("a turn was not answered")
    return took


def openai_calls(calls: int, *, is_ours: bool) -> float:
    """A turn of Chat Completions; the tools that are offered are the same."""
    box = _toolbox()
    functions, tools = {"noop": _noop}, openai.tools(box)

    def ask(client: Any, messages: list[Any]) -> list[Any]:
        reply = client.chat.completions.create(model="scripted", messages=messages, tools=tools)
        if is_ours:
            return [*openai.turn(reply), *openai.run_calls(reply, box)]
        message, answers = reply.choices[0].message, []
        for call in message.tool_calls:
            text = functions[call.function.name](**json.loads(call.function.arguments))
            answers.append({"role": "tool", "tool_call_id": call.id, "content": text})
        return [message, *answers]

    return _loop(calls, "openai_url", OpenAI, ask)


def anthropic_calls(calls: int, *, is_ours: bool) -> float:
    """The same of Messages."""
    box = _toolbox()
    functions, tools = {"noop": _noop}, anthropic.tools(box)

    def ask(client: Any, messages: list[Any]) -> list[Any]:
        reply = client.messages.create(model="scripted", messages=messages, tools=tools, max_tokens=99)
        if is_ours:
            return [*anthropic.turn(reply), *anthropic.run_calls(reply, box)]
        answers = [
            {"type": "tool_result", "tool_use_id": block.id, "content": functions[block.name](**block.input)}
            for block in reply.content
            if block.type == "tool_use"
        ]
        return [{"role": "assistant", "content": reply.content}, {"role": "user", "content": answers}]

    return _loop(calls, "anthropic_url", Anthropic, ask)


def mcp_calls(calls: int, *, is_ours: bool) -> float:
    """A call by the official client, connected in memory, of the official server and of ours."""
    if is_ours:
        server: Any = build_server([Tool("noop", "Do nothing.", _noop, blocking=False)], session=Session())
    else:
        server = MCPServer("own", log_level="WARNING")
        for name in NAMES:
            server.tool(name=name)(_noop)

    async def timed() -> float:
        async with Client(server) as client:
            for _ in range(3):
                if (await client.call_tool("noop", {})).is_error:
                    raise RuntimeError("a call by MCP failed")
            return await amicroseconds(lambda: client.call_tool("noop", {}), calls)

    return asyncio.run(timed())

"""A turn of the providers' own clients, and a call of MCP, by hand and with our integrations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Literal

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

__all__ = ["ARGUMENTS", "FUNCTIONS", "anthropic_calls", "mcp_calls", "openai_calls", "our_tool"]

Status = Literal["pending", "in_progress", "blocked", "done"]
ARGUMENTS = {"query": "login", "limit": 5}


def search(query: str, limit: int = 10) -> str:
    """Search the issues."""
    return f"{limit} issues about {query}"


def set_up(objective: str, steps: list[str]) -> str:
    """Create or replace the list."""
    return f"{objective}: {steps}"


def add(steps: list[str]) -> str:
    """Append steps to the list."""
    return f"{steps}"


def update(step_id: str, title: str | None = None, details: str | None = None) -> str:
    """Change a step's title or details."""
    return f"{step_id}: {title}, {details}"


def mark(step_id: str, status: Status, note: str | None = None) -> str:
    """Set a step's status."""
    return f"{step_id}: {status}, {note}"


def clear() -> str:
    """Delete the list."""
    return ""


def read() -> str:
    """Read the list."""
    return ""


FUNCTIONS: tuple[Callable[..., str], ...] = (search, set_up, add, update, mark, clear, read)
"""As many tools as ours and the planning tools are, with about the same parameters; the first is called."""


def as_async(function: Callable[..., str]) -> Callable[..., Awaitable[str]]:
    """The same as a coroutine function, for which no framework starts a thread."""

    @wraps(function)
    async def run(*args: Any, **arguments: Any) -> str:
        return function(*args, **arguments)

    return run


def our_tool() -> Tool:
    """The tool that is called, as one of a toolbox."""
    return Tool("search", "Search the issues.", search, blocking=False)


def _toolbox() -> Toolbox:
    session = Session()
    return Toolbox([*PlanningToolsSection(session=session).tools(), our_tool()], session=session)


def _loop(calls: int, url: str, client: Any, ask: Callable[[Any, list[Any]], list[Any]]) -> float:
    """Microseconds of a turn, which asks for the next call, and adds it and its answer to the messages."""
    script: list[Any] = [[("search", ARGUMENTS)]] * (calls + 1)
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
    functions, tools = {"search": search}, openai.tools(box)

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
    functions, tools = {"search": search}, anthropic.tools(box)

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
        server: Any = build_server([our_tool()], session=Session())
    else:
        server = MCPServer("own", log_level="WARNING")
        for function in map(as_async, FUNCTIONS):
            server.tool()(function)

    async def timed() -> float:
        async with Client(server) as client:
            for _ in range(3):
                if (await client.call_tool("search", ARGUMENTS)).is_error:
                    raise RuntimeError("a call by MCP failed")
            return await amicroseconds(lambda: client.call_tool("search", ARGUMENTS), calls)

    return asyncio.run(timed())

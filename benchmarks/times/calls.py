"""One tool call beside 0.1.0 and the peers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from langchain_core.tools import StructuredTool
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.toolsets import FunctionToolset

from benchmarks.harness import (
    OURS,
    Cost,
    Section,
    at_least,
    at_most,
    awaited,
    bullets,
    fastest,
    microseconds,
    no_slower,
    table,
)
from benchmarks.peers import versions
from benchmarks.peers.both import double
from benchmarks.peers.versions import NEW, OLD
from benchmarks.peers.with_pydantic_ai import held_context
from planning.tools import Tool, Toolbox
from session import Session

__all__ = ["measure"]

TIMEOUT = 30.0
CALLS = 500
BARE, TASK = "bare coroutine", "asyncio task"
OURS_ALONE = f"{OURS}, no session and no timeout"
LANGCHAIN = "langchain"
PYDANTIC_AI = "pydantic-ai, through its tool manager"
PYDANTIC_AI_TOOLSET = "pydantic-ai, toolset alone"
DESCRIPTIONS = {
    BARE: "the coroutine function awaited, with nothing around it",
    TASK: "the same as a task",
    OURS: "Toolbox.acall with the model's text: decoding, a timeout, ToolInvoked on bus and ledger",
    OURS_ALONE: "the same without a session and without a timeout: decoding and the result",
    LANGCHAIN: "StructuredTool.ainvoke with a dict; no tracer, no timeout",
    PYDANTIC_AI: "ToolManager.handle_call with a tool call part, as its agent graph calls it; a timeout",
    PYDANTIC_AI_TOOLSET: "its own validator on the text, then FunctionToolset.call_tool; a timeout, no event",
}
METHOD = """\
Microseconds for one call of an async tool that does nothing, from the call to its result, in one running
loop. Every round measures each entry point once and takes the mean of its calls; a figure is the lowest of
the rounds."""
OWN, PLAIN = "own tool", "json.loads of the text, and the function called"
BOTH = "Microseconds for a call of a function of one parameter as a tool, with JSON text, in both versions:"
OVERHEAD = 25.0
TIMES_FASTER = {LANGCHAIN: 5.0, PYDANTIC_AI: 1.0, PYDANTIC_AI_TOOLSET: 1.0}

Call = Callable[[], Awaitable[object]]


def measure(rounds: int) -> Section:
    """Time every door in turn, in one running loop, and then the function."""
    with asyncio.Runner() as runner:
        doors: dict[str, Call] = {
            BARE: noop,
            TASK: lambda: asyncio.create_task(noop()),
            OURS: _ours(session=Session(), timeout=TIMEOUT),
            OURS_ALONE: _ours(timeout=None),
            LANGCHAIN: _langchain(),
            **runner.run(_pydantic_ai()),
        }
        one = fastest({name: partial(awaited, runner, call, CALLS) for name, call in doors.items()}, rounds)
    with versions.doors({OWN: CALLS}) as both:
        plain = partial(microseconds, lambda: double(**json.loads('{"number": 1}')), CALLS)
        own = fastest({**both, (PLAIN, OWN): plain}, rounds)
    ours = one[OURS]
    return Section(
        "One tool call",
        ("session-planning", "langchain-core", "pydantic-ai-slim", "pydantic"),
        [
            METHOD,
            table(
                ["call", "microseconds", "times ours"],
                [[name, time, time / ours] for name, time in one.items()],
            ),
            bullets(DESCRIPTIONS),
            BOTH,
            versions.compared(own, [OWN]),
        ],
        [
            *no_slower("a call of a tool of one's own", own[NEW, OWN], own.get((OLD, OWN))),
            at_most("overhead of a tool call", ours - one[BARE], OVERHEAD, "microseconds"),
            *(
                at_least(f"a tool call, faster than {peer}", one[peer] / ours, least)
                for peer, least in TIMES_FASTER.items()
            ),
        ],
        [
            Cost("a call of a tool of one's own", own[NEW, OWN], PLAIN, own[PLAIN, OWN]),
            Cost("a call awaited, with a session and a timeout", ours, TASK, one[TASK]),
        ],
    )


async def noop() -> None:
    """Do nothing."""


def _ours(**options: Any) -> Call:
    acall = Toolbox([Tool("noop", "Do nothing.", noop)], **options).acall

    async def call() -> None:
        if not (await acall("noop", "{}")).success:
            raise RuntimeError("the call was refused")

    return call


def _langchain() -> Call:
    structured = StructuredTool.from_function(coroutine=noop, name="noop", description="Do nothing.")
    return lambda: structured.ainvoke({})


async def _pydantic_ai() -> dict[str, Call]:
    toolset = FunctionToolset[Any]([noop], timeout=TIMEOUT)
    context = await held_context(toolsets=[toolset])
    manager = context.tool_manager
    if manager is None:
        raise RuntimeError("the run has no tool manager")
    part = ToolCallPart("noop", "{}")
    held = (await toolset.get_tools(context))["noop"]
    validate = held.args_validator.validate_json
    return {
        PYDANTIC_AI: lambda: manager.handle_call(part),
        PYDANTIC_AI_TOOLSET: lambda: toolset.call_tool("noop", validate("{}"), context, held),
    }

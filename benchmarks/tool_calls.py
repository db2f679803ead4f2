"""What a tool call costs beside the peers: one call, many at once, and the check of its parameters."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Annotated, Any

from langchain_core.tools import StructuredTool
from pydantic import BaseModel, Field, TypeAdapter, create_model
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from planning.tools import Tool, Toolbox, ToolRegistry, ToolSpec, ToolValidationError, tool
from planning.tools.decode import decode
from session import InProcessEventBus, Session

__all__ = ["ACCEPT", "ADAPTER", "DECLARE", "REFUSE", "CallFigures", "measure_calls"]

TIMEOUT = 30.0
AT_ONCE = 1_000

BARE = "bare coroutine"
OURS = "session-planning"
OURS_ALONE = "session-planning, no session and no timeout"
LANGCHAIN = "langchain"
PYDANTIC_AI = "pydantic-ai, through its tool manager"
PYDANTIC_AI_TOOLSET = "pydantic-ai, toolset alone"

DECLARE = "declare a function tool: docstring, parameters, schema"
ADAPTER = "pydantic's TypeAdapter(function).json_schema() of the same"
ACCEPT = "accept the JSON text of a call"
REFUSE = "refuse a call with two faults, with its message"

DESCRIPTIONS = {
    BARE: "the coroutine function awaited, with nothing around it",
    OURS: "Toolbox.acall with the model's text: decoding, a timeout, ToolInvoked on bus and ledger",
    OURS_ALONE: "the same without a session and without a timeout: decoding and the result",
    LANGCHAIN: "StructuredTool.ainvoke with a dict; no tracer, no timeout",
    PYDANTIC_AI: "ToolManager.handle_call with a tool call part, as its agent graph calls it; a timeout",
    PYDANTIC_AI_TOOLSET: "its own validator on the text, then FunctionToolset.call_tool; a timeout, no event",
}

Call = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class CallFigures:
    """Microseconds of the tool calls, medians of rounds.

    Attributes:
        one: By door, a call of a tool that does nothing, one after the other.
        at_once: A call among a thousand that run at once, at our door.
        checks: By what is checked, ten parameters: our ``validate_call``, and the pydantic model alone.
        declared: What is done with a declaration: a function is made a tool and its schema read, beside
            ``TypeAdapter(function).json_schema()``; and a call of it, as JSON text, is accepted and refused.
    """

    one: dict[str, float]
    at_once: float
    checks: dict[str, float]
    declared: dict[str, float]


async def noop() -> None:
    """Do nothing."""


def measure_calls(*, rounds: int, calls: int) -> CallFigures:
    """Time every door in turn, several rounds, in one running loop.

    Args:
        rounds: How many times each door is visited.
        calls: How many calls one visit times.
    """
    one, at_once = asyncio.run(_measure(rounds, calls))
    return CallFigures(one, at_once, _measure_checks(rounds, calls), _measure_declared(rounds, calls))


async def _measure(rounds: int, calls: int) -> tuple[dict[str, float], float]:
    doors = {
        BARE: noop,
        OURS: _ours(Session(bus=InProcessEventBus()), TIMEOUT),
        OURS_ALONE: _ours(None, None),
        LANGCHAIN: _langchain(),
        **await _pydantic_ai(),
    }
    for name, call in doors.items():
        for _ in range(20):
            await _checked(name, call)
    figures: dict[str, list[float]] = {name: [] for name in doors}
    together: list[float] = []
    for _ in range(rounds):
        for name, call in doors.items():
            figures[name].append(await _timed(call, calls))
        together.append(await _timed_at_once(_ours(Session(bus=InProcessEventBus()), TIMEOUT)))
    return {name: median(times) for name, times in figures.items()}, median(together)


async def _checked(name: str, call: Call) -> None:
    outcome = await call()
    if name.startswith(OURS) and not getattr(outcome, "success", False):
        raise RuntimeError(f"{name} did not carry the call out: {outcome}")


async def _timed(call: Call, calls: int) -> float:
    gc.collect()
    gc.disable()
    try:
        started = perf_counter_ns()
        for _ in range(calls):
            await call()
        return (perf_counter_ns() - started) / calls / 1_000
    finally:
        gc.enable()


async def _timed_at_once(call: Call) -> float:
    await asyncio.gather(*(call() for _ in range(AT_ONCE)))
    gc.collect()
    gc.disable()
    try:
        started = perf_counter_ns()
        await asyncio.gather(*(call() for _ in range(AT_ONCE)))
        return (perf_counter_ns() - started) / AT_ONCE / 1_000
    finally:
        gc.enable()


def _ours(session: Session | None, timeout: float | None) -> Call:
    acall = Toolbox([Tool("noop", "Do nothing.", noop)], session=session, timeout=timeout).acall
    return lambda: acall("noop", "{}")


def _langchain() -> Call:
    structured = StructuredTool.from_function(coroutine=noop, name="noop", description="Do nothing.")
    return lambda: structured.ainvoke({})


async def _pydantic_ai() -> dict[str, Call]:
    contexts: list[RunContext[Any]] = []

    def model(messages: object, info: object) -> ModelResponse:
        del messages, info
        return ModelResponse(parts=[TextPart("done") if contexts else ToolCallPart("hold_context", {})])

    toolset = FunctionToolset[Any]([noop], timeout=TIMEOUT)
    agent = Agent(FunctionModel(model), toolsets=[toolset])

    @agent.tool
    async def hold_context(ctx: RunContext[Any]) -> str:
        contexts.append(ctx)
        return "held"

    await agent.run("Hold the context.")
    context = contexts[0]
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


def _measure_checks(rounds: int, calls: int) -> dict[str, float]:
    types = {f"field_{n}": int if n % 2 else str for n in range(10)}
    params = {name: 7 if kind is int else "seven" for name, kind in types.items()}
    record = dataclasses.make_dataclass("Record", list(types.items()))
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in types.items()}
    model: type[BaseModel] = create_model("Model", **fields)
    registry = ToolRegistry([ToolSpec("check", {"dataclass": record, "pydantic": model}, "checked")])
    validate = registry.validate_call
    return _medians(
        {
            "validate_call, dataclass": lambda: validate("check", "dataclass", params),
            "validate_call, pydantic model": lambda: validate("check", "pydantic", params),
            "the pydantic model alone": lambda: model(**params),
        },
        rounds,
        calls,
    )


def order(name: str, count: Annotated[int, Field(ge=1)] = 1, tags: list[str] | None = None) -> str:
    """Order a thing.

    Args:
        name: What to call it.
        count: How many.
        tags: Words to find it by.
    """
    return f"{name} {count} {tags}"


def _measure_declared(rounds: int, calls: int) -> dict[str, float]:
    box = Toolbox([tool(order)])
    right = '{"name": "a chair", "count": 3, "tags": ["wood", "red"]}'
    wrong = '{"nmae": "a chair", "name": "a chair", "count": "three"}'
    if not box.call("order", right).success or "2 problems" not in box.call("order", wrong).message:
        raise RuntimeError("a call of the declared tool did not do what is measured")
    read = tool(order).model

    def refused() -> object:
        try:
            return decode(read, wrong)
        except ToolValidationError as error:
            return str(error)

    return _medians(
        {
            DECLARE: lambda: tool(order).parameters_schema(),
            ADAPTER: lambda: TypeAdapter(order).json_schema(),
            ACCEPT: lambda: decode(read, right),
            REFUSE: refused,
        },
        rounds,
        max(calls // 10, 10),
    )


def _medians(measured: dict[str, Callable[[], object]], rounds: int, calls: int) -> dict[str, float]:
    figures: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(rounds):
        for name, call in measured.items():
            call()
            started = perf_counter_ns()
            for _ in range(calls):
                call()
            figures[name].append((perf_counter_ns() - started) / calls / 1_000)
    return {name: median(times) for name, times in figures.items()}

"""What our integrations add to a framework's own work: a call, and a whole agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from benchmarks.harness import Section, at_most, medians, microseconds, table
from benchmarks.peers.contest import OBJECTIVE, TITLES
from planning.integrations.langchain import PlanningMiddleware
from planning.integrations.pydantic_ai import Planning
from planning.tools import Tool
from session import Session

__all__ = ["measure"]

CALLS = 40
NAMES = ("noop", *(f"other_{number}" for number in range(6)))
"""As many further tools as the planning tools are: both agents offer seven."""
LANGCHAIN, PYDANTIC_AI = "langchain", "pydantic-ai"
TODO, PLANNING = "TodoListMiddleware", "PlanningMiddleware"
METHOD = """\
Microseconds for a turn of a framework's own agent that calls an empty tool, with a model that is a script:
with seven tools of its own, and with ours, which brings the six planning tools, the section, the reminder
and the position in the framework's state. Every round visits all once; a figure is the median of the
rounds."""
AGENT = f"""\
A LangGraph agent that takes a plan of {len(TITLES)} steps to its end, each step in progress and then done,
and the characters that went to the model and came back in all requests:"""
TIMES_OWN = 1.1


def measure(rounds: int) -> Section:
    """Time each in turn."""
    runs = {
        (LANGCHAIN, "own"): partial(_langchain_calls, is_ours=False),
        (LANGCHAIN, "ours"): partial(_langchain_calls, is_ours=True),
        (PYDANTIC_AI, "own"): partial(_pydantic_ai_calls, is_ours=False),
        (PYDANTIC_AI, "ours"): partial(_pydantic_ai_calls, is_ours=True),
        (TODO, "agent"): lambda: _plan_agent(TODO)[0],
        (PLANNING, "agent"): lambda: _plan_agent(PLANNING)[0],
    }
    time = medians(runs, rounds)
    characters = {name: _plan_agent(name, counts=True)[1] for name in (TODO, PLANNING)}
    checks = [
        at_most(f"a call in {name} beside its own", time[name, "ours"] / time[name, "own"], TIMES_OWN)
        for name in (LANGCHAIN, PYDANTIC_AI)
    ]
    return Section(
        "In a framework's agent",
        ("session-planning", "langchain", "langchain-core", "langgraph", "pydantic-ai-slim"),
        [
            METHOD,
            table(
                ["framework", "its own", "with ours"],
                [[name, time[name, "own"], time[name, "ours"]] for name in (LANGCHAIN, PYDANTIC_AI)],
            ),
            AGENT,
            table(
                ["middleware", "microseconds", "characters"],
                [[name, time[name, "agent"], characters[name]] for name in characters],
            ),
        ],
        [
            *checks,
            at_most(
                "characters of the agent beside TodoListMiddleware",
                characters[PLANNING] / characters[TODO],
                1,
            ),
            at_most("time of the same", time[PLANNING, "agent"] / time[TODO, "agent"], 1),
        ],
    )


class _Model(BaseChatModel):
    """Plays turns, and counts the characters that it is sent and sends."""

    turns: list[AIMessage]
    characters: int = 0
    tools: int = 0
    counts: bool = False

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        if self.counts:
            self.tools = len(json.dumps([convert_to_openai_tool(each) for each in tools]))
        return self

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        turn = self.turns.pop(0)
        if self.counts:
            calls = [each.tool_calls for each in [*messages, turn] if isinstance(each, AIMessage)]
            self.characters += self.tools + sum(len(each.text) for each in [*messages, turn])
            self.characters += sum(len(json.dumps(each)) for each in calls if each)
        return ChatResult(generations=[ChatGeneration(message=turn)])


def _turn(name: str, arguments: dict[str, Any], number: int) -> AIMessage:
    call = {"name": name, "args": arguments, "id": f"c{number}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def _noop() -> str:
    return ""


def _invoked(model: _Model, **options: Any) -> float:
    """Microseconds of a run of a LangGraph agent that keeps checkpoints in memory."""
    agent: Any = create_agent(model, checkpointer=InMemorySaver(), **options)
    given, config = {"messages": [HumanMessage("Go")]}, {"configurable": {"thread_id": "bench"}}
    return microseconds(lambda: agent.invoke(given, config))


def _langchain_calls(*, is_ours: bool) -> float:
    model = _Model(turns=[*(_turn("noop", {}, number) for number in range(CALLS)), AIMessage("Done.")])
    if is_ours:
        tools = [Tool("noop", "Do nothing.", _noop, blocking=False)]
        return _invoked(model, middleware=[PlanningMiddleware(Session(), tools=tools)]) / CALLS
    own = [StructuredTool.from_function(_noop, name=name, description="Do nothing.") for name in NAMES]
    return _invoked(model, tools=own) / CALLS


def _pydantic_ai_calls(*, is_ours: bool) -> float:
    left = list(range(CALLS))  # pydantic-ai asks a model 50 times a run at most

    def play(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return ModelResponse([ToolCallPart("noop", "{}", f"c{left.pop()}") if left else TextPart("Done.")])

    if is_ours:
        tools = [Tool("noop", "Do nothing.", _noop, blocking=False)]
        agent = Agent(FunctionModel(play), capabilities=[Planning(Session(), tools=tools)])
    else:
        agent = Agent(FunctionModel(play))
        for name in NAMES:
            agent.tool_plain(_noop, name=name)

    return microseconds(lambda: asyncio.run(agent.run("Go"))) / CALLS  # type: ignore[arg-type] - a coroutine


def _plan_agent(name: str, *, counts: bool = False) -> tuple[float, int]:
    """An agent that marks each step of its plan in progress and done: microseconds, and characters."""
    turns = _planning_turns() if name == PLANNING else _todo_turns()
    middleware: Any = PlanningMiddleware(Session()) if name == PLANNING else TodoListMiddleware()
    model = _Model(turns=[*turns, AIMessage("Done.")], counts=counts)
    return _invoked(model, middleware=[middleware]), model.characters


def _planning_turns() -> list[AIMessage]:
    setup = {"objective": OBJECTIVE, "initial_steps": [{"title": title} for title in TITLES]}
    calls: list[tuple[str, dict[str, Any]]] = [("planning_setup_plan", setup)]
    for number in range(1, len(TITLES) + 1):
        for status in ("in_progress", "done"):
            calls.append(("planning_mark_step", {"step_id": f"S{number:03}", "status": status}))
    return [_turn(name, arguments, number) for number, (name, arguments) in enumerate(calls)]


def _todo_turns() -> list[AIMessage]:
    turns = []
    for number in range(2 * len(TITLES) + 1):
        words = ["completed"] * (number // 2) + ["in_progress"] * (number % 2) + ["pending"] * len(TITLES)
        todos = [{"content": title, "status": word} for title, word in zip(TITLES, words, strict=False)]
        turns.append(_turn("write_todos", {"todos": todos}, number))
    return turns

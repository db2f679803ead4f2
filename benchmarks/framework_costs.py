"""What our integrations add to a framework's own work: calls, a whole agent, and restoring a plan."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
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

from benchmarks.check import Check
from planning import PlanningToolsSection, Toolbox, register_plan
from planning.integrations._rewind import plan_from, position_of, settle
from planning.integrations.langchain import PlanningMiddleware
from planning.integrations.pydantic_ai import Planning
from planning.tools import Tool
from session import Session

__all__ = ["ADDED", "FrameworkFigures", "framework_checks", "measure_frameworks"]

STEPS = 20
RESTORED = 50
ADDED_MICROSECONDS = 100.0
RESTORED_MICROSECONDS = 100.0
SESSION_MICROSECONDS = 300.0
OTHERS = 6
"""As many further tools as the planning tools are: both agents offer seven."""
ADDED = ("langchain", "pydantic-ai")
CONFIG: Any = {"configurable": {"thread_id": "bench"}}


@dataclass(frozen=True, slots=True)
class FrameworkFigures:
    """Microseconds, medians of rounds, and characters.

    Attributes:
        own: By framework, its agent's run of calls of a tool that does nothing, for each call.
        ours: The same with the tool in our toolbox, and the section, the reminder and the position.
        agent: By middleware, an agent of 20 steps taken to its end.
        characters: By middleware, what went to the model and came back in that run.
        restored: A plan of 50 steps from the state's position.
        restored_session: The same with its session.
    """

    own: dict[str, float]
    ours: dict[str, float]
    agent: dict[str, float]
    characters: dict[str, int]
    restored: float
    restored_session: float


def measure_frameworks(*, rounds: int, calls: int) -> FrameworkFigures:
    """Time each in turn, several rounds.

    Args:
        rounds: How many times each is timed.
        calls: How many calls one run of an agent makes.
    """
    runs = {
        ("langchain", "own"): lambda: _langchain_calls(calls, is_ours=False),
        ("langchain", "ours"): lambda: _langchain_calls(calls, is_ours=True),
        ("pydantic-ai", "own"): lambda: _pydantic_ai_calls(calls, is_ours=False),
        ("pydantic-ai", "ours"): lambda: _pydantic_ai_calls(calls, is_ours=True),
        ("todo", "agent"): lambda: _plan_agent(is_ours=False)[0],
        ("planning", "agent"): lambda: _plan_agent(is_ours=True)[0],
    }
    figures: dict[tuple[str, str], list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            gc.collect()
            time = run()
            if number:  # the first round loads what is loaded lazily
                figures[name].append(time)
    medians = {name: median(times) for name, times in figures.items()}
    restored, restored_session = _restoring(rounds)
    return FrameworkFigures(
        {name: medians[name, "own"] for name in ADDED},
        {name: medians[name, "ours"] for name in ADDED},
        {name: medians[name, "agent"] for name in ("todo", "planning")},
        {
            "todo": _plan_agent(is_ours=False, counts=True)[1],
            "planning": _plan_agent(is_ours=True, counts=True)[1],
        },
        restored,
        restored_session,
    )


def framework_checks(figures: FrameworkFigures) -> Iterator[Check]:
    """The targets of the integrations."""
    for name in ADDED:
        own, added = figures.own[name], figures.ours[name] - figures.own[name]
        yield Check(
            f"a call in {name}: at most a tenth, or {ADDED_MICROSECONDS:g} microseconds, more with ours",
            f"{added:.0f} microseconds, {added / own:.1%}",
            added <= max(ADDED_MICROSECONDS, own / 10),
        )
    share = figures.characters["planning"] / figures.characters["todo"]
    yield Check(
        "an agent of 20 steps sends fewer characters through the model than with the todo middleware",
        f"{share:.2f} times",
        share < 1,
    )
    times = figures.agent["planning"] / figures.agent["todo"]
    yield Check(
        "an agent of 20 steps takes no longer than with the todo middleware", f"{times:.2f} times", times <= 1
    )
    for what, figure, most in (
        ("a plan of 50 steps restored from the state", figures.restored, RESTORED_MICROSECONDS),
        ("the same with its session", figures.restored_session, SESSION_MICROSECONDS),
    ):
        yield Check(f"{what} under {most:g} microseconds", f"{figure:.0f} microseconds", figure < most)


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
    return AIMessage(
        "", tool_calls=[{"name": name, "args": arguments, "id": f"c{number}", "type": "tool_call"}]
    )


def _noop() -> str:
    return ""


def _timed(run: Callable[[], object]) -> float:
    started = perf_counter_ns()
    run()
    return (perf_counter_ns() - started) / 1_000


def _langchain_calls(calls: int, *, is_ours: bool) -> float:
    turns = [*(_turn("noop", {}, number) for number in range(calls)), AIMessage("Done.")]
    if is_ours:
        tools = [Tool("noop", "Do nothing.", _noop, blocking=False)]
        options: dict[str, Any] = {"middleware": [PlanningMiddleware(Session(), tools=tools)]}
    else:
        names = ["noop", *(f"other_{number}" for number in range(OTHERS))]
        options = {
            "tools": [
                StructuredTool.from_function(_noop, name=name, description="Do nothing.") for name in names
            ]
        }
    agent = create_agent(_Model(turns=turns), checkpointer=InMemorySaver(), **options)
    given: Any = {"messages": [HumanMessage("Go")]}
    return _timed(lambda: agent.invoke(given, CONFIG)) / calls


def _pydantic_ai_calls(calls: int, *, is_ours: bool) -> float:
    left = list(range(calls))  # pydantic-ai asks a model 50 times a run at most

    def play(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return ModelResponse([ToolCallPart("noop", "{}", f"c{left.pop()}") if left else TextPart("Done.")])

    if is_ours:
        tools = [Tool("noop", "Do nothing.", _noop, blocking=False)]
        agent = Agent(FunctionModel(play), capabilities=[Planning(Session(), tools=tools)])
    else:
        agent = Agent(FunctionModel(play))
        for name in ("noop", *(f"other_{number}" for number in range(OTHERS))):
            agent.tool_plain(_noop, name=name)

    async def run() -> None:
        await agent.run("Go")

    return _timed(lambda: asyncio.run(run())) / calls


def _plan_agent(*, is_ours: bool, counts: bool = False) -> tuple[float, int]:
    """An agent that marks each step of its plan in progress and done: microseconds, and characters."""
    titles = [f"Look at part {number} of the report" for number in range(1, STEPS + 1)]
    if is_ours:
        setup = {"objective": "Check the report", "initial_steps": [{"title": title} for title in titles]}
        turns = [_turn("planning_setup_plan", setup, 0)]
        marks = [(f"S{n:03}", status) for n in range(1, STEPS + 1) for status in ("in_progress", "done")]
        turns += [
            _turn("planning_mark_step", {"step_id": step_id, "status": status}, number)
            for number, (step_id, status) in enumerate(marks, 1)
        ]
        middleware: Any = PlanningMiddleware(Session())
    else:
        turns = []
        for number in range(2 * STEPS + 1):
            words = ["completed" if 2 * place + 2 <= number else "pending" for place in range(STEPS)]
            if number % 2:
                words[number // 2] = "in_progress"
            todos = [{"content": title, "status": word} for title, word in zip(titles, words, strict=True)]
            turns.append(_turn("write_todos", {"todos": todos}, number))
        middleware = TodoListMiddleware()
    model = _Model(turns=[*turns, AIMessage("Done.")], counts=counts)
    agent: Any = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    time = _timed(lambda: agent.invoke({"messages": [HumanMessage("Go")]}, CONFIG))
    return time, model.characters


def _restoring(rounds: int) -> tuple[float, float]:
    session = Session()
    toolbox = Toolbox(PlanningToolsSection(session=session).tools())
    steps = [{"title": f"Look at part {number}", "details": "All of it"} for number in range(RESTORED)]
    toolbox.call("planning_setup_plan", {"objective": "Check the report", "initial_steps": steps})
    position = json.loads(json.dumps(position_of(session)))

    def with_session() -> None:
        restored = Session()
        register_plan(restored)
        settle(restored, position)

    repeats = 20
    plain = [_timed(lambda: [plan_from(position) for _ in range(repeats)]) / repeats for _ in range(rounds)]
    whole = [_timed(lambda: [with_session() for _ in range(repeats)]) / repeats for _ in range(rounds)]
    return median(plain), median(whole)

"""What our integrations add to a call in a framework's agent, a provider's client, and MCP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import Any

from agents import Agent as SdkAgent
from agents import RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.function_tool import FunctionTool as AdkTool
from google.genai.types import Content, Part
from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from benchmarks.harness import Cost, Section, at_most, fastest, microseconds, table
from benchmarks.times.clients import (
    ARGUMENTS,
    FUNCTIONS,
    anthropic_calls,
    as_async,
    mcp_calls,
    openai_calls,
    our_tool,
)
from planning.integrations.google_adk import PlanningToolset
from planning.integrations.langchain import PlanningMiddleware
from planning.integrations.openai_agents import planning_tools
from planning.integrations.pydantic_ai import Planning
from session import Session

__all__ = ["measure"]

CALLS = 40
ASKED = "You repair what the issues report."
METHOD = """\
Microseconds for a turn of a framework's own agent that calls a tool with two arguments, with a scripted
model, which does not convert the tools' schemas. Both sides have the same instructions, and seven tools with
about the same parameters; none runs in a thread that the other has not. "Its own" has functions as the
framework takes them; "with ours" has the six planning tools and the function in our toolbox, and adds the
section, the reminder, the call in the session's history and the position in the framework's state. With a
provider's client both offer the same tools, and "its own" is a loop that calls a function. With MCP it is a
call of the official client in memory, to the official server or to ours. Every round measures each once; a
figure is the lowest of the rounds."""
TIMES_OWN = 1.1


def measure(rounds: int) -> Section:
    """Time each in turn."""
    runs: dict[tuple[str, str], Callable[[], float]] = {
        (name, who): partial(calls, is_ours=who == "ours")
        for name, calls in CALLED.items()
        for who in ("own", "ours")
    }
    time = fastest(runs, rounds)
    return Section(
        "In a framework's agent",
        (
            *("session-planning", "langchain", "langchain-core", "langgraph", "pydantic-ai-slim"),
            *("openai-agents", "google-adk", "openai", "anthropic", "mcp"),
        ),
        [
            METHOD,
            table(
                ["framework or client", "its own", "with ours"],
                [[name, time[name, "own"], time[name, "ours"]] for name in CALLED],
            ),
        ],
        [
            *(
                at_most(f"a call in {name} beside its own", time[name, "ours"] / time[name, "own"], TIMES_OWN)
                for name in CALLED
            ),
        ],
        [Cost(f"a call in {name}", time[name, "ours"], "its own", time[name, "own"]) for name in CALLED],
    )


class _Model(BaseChatModel):
    """Plays turns."""

    turns: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, _tools: Sequence[Any], **_: Any) -> Any:
        return self

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.turns.pop(0))])


def _turn(number: int) -> AIMessage:
    call = {"name": "search", "args": ARGUMENTS, "id": f"c{number}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def _invoked(model: _Model, **options: Any) -> float:
    """Microseconds of a run of a LangGraph agent that keeps checkpoints in memory."""
    agent: Any = create_agent(model, checkpointer=InMemorySaver(), system_prompt=ASKED, **options)
    given, config = {"messages": [HumanMessage("Go")]}, {"configurable": {"thread_id": "bench"}}
    return microseconds(lambda: agent.invoke(given, config))


def _langchain_calls(calls: int, *, is_ours: bool) -> float:
    model = _Model(turns=[*(_turn(number) for number in range(calls)), AIMessage("Done.")])
    if is_ours:
        return _invoked(model, middleware=[PlanningMiddleware(Session(), tools=[our_tool()])]) / calls
    return _invoked(model, tools=[StructuredTool.from_function(each) for each in FUNCTIONS]) / calls


def _pydantic_ai_calls(calls: int, *, is_ours: bool) -> float:
    left = list(range(calls))  # pydantic-ai asks a model 50 times a run at most

    def play(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return ModelResponse(
            [ToolCallPart("search", ARGUMENTS, f"c{left.pop()}") if left else TextPart("Done.")]
        )

    if is_ours:
        planning = Planning(Session(), tools=[our_tool()])
        agent = Agent(FunctionModel(play), instructions=ASKED, capabilities=[planning])
    else:
        agent = Agent(FunctionModel(play), instructions=ASKED, tools=[*map(as_async, FUNCTIONS)])

    return microseconds(lambda: asyncio.run(agent.run("Go"))) / calls  # type: ignore[arg-type] - a coroutine


def _openai_agents_calls(calls: int, *, is_ours: bool) -> float:
    turns = [[function_call("search", ARGUMENTS, call_id=f"c{number}")] for number in range(calls)]
    model, config = ScriptedModel([*turns, [assistant_message("Done.")]]), RunConfig(tracing_disabled=True)

    tools: list[Any] = [function_tool(as_async(each)) for each in FUNCTIONS]
    if is_ours:
        tools = planning = planning_tools(Session(), tools=[our_tool()])
        config = planning.run_config(config)
    agent = SdkAgent("bench", instructions=ASKED, tools=tools, model=model)

    async def run() -> None:
        await Runner.run(agent, "Go", run_config=config, max_turns=None)

    return microseconds(lambda: asyncio.run(run())) / calls


class _Llm(BaseLlm):
    """Makes a number of calls."""

    left: int

    async def generate_content_async(self, *_: Any, **__: Any) -> AsyncGenerator[LlmResponse, None]:
        self.left -= 1
        part = Part(text="Done.") if self.left < 0 else Part.from_function_call(name="search", args=ARGUMENTS)
        yield LlmResponse(content=Content(role="model", parts=[part]))


def _google_adk_calls(calls: int, *, is_ours: bool) -> float:
    tools: list[Any] = [AdkTool(as_async(each)) for each in FUNCTIONS]
    if is_ours:
        tools = [PlanningToolset(Session(), tools=[our_tool()])]
    logging.getLogger("google_adk").setLevel(logging.ERROR)  # it misses the counts of tokens
    model = _Llm(model="script", left=calls)
    runner = InMemoryRunner(LlmAgent(name="bench", model=model, instruction=ASKED, tools=tools))
    runner.auto_create_session = True
    asked = Content(role="user", parts=[Part(text="Go")])

    async def run() -> None:
        async for _ in runner.run_async(user_id="bench", session_id="bench", new_message=asked):
            pass

    return microseconds(lambda: asyncio.run(run())) / calls


CALLED: dict[str, Callable[..., float]] = {
    "langchain": partial(_langchain_calls, CALLS),
    "pydantic-ai": partial(_pydantic_ai_calls, CALLS),
    "openai-agents": partial(_openai_agents_calls, CALLS),
    "google-adk": partial(_google_adk_calls, CALLS),
    "openai": partial(openai_calls, CALLS),
    "anthropic": partial(anthropic_calls, CALLS),
    "mcp": partial(mcp_calls, CALLS),
}

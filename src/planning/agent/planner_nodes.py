"""The nodes of the planner's graph: its answer becomes tool calls, a question to the user, or queries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from planning.agent.nodes import Node, NodeCall, State, named_tool
from planning.agent.state import PlannerState
from planning.prompt import Prompt, ToolAwarenessSection
from planning.tools.background import run_coroutine, run_in_thread
from planning.tools.errors import SORRY
from planning.tools.planner import PlannerOutput, execute_tools, parse_planner_output
from planning.tools.registry import ToolRegistry
from planning.tools.result import ToolResult
from session import Session

_OF_PLANNER: Final = ("question", "prompt", "tools", "state")
_OF_QUERIES: Final = ("queries", "question", "state")
_OF_RESPOND: Final = (
    "question",
    "tool_results",
    "query_results",
    "needs_user_input",
    "input_request",
    "intent",
    "error",
    "state",
)
_NO_SEARCH: Final = "no search is set up; pass execute_queries to build_planner_graph"
_FOREVER: Final = 1_000_000.0


def _given(state: State) -> dict[str, Any]:
    return {"question": state.get("resolved_query") or "", "state": dict(state)}


def planning(planner: Callable[..., Any], registry: ToolRegistry, timeout: float | None) -> Node:
    """The node that asks the planner, and reads its answer; one that cannot be read has no calls."""
    tool, taken = named_tool("planner", "Decide what a request needs.", planner, _OF_PLANNER, timeout)
    prompt = Prompt(ns="planning/agent", key="planner", sections=[ToolAwarenessSection(tools=registry)])

    def prepare(state: State) -> NodeCall:
        text = prompt.render().text if "prompt" in taken else ""
        return NodeCall(tool, _given(state) | {"prompt": text, "tools": registry.get_tool_descriptions()})

    def finish(_state: State, result: ToolResult) -> PlannerState:
        if result.success:
            output = parse_planner_output(result.value)
        else:  # it may have a question to the user
            output = PlannerOutput(
                needs_user_input=result.needs_user_input, input_request=result.input_request
            )
        problems = [
            problem.message if not problem.path else f"{problem.path}: {problem.message}"
            for problem in output.problems
        ]
        error = "; ".join(problems) if result.success else str(result.error or result.message)
        return {
            "tool_calls": list(output["tool_calls"]),
            "needs_user_input": output.needs_user_input,
            "input_request": output.input_request,
            "queries": output["queries"],
            "intent": output.intent,
            "planner_problems": problems,
            "tool_results": {},
            "query_results": None,
            "response": None,
            "error": f"Tool planner: {error}" if error else None,
        }

    return Node(prepare, finish)


class CallRunning:
    """The node that runs the planner's tool calls."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    def run(self, state: State, session: Session | None) -> PlannerState:
        """Run them from synchronous code; in a thread if this one runs an event loop."""
        start = partial(self.arun, state, session)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run_coroutine(start, "execute_tools")
        return run_in_thread(lambda: run_coroutine(start, "execute_tools"), "execute_tools", _FOREVER)

    async def arun(self, state: State, session: Session | None) -> PlannerState:
        """Run them from async code."""
        executed = await execute_tools(state, registry=self._registry, session=session)
        update: PlannerState = {"tool_results": executed["tool_results"]}
        for envelope in executed["tool_results"].values():
            if envelope.get("needs_user_input"):
                return {**update, "needs_user_input": True, "input_request": envelope.get("input_request")}
        return update


def searching(execute_queries: Callable[..., Any] | None, timeout: float | None) -> Node:
    """The node that passes the planner's queries to ``execute_queries``."""
    tool = None
    if execute_queries is not None:
        tool, _ = named_tool("execute_queries", "Search.", execute_queries, _OF_QUERIES, timeout)

    def prepare(state: State) -> NodeCall | PlannerState:
        queries = list(state.get("queries") or ())
        if not queries:
            return {"query_results": []}
        if tool is None:
            return {"error": _NO_SEARCH}
        return NodeCall(tool, _given(state) | {"queries": queries})

    def finish(_state: State, result: ToolResult) -> PlannerState:
        if result.success:
            return {"query_results": [] if result.value is None else result.value}
        return {"error": f"Tool execute_queries: {result.error or result.message}"}

    return Node(prepare, finish)


def responding(respond: Callable[..., Any], timeout: float | None) -> Node:
    """The node that answers the user, with an apology if ``respond`` fails."""
    tool, _ = named_tool("respond", "Answer the user.", respond, _OF_RESPOND, timeout)

    def prepare(state: State) -> NodeCall:
        return NodeCall(tool, {**{name: state.get(name) for name in _OF_RESPOND}, **_given(state)})

    def finish(_state: State, result: ToolResult) -> PlannerState:
        if result.success:
            return {"response": result.value}
        return {"response": SORRY, "error": f"Tool respond: {result.error or result.message}"}

    return Node(prepare, finish)

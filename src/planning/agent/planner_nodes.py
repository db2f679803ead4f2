"""The nodes of the planner's graph: its answer becomes tool calls, a question to the user, or queries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from planning.agent.calling import in_own_loop, named, named_tool
from planning.agent.nodes import Call, State
from planning.agent.state import PlannerState
from planning.prompt import Prompt, ToolAwarenessSection
from planning.tools.errors import SORRY
from planning.tools.execute import execute_tools
from planning.tools.planner import PlannerOutput, parse_planner_output
from planning.tools.registry import ToolRegistry
from planning.tools.result import ToolResult
from planning.tools.tool import Tool
from session import Session

__all__ = ["ExecuteCalls", "ExecuteQueries", "PlanQueries", "Respond"]

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
_ALIASES: Final = {"query": "question", "resolved_query": "question", "tool_descriptions": "tools"}
_NO_SEARCH: Final = "no search is set up; pass execute_queries to build_planner_graph"


class PlanQueries:
    """Asks the planner, and reads its answer."""

    def __init__(self, planner: Any, registry: ToolRegistry, timeout: float | None) -> None:
        """Take a planner.

        Raises:
            TypeError: It has parameters that match no value.
        """
        function = named("planner", planner, _OF_PLANNER, aliases=_ALIASES)
        self._tool = named_tool("planner", "Decide what a request needs.", function, timeout)
        self._registry = registry
        self._prompt = None
        if "prompt" in {*function.positional, *(what for _, what in function.keywords)}:
            section = ToolAwarenessSection(tools=registry)
            self._prompt = Prompt(ns="planning/agent", key="planner", sections=[section])

    def prepare(self, state: State) -> Call:
        """The call of the planner."""
        prompt = "" if self._prompt is None else self._prompt.render().text
        given = {
            "question": state.get("resolved_query") or "",
            "prompt": prompt,
            "tools": self._registry.get_tool_descriptions(),
            "state": dict(state),
        }
        return Call(self._tool, given)

    def finish(self, _state: State, result: ToolResult) -> PlannerState:
        """The calls or queries it asks for; none, with the reason, if it failed or cannot be understood."""
        output = parse_planner_output(result.value) if result.success else _nothing_of(result)
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


def _nothing_of(result: ToolResult) -> PlannerOutput:
    """The output of a planner that failed: at most a question to the user."""
    return PlannerOutput(needs_user_input=result.needs_user_input, input_request=result.input_request)


class ExecuteCalls:
    """Runs the planner's tool calls."""

    def __init__(self, registry: ToolRegistry) -> None:
        """Take the tools."""
        self._registry = registry

    def run(self, state: State, session: Session | None) -> PlannerState:
        """Run them from synchronous code."""
        return _results(in_own_loop(partial(self._executed, state, session), "execute_tools"))

    async def arun(self, state: State, session: Session | None) -> PlannerState:
        """Run them from async code."""
        return _results(await self._executed(state, session))

    async def _executed(self, state: State, session: Session | None) -> dict[str, dict[str, Any]]:
        return await execute_tools(state, registry=self._registry, session=session)


def _results(executed: dict[str, dict[str, Any]]) -> PlannerState:
    results = executed["tool_results"]
    update: PlannerState = {"tool_results": results}
    for envelope in results.values():
        if envelope.get("needs_user_input"):
            update |= {"needs_user_input": True, "input_request": envelope.get("input_request")}
            break
    return update


class ExecuteQueries:
    """Passes the planner's queries to ``execute_queries``."""

    def __init__(self, execute_queries: Any, timeout: float | None) -> None:
        """Take the callable that searches, or None.

        Raises:
            TypeError: It has parameters that match no value.
        """
        self._tool: Tool | None = None
        if execute_queries is not None:
            function = named("execute_queries", execute_queries, _OF_QUERIES, aliases=_ALIASES)
            self._tool = named_tool("execute_queries", "Search.", function, timeout)

    def prepare(self, state: State) -> Call | PlannerState:
        """The call; none without queries."""
        queries = list(state.get("queries") or ())
        if not queries:
            return {"query_results": []}
        if self._tool is None:
            return {"error": _NO_SEARCH}
        question = state.get("resolved_query") or ""
        return Call(self._tool, {"queries": queries, "question": question, "state": dict(state)})

    def finish(self, _state: State, result: ToolResult) -> PlannerState:
        """The results, or why there are none."""
        if result.success:
            return {"query_results": [] if result.value is None else result.value}
        return {"error": f"Tool execute_queries: {result.error or result.message}"}


class Respond:
    """Answers the user."""

    def __init__(self, respond: Any, timeout: float | None) -> None:
        """Take the callable that writes the answer.

        Raises:
            TypeError: It has parameters that match no value.
        """
        function = named("respond", respond, _OF_RESPOND, aliases=_ALIASES)
        self._tool = named_tool("respond", "Answer the user.", function, timeout)

    def prepare(self, state: State) -> Call:
        """The call."""
        given = {name: state.get(name) for name in _OF_RESPOND}
        given |= {"question": state.get("resolved_query") or "", "state": dict(state)}
        return Call(self._tool, given)

    def finish(self, _state: State, result: ToolResult) -> PlannerState:
        """The answer; an apology if the callable failed."""
        if not result.success:
            return {"response": SORRY, "error": f"Tool respond: {result.error or result.message}"}
        value = result.value
        if isinstance(value, Mapping) and "response" in value:
            value = value["response"]
        return {"response": value}

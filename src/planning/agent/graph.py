"""The graphs of the agents. The only module that imports LangGraph."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from os import PathLike
from typing import Any, Final, Literal

try:
    from langchain_core.runnables import Runnable, RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph import END, START, StateGraph
    from langgraph.graph.state import CompiledStateGraph
except ModuleNotFoundError as missing:
    raise ImportError(
        f"the graphs need LangGraph ({missing.name} is missing); install it with"
        " pip install 'session-planning[agent]'"
    ) from None

from planning.agent.answer import complete, is_doubtful, reviewing, show_progress
from planning.agent.databases.base import Database, is_database
from planning.agent.databases.files import SqlDatabase
from planning.agent.generate import Generator, check_prompt_limit
from planning.agent.nodes import (
    AgentTools,
    Clarify,
    Node,
    NodeCall,
    State,
    generating,
    named_tool,
    plan,
    tool_running,
)
from planning.agent.state import MOST_ITERATIONS, AgentState, PlannerState
from planning.errors import LONGEST_MESSAGE
from planning.prompt import Prompt, ToolAwarenessSection
from planning.tools.background import run_coroutine, run_in_thread
from planning.tools.errors import SORRY
from planning.tools.planner import PlannerOutput, execute_tools, parse_planner_output, should_execute_tools
from planning.tools.registry import ToolRegistry
from planning.tools.result import ToolResult
from planning.tools.tool import Declaration
from session import Session

Checkpointer = BaseCheckpointSaver[Any] | bool | None
Compiled = CompiledStateGraph[Any, Any, Any, Any]
Show = Callable[[Session, State, Any], None]

_MOST_STEPS: Final = 10_000
"""LangGraph's bound, which may be 25 by default; the graphs end by their own count long before this one."""


class _Node(Runnable[Any, Any]):
    """A node for LangGraph, sync and async: LangGraph would run a sync function in a thread if awaited."""

    def __init__(
        self, name: str, node: Node | _ToolCalls, session: Session | None = None, show: Show | None = None
    ) -> None:
        self.name: str = name
        self._node = node
        self._session = session
        self._show = show

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002 - as the base names it
        session = self._session_of(config)
        return self._show_state(session, input, self._node.run(input, session))

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002 - as the base names it
        session = self._session_of(config)
        return self._show_state(session, input, await self._node.arun(input, session))

    def _session_of(self, config: RunnableConfig | None) -> Session | None:
        given = (config or {}).get("configurable", {}).get("session")
        return given if isinstance(given, Session) else self._session

    def _show_state(self, session: Session | None, state: State, update: Any) -> Any:
        if session is not None and self._show is not None:
            self._show(session, state, update)
        return update


def build_text_to_sql_graph(
    database: Database | str | PathLike[str] | AgentTools,
    generate_sql: Generator,
    *,
    session: Session | None = None,
    max_iterations: int = MOST_ITERATIONS,
    clarify: Clarify | Literal[False] | None = None,
    reflect: bool = True,
    timeout: float | None = None,
    prompt_limit: int = LONGEST_MESSAGE,
    checkpointer: Checkpointer = None,
) -> Compiled:
    """Build the graph that answers questions with SQL: plan, act, plan again, until there is an answer.

    ``graph.invoke({"resolved_query": question})`` returns the final ``AgentState``; ``ainvoke``,
    ``stream`` and ``astream`` work as with any graph of LangGraph, and so does using it as a node of
    another. A new question ignores what an earlier one left in the state; ``graph.invoke(None, config)``
    resumes an interrupted one.

    Args:
        database: A ``SqlDatabase``, or the path or URL of one; any other ``Database``, which has ``dialect``,
            ``get_schema`` and ``execute``; or your own tools with the names ``get_schema``, ``execute_sql``
            and ``validate_results``.
        generate_sql: Writes the SQL; see ``Generator``. It gets the error of a statement that failed.
        session: Where calls are published and the progress shows as a Plan. A session in
            ``config["configurable"]["session"]`` takes precedence for a single run.
        max_iterations: The most decisions for a question, if the state does not say. It bounds the work.
        clarify: A function of question and schema that returns a question to the user, or None. Without one
            the graph asks the user only if the question is empty, or the generator asks.
        reflect: Whether to ask, once, for another statement if the results are empty or refused.
        timeout: The seconds for a call of the generator, if limited.
        prompt_limit: The most characters of the ``prompt`` that a generator takes, 4,000 to 50,000.
        checkpointer: Where LangGraph keeps the states of threads.

    Raises:
        TypeError: The generator has parameters that match no value, or an option has the wrong type.
        ValueError: ``max_iterations``, ``timeout`` or ``prompt_limit`` is out of range.
    """
    if type(max_iterations) is not int or max_iterations < 1:
        raise ValueError(f"max_iterations must be a whole number of at least 1, got {max_iterations!r}")
    check_prompt_limit(prompt_limit)
    if clarify and not callable(clarify):
        raise TypeError(f"clarify must be a function of question and schema, or None, got {clarify!r}")
    if type(reflect) is not bool:
        raise TypeError("reflect must be True or False; a tool validate_results can judge the results")
    if isinstance(database, (str, PathLike)):
        database = SqlDatabase(database)
    dialect = database.dialect if is_database(database) else None
    search = database.missing_values if isinstance(database, SqlDatabase) else None
    nodes = {
        "plan": Node(lambda state: plan(state, max_iterations)),
        "execute_tools": tool_running(database),
        "generate_sql": generating(generate_sql, timeout, clarify or None, dialect, prompt_limit),
        "reflect": reviewing(search),
        "complete": Node(complete),
    }
    builder = _builder(AgentState, nodes, session, show_progress)

    def way(state: State) -> str:
        action = state.get("next_action")
        if action == "complete":
            return "reflect" if reflect and is_doubtful(state) else "complete"
        return "generate_sql" if action == "generate_sql" else "execute_tools"

    builder.add_edge(START, "plan")
    _branch(builder, "plan", way, ("generate_sql", "execute_tools", "reflect", "complete"))
    builder.add_edge("execute_tools", "plan")
    builder.add_edge("generate_sql", "plan")
    builder.add_edge("reflect", "plan")
    builder.add_edge("complete", END)
    return _compile(builder, "text_to_sql", checkpointer)


def _builder(
    schema: type[Any],
    nodes: Mapping[str, Node | _ToolCalls],
    session: Session | None,
    show: Show | None = None,
) -> StateGraph[Any, Any, Any, Any]:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(schema)
    for name, node in nodes.items():
        builder.add_node(name, _Node(name, node, session, show))
    return builder


def _branch(
    builder: StateGraph[Any, Any, Any, Any], source: str, decide: Callable[[State], str], ways: Iterable[str]
) -> None:
    builder.add_conditional_edges(source, _Node(f"after_{source}", Node(decide)), {way: way for way in ways})


def _compile(builder: StateGraph[Any, Any, Any, Any], name: str, checkpointer: Checkpointer) -> Compiled:
    compiled: Compiled = builder.compile(checkpointer=checkpointer, name=name)
    return compiled.with_config({"recursion_limit": _MOST_STEPS})


# The planner's graph

_OF_PLANNER: Final = ("question", "prompt", "tools", "state")
_OF_QUERIES: Final = ("queries", "question", "state")
_OF_RESPOND: Final = (
    "question", "tool_results", "query_results", "needs_user_input", "input_request", "intent", "error",
    "state",
)  # fmt: skip
_NO_SEARCH: Final = "no search is set up; pass execute_queries to build_planner_graph"
_FOREVER: Final = 1_000_000.0


def _drop_missing(state: State) -> dict[str, Any]:
    return {"question": state.get("resolved_query") or "", "state": dict(state)}


def _planning(planner: Callable[..., Any], registry: ToolRegistry, timeout: float | None) -> Node:
    """The node that asks the planner, and reads its answer; one that cannot be read has no calls."""
    tool, taken = named_tool("planner", "Decide what a request needs.", planner, _OF_PLANNER, timeout)
    prompt = Prompt(ns="planning/agent", key="planner", sections=[ToolAwarenessSection(tools=registry)])

    def prepare(state: State) -> NodeCall:
        text = prompt.render().text if "prompt" in taken else ""
        return NodeCall(
            tool, _drop_missing(state) | {"prompt": text, "tools": registry.get_tool_descriptions()}
        )

    def finish(_state: State, result: ToolResult) -> PlannerState:
        if result.success:
            output = parse_planner_output(result.value)
        else:  # it may have a question to the user
            output = PlannerOutput(
                needs_user_input=result.needs_user_input, input_request=result.input_request
            )
        problems = [*map(str, output.problems)]
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


class _ToolCalls:
    """The node that runs the planner's tool calls."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    def run(self, state: State, session: Session | None) -> PlannerState:
        """In a thread if this one runs an event loop."""
        start = partial(self.arun, state, session)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run_coroutine(start, "execute_tools")
        return run_in_thread(lambda: run_coroutine(start, "execute_tools"), "execute_tools", _FOREVER)

    async def arun(self, state: State, session: Session | None) -> PlannerState:
        executed = await execute_tools(state, registry=self._registry, session=session)
        update: PlannerState = {"tool_results": executed["tool_results"]}
        for envelope in executed["tool_results"].values():
            if envelope.get("needs_user_input"):
                return {**update, "needs_user_input": True, "input_request": envelope.get("input_request")}
        return update


def _searching(execute_queries: Callable[..., Any] | None, timeout: float | None) -> Node:
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
        return NodeCall(tool, _drop_missing(state) | {"queries": queries})

    def finish(_state: State, result: ToolResult) -> PlannerState:
        if result.success:
            return {"query_results": [] if result.value is None else result.value}
        return {"error": f"Tool execute_queries: {result.error or result.message}"}

    return Node(prepare, finish)


def _responding(respond: Callable[..., Any], timeout: float | None) -> Node:
    """The node that answers the user, with an apology if ``respond`` fails."""
    tool, _ = named_tool("respond", "Answer the user.", respond, _OF_RESPOND, timeout)

    def prepare(state: State) -> NodeCall:
        return NodeCall(tool, {**{name: state.get(name) for name in _OF_RESPOND}, **_drop_missing(state)})

    def finish(_state: State, result: ToolResult) -> PlannerState:
        if result.success:
            return {"response": result.value}
        return {"response": SORRY, "error": f"Tool respond: {result.error or result.message}"}

    return Node(prepare, finish)


def build_planner_graph(
    registry: ToolRegistry | Iterable[Declaration],
    planner: Callable[..., Any],
    respond: Callable[..., Any],
    *,
    execute_queries: Callable[..., Any] | None = None,
    session: Session | None = None,
    timeout: float | None = None,
    checkpointer: Checkpointer = None,
) -> Compiled:
    """Build the graph that asks a planner what a request needs, does that, and answers the user.

    Tool calls come first, then a question to the user, then queries. A tool that lacks the identifier that it
    needs is not called: its question goes to the user.
    ``graph.invoke({"resolved_query": request})`` returns the final ``PlannerState``.

    Args:
        registry: The tools.
        planner: Any callable, sync or async. Its parameters may be ``question``, ``prompt`` (the tools, and
            the JSON to answer with), ``tools`` (their names and descriptions) and ``state``; a single
            parameter of another name gets the state. It returns what ``parse_planner_output`` reads: a
            model's text, or a mapping.
        respond: Any callable, sync or async. Its parameters may be ``question``, ``tool_results``,
            ``query_results``, ``needs_user_input``, ``input_request``, ``intent``, ``error`` and ``state``;
            a single parameter of another name gets the state. It returns the ``response``.
        execute_queries: Any callable, sync or async. Its parameters may be ``queries``, ``question`` and
            ``state``. It returns the ``query_results``.
        session: Where calls are published. A session in ``config["configurable"]["session"]`` takes
            precedence for a single run.
        timeout: The seconds for a call of each callable, if limited. Tools have their own.
        checkpointer: Where LangGraph keeps the states of threads.

    Raises:
        TypeError: A callable's signature does not match, or an item is not a tool.
        ValueError: ``timeout`` is out of range, or two tools have the same name.
    """
    tools = registry if isinstance(registry, ToolRegistry) else ToolRegistry(registry)
    nodes: dict[str, Node | _ToolCalls] = {
        "plan_queries": _planning(planner, tools, timeout),
        "execute_tools": _ToolCalls(tools),
        "execute_queries": _searching(execute_queries, timeout),
        "generate_response": _responding(respond, timeout),
    }
    builder = _builder(PlannerState, nodes, session)
    builder.add_edge(START, "plan_queries")
    ways = ("execute_tools", "execute_queries", "generate_response")
    _branch(builder, "plan_queries", should_execute_tools, ways)
    builder.add_edge("execute_tools", "generate_response")
    builder.add_edge("execute_queries", "generate_response")
    builder.add_edge("generate_response", END)
    return _compile(builder, "planner", checkpointer)

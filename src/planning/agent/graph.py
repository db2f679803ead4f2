"""The graphs: LangGraph runs what the nodes do. The only module that knows LangGraph."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
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

from planning.agent.answer import complete
from planning.agent.databases.base import Database, is_database
from planning.agent.databases.files import SqlDatabase
from planning.agent.decide import after_reflection, entry, route
from planning.agent.generate import Generator, generator_tool
from planning.agent.nodes import (
    AgentTools,
    Clarify,
    ExecuteTools,
    GenerateSql,
    arun,
    plan,
    run,
)
from planning.agent.planner_nodes import ExecuteCalls, ExecuteQueries, PlanQueries, Respond
from planning.agent.progress import show_planner_progress, show_progress
from planning.agent.reflect import Reflect, judge_tool, look_tool
from planning.agent.state import MOST_ITERATIONS, AgentState, PlannerState, fresh_answer
from planning.tools.contract import check_timeout
from planning.tools.declare import Declaration
from planning.tools.planner import should_execute_tools
from planning.tools.registry import ToolRegistry
from session import Session

__all__ = ["build_planner_graph", "build_text_to_sql_graph"]

Checkpointer = BaseCheckpointSaver[Any] | bool | None
Compiled = CompiledStateGraph[Any, Any, Any, Any]
State = Mapping[str, Any]
Update = Any
Show = Callable[[Session, str, State, Update], None]

_MOST_STEPS: Final = 10_000
"""A bound that is never met: the graphs end by their own count. LangGraph's own may be as low as 25."""


class _Node(Runnable[Any, Any]):
    """A node for LangGraph, in both its manners: a plain function that is awaited would get a thread."""

    def __init__(
        self,
        run: Callable[[State, Session | None], Update],
        arun: Callable[[State, Session | None], Awaitable[Update]] | None = None,
        *,
        name: str,
        session: Session | None = None,
        show: Show | None = None,
    ) -> None:
        self.name: str = name
        self._run = run
        self._arun = arun
        self._session = session
        self._show = show

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: A002 - as the base names it
        session = self._session_of(config)
        return self._shown(session, input, self._run(input, session))

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: A002 - as the base names it
        session = self._session_of(config)
        update = self._run(input, session) if self._arun is None else await self._arun(input, session)
        return self._shown(session, input, update)

    def _session_of(self, config: RunnableConfig | None) -> Session | None:
        given = (config or {}).get("configurable", {}).get("session")
        return given if isinstance(given, Session) else self._session

    def _shown(self, session: Session | None, state: State, update: Update) -> Update:
        if session is not None and self._show is not None:
            self._show(session, self.name, state, update)
        return update


def _calling(node: Any, name: str, session: Session | None, show: Show) -> _Node:
    return _Node(partial(run, node), partial(arun, node), name=name, session=session, show=show)


def _deciding(name: str, decide: Callable[[State], str]) -> _Node:
    return _Node(lambda state, _session: decide(state), name=name)


def build_text_to_sql_graph(
    database: Database | str | PathLike[str] | AgentTools,
    generate_sql: Generator,
    *,
    session: Session | None = None,
    max_iterations: int = MOST_ITERATIONS,
    clarify: Clarify | Literal[False] | None = None,
    reflect: bool | Callable[..., Any] = True,
    timeout: float | None = 60.0,
    checkpointer: Checkpointer = None,
) -> Compiled:
    """Build the graph that answers questions with SQL: plan, act, plan again, until there is an answer.

    ``graph.invoke({"resolved_query": question})`` returns the final ``AgentState``; ``ainvoke``,
    ``stream`` and ``astream`` work as with any graph of LangGraph, and so does using it as a node of
    another. A question begins afresh whatever an earlier one has left in the state, from a checkpointer or
    handed in; ``graph.invoke(None, config)`` goes on with one that was broken off.

    Args:
        database: What is asked: a ``SqlDatabase``, or the path or URL of one; any other ``Database``, which
            has ``dialect``, ``get_schema`` and ``execute``; or your own tools with the names ``get_schema``,
            ``execute_sql`` and ``validate_results``.
        generate_sql: Writes the SQL; see ``Generator``. What is wrong with a statement goes back to it.
        session: Where calls are published and the progress shows as a Plan. For a single run, a session
            in ``config["configurable"]["session"]`` goes before it.
        max_iterations: How often is decided what to do next, where the state does not say: that bounds
            everything.
        clarify: A function of question and schema that returns what to ask the user, or None. Without one
            (None or False) only an empty question is asked back.
        reflect: Whether another statement is written, once, when a result is empty or holds nothing; or a
            judge: any callable, sync or async, which is called with what it names of ``question``,
            ``sql``, ``result``, ``schema``, ``state`` and returns what is wrong, or None.
        timeout: The seconds that the generator and the judge have for a call; None for no limit.
        checkpointer: Where LangGraph keeps the states of threads.

    Raises:
        TypeError: A callable cannot be called with what there is.
        ValueError: ``max_iterations`` or ``timeout`` is none.
    """
    check_timeout(timeout)
    if type(max_iterations) is not int or max_iterations < 1:
        raise ValueError(f"max_iterations must be a whole number of at least 1, got {max_iterations!r}")
    if not (clarify is None or clarify is False or callable(clarify)):
        raise TypeError(f"clarify must be a function of question and schema, or None, got {clarify!r}")
    if not (type(reflect) is bool or callable(reflect)):
        raise TypeError(f"reflect must be True, False or a function, got {type(reflect).__name__}")
    if isinstance(database, (str, PathLike)):
        database = SqlDatabase(database)
    dialect = database.dialect if is_database(database) else None
    judge = judge_tool(reflect, timeout) if callable(reflect) else None

    nodes: dict[str, _Node] = {
        "begin": _Node(lambda _state, _session: fresh_answer(), name="begin"),
        "plan": _Node(
            lambda state, _session: plan(state, max_iterations),
            name="plan",
            session=session,
            show=show_progress,
        ),
        "execute_tools": _calling(ExecuteTools(database), "execute_tools", session, show_progress),
        "generate_sql": _calling(
            GenerateSql(generator_tool(generate_sql, timeout), clarify or None, dialect),
            "generate_sql",
            session,
            show_progress,
        ),
        "complete": _Node(
            lambda state, _session: complete(state), name="complete", session=session, show=show_progress
        ),
    }
    if reflect:
        look = look_tool(database.missing_values) if isinstance(database, SqlDatabase) else None
        reflecting = Reflect(judge, max_iterations, look)
        nodes["reflect"] = _calling(reflecting, "reflect", session, show_progress)
    ways = ["generate_sql", "execute_tools", "complete", *(["reflect"] if reflect else [])]
    builder = _builder(AgentState, nodes)
    # A run that is resumed does not come this way: it goes on where it was.
    _branch(builder, START, entry, ("begin", "plan"))
    builder.add_edge("begin", "plan")
    _branch(builder, "plan", partial(route, reflects=bool(reflect)), ways)
    builder.add_edge("execute_tools", "plan")
    builder.add_edge("generate_sql", "plan")
    if reflect:
        _branch(builder, "reflect", after_reflection, ("plan", "complete"))
    builder.add_edge("complete", END)
    return _compiled(builder, "text_to_sql", checkpointer)


def build_planner_graph(
    registry: ToolRegistry | Iterable[Declaration],
    planner: Callable[..., Any],
    respond: Callable[..., Any],
    *,
    execute_queries: Callable[..., Any] | None = None,
    session: Session | None = None,
    timeout: float | None = 60.0,
    checkpointer: Checkpointer = None,
) -> Compiled:
    """Build the graph that asks a planner what a request needs, does that, and has the user answered.

    Tool calls are carried out first; a question to the user, or else queries, go straight on. A tool that
    lacks the identifier it needs is not called: its question is put to the user.
    ``graph.invoke({"resolved_query": request})`` returns the final ``PlannerState``.

    Args:
        registry: The tools.
        planner: Any callable, sync or async. It is called with what it names of ``question``, ``prompt``
            (which tells of the tools and of the JSON to answer with), ``tools`` (their names and
            descriptions) and ``state``, or with the state alone, and returns what
            ``parse_planner_output`` reads: a model's text, or a mapping.
        respond: Any callable, sync or async. It is called with what it names of ``question``,
            ``tool_results``, ``query_results``, ``needs_user_input``, ``input_request``, ``intent``,
            ``error`` and ``state``, or with the state alone, and returns the ``response``.
        execute_queries: Any callable, sync or async, which is called with what it names of ``queries``,
            ``question`` and ``state``, and returns the ``query_results``.
        session: Where calls are published and the progress shows as a Plan. For a single run, a session
            in ``config["configurable"]["session"]`` goes before it.
        timeout: The seconds that each of the callables has; None for no limit. Tools have their own.
        checkpointer: Where LangGraph keeps the states of threads.

    Raises:
        TypeError: A callable cannot be called with what there is, or a tool is none.
        ValueError: ``timeout`` is none, or two tools have the same name.
    """
    check_timeout(timeout)
    tools = registry if isinstance(registry, ToolRegistry) else ToolRegistry(registry)
    calls = ExecuteCalls(tools)
    show = show_planner_progress
    builder = _builder(
        PlannerState,
        {
            "plan_queries": _calling(PlanQueries(planner, tools, timeout), "plan_queries", session, show),
            "execute_tools": _Node(calls.run, calls.arun, name="execute_tools", session=session, show=show),
            "execute_queries": _calling(
                ExecuteQueries(execute_queries, timeout), "execute_queries", session, show
            ),
            "generate_response": _calling(Respond(respond, timeout), "generate_response", session, show),
        },
    )
    builder.add_edge(START, "plan_queries")
    ways = ("execute_tools", "execute_queries", "generate_response")
    _branch(builder, "plan_queries", should_execute_tools, ways)
    builder.add_edge("execute_tools", "generate_response")
    builder.add_edge("execute_queries", "generate_response")
    builder.add_edge("generate_response", END)
    return _compiled(builder, "planner", checkpointer)


def _builder(schema: type[Any], nodes: Mapping[str, _Node]) -> StateGraph[Any, Any, Any, Any]:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(schema)
    for name, node in nodes.items():
        builder.add_node(name, node)
    return builder


def _branch(
    builder: StateGraph[Any, Any, Any, Any], source: str, decide: Callable[[State], str], ways: Iterable[str]
) -> None:
    builder.add_conditional_edges(source, _deciding(f"after_{source}", decide), {way: way for way in ways})


def _compiled(builder: StateGraph[Any, Any, Any, Any], name: str, checkpointer: Checkpointer) -> Compiled:
    compiled: Compiled = builder.compile(checkpointer=checkpointer, name=name)
    return compiled.with_config({"recursion_limit": _MOST_STEPS})

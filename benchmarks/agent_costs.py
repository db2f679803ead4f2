"""What the planning agent costs: its loop beside LangGraph with empty nodes, its SQL beside bare sqlite3."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.check import Check
from planning.agent import AgentState, SqlDatabase, build_text_to_sql_graph
from planning.tools import Tool
from session import Session

__all__ = [
    "AWAITED",
    "BARE",
    "COLUMNS",
    "DESCRIPTIONS",
    "EMPTY",
    "INVOKED",
    "OURS",
    "ROWS",
    "SQL",
    "TABLES",
    "TURNS",
    "WITH_SESSION",
    "WRITING",
    "AgentFigures",
    "agent_checks",
    "measure_agent",
]

TURNS = 200
TABLES, COLUMNS = 200, 6
ROWS = 1_000
INVOKED, AWAITED = "invoke", "ainvoke"

OURS = "session-planning"
WITH_SESSION = "session-planning, with a session"
EMPTY = "langgraph, empty nodes"
WRITING = "langgraph, nodes that write the same keys"
DESCRIPTIONS = {
    OURS: "the text-to-SQL graph with a get_schema that fails: decide, call it, keep why, decide again",
    WITH_SESSION: "the same with a session: an event for each call, a record in the ledger, the Plan kept up",
    EMPTY: "the same state and edges; a node that counts the turns and one that returns nothing",
    WRITING: "the same, and each node writes what ours do: next_action; the call, error and user_message",
}
SELECT = (
    "SELECT id, name, city, amount, pieces FROM sales WHERE amount > 10 AND id <> {} ORDER BY id LIMIT 1000"
)
BARE, SQL = "sqlite3", "SqlDatabase.execute"

SCHEMA_MILLISECONDS = 100.0
VALIDATE_MICROSECONDS = 1_000.0
TIMES_BARE_SQL = 3.0
TIMES_EMPTY_NODES = 1.1


@dataclass(frozen=True, slots=True)
class AgentFigures:
    """Medians of rounds.

    Attributes:
        turn: By contestant and way of running, microseconds of a turn of the loop: two nodes and a choice.
        rows: By who runs a SELECT of 1,000 rows and five columns, microseconds.
        schema: Milliseconds of the first ``get_schema`` of 200 tables, start of its thread included.
        schema_again: Milliseconds of the next one, when nothing has changed.
        validate: Microseconds of ``validate_results`` of 1,000 rows, as a call of the tool.
    """

    turn: dict[tuple[str, str], float]
    rows: dict[str, float]
    schema: float
    schema_again: float
    validate: float


def measure_agent(*, rounds: int, times: int) -> AgentFigures:
    """Measure everything, each thing beside what it is compared with, in turn.

    Args:
        rounds: How many times each is visited.
        times: How many statements a round runs.

    Raises:
        RuntimeError: Something did not do what it was timed for.
    """
    with tempfile.TemporaryDirectory() as folder:
        rows = _measure_rows(Path(folder) / "rows.db", rounds, times)
        first, again = _measure_schema(Path(folder) / "tables.db", rounds)
    return AgentFigures(_measure_turns(rounds), rows, first, again, _measure_validate(rounds, times))


def agent_checks(agent: AgentFigures) -> Iterator[Check]:
    """The targets of the agent."""
    yield Check(
        f"get_schema of {TABLES} tables under {SCHEMA_MILLISECONDS:g} ms",
        f"{agent.schema:.1f} ms",
        agent.schema < SCHEMA_MILLISECONDS,
    )
    yield Check(
        f"validate_results of {ROWS:,} rows under {VALIDATE_MICROSECONDS / 1e3:g} ms",
        f"{agent.validate / 1e3:.3f} ms",
        agent.validate < VALIDATE_MICROSECONDS,
    )
    times = agent.rows[SQL] / agent.rows[BARE]
    yield Check(
        f"a SELECT of {ROWS:,} rows, guarded, within {TIMES_BARE_SQL:g} times of bare sqlite3",
        f"{times:.2f} times",
        times <= TIMES_BARE_SQL,
    )
    for way in (INVOKED, AWAITED):
        times = agent.turn[OURS, way] / agent.turn[EMPTY, way]
        yield Check(
            f"a turn of the agent's loop, {way}: at most {TIMES_EMPTY_NODES:g} times empty nodes",
            f"{times:.2f} times",
            times <= TIMES_EMPTY_NODES,
        )


@contextmanager
def _collected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# The loop


def _measure_turns(rounds: int) -> dict[tuple[str, str], float]:
    failures = count()

    def get_schema() -> dict[str, Any]:
        """Fail, each time for another reason: a failure that repeats itself would end the question."""
        return {"success": False, "error": str(next(failures))}

    tools = {"get_schema": Tool("get_schema", "Fail.", get_schema, blocking=False)}

    def ours(session: Session | None) -> Any:
        return build_text_to_sql_graph(
            tools, lambda: "", max_iterations=TURNS, reflect=False, session=session
        )

    graphs = {
        (OURS, INVOKED): ours(None),
        (WITH_SESSION, INVOKED): ours(Session()),
        (EMPTY, INVOKED): _empty(writes=False, is_async=False),
        (WRITING, INVOKED): _empty(writes=True, is_async=False),
        (OURS, AWAITED): ours(None),
        (WITH_SESSION, AWAITED): ours(Session()),
        (EMPTY, AWAITED): _empty(writes=False, is_async=True),
        (WRITING, AWAITED): _empty(writes=True, is_async=True),
    }
    found: dict[tuple[str, str], list[float]] = {key: [] for key in graphs}
    for visit in range(rounds + 1):  # the first one is not counted
        for key, graph in graphs.items():
            seconds, final = _looped(graph, key[1])
            if final["iteration"] != TURNS + 1:
                raise RuntimeError(f"{key} made {final['iteration'] - 1} turns, not {TURNS}")
            if visit:
                found[key].append(seconds / TURNS * 1e6)
    return {key: median(figures) for key, figures in found.items()}


def _looped(graph: Any, way: str) -> tuple[float, dict[str, Any]]:
    given, config = {"resolved_query": "How many rows are there?"}, {"recursion_limit": 10_000}

    async def awaited() -> tuple[float, dict[str, Any]]:
        started = perf_counter()
        final = await graph.ainvoke(given, config)
        return perf_counter() - started, final

    with _collected():
        if way == AWAITED:
            return asyncio.run(awaited())
        started = perf_counter()
        final = graph.invoke(given, config)
        return perf_counter() - started, final


def _empty(*, writes: bool, is_async: bool) -> Any:
    """The graph without anything of ours in its nodes."""
    from langgraph.graph import END, START, StateGraph

    def plan(state: AgentState) -> dict[str, Any]:
        turn = {"iteration": (state.get("iteration") or 0) + 1}
        return {**turn, "next_action": "get_schema"} if writes else turn

    def execute_tools(_state: AgentState) -> dict[str, Any]:
        return {"tool_calls": [{}], "error": "", "user_message": ""} if writes else {}

    def complete(_state: AgentState) -> dict[str, Any]:
        return {}

    def route(state: AgentState) -> str:
        return "complete" if state["iteration"] > TURNS else "execute_tools"

    def suited(function: Callable[[AgentState], Any]) -> Any:
        async def awaited(state: AgentState) -> Any:
            return function(state)

        return awaited if is_async else function

    builder = StateGraph(AgentState)
    for function in (plan, execute_tools, complete):
        builder.add_node(function.__name__, suited(function))
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", suited(route), ["execute_tools", "complete"])
    builder.add_edge("execute_tools", "plan")
    builder.add_edge("complete", END)
    return builder.compile()


# SQL


def _measure_rows(path: Path, rounds: int, times: int) -> dict[str, float]:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE sales (id INTEGER PRIMARY KEY, name TEXT, city TEXT, amount REAL, pieces INTEGER)"
        )
        rows = [(n, f"name {n}", f"city {n % 50}", n * 1.5, n % 7) for n in range(5_000)]
        connection.executemany("INSERT INTO sales VALUES (?, ?, ?, ?, ?)", rows)
    number = count()  # no two statements are the same: nothing that is kept of one serves another

    def statement() -> str:
        return SELECT.format(10_000 + next(number))

    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as bare, SqlDatabase(path) as database:
        runs: dict[str, Callable[[str], Any]] = {
            BARE: lambda sql: bare.execute(sql).fetchall(),
            SQL: lambda sql: database.execute(sql)["data"],
        }
        found: dict[str, list[float]] = {name: [] for name in runs}
        for visit in range(rounds + 1):
            for name, run in runs.items():
                statements = [statement() for _ in range(times)]
                with _collected():
                    started = perf_counter()
                    for sql in statements:
                        data = run(sql)
                    seconds = perf_counter() - started
                if len(data) != ROWS or list(data[0]) != [7, "name 7", "city 7", 10.5, 0]:
                    raise RuntimeError(f"{name} did not return the rows that it was asked for")
                if visit:
                    found[name].append(seconds / times * 1e6)
    return {name: median(figures) for name, figures in found.items()}


def _measure_schema(path: Path, rounds: int) -> tuple[float, float]:
    columns = ", ".join(f"column_{n} {'TEXT' if n % 2 else 'INTEGER'}" for n in range(1, COLUMNS))
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in range(TABLES):
            connection.execute(f"CREATE TABLE table_{table} (id INTEGER PRIMARY KEY, {columns})")
            rows = [[n, *(f"text {n}" if c % 2 else n * c for c in range(1, COLUMNS))] for n in range(100)]
            connection.executemany(f"INSERT INTO table_{table} VALUES (?, ?, ?, ?, ?, ?)", rows)  # noqa: S608 - a number
    first, again = [], []
    for visit in range(rounds + 1):
        with SqlDatabase(path) as database, _collected():
            started = perf_counter()
            schema = database.get_schema()
            between = perf_counter()
            same = database.get_schema()
            ended = perf_counter()
        if schema.count("100 rows") != TABLES or same != schema:
            raise RuntimeError("get_schema did not tell of all tables")
        if visit:
            first.append((between - started) * 1e3)
            again.append((ended - between) * 1e3)
    return median(first), median(again)


def _measure_validate(rounds: int, times: int) -> float:
    result = {
        "success": True,
        "data": [[n, f"name {n}", None, n * 1.5, n % 7] for n in range(ROWS)],
        "columns": ["id", "name", "city", "amount", "pieces"],
        "row_count": ROWS,
        "truncated": False,
        "error": None,
    }
    arguments = {"query": "Which sales are there?", "sql": "SELECT * FROM sales", "results": result}
    tool = next(tool for tool in SqlDatabase("unread.db").tools() if tool.name == "validate_results")
    figures = []
    for _ in range(rounds):
        with _collected():
            started = perf_counter()
            for _ in range(times):
                checked = tool.execute(**arguments)
            figures.append((perf_counter() - started) / times * 1e6)
        if checked["success"] is not True or checked["result"]["row_count"] != ROWS:
            raise RuntimeError(f"validate_results said {checked}")
    return median(figures)

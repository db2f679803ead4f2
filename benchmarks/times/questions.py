"""What a question to a database costs: a turn beside empty nodes, SQL beside bare sqlite3."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from langgraph.graph import END, START, StateGraph

from benchmarks.harness import OURS, Cost, Section, at_most, bullets, fastest, microseconds, table
from planning.agent import AgentState, SqlDatabase, build_text_to_sql_graph
from planning.tools import Tool
from session import Session

__all__ = ["measure"]

TURNS, STATEMENTS, ROWS = 200, 30, 1_000
WITH_SESSION, EMPTY = f"{OURS}, with a session", "langgraph, empty nodes"
DESCRIPTIONS = {
    OURS: "the text-to-SQL graph with a get_schema that fails: decide, call it, keep why, decide again",
    WITH_SESSION: "the same with a session: an event for each call, a record in the ledger, the Plan kept up",
    EMPTY: "the same state and edges; a node that counts the turns and one that returns nothing",
}
BARE, GUARDED = "sqlite3, one open connection", "SqlDatabase.execute"
SELECT = (
    "SELECT id, name, city, amount, pieces FROM sales WHERE amount > 10 AND id <> {} ORDER BY id LIMIT 1000"
)
METHOD = """\
Microseconds for a turn of the agent's loop, decide and act: the time of a run divided by its turns. Every
round measures each once; a figure is the lowest of the rounds."""
SQL = f"""\
Microseconds for a query of {ROWS:,} rows and five columns; every statement is different:"""
TIMES_EMPTY, TIMES_BARE = 1.1, 3.0


def measure(rounds: int) -> Section:
    """Time the loops in turn, and then the SQL."""
    graphs = {OURS: _ours(None), WITH_SESSION: _ours(Session()), EMPTY: _empty()}
    turn = fastest({name: partial(_looped, graph) for name, graph in graphs.items()}, rounds)
    with tempfile.TemporaryDirectory() as folder:
        sql = _measure_sql(Path(folder), rounds)
    return Section(
        "One question",
        ("session-planning", "langgraph", "sqlglot"),
        [
            METHOD,
            table(
                ["loop", "microseconds", "times empty"],
                [[name, time, time / turn[EMPTY]] for name, time in turn.items()],
            ),
            bullets(DESCRIPTIONS),
            SQL,
            table(["run by", "microseconds"], [[name, time] for name, time in sql.items()]),
        ],
        [
            at_most("a turn beside empty nodes", turn[OURS] / turn[EMPTY], TIMES_EMPTY),
            at_most(f"a SELECT of {ROWS:,} rows beside sqlite3", sql[GUARDED] / sql[BARE], TIMES_BARE),
        ],
        [
            Cost("a turn", turn[OURS], EMPTY, turn[EMPTY]),
            Cost("a turn with a session", turn[WITH_SESSION], EMPTY, turn[EMPTY]),
            Cost(f"a SELECT of {ROWS:,} rows", sql[GUARDED], BARE, sql[BARE]),
        ],
    )


def _ours(session: Session | None) -> Any:
    failures = count()

    def get_schema() -> dict[str, Any]:
        """Fail, each time for another reason: a failure that repeats itself would end the question."""
        return {"success": False, "error": str(next(failures))}

    tools = {"get_schema": Tool("get_schema", "Fail.", get_schema, blocking=False)}
    return build_text_to_sql_graph(tools, lambda: "", max_iterations=TURNS, reflect=False, session=session)


def _empty() -> Any:
    """The graph without anything of ours in its nodes."""
    builder = StateGraph(AgentState)
    builder.add_node("plan", _count)
    builder.add_node("execute_tools", _nothing)
    builder.add_node("complete", _nothing)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", _route, ["execute_tools", "complete"])
    builder.add_edge("execute_tools", "plan")
    builder.add_edge("complete", END)
    return builder.compile()


def _count(state: AgentState) -> dict[str, Any]:
    return {"iteration": (state.get("iteration") or 0) + 1}


def _nothing(_state: AgentState) -> dict[str, Any]:
    return {}


def _route(state: AgentState) -> str:
    return "complete" if state["iteration"] > TURNS else "execute_tools"


def _looped(graph: Any) -> float:
    final: dict[str, Any] = {}

    def run() -> None:
        final.update(
            graph.invoke({"resolved_query": "How many rows are there?"}, {"recursion_limit": 10_000})
        )

    took = microseconds(run) / TURNS
    if final["iteration"] != TURNS + 1:
        raise RuntimeError(f"a loop made {final['iteration'] - 1} turns, not {TURNS}")
    return took


def _measure_sql(folder: Path, rounds: int) -> dict[str, float]:
    _fill(folder / "rows.db")
    number = count(10_000)  # no two statements are the same: nothing that is kept of one serves another

    def timed(run: Callable[[str], list[Any]]) -> float:
        data: list[Any] = []
        took = microseconds(lambda: data.append(run(SELECT.format(next(number)))), STATEMENTS)
        if any(len(each) != ROWS or list(each[0]) != [7, "name 7", "city 7", 10.5, 0] for each in data):
            raise RuntimeError("a SELECT did not return the rows that it was asked for")
        return took

    rows = folder / "rows.db"
    with closing(sqlite3.connect(f"file:{rows}?mode=ro", uri=True)) as bare, SqlDatabase(rows) as database:
        return fastest(
            {
                BARE: lambda: timed(lambda sql: bare.execute(sql).fetchall()),
                GUARDED: lambda: timed(lambda sql: database.execute(sql)["data"]),
            },
            rounds,
        )


def _fill(rows: Path) -> None:
    with closing(sqlite3.connect(rows)) as connection, connection:
        connection.execute(
            "CREATE TABLE sales (id INTEGER PRIMARY KEY, name TEXT, city TEXT, amount REAL, pieces INTEGER)"
        )
        sales = [(n, f"name {n}", f"city {n % 50}", n * 1.5, n % 7) for n in range(5_000)]
        connection.executemany("INSERT INTO sales VALUES (?, ?, ?, ?, ?)", sales)

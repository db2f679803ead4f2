"""The graph inside other graphs, for many at once, and what bounds it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from itertools import pairwise
from typing import Any, TypedDict

import pytest
from agent_samples import (
    FINAL,
    QUESTION,
    ShopTools,
    awrite,
    failing,
    graph_of,
    in_turn,
    plan_of,
    shown,
)
from langgraph.graph import END, START, StateGraph

from planning.agent import AgentState
from session import Session

# Inside other graphs


def test_the_graph_is_a_node_of_another_with_the_same_state() -> None:
    builder = StateGraph(AgentState)
    builder.add_node("resolve", lambda state: {"resolved_query": f"{state['resolved_query']} Exactly?"})
    builder.add_node("sql", graph_of())
    builder.add_edge(START, "resolve")
    builder.add_edge("resolve", "sql")
    builder.add_edge("sql", END)
    final = builder.compile().invoke({"resolved_query": QUESTION})
    expected = FINAL | {"resolved_query": f"{QUESTION} Exactly?", "asked_query": f"{QUESTION} Exactly?"}
    assert shown(final) == expected
    assert len(final["tool_calls"]) == 3


class Chat(TypedDict, total=False):
    """A state that shares the question and the answer."""

    messages: list[str]
    resolved_query: str
    answer: str
    success: bool


def test_the_graph_is_a_node_of_one_with_another_state_and_takes_its_session(session: Session) -> None:
    def chat(graph: Any) -> Any:
        builder = StateGraph(Chat)
        builder.add_node("listen", lambda state: {"resolved_query": state["messages"][-1]})
        builder.add_node("sql", graph)
        builder.add_node("reply", lambda state: {"messages": [*state["messages"], state["answer"]]})
        for source, target in pairwise((START, "listen", "sql", "reply", END)):
            builder.add_edge(source, target)
        return builder.compile()

    final = chat(graph_of()).invoke({"messages": [QUESTION]}, {"configurable": {"session": session}})
    assert final == {
        "messages": [QUESTION, "n: 3"],
        "resolved_query": QUESTION,
        "answer": "n: 3",
        "success": True,
    }
    assert asyncio.run(chat(graph_of(generator=awrite)).ainvoke({"messages": [QUESTION]})) == final
    assert plan_of(session).startswith(f"{QUESTION} (completed, 4 of 4 done)")


# Many at once


def test_tasks_have_sessions_of_their_own() -> None:
    graph = graph_of(generator=awrite)
    sessions = [Session() for _ in range(8)]

    async def main() -> list[Any]:
        question = {"resolved_query": QUESTION}
        runs = [graph.ainvoke(question, {"configurable": {"session": session}}) for session in sessions]
        return await asyncio.gather(*runs)

    assert [shown(final) for final in asyncio.run(main())] == [FINAL] * 8
    assert {plan_of(session) for session in sessions} == {plan_of(sessions[0])}


# Its bounds


def test_a_long_run_is_not_cut_short_by_langgraphs_own_bound() -> None:
    written: list[int] = []

    def write() -> str:
        written.append(1)
        return f"SELECT {len(written)}"

    shop = ShopTools(executed=in_turn(*(failing(f"no such column: {'x' * number}") for number in range(100))))
    final = graph_of(shop, write, max_iterations=200).invoke({"resolved_query": QUESTION})
    assert (final["iteration"], len(written)) == (201, 100)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"max_iterations": 0},
            ValueError,
            "max_iterations must be a whole number of at least 1, got 0",
        ),
        (
            {"timeout": 0},
            ValueError,
            "a timeout must be seconds of more than 0, at most 1000000, or None; got 0",
        ),
        ({"generator": "SELECT 1"}, TypeError, "generate_sql must be callable, got str"),
        (
            {"clarify": "ask"},
            TypeError,
            "clarify must be a function of question and schema, or None, got 'ask'",
        ),
        (
            {"reflect": lambda result: None},
            TypeError,
            "reflect must be True or False; a tool validate_results can judge the results",
        ),
    ],
)
def test_options_that_cannot_work_are_refused_when_the_graph_is_built(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as caught:
        graph_of(**options)
    assert str(caught.value) == message


@pytest.mark.parametrize("missing", ["langgraph", "langchain_core"])
def test_without_langgraph_the_graphs_say_what_to_install(missing: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None; import planning.agent as a; a.build_planner_graph"
    )
    command = [sys.executable, "-c", program]
    error = subprocess.run(command, capture_output=True, text=True, check=False).stderr.splitlines()[-1]
    assert error.startswith("ImportError: the graphs need LangGraph (")
    assert error.endswith(" is missing); install it with pip install 'session-planning[agent]'")

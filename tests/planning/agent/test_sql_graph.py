"""The graph that answers questions with SQL, in every way in which LangGraph runs it."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

import pytest
from agent_samples import (
    COUNT,
    FINAL,
    QUESTION,
    SCHEMA,
    ShopTools,
    awrite,
    called,
    failing,
    graph_of,
    in_turn,
    plan_of,
    rows,
    shown,
)
from langgraph.graph import END, START, StateGraph
from readonly_files import make

from planning.agent import AgentState, build_text_to_sql_graph
from session import Session

ASKED = "For which year?"


def test_a_question_is_all_that_it_takes() -> None:
    final = graph_of().invoke({"resolved_query": QUESTION})
    assert shown(final) == FINAL
    assert final["schema"] == SCHEMA
    assert called(final) == [("get_schema", True), ("execute_sql", True), ("validate_results", True)]


def test_async_tools_and_an_async_generator_are_awaited() -> None:
    async def get_schema(query: str) -> str:
        """Read the schema."""
        await asyncio.sleep(0)
        return SCHEMA

    graph = build_text_to_sql_graph({**ShopTools().tools(), "get_schema": get_schema}, awrite)
    assert shown(asyncio.run(graph.ainvoke({"resolved_query": QUESTION}))) == FINAL
    assert shown(graph.invoke({"resolved_query": QUESTION})) == FINAL

    async def within_a_loop() -> Any:
        return graph_of(generator=awrite).invoke({"resolved_query": QUESTION})["user_message"]

    message = "generate_sql is async: await acall, aexecute or ainvoke from code that runs in an event loop"
    assert asyncio.run(within_a_loop()) == message


def test_only_the_callers_own_clarification_asks_back() -> None:
    question = "What is the weather like tomorrow?"
    final = graph_of().invoke({"resolved_query": question})
    assert (final["needs_user_input"], final["success"]) == (False, True)
    final = graph_of(clarify=lambda question, schema: ASKED).invoke({"resolved_query": question})
    assert shown(final) == FINAL | {
        "resolved_query": question,
        "asked_query": question,
        "sql_query": None,
        "execution_result": None,
        "validation_result": None,
        "iteration": 2,
        "needs_user_input": True,
        "input_request": ASKED,
        "success": False,
        "answer": ASKED,
    }


@pytest.mark.parametrize("question", [None, "", "  \n", 5, ["How many?"], {}])
def test_without_a_question_the_user_is_asked_for_one(question: Any) -> None:
    shop = ShopTools()
    final = graph_of(shop).invoke({"resolved_query": question})
    assert (final["needs_user_input"], final["success"]) == (True, False)
    assert (final["answer"], final["iteration"]) == ("What would you like to know?", 1)
    assert shop.calls == []


# Repairs


def test_the_error_of_a_statement_goes_back_to_the_generator() -> None:
    shop = ShopTools(executed=in_turn(failing("no such column: nope"), failing("late", "timeout"), rows([3])))
    seen: list[Any] = []

    def write(error: str | None, attempts: list[Any]) -> str:
        seen.append((error, len(attempts)))
        return f"SELECT {len(seen)}"

    final = graph_of(shop, write).invoke({"resolved_query": QUESTION})
    assert seen == [(None, 0), ("no such column: nope", 1), ("late", 2)]
    assert shown(final) == FINAL | {
        "sql_query": "SELECT 3",
        "iteration": 9,
        "attempts": [
            {"sql": "SELECT 1", "error": "no such column: nope"},
            {"sql": "SELECT 2", "error": "late"},
        ],
    }


def test_a_failure_that_passes_is_forgotten() -> None:
    shop = ShopTools(
        schema=in_turn(OSError("locked"), SCHEMA), executed=in_turn(failing("busy", "storage"), rows([3]))
    )
    final = graph_of(shop).invoke({"resolved_query": QUESTION})
    assert shown(final) == FINAL | {"iteration": 7}
    assert shop.statements == [COUNT, COUNT]


def test_results_that_cannot_be_checked_are_an_answer_still() -> None:
    shop = ShopTools(verdict=OSError("gone"))
    final = graph_of(shop).invoke({"resolved_query": QUESTION})
    assert (final["success"], final["error"], final["answer"]) == (True, None, "n: 3")
    assert shop.names.count("validate_results") == 3


# Work in the first state


@pytest.mark.parametrize(
    ("given", "names", "iteration"),
    [
        ({"schema": "mine"}, ["execute_sql", "validate_results"], 4),
        ({"schema": "", "sql_query": "SELECT 9"}, ["execute_sql", "validate_results"], 3),
        ({"schema": "mine", "sql_query": "SELECT 9", "execution_result": rows([9])}, ["validate_results"], 2),
        (
            {"is_complete": True, "needs_user_input": True, "input_request": "Which?", "success": True},
            ["get_schema", "execute_sql", "validate_results"],
            5,
        ),
        (
            {"schema": None, "tool_calls": [], "attempts": None, "iteration": 0, "error": "old"},
            ["get_schema", "execute_sql", "validate_results"],
            5,
        ),
    ],
)
def test_work_that_is_done_already_is_not_done_again(
    given: dict[str, Any], names: list[str], iteration: int
) -> None:
    shop = ShopTools()
    final = graph_of(shop).invoke({"resolved_query": QUESTION, **given})
    assert shop.names == names
    work = {key: given[key] for key in ("sql_query", "execution_result") if key in given}
    answer = {"answer": "n: 9"} if "execution_result" in given else {}
    assert shown(final) == FINAL | work | answer | {"iteration": iteration}


def test_errors_in_the_first_state_are_not_those_of_the_question() -> None:
    old = {"resolved_query": QUESTION, "error": "old", "user_message": "old", "attempts": [{"error": "old"}]}
    final = graph_of(max_iterations=1).invoke(old)
    assert (final["error"], final["user_message"], final["answer"], final["attempts"]) == (
        "no answer within 1 decisions; allow more with max_iterations",
        None,
        "The question could not be answered: no answer within 1 decisions; allow more with max_iterations",
        [],
    )


def test_iterations_count_from_those_in_the_state() -> None:
    shop = ShopTools()
    final = graph_of(shop).invoke({"resolved_query": QUESTION, "iteration": 12})
    assert (final["iteration"], final["success"], shop.calls) == (13, False, [])


# Over a file


@pytest.fixture
def shop_file(tmp_path: Path) -> Path:
    script = """
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
        INSERT INTO customers (name, city)
        VALUES ('Ada', 'London'), ('Grace', 'New York'), ('Alan', 'London');
    """
    return make(tmp_path / "shop.db", script)


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize(
    ("sql", "problem", "data"),
    [
        ("SELECT name FROM customers WHERE city = 'london'", "no rows", [["Ada"], ["Alan"]]),
        ("SELECT count(*) FROM customers WHERE city = 'london'", "nothing but 0", [[2]]),
        ("SELECT max(id) FROM customers WHERE city = 'london'", "nothing but NULL", [[3]]),
    ],
)
def test_values_that_no_row_has_go_back_to_the_generator(
    shop_file: Path, sql: str, problem: str, data: list[Any], kind: type[str | Path]
) -> None:
    statements = iter([sql, sql.replace("london", "London")])
    final = build_text_to_sql_graph(kind(shop_file), lambda: next(statements)).invoke(
        {"resolved_query": "Who?"}
    )
    assert final["execution_result"]["data"] == data
    error = f"it ran and returned {problem}: customers.city has no 'london'; it has 'London'"
    assert [attempt["error"] for attempt in final["attempts"]] == [error]


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
    assert graph.name == "text_to_sql"
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
    graph = graph_of(shop, write, max_iterations=200)
    final = graph.invoke({"resolved_query": QUESTION})
    assert (final["iteration"], len(written)) == (201, 100)
    assert graph.config["recursion_limit"] == 10_000


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
        (
            {"prompt_limit": 3_999},
            ValueError,
            "prompt_limit must be 4,000 to 50,000 characters, got 3999",
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


@pytest.mark.parametrize("missing", ["langgraph.graph", "langchain_core.runnables"])
def test_without_langgraph_the_graphs_say_what_to_install(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "planning.agent.graph")
    with pytest.raises(ImportError) as caught:
        import_module("planning.agent.graph")
    assert str(caught.value) == (
        f"the graphs need LangGraph ({missing} is missing); install it with "
        "pip install 'session-planning[agent]'"
    )

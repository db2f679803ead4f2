"""The graph that answers questions with SQL: in every way in which LangGraph runs it, and true at its end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from itertools import count, pairwise
from pathlib import Path
from typing import Any, TypedDict
from unittest.mock import Mock

import pytest
from agent_samples import (
    COUNT,
    FINAL,
    FINE,
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
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from plan_findings import stored_values, with_outcomes
from run_cases import refusal
from syrupy.assertion import SnapshotAssertion

from planning import Plan
from planning.agent import build_planner_graph, build_text_to_sql_graph
from planning.agent.state import STEPS
from planning.tools import StorageUnavailable, ToolError
from planning.tools.errors import UserInputNeeded
from session import Session, select_latest

ASKED = "For which year?"


def test_a_question_is_all_that_it_takes() -> None:
    final = graph_of().invoke({"resolved_query": QUESTION})
    assert shown(final) == FINAL
    assert final["schema"] == SCHEMA
    assert called(final) == [("get_schema", True), ("execute_sql", True), ("validate_results", True)]


def test_only_the_callers_own_clarification_asks_back() -> None:
    final = graph_of().invoke({"resolved_query": "What is the weather like tomorrow?"})
    assert (final["needs_user_input"], final["success"]) == (False, True)
    final = graph_of(clarify=lambda question, schema: ASKED).invoke({"resolved_query": QUESTION})
    work = dict.fromkeys(("sql_query", "execution_result", "validation_result"))
    asks = {"needs_user_input": True, "input_request": ASKED, "success": False, "answer": ASKED}
    assert shown(final) == FINAL | work | asks | {"iteration": 2}


@pytest.mark.parametrize("question", [None, "", "  \n", 5, ["How many?"], {}])
def test_without_a_question_the_user_is_asked_for_one(question: Any) -> None:
    shop = ShopTools()
    final = graph_of(shop).invoke({"resolved_query": question})
    assert (final["needs_user_input"], final["success"]) == (True, False)
    assert (final["answer"], final["iteration"]) == ("What would you like to know?", 1)
    assert shop.calls == []


def test_results_that_cannot_be_checked_are_an_answer_still() -> None:
    shop = ShopTools(verdict=OSError("gone"))
    final = graph_of(shop).invoke({"resolved_query": QUESTION})
    assert (final["success"], final["error"], final["answer"]) == (True, None, "n: 3")
    assert shop.names.count("validate_results") == 3


ENDED = {"is_complete": True, "needs_user_input": True, "input_request": "Which?", "success": True}
EMPTY: dict[str, Any] = {"schema": None, "tool_calls": [], "attempts": None, "iteration": 0, "error": "old"}


@pytest.mark.parametrize(
    ("before", "calls", "iteration"),
    [
        ({"schema": "mine"}, 2, 4),
        ({"schema": "", "sql_query": "SELECT 9"}, 2, 3),
        ({"schema": "mine", "sql_query": "SELECT 9", "execution_result": rows([9])}, 1, 2),
        (ENDED, 3, 5),
        (EMPTY, 3, 5),
    ],
)
def test_work_that_is_done_is_not_done_again(before: dict[str, Any], calls: int, iteration: int) -> None:
    shop = ShopTools()
    final = graph_of(shop).invoke({"resolved_query": QUESTION, **before})
    assert shop.names == ["get_schema", "execute_sql", "validate_results"][-calls:]
    work = {key: before[key] for key in ("sql_query", "execution_result") if key in before}
    answer = {"answer": "n: 9"} if "execution_result" in before else {}
    assert shown(final) == FINAL | work | answer | {"iteration": iteration}


def test_the_first_state_has_iterations_that_count_and_errors_that_do_not() -> None:
    shop, errors = ShopTools(), {"error": "old", "user_message": "old", "attempts": [{"error": "old"}]}
    final = graph_of(shop).invoke({"resolved_query": QUESTION, "iteration": 12, **errors})
    assert (final["iteration"], final["success"], shop.calls) == (13, False, [])
    error = "no answer within 12 decisions; allow more with max_iterations"
    assert (final["error"], final["answer"]) == (error, f"The question could not be answered: {error}")
    assert (final["user_message"], final["attempts"]) == (None, [])


@pytest.mark.parametrize("kind", [str, Path])
def test_values_that_no_row_has_go_back_to_the_generator(shop_path: Path, kind: type[str | Path]) -> None:
    sql = "SELECT count(*) FROM cities WHERE name = 'oslo'"
    statements = iter([sql, sql.replace("oslo", "Oslo")])
    graph = build_text_to_sql_graph(kind(shop_path), lambda: next(statements))
    final = graph.invoke({"resolved_query": "Which?"})
    assert final["execution_result"]["data"] == [[1]]
    error = "it ran and returned nothing but 0: cities.name has no 'oslo'; it has 'Oslo'"
    assert [attempt["error"] for attempt in final["attempts"]] == [error]


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
    ended = {"resolved_query": QUESTION, "answer": "n: 3", "success": True}
    assert final == {"messages": [QUESTION, "n: 3"], **ended}
    assert asyncio.run(chat(graph_of(generator=awrite)).ainvoke({"messages": [QUESTION]})) == final
    assert plan_of(session).startswith(f"{QUESTION} (completed, 4 of 4 done)")


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


def test_a_long_run_is_not_cut_short_by_langgraphs_own_bound() -> None:
    written = count(1)
    shop = ShopTools(executed=in_turn(*(failing(f"no such column: {'x' * number}") for number in range(100))))
    graph = graph_of(shop, lambda: f"SELECT {next(written)}", max_iterations=200)
    assert graph.invoke({"resolved_query": QUESTION})["iteration"] == 201
    assert next(written) == 101
    assert graph.config["recursion_limit"] == 10_000


def test_options_that_cannot_work_are_refused_at_once(snapshot: SnapshotAssertion) -> None:
    def outcome(options: dict[str, Any]) -> str:
        with pytest.raises((TypeError, ValueError)) as refused:
            graph_of(**options)
        return f"{refused.typename}: {refused.value}"

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot


@pytest.mark.parametrize("missing", ["langgraph.graph", "langchain_core.runnables"])
def test_without_langgraph_one_reads_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "planning.agent.graph")
    remedy = "install it with pip install 'session-planning[agent]'"
    message = f"the graphs need LangGraph ({missing} is missing); {remedy}"
    assert refusal(ImportError, import_module, "planning.agent.graph") == message


# With checkpointers: stopped and resumed, and asked several questions

THREAD: Any = {"configurable": {"thread_id": "t1"}}
ORDERS = "How many orders are there?"

Saver = Callable[[], AbstractContextManager[SqliteSaver]]


@pytest.fixture
def saver(tmp_path: Path) -> Saver:
    """Opens the states that are kept, as a program that starts anew does."""
    return lambda: SqliteSaver.from_conn_string(str(tmp_path / "states.db"))


def ask(shop: ShopTools, saver: Saver, question: str | None = QUESTION, generator: Any = None) -> Any:
    """The final state of a question; without one the last run is resumed."""
    with saver() as states:
        given = None if question is None else {"resolved_query": question}
        return graph_of(shop, generator, checkpointer=states).invoke(given, THREAD)


@pytest.mark.parametrize("node", ["plan", "generate_sql", "execute_tools", "complete"])
@pytest.mark.parametrize("when", ["interrupt_before", "interrupt_after"])
def test_a_run_that_is_stopped_is_resumed_in_another_graph(saver: Saver, node: str, when: str) -> None:
    shop = ShopTools()
    given: Any = {"resolved_query": QUESTION}
    for _ in range(20):
        with saver() as states:
            graph = graph_of(shop, checkpointer=states)
            graph.invoke(given, THREAD, **{when: [node]})
            given = None
            if not graph.get_state(THREAD).next:
                break
    with saver() as states:
        final = graph_of(shop, checkpointer=states).get_state(THREAD).values
    assert shown(final) == FINAL
    assert shop.names == ["get_schema", "execute_sql", "validate_results"]
    assert len(final["tool_calls"]) == 3


def test_another_question_is_never_answered_with_the_first_ones_result(saver: Saver) -> None:
    shop = ShopTools(executed=in_turn(rows([3]), failing("no such table: orders", "storage")))
    first, second = ask(shop, saver), ask(shop, saver, ORDERS)
    assert (first["success"], first["answer"]) == (True, "n: 3")
    assert (second["success"], second["execution_result"], second["asked_query"]) == (False, None, ORDERS)
    assert second["answer"] == "The question could not be answered: no such table: orders"
    assert called(second) == [("get_schema", True), *[("execute_sql", False)] * 3]
    assert second["iteration"] == 5


def test_after_an_answer_or_a_question_back_the_next_question_starts_over(saver: Saver) -> None:
    finals = [ask(ShopTools(), saver, each) for each in ("", QUESTION, " ", QUESTION, QUESTION)]
    assert [final["answer"] for final in finals[0:3:2]] == ["What would you like to know?"] * 2
    assert [shown(final) for final in (finals[1], *finals[3:])] == [FINAL] * 3
    assert len(finals[4]["tool_calls"]) == 3


@pytest.mark.parametrize("tool", ["schema", "executed", "verdict"])
def test_after_an_interrupted_run_another_question_starts_over(saver: Saver, tool: str) -> None:
    answers: dict[str, Any] = {tool: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        ask(ShopTools(**answers), saver, generator=lambda: "SELECT 'first'")
    shop = ShopTools(executed=rows([4]))
    final = ask(shop, saver, ORDERS)
    assert shop.names == ["get_schema", "execute_sql", "validate_results"]
    assert shop.statements == [COUNT]
    assert (final["answer"], final["iteration"], final["asked_query"]) == ("n: 4", 5, ORDERS)


def test_a_planners_next_request_ignores_the_last(saver: Saver) -> None:
    plans = iter([{"queries": ["rooms"], "intent": "search"}, "no JSON", {"needs_user_input": True}])
    finals = []
    with saver() as states:
        for request in ("Which rooms?", "Hm?", "Is he here?"):
            graph = build_planner_graph(
                [],
                lambda: next(plans),
                lambda query_results, intent, state: [query_results, intent, state["response"]],
                execute_queries=lambda queries: queries,
                checkpointer=states,
            )
            finals.append(graph.invoke({"resolved_query": request}, THREAD))
    responses = [[["rooms"], "search", None], [[], None, None], [None] * 3]
    assert [final["response"] for final in finals] == responses
    assert [final["error"] is None for final in finals] == [True, False, True]


# Whatever tools and generator do, the question ends, and its end is true

ASKING = UserInputNeeded("it lacks a year", "Which year?")
FAILURES = [ToolError("no"), StorageUnavailable("gone"), ValueError("secret"), TimeoutError("late"), ASKING]
REPORTED = [failing("no such column", "parameter"), failing("late", "timeout"), failing("busy", "storage")]
RESULTS = [rows([3]), rows(), rows([None]), rows([1, None], [2, None]), {"data": [{"n": 3}]}, {}, "text"]
VERDICTS = [FINE, {"is_valid": False, "issues": ["too few"]}, {"is_valid": False}, {}, True, False, "odd"]
ANSWERS = ["SELECT 1", "SELECT 2", {"sql": "SELECT 3"}, {"needs_user_input": True}, "{", {"text": 1}, None]


def turns(*kinds: list[Any]) -> st.SearchStrategy[list[Any]]:
    """The outcomes, call by call; the last for all calls that come after."""
    return st.lists(st.sampled_from([each for kind in kinds for each in kind]), min_size=1, max_size=8)


@given(
    tools=st.tuples(
        turns([SCHEMA, "", {"tables": 2}, None], FAILURES),
        turns(RESULTS, RESULTS, [None], FAILURES, REPORTED),
        turns(VERDICTS, VERDICTS, [None], FAILURES),
    ),
    answers=turns(ANSWERS, ANSWERS, FAILURES),
    reflects=st.booleans(),
    limit=st.integers(1, 14),
    is_async=st.booleans(),
)
def test_success_is_never_claimed_and_failure_is_always_explained(
    tools: tuple[list[Any], ...], answers: list[Any], reflects: bool, limit: int, is_async: bool
) -> None:
    schema, executed, verdict = (in_turn(*each) for each in tools)
    session = Session()
    shop = ShopTools(schema=schema, executed=executed, verdict=verdict)
    generator = Mock(side_effect=[*answers, *answers[-1:] * limit])
    graph = graph_of(shop, generator, session=session, reflect=reflects, max_iterations=limit)
    question = {"resolved_query": QUESTION}
    final = asyncio.run(graph.ainvoke(question)) if is_async else graph.invoke(question)

    assert (final["is_complete"], final["next_action"]) == (True, "complete")
    assert final["iteration"] <= limit + 1
    assert generator.call_count <= limit
    assert final["answer"].strip()
    runs = [call for call in final["tool_calls"] if call["tool"] == "execute_sql"]
    ran = zip(shop.statements, runs, strict=True)
    check_success(final, [(sql, call["result"]) for sql, call in ran if call["success"]])
    check_plan(session, final)


def check_success(final: dict[str, Any], ran: list[tuple[str, Any]]) -> None:
    """It is a success only if a statement ran and was not refused; otherwise there is an error."""
    result, asks = final["execution_result"], final["needs_user_input"]
    assert (final["error"] is None) is (final["success"] or asks)
    assert not (final["success"] and asks)
    if final["success"]:
        assert isinstance(result, dict)
        assert not is_refused(final)
        assert (final["sql_query"], result) in ran
    elif asks:
        assert final["answer"] == final["input_request"]
    else:
        assert is_refused(final) or not isinstance(result, dict)
        assert final["answer"].startswith("The question could not be answered: ")
        assert "secret" not in final["answer"]


def is_refused(final: dict[str, Any]) -> bool:
    verdict = final["validation_result"]
    return verdict is False or (isinstance(verdict, dict) and verdict.get("is_valid", True) is not True)


def check_plan(session: Session, final: dict[str, Any]) -> None:
    """What the state has is done in the plan; what it lacks first is blocked."""
    plan = select_latest(session, Plan)
    assert plan is not None
    there = [final[step.key] is not None for step in STEPS]
    done = there.index(False) if False in there else len(there)
    expected = ["done"] * done + ["blocked"] * (done < len(there)) + ["pending"] * (len(there) - done - 1)
    if all(there) and is_refused(final):
        expected[-1] = "blocked"
    assert [step.status for step in plan.steps] == expected

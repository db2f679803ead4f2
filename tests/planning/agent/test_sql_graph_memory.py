"""The graph with LangGraph's checkpointers: stopped and resumed, and asked several questions."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from agent_samples import COUNT, FINAL, QUESTION, ShopTools, called, failing, in_turn, rows, shown
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from planning.agent import build_planner_graph, build_text_to_sql_graph

THREAD: Any = {"configurable": {"thread_id": "t1"}}
ORDERS = "How many orders are there?"

Saver = Callable[[], AbstractContextManager[BaseCheckpointSaver[Any]]]


@pytest.fixture(params=["in memory", "in a file"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Saver:
    """Opens the states that are kept, as a program that starts anew does."""
    if request.param == "in a file":
        return lambda: SqliteSaver.from_conn_string(str(tmp_path / "states.db"))
    kept = InMemorySaver()
    return lambda: nullcontext(kept)


def graph_of(shop: ShopTools, saver: Any, generator: Any = None) -> Any:
    return build_text_to_sql_graph(shop.tools(), generator or (lambda: COUNT), checkpointer=saver)


def ask(shop: ShopTools, saver: Saver, question: str | None = QUESTION, generator: Any = None) -> Any:
    """The final state of a question; without one the last run is resumed."""
    with saver() as states:
        given = None if question is None else {"resolved_query": question}
        return graph_of(shop, states, generator).invoke(given, THREAD)


@pytest.mark.parametrize("node", ["plan", "generate_sql", "execute_tools", "complete"])
@pytest.mark.parametrize("when", ["interrupt_before", "interrupt_after"])
def test_a_run_that_is_stopped_is_resumed_in_another_graph(saver: Saver, node: str, when: str) -> None:
    shop = ShopTools()
    whole = shown(graph_of(ShopTools(), None).invoke({"resolved_query": QUESTION}))
    given: Any = {"resolved_query": QUESTION}
    for _ in range(20):
        with saver() as states:
            graph = graph_of(shop, states)
            graph.invoke(given, THREAD, **{when: [node]})
            given = None
            if not graph.get_state(THREAD).next:
                break
    with saver() as states:
        final = graph_of(shop, states).get_state(THREAD).values
    assert shown(final) == whole
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


def test_after_the_user_was_asked_back_the_next_question_starts_over(saver: Saver) -> None:
    finals = [ask(ShopTools(), saver, each) for each in ("", QUESTION, " ", QUESTION)]
    assert [final["answer"] for final in finals] == ["What would you like to know?", "n: 3"] * 2
    assert shown(finals[1]) == shown(finals[3]) == FINAL


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


def test_an_interrupted_run_can_be_resumed(saver: Saver) -> None:
    shop = ShopTools(executed=in_turn(KeyboardInterrupt(), rows([3])))
    with pytest.raises(KeyboardInterrupt):
        ask(shop, saver)
    final = ask(shop, saver, None)
    assert shop.names == ["get_schema", "execute_sql", "execute_sql", "validate_results"]
    assert (final["success"], final["iteration"]) == (True, 5)


def test_the_values_of_a_database_are_restored(saver: Saver) -> None:
    values = [2**63 - 1, 0.1, "Z\u00fcrich \U0001f600\0", None, True, b"\x00\xff", 12_345_678_901_234_567_890]
    values += [Decimal("1.10"), datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3)]
    result = rows(values, columns=["a"] * len(values))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(ShopTools(executed=result), saver)
    with saver() as states:
        state = graph_of(ShopTools(), states).get_state(THREAD).values
    assert state["execution_result"] == state["tool_calls"][1]["result"] == result
    assert list(map(type, state["execution_result"]["data"][0])) == list(map(type, values))


def test_the_same_question_again_is_asked_again(saver: Saver) -> None:
    shop = ShopTools(executed=in_turn(rows([3]), rows([4])))
    for count in (3, 4):
        final = ask(shop, saver)
        assert (final["answer"], final["iteration"], len(final["tool_calls"])) == (f"n: {count}", 5, 3)


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
    assert [final["response"] for final in finals] == [
        [["rooms"], "search", None],
        [[], None, None],
        [None] * 3,
    ]
    assert [final["error"] is None for final in finals] == [True, False, True]

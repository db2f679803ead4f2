"""The graph with LangGraph's checkpointers: stopped in the middle and resumed, and asked again and again."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from agent_samples import COUNT, QUESTION, ShopTools, called, failing, in_turn, rows, shown
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


def graph_of(shop: ShopTools, saver: Any, generator: Any = None, **options: Any) -> Any:
    """A new graph over a saver."""
    return build_text_to_sql_graph(shop.tools(), generator or (lambda: COUNT), checkpointer=saver, **options)


@pytest.mark.parametrize("node", ["plan", "generate_sql", "execute_tools", "complete"])
@pytest.mark.parametrize("when", ["interrupt_before", "interrupt_after"])
def test_a_run_that_is_stopped_goes_on_in_another_graph(saver: Saver, node: str, when: str) -> None:
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
    with saver() as states:
        first = graph_of(shop, states).invoke({"resolved_query": QUESTION}, THREAD)
    with saver() as states:
        second = graph_of(shop, states).invoke({"resolved_query": ORDERS}, THREAD)
    assert (first["success"], first["answer"]) == (True, "n: 3")
    assert (second["success"], second["execution_result"], second["asked_query"]) == (False, None, ORDERS)
    assert second["answer"] == "The question could not be answered: no such table: orders"
    assert called(second) == [("get_schema", True), *[("execute_sql", False)] * 3]
    assert second["iteration"] == 5


def test_after_the_user_was_asked_back_his_next_question_begins_afresh(saver: Saver) -> None:
    with saver() as states:
        graph = graph_of(ShopTools(), states)
        asked = graph.invoke({"resolved_query": ""}, THREAD)
        final = graph.invoke({"resolved_query": QUESTION}, THREAD)
        blank = graph.invoke({"resolved_query": " "}, THREAD)
        again = graph.invoke({"resolved_query": QUESTION}, THREAD)
    assert (asked["needs_user_input"], asked["success"]) == (True, False)
    assert (final["needs_user_input"], final["input_request"], final["success"]) == (False, None, True)
    assert (blank["success"], blank["answer"]) == (False, "What would you like to know?")
    assert shown(again) == shown(final)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("tool", ["schema", "executed", "verdict"])
def test_after_a_run_was_broken_off_another_question_begins_afresh(
    saver: Saver, stop: type[BaseException], tool: str
) -> None:
    answers: dict[str, Any] = {tool: stop()}
    with saver() as states:
        broken = graph_of(ShopTools(**answers), states, lambda: "SELECT 'first'")
        with pytest.raises(stop):
            broken.invoke({"resolved_query": QUESTION}, THREAD)
    shop = ShopTools(executed=rows([4]))
    with saver() as states:
        final = graph_of(shop, states).invoke({"resolved_query": ORDERS}, THREAD)
    assert shop.names == ["get_schema", "execute_sql", "validate_results"]
    assert shop.statements == [COUNT]
    assert (final["answer"], final["iteration"], final["asked_query"]) == ("n: 4", 5, ORDERS)


def test_a_run_that_was_broken_off_goes_on_when_it_is_resumed(saver: Saver) -> None:
    shop = ShopTools(executed=in_turn(KeyboardInterrupt(), rows([3])))
    with saver() as states, pytest.raises(KeyboardInterrupt):
        graph_of(shop, states).invoke({"resolved_query": QUESTION}, THREAD)
    with saver() as states:
        final = graph_of(shop, states).invoke(None, THREAD)
    assert shop.names == ["get_schema", "execute_sql", "execute_sql", "validate_results"]
    assert (final["success"], final["iteration"]) == (True, 5)


VALUES: list[list[Any]] = [
    [1, 2**63 - 1, -(2**63), 0.1, -0.0, 1e308],
    ["text", "Zürich", "\U0001f600", "line\nbreak", "", "\0"],
    [None, True, False, b"", b"\x00\xff", 12_345_678_901_234_567_890],
    [Decimal("1.10"), datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3), 0, 0, 0],
]


def test_what_a_database_holds_comes_back_as_it_was(saver: Saver) -> None:
    result = rows(*VALUES, columns=["a", "a", "b", "c", "d", "e"])
    with warnings.catch_warnings(), saver() as states:
        warnings.simplefilter("error")
        graph_of(ShopTools(executed=result), states).invoke({"resolved_query": QUESTION}, THREAD)
    with saver() as states:
        state = graph_of(ShopTools(), states).get_state(THREAD).values
    assert state["execution_result"] == result
    assert [[type(value) for value in row] for row in state["execution_result"]["data"]] == [
        [type(value) for value in row] for row in VALUES
    ]
    assert state["tool_calls"][1]["result"] == result


# The planner's graph


def test_a_planners_next_request_knows_nothing_of_the_last(saver: Saver) -> None:
    def lookup(name: str) -> str:
        """Look somebody up."""
        return f"{name} is here"

    plans = iter(
        [
            {"tool_calls": [{"tool": "lookup", "args": {"name": "Ada"}}], "intent": "lookup"},
            {"queries": ["rooms"]},
            "no JSON",
            {"needs_user_input": True, "input_request": "Who?"},
        ]
    )
    finals = []
    with saver() as states:
        for request in ("Is Ada here?", "Which rooms?", "Hm?", "Is he here?"):
            graph = build_planner_graph(
                [lookup],
                lambda: next(plans),
                lambda tool_results, query_results: [len(tool_results), query_results],
                execute_queries=lambda queries: queries,
                checkpointer=states,
            )
            finals.append(graph.invoke({"resolved_query": request}, THREAD))
    assert [final["response"] for final in finals] == [[1, None], [0, ["rooms"]], [0, []], [0, None]]
    assert [final["intent"] for final in finals] == ["lookup", None, None, None]
    assert [final["error"] is None for final in finals] == [True, True, False, True]
    assert [final["input_request"] for final in finals] == [None, None, None, "Who?"]


def test_the_same_question_again_is_asked_again(saver: Saver) -> None:
    shop = ShopTools(executed=in_turn(rows([3]), rows([4])))
    for count in (3, 4):
        with saver() as states:
            final = graph_of(shop, states).invoke({"resolved_query": QUESTION}, THREAD)
        assert (final["answer"], final["iteration"], len(final["tool_calls"])) == (f"n: {count}", 5, 3)

"""The session's plan follows a graph: what it says after each node is what the state says."""

from __future__ import annotations

from typing import Any

import pytest
from agent_samples import QUESTION, ShopTools, failing, graph_of, in_turn, plan_of, rows
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanningToolsSection, Toolbox
from planning.tools import StorageUnavailable
from planning.tools.errors import UserInputNeeded
from planning.tools.ledger import tool_calls
from session import Session, select_latest

REFUSED = {"is_valid": False, "has_results": True, "row_count": 1, "issues": ["a column is missing"]}


def written(*statements: str) -> Any:
    """A generator that writes these, the last of them again and again."""
    left = list(statements)
    return lambda: left[0] if len(left) == 1 else left.pop(0)


CASES: dict[str, tuple[dict[str, Any], Any, dict[str, Any]]] = {
    "a_pass": ({}, None, {}),
    "a_repair": (
        {"executed": in_turn(failing("no such column: nope; did you mean name?"), rows(["Ada"]))},
        written("SELECT nope FROM customers", "SELECT name FROM customers"),
        {},
    ),
    "an_empty_result": ({"executed": in_turn(rows(), rows([3]))}, written("SELECT 1", "SELECT 2"), {}),
    "the_same_failure": ({"executed": failing("no such column: nope")}, written("SELECT nope"), {}),
    "no_generator": ({}, lambda: None, {}),
    "no_database": ({"schema": StorageUnavailable("the file is gone; put it back")}, None, {}),
    "a_question_back": ({}, lambda: {"needs_user_input": True, "input_request": "Which year?"}, {}),
    "a_tool_asks": ({"executed": UserInputNeeded("it lacks a year", "Which year?")}, None, {}),
    "refused_results": ({"verdict": REFUSED}, written("SELECT 1", "SELECT 2"), {}),
    "no_time": ({}, None, {"max_iterations": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_after_each_node_the_plan_shows_where_it_stands(
    case: str, session: Session, snapshot: SnapshotAssertion
) -> None:
    answers, generator, options = CASES[case]
    turns: Any = {name: in_turn(*turn) if isinstance(turn, list) else turn for name, turn in answers.items()}
    graph = graph_of(ShopTools(**turns), generator, session=session, **options)
    plans = []
    for update in graph.stream({"resolved_query": QUESTION}, stream_mode="updates"):
        plans.append(f"# {next(iter(update))}\n{plan_of(session)}")
    assert "\n\n".join(plans) + "\n" == snapshot


def test_a_node_that_changes_nothing_marks_nothing(session: Session) -> None:
    graph_of(session=session).invoke({"resolved_query": QUESTION})
    assert session.version == 12  # four calls; each step begins and ends


def test_the_same_question_again_has_a_plan_that_starts_over(session: Session) -> None:
    graph = graph_of(session=session)
    first, second = ([plan_of(session) for _ in graph.stream({"resolved_query": QUESTION})] for _ in range(2))
    assert first == second


def test_each_call_is_in_the_ledger(session: Session) -> None:
    shop = ShopTools(executed=in_turn(failing("no such column: nope"), ConnectionError("gone"), rows([3])))
    graph_of(shop, written("SELECT 1", "SELECT 2"), session=session).invoke({"resolved_query": QUESTION})
    assert [(call.tool, call.outcome) for call in reversed(tool_calls(session))] == [
        ("get_schema", "success"),
        ("generate_sql", "success"),
        ("execute_sql", "parameter"),
        ("generate_sql", "success"),
        ("execute_sql", "storage"),
        ("execute_sql", "success"),
        ("validate_results", "success"),
    ]


@pytest.mark.parametrize(
    "titles",
    [
        ["Count the customers", "Write it down"],
        [],
        ["Read the schema", "Write the SQL", "Run the SQL", "Draw a chart"],
    ],
)
def test_an_active_plan_of_other_code_is_left_alone(session: Session, titles: list[str]) -> None:
    steps = [{"title": title} for title in titles]
    toolbox = Toolbox(PlanningToolsSection(session=session).tools())
    toolbox.call("planning_setup_plan", {"objective": "Write the report", "initial_steps": steps})
    before = select_latest(session, Plan)
    final = graph_of(session=session).invoke({"resolved_query": QUESTION})
    assert final["success"] is True
    assert select_latest(session, Plan) is before


# Questions of all kinds


@pytest.mark.parametrize(
    ("question", "objective"),
    [
        ("Wie viele in Z\u00fcrich \u2013 gesamt?", "Wie viele in Zurich - gesamt?"),
        ("\u9867\u5ba2 customers \U0001f600", "Answer a question"),
        ("customers \x00\x1b[31m\x7f", "customers [31m"),
        ("customers " * 1_000, "customers " * 23 + "custome..."),
        ("", "Answer a question"),
        (None, "Answer a question"),
    ],
)
def test_any_question_can_be_an_objective_and_any_statement_a_note(
    session: Session, question: Any, objective: str
) -> None:
    sql = "SELECT '" + "\u00e9" * 5_000 + "'\nFROM t"
    graph = graph_of(generator=lambda: sql, session=session)
    graph.invoke({"resolved_query": "Another question"})
    graph.invoke({"resolved_query": question, "schema": "given"})
    plan = select_latest(session, Plan)
    assert plan is not None
    assert plan.objective == objective
    assert plan.steps[1].notes == ((f"SELECT '{'e' * 189}...",) if question else ())

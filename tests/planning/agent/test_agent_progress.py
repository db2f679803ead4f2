"""The session's plan follows a graph: what it says after each node is what the state says."""

from __future__ import annotations

from typing import Any

import pytest
from agent_samples import COUNT, QUESTION, ShopTools, failing, graph_of, in_turn, plan_of, rows
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanningToolsSection, Toolbox
from planning.commands import MarkSteps
from planning.tools import StorageUnavailable
from planning.tools.errors import UserInputNeeded
from planning.tools.ledger import tool_calls
from session import Session, select_latest

TITLES = ("Read the schema", "Write the SQL", "Run the SQL", "Check the results")
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


# Whose plan it is


def tools_of(session: Session) -> Toolbox:
    """The planning tools of a session."""
    return Toolbox(PlanningToolsSection(session=session).tools(), session=session)


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
    tools_of(session).call("planning_setup_plan", {"objective": "Write the report", "initial_steps": steps})
    before = select_latest(session, Plan)
    final = graph_of(session=session).invoke({"resolved_query": QUESTION})
    assert final["success"] is True
    assert select_latest(session, Plan) is before


DONE = [f"S00{place} done: {title}" for place, title in enumerate(TITLES, 1)]


@pytest.mark.parametrize(
    ("tool", "arguments", "shown"),
    [
        (
            "planning_setup_plan",
            {"objective": "Write the report", "initial_steps": [{"title": "Count"}]},
            ["Write the report (active, 0 of 1 done)", "S001 pending: Count"],
        ),
        (
            "planning_add_step",
            {"steps": [{"title": "Tell all"}]},
            [f"{QUESTION} (active, 4 of 5 done)", *DONE, "S005 pending: Tell all"],
        ),
        ("planning_clear_plan", {}, [f"{QUESTION} (completed, 4 of 4 done)", *DONE]),
    ],
)
def test_a_change_of_the_plan_meanwhile_stays_and_a_cleared_one_is_set_up_again(
    session: Session, tool: str, arguments: dict[str, Any], shown: list[str]
) -> None:
    toolbox = tools_of(session)

    def write() -> str:
        assert toolbox.call(tool, arguments).success
        return COUNT

    graph_of(generator=write, session=session).invoke({"resolved_query": QUESTION})
    assert [line for line in plan_of(session).split("\n") if not line.startswith("  ")] == shown


def test_with_other_reducers_for_the_plan_the_question_is_answered() -> None:
    session = Session()

    def take_back(plans: tuple[Any, ...], _command: object) -> tuple[Any, ...]:
        return plans[:-1]

    session.register_reducer(MarkSteps, take_back, Plan)
    final = graph_of(session=session).invoke({"resolved_query": QUESTION})
    assert final["success"] is True
    assert plan_of(session) == ""


# Questions of all kinds


@pytest.mark.parametrize(
    ("question", "objective"),
    [
        ("How many\n\tcustomers?\r\n", "How many customers?"),
        ("Wie viele in Z\u00fcrich \u2013 gesamt?", "Wie viele in Zurich - gesamt?"),
        ("\u9867\u5ba2 customers \U0001f600", "Answer a question"),
        ("customers \x00\x1b[31m\x7f", "customers [31m"),
        ("customers \ud800", "Answer a question"),
        ("customers " * 1_000, "customers " * 23 + "custome..."),
        ("", "Answer a question"),
        (None, "Answer a question"),
    ],
)
def test_any_question_can_be_an_objective_and_any_statement_a_note(
    session: Session, question: Any, objective: str
) -> None:
    sql = "SELECT '" + "\u00e9" * 5_000 + "'\nFROM t"
    graph_of(generator=lambda: sql, session=session).invoke({"resolved_query": question})
    plan = select_latest(session, Plan)
    assert plan is not None
    assert plan.objective == objective
    assert plan.steps[1].notes == ((f"SELECT '{'e' * 189}...",) if question else ())


def test_a_second_question_has_a_new_plan(session: Session) -> None:
    graph = graph_of(ShopTools(executed=in_turn(rows([3]), failing("gone", "storage"))), session=session)
    graph.invoke({"resolved_query": QUESTION})
    graph.invoke({"resolved_query": "How many orders?"})
    assert plan_of(session).splitlines()[:2] == [
        "How many orders? (active, 2 of 4 done)",
        "S001 done: Read the schema",
    ]

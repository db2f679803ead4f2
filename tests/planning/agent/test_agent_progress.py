"""The session's plan follows a graph: what it says after each node is what the state says."""

from __future__ import annotations

from typing import Any

import pytest
from agent_samples import COUNT, QUESTION, SCHEMA, ShopTools, failing, in_turn, plan_of, rows
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanningToolsSection, Toolbox
from planning.agent import build_text_to_sql_graph
from planning.agent.progress import NodeFinished, show_planner_progress, show_progress
from planning.commands import MarkSteps
from planning.tools import StorageUnavailable
from planning.tools.errors import UserInputNeeded
from planning.tools.ledger import tool_calls
from session import Session, ToolFailed, ToolInvoked, select_latest

TITLES = ("Read the schema", "Write the SQL", "Run the SQL", "Check the results")
REFUSED = {"is_valid": False, "has_results": True, "row_count": 1, "issues": ["a column is missing"]}


def graph_of(
    session: Session | None, shop: ShopTools | None = None, generator: Any = None, **options: Any
) -> Any:
    """A graph that shows its progress in a session."""
    tools = (shop or ShopTools()).tools()
    return build_text_to_sql_graph(tools, generator or (lambda: COUNT), session=session, **options)


def followed(session: Session, graph: Any, question: Any = QUESTION) -> str:
    """The plan after each node."""
    told = []
    for update in graph.stream({"resolved_query": question}, stream_mode="updates"):
        told.append(f"# {next(iter(update))}\n{plan_of(session)}")
    return "\n\n".join(told) + "\n"


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
    "second_thoughts": ({"executed": in_turn(rows(), rows([3]))}, written("SELECT 1", "SELECT 2"), {}),
    "stood_by": ({"executed": rows()}, None, {}),
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
    turns: dict[str, Any] = {
        name: in_turn(*turn) if type(turn) is type(in_turn()) else turn for name, turn in answers.items()
    }
    graph = graph_of(session, ShopTools(**turns), generator, **options)
    assert followed(session, graph) == snapshot


def test_a_question_about_something_else_is_asked_back_in_the_plan(
    session: Session, snapshot: SnapshotAssertion
) -> None:
    graph = graph_of(session, clarify=lambda question, schema: "Which year?")
    assert followed(session, graph, "What is the weather like?") == snapshot


def test_each_call_is_an_event_and_stands_in_the_ledger(session: Session) -> None:
    shop = ShopTools(executed=in_turn(failing("no such column: nope"), ConnectionError("gone"), rows([3])))
    graph_of(session, shop, written("SELECT 1", "SELECT 2")).invoke({"resolved_query": QUESTION})
    assert [event.name for event in session.select_all(ToolInvoked)] == [
        "get_schema",
        "generate_sql",
        "execute_sql",
        "generate_sql",
        "execute_sql",
        "validate_results",
    ]
    assert [event.name for event in session.select_all(ToolFailed)] == ["execute_sql"]
    assert [(call.tool, call.outcome) for call in reversed(tool_calls(session))] == [
        ("get_schema", "success"),
        ("generate_sql", "success"),
        ("execute_sql", "parameter"),
        ("generate_sql", "success"),
        ("execute_sql", "storage"),
        ("execute_sql", "success"),
        ("validate_results", "success"),
    ]


def test_each_node_is_an_event_that_comes_once_the_plan_shows_it(session: Session) -> None:
    seen: list[tuple[str, str]] = []
    session.bus.subscribe(
        NodeFinished, lambda event: seen.append((event.node, plan_of(session).split("\n")[0]))
    )
    graph_of(session).invoke({"resolved_query": QUESTION})
    done = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4]
    assert [line for _, line in seen] == [
        f"{QUESTION} ({'completed' if count == 4 else 'active'}, {count} of 4 done)" for count in done
    ]
    assert [node for node, _ in seen][:4] == ["plan", "execute_tools", "plan", "generate_sql"]
    events = session.select_all(NodeFinished)
    assert [event.node for event in events] == [node for node, _ in seen]
    assert events[3].changed == ("sql_query",)


# Whose plan it is


def tools_of(session: Session) -> Toolbox:
    """The planning tools of a session."""
    return Toolbox(PlanningToolsSection(session=session).tools(), session=session)


def own_plan(session: Session, *titles: str) -> Toolbox:
    """An agent's own plan."""
    toolbox = tools_of(session)
    steps = [{"title": title} for title in titles]
    toolbox.call("planning_setup_plan", {"objective": "Write the report", "initial_steps": steps})
    return toolbox


@pytest.mark.parametrize(
    "titles",
    [
        ["Count the customers", "Write it down"],
        [],
        ["Read the schema", "Write the SQL"],
        ["Look at the data", "Answer the user"],
        ["Read the schema", "Write the SQL", "Run the SQL", "Draw a chart"],
    ],
)
def test_an_active_plan_of_somebody_elses_is_left_alone(session: Session, titles: list[str]) -> None:
    own_plan(session, *titles)
    before = select_latest(session, Plan)
    final = graph_of(session).invoke({"resolved_query": QUESTION})
    assert final["success"] is True
    assert select_latest(session, Plan) is before


DONE = [f"S00{place} done: {title}" for place, title in enumerate(TITLES, 1)]


@pytest.mark.parametrize(
    ("meanwhile", "shown"),
    [
        (
            lambda session: own_plan(session, "Count the customers"),
            ["Write the report (active, 0 of 1 done)", "S001 pending: Count the customers"],
        ),
        (
            lambda session: tools_of(session).call("planning_add_step", {"steps": [{"title": "Tell all"}]}),
            [f"{QUESTION} (active, 4 of 5 done)", *DONE, "S005 pending: Tell all"],
        ),
        (
            lambda session: tools_of(session).call("planning_clear_plan", {}),
            [f"{QUESTION} (completed, 4 of 4 done)", *DONE],
        ),
    ],
    ids=["replaced", "a step more", "cleared"],
)
def test_what_somebody_does_with_the_plan_meanwhile_stays_and_a_cleared_one_is_set_up_again(
    session: Session, meanwhile: Any, shown: list[str]
) -> None:
    def write() -> str:
        meanwhile(session)
        return COUNT

    graph_of(session, generator=write).invoke({"resolved_query": QUESTION})
    assert [line for line in plan_of(session).split("\n") if not line.startswith("  ")] == shown


def test_where_the_reducers_of_the_plan_are_anothers_the_question_is_answered() -> None:
    session = Session()

    def take_back(plans: tuple[Any, ...], _command: object) -> tuple[Any, ...]:
        return plans[:-1]

    session.register_reducer(MarkSteps, take_back, Plan)
    final = graph_of(session).invoke({"resolved_query": QUESTION})
    assert final["success"] is True
    assert plan_of(session) == ""


# Questions of all kinds


@pytest.mark.parametrize(
    ("question", "objective"),
    [
        ("How many\n\tcustomers?\r\n", "How many customers?"),
        (
            "Wie viele Kunden in Z\u00fcrich \u2013 \u00bbgesamt\u00ab?",
            'Wie viele Kunden in Zurich - "gesamt"?',
        ),
        ("\u9867\u5ba2 customers \U0001f600", "Answer a question"),
        ("customers \x00\x1b[31m\x7f", "customers [31m"),
        ("customers \ud800", "Answer a question"),
        ("customers " * 1_000, "customers " * 23 + "custome..."),
        ("\u200b", "Answer a question"),
        ("", "Answer a question"),
        (5, "Answer a question"),
        (None, "Answer a question"),
    ],
)
def test_any_question_can_be_an_objective(session: Session, question: Any, objective: str) -> None:
    graph_of(session, clarify=False).invoke({"resolved_query": question})
    plan = select_latest(session, Plan)
    assert plan is not None
    assert plan.objective == objective


def test_a_statement_of_any_length_can_be_a_note(session: Session) -> None:
    graph_of(session, generator=lambda: "SELECT '" + "\u00e9" * 5_000 + "'\nFROM t").invoke(
        {"resolved_query": QUESTION}
    )
    plan = select_latest(session, Plan)
    assert plan is not None
    assert plan.steps[1].notes == (f"SELECT '{'e' * 189}...",)
    assert len(plan.steps[1].notes[0]) == 200


def test_a_second_question_has_a_plan_of_its_own(session: Session) -> None:
    graph = graph_of(session, ShopTools(executed=in_turn(rows([3]), failing("gone", "storage"))))
    graph.invoke({"resolved_query": QUESTION})
    graph.invoke({"resolved_query": "How many orders?"})
    assert plan_of(session) == "\n".join(
        [
            "How many orders? (active, 2 of 4 done)",
            "S001 done: Read the schema",
            "  - SQLite, 2 tables",
            "S002 done: Write the SQL",
            f"  - {COUNT}",
            "S003 blocked: Run the SQL",
            "  - gone",
            "S004 pending: Check the results",
        ]
    )
    graph_of(session).invoke({"resolved_query": "How many orders?"})
    assert plan_of(session).startswith(
        "How many orders? (completed, 4 of 4 done)\nS001 done: Read the schema\n"
    )


def test_work_that_was_handed_in_is_done(session: Session) -> None:
    graph_of(session).invoke({"resolved_query": QUESTION, "schema": SCHEMA, "sql_query": COUNT})
    assert plan_of(session).startswith(
        f"{QUESTION} (completed, 4 of 4 done)\nS001 done: Read the schema\nS002"
    )


def test_a_schema_and_a_result_of_any_form_are_shown(session: Session) -> None:
    state = {"resolved_query": QUESTION, "next_action": "get_schema"}
    show_progress(session, "execute_tools", state, {"schema": {"tables": 2}})
    assert plan_of(session).split("\n")[1:3] == ["S001 done: Read the schema", "S002 pending: Write the SQL"]
    state |= {"schema": "", "sql_query": COUNT, "next_action": "execute_sql"}
    show_progress(session, "execute_tools", state, {"execution_result": {"data": []}})
    show_progress(session, "execute_tools", state, {"execution_result": "text"})
    assert plan_of(session) == "\n".join(
        [
            f"{QUESTION} (active, 3 of 4 done)",
            "S001 done: Read the schema",
            "S002 done: Write the SQL",
            "S003 done: Run the SQL",
            "  - 0 rows",
            "S004 pending: Check the results",
        ]
    )
    show_progress(session, "plan", {}, {})
    assert plan_of(session).startswith("Answer a question (active, 0 of 4 done)")


def test_a_call_that_ascii_cannot_spell_is_a_step_with_the_name_escaped(session: Session) -> None:
    state = {"tool_calls": [{"tool": "\u691c\u7d22", "args": {}, "reason": "\u9867\u5ba2 \U0001f600"}]}
    show_planner_progress(session, "plan_queries", {}, state)
    show_planner_progress(session, "execute_tools", state, {"tool_results": {"x": {"success": True}}})
    assert plan_of(session) == "\n".join(
        [
            "Answer a question (active, 1 of 2 done)",
            "S001 done: Call '\\u691c\\u7d22'",
            "  tool '\\u691c\\u7d22'",
            "S002 pending: Answer the user",
        ]
    )

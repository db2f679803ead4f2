"""The plan that follows a question, the review of its results, and its end: an answer only if it is one."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from agent_samples import COUNT, FINE, QUESTION, ShopTools, failing, graph_of, in_turn, plan_of, rows
from plan_findings import stored_values, with_outcomes
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanningToolsSection, Toolbox
from planning.agent.answer import complete, is_doubtful, reviewing
from planning.tools import StorageUnavailable
from planning.tools.errors import UserInputNeeded
from session import Session, select_latest

DONE = {"is_complete": True, "next_action": "complete"}


def state(result: Any, **more: Any) -> dict[str, Any]:
    work = {"sql_query": COUNT, "execution_result": result, "validation_result": FINE, "iteration": 5}
    return work | more


def ended(result: Any, **more: Any) -> dict[str, Any]:
    return dict(complete(state(result, **more)))


def success(answer: str) -> dict[str, Any]:
    nothing = {"error": None, "user_message": None, "needs_user_input": False, "input_request": None}
    return {**DONE, "success": True, "answer": answer, **nothing}


def failure(error: str, message: str) -> dict[str, Any]:
    answer = f"The question could not be answered: {message}"
    return {**DONE, "success": False, "error": error, "answer": answer}


def test_results_are_summed_up_and_clear_an_old_error(snapshot: SnapshotAssertion) -> None:
    def outcome(result: Any) -> str:
        final = ended(result, error="Tool execute_sql: no such column", user_message="no")
        assert final == success(final["answer"])
        return str(final["answer"])

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot
    assert outcome(rows(*[[1]] * 1_200)) == "1,200 rows."
    assert outcome(rows(*[[1]] * 1_000) | {"truncated": True}) == "The first 1,000 rows; there are more."


KEPT = {"sql_query": COUNT, "execution_result": rows(), "validation_result": FINE}


def test_without_valid_results_the_error_says_why(snapshot: SnapshotAssertion) -> None:
    def outcome(given: tuple[Any, dict[str, Any]]) -> str:
        result, more = given
        final = ended(result, **more)
        assert final == failure(final["error"], more.get("user_message", final["error"]))
        return str(final["error"])

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot


def test_if_only_the_user_can_help_the_answer_is_the_question() -> None:
    asks = {"needs_user_input": True, "input_request": "Which year?"}
    final = ended(None, **asks, error="Tool x: no", user_message="no")
    assert final == {**DONE, "success": False, "answer": "Which year?", "error": None, "user_message": None}


def test_an_answer_is_short_whatever_is_in_it() -> None:
    for more in ({"error": "e" * 100_000}, {"needs_user_input": True, "input_request": "Which " * 10_000}):
        answer = ended(None, **more)["answer"]
        assert (len(answer), answer[-3:]) == (10_000, "...")


@pytest.mark.parametrize(
    "more",
    [
        {"error": "Tool execute_sql: no such column", "user_message": "no such column"},
        {"needs_user_input": True, "input_request": "Which year?"},
        {"execution_result": "text"},
        {"execution_result": rows([3]), "validation_result": False},
        {},
    ],
)
def test_if_a_later_attempt_failed_the_earlier_result_is_the_answer(more: dict[str, Any]) -> None:
    aside = {"sql_query": None, "validation_result": None, "reflection": {"reason": "r", "kept": KEPT}}
    final = complete(state(None, **aside | more))
    assert final == {**KEPT, **success("No rows: nothing in the database matches.")}


COMPARE = "; compare its conditions and joins with the values in the schema, also their upper and lower case"
NO_ROWS = "it ran and returned no rows"
NULL = "it ran and returned nothing but NULL"
ZERO = "it ran and returned nothing but 0"
REFUSING = {"is_valid": False, "has_results": True, "row_count": 1, "issues": ["a column is missing"]}
VALID: list[Any] = [{}, FINE, True, []]


def again(reason: str, result: Any, verdict: Any = FINE) -> dict[str, Any]:
    kept = {"sql_query": COUNT, "execution_result": result, "validation_result": verdict}
    return {
        "reflection": {"reason": reason, "kept": None if verdict == REFUSING else kept},
        "attempts": [{"sql": COUNT, "error": reason}],
        "is_complete": False,
        **dict.fromkeys(kept),
    }


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (rows(), NO_ROWS),
        ({}, NO_ROWS),
        (rows([None]), NULL),
        (rows([None, None], [None, None], columns=["a", "b"]), NULL),
        ({"data": [{"n": None}]}, NULL),
        (rows([0]), ZERO),
        (rows([0.0, None], columns=["n", "s"]), ZERO),
        ({"data": [{"n": 0}]}, ZERO),
    ],
)
def test_a_result_without_values_is_reviewed(result: Any, problem: str) -> None:
    assert is_doubtful(state(result))
    # 0 is as good an answer as any other number, unless a value is missing
    fine = {"reflection": {"reason": None, "kept": None}}
    expected = fine if problem == ZERO else again(problem + COMPARE, result)
    assert reviewing(None).run(state(result)) == expected
    missing = reviewing(lambda sql: [f"city has no 'x' in {sql}", "b has no 'y'"]).run(state(result))
    assert missing == again(f"{problem}: city has no 'x' in {COUNT}; b has no 'y'", result)


@pytest.mark.parametrize(
    ("more", "is_reviewed"),
    [
        ({"iteration": 9}, True),
        ({"iteration": 10}, False),
        ({"max_iterations": None}, True),
        ({"max_iterations": 8}, True),
        ({"max_iterations": 7}, False),
        ({"validation_result": None}, False),
        ({"execution_result": "text"}, False),
        ({"reflection": {"reason": None, "kept": None}}, False),
        ({"validation_result": REFUSING, "execution_result": rows([3])}, True),
        ({"validation_result": False, "execution_result": rows([3])}, True),
        *(({"validation_result": verdict, "execution_result": rows([3])}, False) for verdict in VALID),
        *(({"execution_result": rows([each])}, False) for each in (3, False, "0")),
        ({"execution_result": rows([0], [0])}, False),
        ({"execution_result": rows([1, None], [2, None], columns=["a", "b"])}, False),
    ],
)
def test_results_are_reviewed_once_with_room_for_another(more: dict[str, Any], is_reviewed: bool) -> None:
    assert is_doubtful(state(rows(), **more)) is is_reviewed


def test_refused_results_are_not_kept_and_a_search_that_fails_changes_nothing() -> None:
    refused = state(rows([3]), validation_result=REFUSING)
    assert reviewing(None).run(refused) == again("a column is missing", rows([3]), REFUSING)
    failing_search = reviewing(Mock(side_effect=ValueError("secret")))
    assert failing_search.run(state(rows())) == again(NO_ROWS + COMPARE, rows())


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
    "refused_results": ({"verdict": REFUSING}, written("SELECT 1", "SELECT 2"), {}),
    "no_time": ({}, None, {"max_iterations": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_plan_shows_what_each_node_did(case: str, session: Session, snapshot: SnapshotAssertion) -> None:
    answers, generator, options = CASES[case]
    turns: Any = {name: in_turn(*turn) if isinstance(turn, list) else turn for name, turn in answers.items()}
    graph = graph_of(ShopTools(**turns), generator, session=session, **options)
    plans = []
    for update in graph.stream({"resolved_query": QUESTION}, stream_mode="updates"):
        plans.append(f"# {next(iter(update))}\n{plan_of(session)}")
    assert "\n\n".join(plans) + "\n" == snapshot


def test_without_reflection_an_empty_result_is_the_answer() -> None:
    shop = ShopTools(executed=rows())
    final = graph_of(shop, reflect=False).invoke({"resolved_query": QUESTION})
    assert (final["success"], final["reflection"], shop.statements) == (True, None, [COUNT])


def test_a_node_that_changes_nothing_marks_nothing(session: Session) -> None:
    graph_of(session=session).invoke({"resolved_query": QUESTION})
    assert session.version == 12  # four calls; each step begins and ends


def test_the_same_question_again_has_a_plan_that_starts_over(session: Session) -> None:
    graph = graph_of(session=session)
    first, second = ([plan_of(session) for _ in graph.stream({"resolved_query": QUESTION})] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("titles", [[], ["Read the schema", "Write the SQL", "Run the SQL", "Draw a chart"]])
def test_an_active_plan_of_other_code_is_left_alone(session: Session, titles: list[str]) -> None:
    toolbox = Toolbox(PlanningToolsSection(session=session).tools())
    toolbox.call("planning_setup_plan", {"objective": "Write the report", "initial_steps": titles})
    before = select_latest(session, Plan)
    final = graph_of(session=session).invoke({"resolved_query": QUESTION})
    assert final["success"] is True
    assert select_latest(session, Plan) is before


def test_any_question_and_statement_fits_the_plan(snapshot: SnapshotAssertion) -> None:
    sql = "SELECT '" + "\u00e9" * 5_000 + "'\nFROM t"

    def outcome(question: Any) -> str:
        session = Session()
        graph = graph_of(generator=lambda: sql, session=session)
        graph.invoke({"resolved_query": "Another question"})
        graph.invoke({"resolved_query": question, "schema": "given"})
        plan = select_latest(session, Plan)
        assert plan is not None
        assert plan.steps[1].notes == ((f"SELECT '{'e' * 189}...",) if question else ())
        return plan.objective

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot

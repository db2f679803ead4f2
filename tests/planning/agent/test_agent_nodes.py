"""The nodes one by one: every failure is an update that says what happened, and nothing raises."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from agent_samples import COUNT, QUESTION, SCHEMA, ShopTools, failing, rows

from planning import Toolbox
from planning.agent import execute_tools_node
from planning.agent.nodes import tool_running
from planning.tools import (
    StorageUnavailable,
    ToolContext,
    ToolRegistry,
    ToolValidationError,
)
from planning.tools.errors import SORRY, ToolTimeout, UserInputNeeded

STATE: dict[str, Any] = {
    "resolved_query": QUESTION,
    "schema": SCHEMA,
    "sql_query": COUNT,
    "execution_result": rows([3]),
    "tool_calls": [],
    "attempts": [],
}
ACTIONS = ("get_schema", "execute_sql", "validate_results")
KEYS = {"get_schema": "schema", "execute_sql": "execution_result", "validate_results": "validation_result"}


def answering(action: str, answer: Any) -> ShopTools:
    """Tools of which this one gives or raises this."""
    names = {"get_schema": "schema", "execute_sql": "executed", "validate_results": "verdict"}
    answers: dict[str, Any] = {names[action]: answer}
    return ShopTools(**answers)


def done(action: str, answer: Any, **more: Any) -> dict[str, Any]:
    """The update by a tool that answers this; the time that it took is checked and left out."""
    update: dict[str, Any] = dict(
        execute_tools_node({**STATE, "next_action": action, **more}, answering(action, answer).tools())
    )
    for call in update.get("tool_calls", ()):
        assert type(call.pop("elapsed")) is float
    return update


def failed(action: str, error: str, told: str | None = None, result: Any = None) -> dict[str, Any]:
    """The update that a failure comes to."""
    return {
        "tool_calls": [{"success": False, "tool": action, "result": result, "error": error}],
        "error": f"Tool {action}: {error}",
        "user_message": error if told is None else told,
    }


@pytest.mark.parametrize(
    ("action", "given"),
    [
        ("get_schema", {"query": QUESTION}),
        ("execute_sql", {"sql": COUNT}),
        ("validate_results", {"query": QUESTION, "sql": COUNT, "results": rows([3])}),
    ],
)
def test_a_tool_is_called_with_what_the_state_holds(action: str, given: dict[str, Any]) -> None:
    shop = ShopTools()
    execute_tools_node({**STATE, "next_action": action}, shop.tools())
    assert shop.calls == [(action, given)]


@pytest.mark.parametrize(
    ("action", "answer"), [("get_schema", ""), ("execute_sql", rows()), ("validate_results", False)]
)
def test_what_a_tool_returns_stands_under_its_key_and_an_old_error_is_gone(action: str, answer: Any) -> None:
    assert done(action, answer, error="Tool execute_sql: no such column", user_message="no") == {
        "tool_calls": [{"success": True, "tool": action, "result": answer, "error": None}],
        KEYS[action]: answer,
        "error": None,
        "user_message": None,
    }


@pytest.mark.parametrize("action", ["generate_sql", "complete", "", "drop_tables", None, 5, ["get_schema"]])
def test_an_action_that_no_tool_does_changes_nothing(action: Any) -> None:
    shop = ShopTools()
    assert execute_tools_node({**STATE, "next_action": action}, shop.tools()) == {}
    assert execute_tools_node({"resolved_query": QUESTION}, shop.tools()) == {}
    assert shop.calls == []


def test_a_tool_that_is_not_there_ends_it_with_the_name_that_is_meant() -> None:
    tools = {"get_shema": lambda: SCHEMA}
    update = execute_tools_node({**STATE, "next_action": "get_schema"}, tools)
    error = "no tool is named get_schema; did you mean get_shema?"
    call = {"success": False, "tool": "get_schema", "result": None, "error": error, "elapsed": 0.0}
    assert update == {
        "tool_calls": [call],
        "error": f"Tool get_schema: {error}",
        "user_message": error,
        "is_complete": True,
    }


# What a statement can be blamed for

OF_THE_SQL = [
    (ToolValidationError("no such column: nope"), "no such column: nope", None),
    (ToolTimeout("it took too long"), "it took too long", None),
    (TimeoutError("late"), "late", SORRY),
    (ValueError(), "ValueError", SORRY),
]
NOT_OF_THE_SQL = [
    (StorageUnavailable("the file is locked; close it"), "the file is locked; close it", None),
    (socket.gaierror("no such host"), "no such host", SORRY),
]


@pytest.mark.parametrize(("raised", "error", "told"), OF_THE_SQL, ids=repr)
def test_a_statement_that_fails_is_to_be_written_anew(raised: Exception, error: str, told: str) -> None:
    assert done("execute_sql", raised) == {
        **failed("execute_sql", error, told),
        "sql_query": None,
        "attempts": [{"sql": COUNT, "error": error}],
    }


@pytest.mark.parametrize(("raised", "error", "told"), NOT_OF_THE_SQL, ids=repr)
def test_what_no_other_statement_would_mend_leaves_the_statement(
    raised: Exception, error: str, told: str
) -> None:
    assert done("execute_sql", raised) == failed("execute_sql", error, told)


@pytest.mark.parametrize(
    ("code", "is_the_sqls"), [("parameter", True), ("timeout", True), ("storage", False)]
)
def test_a_reported_failure_is_one(code: str, is_the_sqls: bool) -> None:
    answer = failing("it did not work", code)
    update = failed("execute_sql", "it did not work", result=answer)
    if is_the_sqls:
        update |= {"sql_query": None, "attempts": [{"sql": COUNT, "error": "it did not work"}]}
    assert done("execute_sql", answer) == update


@pytest.mark.parametrize("action", ACTIONS)
def test_a_tool_that_returns_nothing_has_failed(action: str) -> None:
    error = f"{action} returned nothing; it must return a result"
    tools = {action: lambda **_: None}
    update: dict[str, Any] = dict(execute_tools_node({**STATE, "next_action": action}, tools))
    assert update["tool_calls"][0].pop("elapsed") >= 0
    expected = failed(action, error)
    if action == "execute_sql":
        expected |= {"sql_query": None, "attempts": [{"sql": COUNT, "error": error}]}
    assert update == expected


def test_a_tool_is_given_only_what_it_takes() -> None:
    update = execute_tools_node({**STATE, "next_action": "get_schema"}, {"get_schema": lambda: SCHEMA})
    assert update["schema"] == SCHEMA
    given = dict[str, object]()

    def get_schema(**everything: object) -> str:
        given.update(everything)
        return SCHEMA

    execute_tools_node({**STATE, "next_action": "get_schema"}, {"get_schema": get_schema})
    assert given == {"query": STATE["resolved_query"]}


@pytest.mark.parametrize("action", ACTIONS)
def test_a_tool_that_needs_the_user_ends_it_with_its_question(action: str) -> None:
    raised = UserInputNeeded("it lacks a year", "Which year?")
    assert done(action, raised) == {
        **failed(action, "it lacks a year"),
        "needs_user_input": True,
        "input_request": "Which year?",
        "is_complete": True,
    }


@pytest.mark.parametrize(
    ("failures", "is_over"),
    [
        ([], False),
        (["gone"], False),
        (["gone"] * 2, True),
        (["gone", "locked"], False),
        (["gone", None], False),
    ],
)
def test_the_third_failure_with_the_same_error_ends_it(failures: list[str | None], is_over: bool) -> None:
    calls = [{"tool": "get_schema", "error": error} for error in failures]
    expected = failed("get_schema", "gone") | ({"is_complete": True} if is_over else {})
    assert done("get_schema", StorageUnavailable("gone"), tool_calls=calls) == expected


# Where tools come from


def test_tools_may_come_in_any_collection() -> None:
    plain = ShopTools().tools()
    state = {**STATE, "next_action": "get_schema"}
    for tools in (plain, list(plain.values()), ToolRegistry(plain.values()), Toolbox(plain.values())):
        assert execute_tools_node(state, tools)["schema"] == SCHEMA


def test_what_is_no_tool_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^a tool's function must be callable, got int$"):
        tool_running({"get_schema": 5})  # type: ignore[arg-type]  # what is tested


def test_a_tool_knows_the_ids_of_the_request() -> None:
    seen: list[Any] = []

    def get_schema(context: ToolContext) -> str:
        """Read the schema."""
        seen.append(dict(context.values))
        return SCHEMA

    ids = {
        "trace_id": "t1",
        "conversation_context": {"conversation_id": "c1"},
        "user_context": {"conference_id": "f1"},
    }
    execute_tools_node({**STATE, "next_action": "get_schema", **ids}, [get_schema])
    execute_tools_node({**STATE, "next_action": "get_schema"}, [get_schema])
    assert seen == [
        {"trace_id": "t1", "conversation_id": "c1", "conference_id": "f1"},
        {"trace_id": None, "conversation_id": None, "conference_id": None},
    ]

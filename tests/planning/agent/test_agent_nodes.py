"""The node that runs tools: every failure is an update that says what happened, and nothing raises."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from agent_samples import COUNT, QUESTION, SCHEMA, ShopTools, failing, rows

from planning import Toolbox
from planning.agent import execute_tools_node
from planning.tools import StorageUnavailable, ToolContext, ToolRegistry, ToolValidationError
from planning.tools.errors import SORRY, ToolTimeout, UserInputNeeded

STATE: dict[str, Any] = {
    "resolved_query": QUESTION,
    "schema": SCHEMA,
    "sql_query": COUNT,
    "execution_result": rows([3]),
    "tool_calls": [],
    "attempts": [],
}
ACTIONS = {
    "get_schema": ("schema", {"query": QUESTION}),
    "execute_sql": ("execution_result", {"sql": COUNT}),
    "validate_results": ("validation_result", {"query": QUESTION, "sql": COUNT, "results": rows([3])}),
}


def done(action: str, answer: Any, **more: Any) -> dict[str, Any]:
    """The update by a tool that returns or raises this, without the time that it took."""
    names = {"get_schema": "schema", "execute_sql": "executed", "validate_results": "verdict"}
    answers: dict[str, Any] = {names[action]: answer}
    shop = ShopTools(**answers)
    update: dict[str, Any] = dict(execute_tools_node({**STATE, "next_action": action, **more}, shop.tools()))
    assert shop.calls == [(action, ACTIONS[action][1])]
    for call in update["tool_calls"]:
        assert type(call.pop("elapsed")) is float
    return update


def failed(action: str, error: str, message: str | None = None, result: Any = None) -> dict[str, Any]:
    """The update for a failure."""
    return {
        "tool_calls": [{"success": False, "tool": action, "result": result, "error": error}],
        "error": f"Tool {action}: {error}",
        "user_message": error if message is None else message,
    }


def rewritten(error: str) -> dict[str, Any]:
    """The rest of the update for a statement that was wrong."""
    return {"sql_query": None, "attempts": [{"sql": COUNT, "error": error}]}


@pytest.mark.parametrize(
    ("action", "answer"), [("get_schema", ""), ("execute_sql", rows()), ("validate_results", False)]
)
def test_a_result_is_stored_under_its_key_and_clears_an_old_error(action: str, answer: Any) -> None:
    assert done(action, answer, error="Tool execute_sql: no such column", user_message="no") == {
        "tool_calls": [{"success": True, "tool": action, "result": answer, "error": None}],
        ACTIONS[action][0]: answer,
        "error": None,
        "user_message": None,
    }


@pytest.mark.parametrize("action", ["generate_sql", "complete", "", "drop_tables", None, 5, ["get_schema"]])
def test_an_action_without_a_tool_changes_nothing(action: Any) -> None:
    shop = ShopTools()
    assert execute_tools_node({**STATE, "next_action": action}, shop.tools()) == {}
    assert execute_tools_node({"resolved_query": QUESTION}, shop.tools()) == {}
    assert shop.calls == []


def test_a_missing_tool_ends_the_question_with_the_nearest_name() -> None:
    update = execute_tools_node({**STATE, "next_action": "get_schema"}, {"get_shema": lambda: SCHEMA})
    error = "no tool is named get_schema; did you mean get_shema?"
    assert update["tool_calls"][0].pop("elapsed") == 0.0
    assert update == failed("get_schema", error) | {"is_complete": True}


# Failures


UNREAD = {
    "late": "execute_sql did not answer in time. Call it again, or go on without it.",
    "ValueError": "execute_sql failed. Call it again, or go on without it.",
}
"""What the generator reads in place of the text of an exception."""


@pytest.mark.parametrize(
    ("raised", "error", "message", "is_of_the_sql"),
    [
        (ToolValidationError("no such column: nope"), "no such column: nope", None, True),
        (ToolTimeout("it took too long"), "it took too long", None, True),
        (TimeoutError("late"), "late", SORRY, True),
        (ValueError(), "ValueError", SORRY, True),
        (StorageUnavailable("the file is locked; close it"), "the file is locked; close it", None, False),
        (socket.gaierror("no such host"), "no such host", SORRY, False),
        (failing("wrong", "parameter"), "wrong", None, True),
        (failing("late", "timeout"), "late", None, True),
        (failing("gone", "storage"), "gone", None, False),
        (None, "execute_sql returned nothing; it must return a result", None, True),
    ],
    ids=repr,
)
def test_a_statement_that_fails_is_rewritten_unless_another_would_not_help(
    raised: Any, error: str, message: str | None, is_of_the_sql: bool
) -> None:
    result = raised if isinstance(raised, dict) else None
    update: dict[str, Any]
    if raised is None:
        lacking = {"execute_sql": lambda: None}
        update = {**execute_tools_node({**STATE, "next_action": "execute_sql"}, lacking)}
        update["tool_calls"][0].pop("elapsed")
    else:
        update = done("execute_sql", raised)
    assert update == failed("execute_sql", error, message, result) | (
        rewritten(UNREAD[error] if message == SORRY else error) if is_of_the_sql else {}
    )


@pytest.mark.parametrize("action", ACTIONS)
def test_a_tool_that_needs_the_user_ends_it_with_its_question(action: str) -> None:
    assert done(action, UserInputNeeded("it lacks a year", "Which year?")) == {
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


# Tools


def test_tools_may_come_in_any_collection() -> None:
    plain = ShopTools().tools()
    state = {**STATE, "next_action": "get_schema"}
    for tools in (plain, list(plain.values()), ToolRegistry(plain.values()), Toolbox(plain.values())):
        assert execute_tools_node(state, tools)["schema"] == SCHEMA
    with pytest.raises(TypeError, match=r"^a tool's function must be callable, got int$"):
        execute_tools_node(state, [5])  # type: ignore[list-item]  # what is tested


def test_a_tool_gets_only_the_arguments_that_it_takes_and_the_ids_of_the_request() -> None:
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
    for more in (ids, {}):
        execute_tools_node({**STATE, "next_action": "get_schema", **more}, [get_schema])
    assert seen == [
        {"trace_id": "t1", "conversation_id": "c1", "conference_id": "f1"},
        {"trace_id": None, "conversation_id": None, "conference_id": None},
    ]
    open_tool = {"get_schema": lambda **given: str(given)}
    assert execute_tools_node({**STATE, "next_action": "get_schema"}, open_tool)["schema"] == str(
        {"query": QUESTION}
    )

"""The toolbox: calls from models always give a result, calls from Python raise."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from tool_entries import CALLS, SORRY, raising, returning, through

from planning import Plan, ReadPlan, Toolbox, ToolValidationError
from planning.tools import Tool, ToolContext, ToolError, ToolResult
from planning.tools.parameters.model import FreeModel
from session import Session, ToolInvoked, append, select_all, select_latest


@dataclass(frozen=True)
class Add:
    left: int
    right: int = 1


@dataclass(frozen=True)
class Total:
    value: int


def add(params: Add, _context: ToolContext) -> Total:
    return Total(params.left + params.right)


ADD = Tool("add", "Add two numbers.", add, parameters=Add, publishes="value")


class Busy(ToolError):
    def user_message(self) -> str:
        return "Try again later."


def told(result: ToolResult) -> tuple[Any, ...]:
    return result.success, result.message, result.value, result.error, result.user_message, result.code


WRONG = "2 problems:\n- left: expected an integer, got a string\n- rigth: unknown field; did you mean right?"


@pytest.mark.parametrize("entry", CALLS)
@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        (ADD, '{"left": 2, "right": 3}', (True, '{"value":5}', Total(5), None, None, None)),
        (
            ADD,
            '{"left": "x", "rigth": 1}',
            (False, f"Refused, nothing changed. {WRONG}", None, WRONG, WRONG, "parameter"),
        ),
        (
            raising(Busy("the queue is full")),
            {},
            (False, "the queue is full", None, "the queue is full", "Try again later.", "tool"),
        ),
        (
            returning(ToolResult(False, "no luck", error="no luck")),
            {},
            (False, "no luck", None, "no luck", None, "tool"),
        ),
    ],
)
def test_a_models_call_is_answered(entry: str, tool: Tool, arguments: Any, expected: tuple[Any, ...]) -> None:
    result = through(entry, tool, arguments)
    assert told(result) == expected
    assert result.elapsed > 0


@pytest.mark.parametrize("entry", CALLS)
def test_the_text_of_any_other_exception_reaches_nobody(entry: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        result = through(entry, raising(RuntimeError("secret zq4711")))
    message = "t failed. Call it again, or continue without it."
    assert told(result) == (False, message, None, "Tool 't' encountered an error", SORRY, "unknown")
    assert "zq4711" not in caplog.text
    record = vars(next(record for record in caplog.records if record.name == "planning.tools"))
    assert (record["message"], record["tool"], record["error"]) == ("tool_failed", "t", "RuntimeError")


@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
def test_python_calls_with_parameters_or_a_mapping(entry: str) -> None:
    assert through(entry, ADD, Add(1, 2)).value == Total(3)
    for given in ({"left": 1}, MappingProxyType({"left": 1})):
        assert through(entry, ADD, given).value == Total(2)
    with pytest.raises(RuntimeError, match=r"^its own$"):
        through(entry, raising(RuntimeError("its own")))


class More(Add):
    """A subclass of the parameters."""


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("ad", Add(1), "no tool is named 'ad'; did you mean add?"),
        (None, Add(1), "no tool is named a value of type NoneType; the tools are add"),
        ("add", Total(1), "add takes Add, got Total"),
        ("add", More(1), "add takes Add, got More"),
        ("add", None, "left: missing; send an integer"),
        ("add", {"left": "x"}, "left: expected an integer, got a string"),
    ],
)
def test_a_wrong_call_from_python_raises_with_what_to_do(name: Any, params: Any, message: str) -> None:
    with pytest.raises(ToolValidationError) as caught:
        Toolbox([ADD]).invoke(name, params)
    assert str(caught.value) == message


@pytest.mark.parametrize("parameters", [{"type": "object"}, FreeModel()])
def test_a_plain_schema_takes_an_object(parameters: Any) -> None:
    with pytest.raises(ToolValidationError, match=r"^t takes an object, got int$"):
        Toolbox([Tool("t", "T.", str, parameters=parameters)]).invoke("t", 5)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^two tools are named add$"):
        Toolbox([ADD, Tool("add", "Other.", add, parameters=Add)])
    assert list(Toolbox([ADD, ADD]).tools) == ["add"]


def test_a_call_is_an_event_and_its_value_is_reduced(session: Session) -> None:
    session.register_reducer(Total, append)
    result = through("call", ADD, {"left": 2}, session)
    (event,) = select_all(session, ToolInvoked)
    assert (event.name, event.params, event.result, event.value) == ("add", Add(2), result, Total(3))
    assert select_all(session, Total) == (Total(3),)


def test_what_a_tool_returns_is_reduced_only_when_the_tool_says_so(
    toolbox: Toolbox, session: Session
) -> None:
    toolbox.call("planning_setup_plan", {"objective": "old"})
    old = select_latest(session, Plan)
    read_other = Tool("peek", "Peek.", lambda _params, _context: old, parameters=ReadPlan)
    toolbox.call("planning_setup_plan", {"objective": "new"})
    assert through("call", read_other, {}, session).value is old
    assert select_latest(session, Plan) == Plan("new", "active", ())


CONVERSATION: list[tuple[str, Any]] = [
    ("planning_mark_step", {"step_id": "S001", "status": "done"}),
    ("planning_setup_plan", {"objective": " "}),
    ("planning_setup_plan", {"objective": "Ship 2.0"}),
    ("planning_mark_step", {"step_id": "S001", "status": "done"}),
    ("planning_add_step", {"steps": []}),
    ("planning_add_step", {"steps": ["Freeze", "Tag", {"title": "Announce", "details": "Blog\nand mail"}]}),
    ("planning_add_step", {"steps": [{"title": "Caf\u00e9 \u2192 bar\u2026"}, {"title": "two\nlines"}]}),
    ("planning_update_step", {"step_id": "S001"}),
    ("planning_update_step", {"step_id": "S002", "title": "Tag and push"}),
    ("planning_mark_step", {"step_id": "S001", "status": "in_progress"}),
    ("planning_mark_step", {"step_id": "S001", "status": "done", "note": "Branch cut"}),
    ("planning_mark_step", {"step_id": "S002", "status": "blocked", "note": "CI is red"}),
    ("planning_mark_step", {"step_id": "S003", "status": "done"}),
    ("planning_read_plan", {}),
    ("planning_mark_step", {"step_id": "S9", "status": "finished", "note": "x" * 600}),
    ("planning_mark_step", {"step_id": "S002", "status": "done"}),
    ("planning_add_step", {"steps": ["More"]}),
    ("planning_mark_step", {"step_id": "S002", "status": "pending"}),
    ("planning_clear_plan", {}),
    ("planning_clear_plan", {}),
    ("planning_update_step", {"step_id": "S001", "title": "x"}),
    ("planning_read_plan", {"verbose": True}),
    ("planning_read_plan", {}),
    ("planning_finish", {}),
]


def test_everything_a_model_reads_in_a_long_conversation(
    toolbox: Toolbox, snapshot: SnapshotAssertion
) -> None:
    lines = []
    for name, arguments in CONVERSATION:
        lines += [f"> {name} {json.dumps(arguments)}", toolbox.call(name, json.dumps(arguments)).message, ""]
    assert "\n".join(lines) == snapshot

"""Refused or failed: that nothing changed is said only where it is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import attrs
import pydantic
import pytest
from tool_entries import CALLS, SORRY, piped, raising, safely, through

from planning import Plan, PlanningToolsSection, SetupPlan
from planning.tools import (
    BaseTool,
    DataNotFound,
    ParameterError,
    Tool,
    Toolbox,
    ToolError,
    ToolValidationError,
)
from planning.tools.errors import ErrorKind, Problem
from planning.tools.ledger import tool_calls
from session import Session, ToolInvoked

DSN = "dsn=postgres://u:hunter2@h"


@pytest.mark.parametrize("entry", CALLS)
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ToolValidationError("the city is unknown"), "t failed: the city is unknown"),
        (ToolValidationError([Problem("a", "b"), Problem("c")]), "t failed: 2 problems:\n- b: a\n- c"),
        (ParameterError("the city is unknown"), "t failed: the city is unknown"),
        (ToolError("the queue is full"), "the queue is full"),
        (DataNotFound("no such city"), "no such city"),
    ],
)
def test_what_a_tool_raises_after_it_began_is_a_failure(entry: str, error: ToolError, message: str) -> None:
    result = through(entry, raising(error))
    assert (result.message, result.error) == (message, error.message)


@pytest.mark.parametrize("entry", CALLS)
def test_what_is_refused_before_the_tool_began_changed_nothing(entry: str) -> None:
    tool = Tool("t", "T.", lambda left: left + 1)
    assert through(entry, tool, {"lef": 1}).message == (
        "Refused, nothing changed. 2 problems:\n"
        "- left: missing; send a value\n- lef: unknown field; did you mean left?"
    )


def test_a_planning_tool_that_refuses_has_rolled_back(session: Session) -> None:
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    assert toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"}).message == (
        "Refused, nothing changed. no plan yet; call planning_setup_plan first"
    )


@pytest.mark.parametrize("entry", CALLS)
def test_a_refusal_of_another_tool_that_a_tool_calls_is_its_own_failure(entry: str, session: Session) -> None:
    inner = Toolbox([Tool("inner", "I.", lambda left: left)], session=session)
    sent: list[str] = []

    def outer() -> Any:
        sent.append("mail")
        return inner.invoke("inner", {})

    result = through(entry, Tool("t", "T.", outer), {}, session)
    assert (result.message, sent) == ("t failed: left: missing; send a value", ["mail"])
    assert [line.outcome for line in tool_calls(session)] == ["parameter", "parameter"]


def test_a_tool_that_publishes_says_that_its_transaction_was_rolled_back(session: Session) -> None:
    def write(context: Any) -> None:
        with session.transaction() as transaction:
            transaction.publish(ToolInvoked("t", None, None, session_id=session.session_id))
            raise ToolValidationError("no")

    tool = Tool("t", "T.", write, publishes="own", parameters=SetupPlan)
    result = through("call", tool, {"objective": "x"}, session)
    assert (result.message, session.select_all(ToolInvoked)) == ("Refused, nothing changed. no", ())
    assert session.select_latest(Plan) is None


def by_itself(error: Exception) -> type[Any]:
    @dataclass
    class Checked:
        name: str

        def __post_init__(self) -> None:
            raise error

    return Checked


def by_attrs(error: Exception) -> type[Any]:
    def check(*_given: object) -> None:
        raise error

    return attrs.make_class("Checked", {"name": attrs.field(validator=check, type=str)})


def by_converter(error: Exception) -> type[Any]:
    def convert(_value: str) -> str:
        raise error

    return attrs.make_class("Checked", {"name": attrs.field(converter=convert, type=str)})


def by_pydantic(error: Exception) -> type[Any]:
    class Checked(pydantic.BaseModel):
        name: str

        @pydantic.field_validator("name")
        @classmethod
        def _check(cls, value: str) -> str:
            raise error

    return Checked


def opened() -> Exception:
    try:
        Path("/nowhere/4711").read_text()
    except OSError as error:
        return error
    raise AssertionError


KINDS = [by_itself, by_attrs, by_converter, by_pydantic]
FAILURES = [
    RuntimeError(DSN), KeyError(DSN), ConnectionError(DSN), OSError(2, DSN), TimeoutError(DSN),
    LookupError(DSN), ExceptionGroup(DSN, [ValueError(DSN)]), opened(),
]  # fmt: skip


@pytest.mark.parametrize("entry", [*CALLS, "execute_tools", "safe_execute"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_a_check_of_parameters_that_fails_is_an_unknown_failure_without_its_text(
    error: Exception, kind: Callable[[Exception], type[Any]], entry: str, session: Session
) -> None:
    class Look(BaseTool):
        name = "t"
        description = "T."
        parameters = kind(error)

        async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
            raise AssertionError

    told = {
        "success": False,
        "data": None,
        "error": "Tool 't' encountered an error",
        "user_message": SORRY,
        "code": "unknown",
    }
    if entry == "safe_execute":
        assert safely(Look(), {"name": "x"}) == told
    elif entry == "execute_tools":
        assert piped([Look()], [{"tool": "t", "args": {"name": "x"}}])["t"] == told
    else:
        result = through(entry, Look(), {"name": "x"}, session)
        assert (result.message, result.error, result.user_message, result.code) == (
            "t failed. Call it again, or go on without it.",
            told["error"],
            SORRY,
            ErrorKind.UNKNOWN,
        )
        assert [line.outcome for line in tool_calls(session)] == ["unknown"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_check_of_parameters_refuses_with_the_text_of_a_value_error(
    kind: Callable[[Exception], type[Any]],
) -> None:
    place = "" if kind is by_itself else "name: "
    for error in (ValueError("Nobody is called x"), json.JSONDecodeError("Nobody", "x", 0)):
        result = through("call", Tool("t", "T.", lambda params: 1, parameters=kind(error)), {"name": "x"})
        assert (result.code, result.message) == (
            ErrorKind.PARAMETER,
            f"Refused, nothing changed. {place}{error}",
        )

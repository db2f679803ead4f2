"""Refused or failed: that nothing changed is said only where it is known."""

from __future__ import annotations

from typing import Any

import pytest
from tool_entries import CALLS, raising, through

from planning import PlanningToolsSection
from planning.errors import Problem
from planning.tools import (
    DataNotFound,
    ParameterError,
    Tool,
    Toolbox,
    ToolError,
    ToolValidationError,
)
from planning.tools.ledger import tool_calls
from session import Session


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

"""The ledger: a line for every call, newest first, and nothing of arguments and results."""

from __future__ import annotations

import asyncio
import copy
import pickle
from contextlib import suppress
from typing import Any

import pytest

from planning import PlanningToolsSection
from planning.tools import Tool, Toolbox, ToolError, ToolResult, tool
from planning.tools.errors import ErrorKind
from planning.tools.ledger import ToolCall, tool_calls
from session import Session, select_all, select_latest, select_where


def answer(what: str) -> Any:
    if what == "raise":
        raise ToolError("no")
    if what == "report":
        return {"success": False}
    return what


TOOLS = [Tool("answer", "Answer.", answer), Tool("hop", "Hop.", lambda: 1)]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("answer", {"what": "raise"}),
    ("hop", {}),
    ("answer", {"what": "report"}),
    ("nope", {}),
    ("hop", {"x": 1}),
]
LINES = [
    ("answer", "tool"),
    ("hop", "success"),
    ("answer", "tool"),
    ("nope", "unknown_tool"),
    ("hop", "parameter"),
]


def called(session: Session) -> list[ToolResult]:
    toolbox = Toolbox(TOOLS, session=session)
    return [toolbox.call(name, arguments) for name, arguments in CALLS]


def lines(calls: tuple[ToolCall, ...]) -> list[tuple[str, str]]:
    return [(call.tool, call.outcome) for call in calls]


def test_every_call_has_a_line_newest_first(session: Session) -> None:
    results = called(session)
    calls = tool_calls(session)
    assert lines(calls) == LINES[::-1]
    assert [call.success for call in calls] == [result.success for result in results][::-1]
    assert [call.elapsed for call in calls] == [result.elapsed for result in results][::-1]
    assert select_all(session, ToolCall) == calls[::-1]
    assert select_latest(session, ToolCall) == calls[0]
    assert select_where(session, ToolCall, lambda call: call.success) == (calls[3],)


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ({}, [4, 3, 2, 1, 0]),
        ({"tool": "hop"}, [4, 1]),
        ({"outcome": "success"}, [1]),
        ({"outcome": "tool"}, [2, 0]),
        ({"outcome": ErrorKind.PARAMETER}, [4]),
        ({"tool": "answer", "outcome": "tool", "limit": 1}, [2]),
        ({"limit": 0}, []),
        ({"limit": 2}, [4, 3]),
        ({"tool": "none"}, []),
    ],
)
def test_the_ledger_can_be_asked_for_a_part(
    session: Session, query: dict[str, Any], places: list[int]
) -> None:
    called(session)
    assert lines(tool_calls(session, **query)) == [LINES[place] for place in places]


def test_a_line_holds_nothing_of_arguments_and_results(session: Session) -> None:
    Toolbox(TOOLS, session=session).call("answer", {"what": "zq4711"})
    (call,) = tool_calls(session)
    assert [field.name for field in ToolCall.__attrs_attrs__] == [
        "event_id", "tool", "outcome", "elapsed", "created_at", "call_id", "actor", "idempotency_key",
    ]  # fmt: skip
    assert "zq4711" not in repr(call)
    assert copy.deepcopy(call) == pickle.loads(pickle.dumps(call)) == call  # noqa: S301 - its own


def test_two_sessions_on_one_bus_have_a_ledger_each(session: Session) -> None:
    other = Session(bus=session.bus)
    called(session)
    Toolbox(TOOLS, session=other).call("hop")
    assert (lines(select_all(session, ToolCall)), lines(select_all(other, ToolCall))) == (
        LINES,
        [("hop", "success")],
    )


@pytest.mark.parametrize("way", ["call", "acall"])
def test_the_ids_of_a_call_and_its_actor_are_in_events_ledger_and_history(session: Session, way: str) -> None:
    tools = [*PlanningToolsSection(session=session).tools(), tool(hop), tool(fall)]
    toolbox = Toolbox(tools, session=session)
    for number, (name, arguments) in enumerate(
        [("planning_setup_plan", {"objective": "x"}), ("hop", {}), ("fall", {}), ("hop", {"far": 1})]
    ):
        ids = {"call_id": f"call_{number}", "actor": "planner", "idempotency_key": f"key_{number}"}
        with suppress(ToolError):
            result = getattr(toolbox, way)(name, arguments, context={**ids, "trace_id": "t"})
            _ = asyncio.run(result) if way.startswith("a") else result
    events = [event for change in session.history() for event in change.events]
    for kept in (select_all(session, ToolCall), session.history(), events):
        assert [(each.call_id, each.actor, each.idempotency_key) for each in kept] == [
            (f"call_{number}", "planner", f"key_{number}") for number in range(4)
        ]


def hop() -> str:
    """Hop."""
    return "hopped"


def fall() -> str:
    """Fall."""
    raise ToolError("it fell")


@pytest.mark.parametrize("name", ["call_id", "actor", "idempotency_key"])
@pytest.mark.parametrize("value", [7, "", "x" * 201, b"id", "\ud800"])
def test_an_id_that_is_not_a_short_text_is_refused(session: Session, name: str, value: object) -> None:
    toolbox = Toolbox([tool(hop)], session=session)
    result = toolbox.call("hop", {}, context={name: value})
    assert result.message == (
        f"hop was not called: the {name} in its context must be text of 1 to 200 printable characters, "
        "or None"
    )
    assert lines(tool_calls(session)) == [("hop", "bad_context")]

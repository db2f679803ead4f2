"""A toolbox: what a call answers, and each call from its entry to its record in log, ledger and history."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import pickle
from collections import deque
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from unittest.mock import Mock

import pytest
from syrupy.assertion import SnapshotAssertion
from tool_entries import CALLS, QUESTION, SORRY, enter, raising, returning, through, told
from tool_entries import made as tool

from planning import PlanningToolsSection, Toolbox, ToolValidationError
from planning.tools import (
    DataNotFound,
    ParameterError,
    QueryTypeUnsupported,
    StorageUnavailable,
    Tool,
    ToolContext,
    ToolError,
    ToolSpec,
)
from planning.tools.errors import ErrorKind, PrivateFailure, RateLimitExceeded, ToolTimeout, UserInputNeeded
from planning.tools.guard import CircuitBreaker
from planning.tools.ledger import ToolCall, tool_calls
from planning.tools.parameters.model import FreeModel
from planning.tools.rate_limit import RateLimiter
from session import Session, ToolFailed, ToolInvoked, append, select_all, select_latest, select_where
from session.bus import InProcessEventBus, PublishResult


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
        (raising(ToolTimeout("slow")), {}, (False, "slow", None, "slow", SORRY, "timeout")),
    ],
)
def test_a_models_call_is_answered(entry: str, tool: Tool, arguments: Any, expected: tuple[Any, ...]) -> None:
    result = through(entry, tool, arguments)
    assert told(result) == expected
    assert result.elapsed > 0


@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
def test_python_calls_with_parameters_or_a_mapping(entry: str) -> None:
    assert through(entry, ADD, Add(1, 2)).value == Total(3)
    for given in ({"left": 1}, MappingProxyType({"left": 1})):
        assert through(entry, ADD, given).value == Total(2)
    with pytest.raises(RuntimeError, match=r"^its own$"):
        through(entry, raising(RuntimeError("its own")))


class More(Add):
    """A subclass of the parameters."""


NO_SCHEMAS = {"plain": {"type": "object"}, "free": FreeModel()}
BOX = Toolbox([ADD, *(Tool(name, "T.", str, parameters=each) for name, each in NO_SCHEMAS.items())])


WRONG_CALLS: list[tuple[Any, Any]] = [
    *(("ad", Add(1)), (None, Add(1)), ("add", Total(1)), ("add", More(1)), ("add", None)),
    *(("plain", 5), ("free", 5)),
]


def test_a_wrong_call_from_python_raises_with_what_to_do(snapshot: SnapshotAssertion) -> None:
    said = []
    for name, params in WRONG_CALLS:
        with pytest.raises(ToolValidationError) as caught:
            BOX.invoke(name, params)
        said.append(f"{name} {params}: {caught.value}")
    assert "\n".join(said) == snapshot


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^two tools are named add$"):
        Toolbox([ADD, Tool("add", "Other.", add, parameters=Add)])
    assert list(Toolbox([ADD, ADD]).tools) == ["add"]


def test_a_call_is_an_event_and_what_it_returns_is_reduced_only_if_the_tool_says_so(session: Session) -> None:
    session.register_reducer(Total, append)
    result = through("call", ADD, {"left": 2}, session)
    assert through("call", returning(Total(9)), {}, session).success
    event, _ = select_all(session, ToolInvoked)
    assert (event.name, event.params, event.result, event.value) == ("add", Add(2), result, Total(3))
    assert select_all(session, Total) == (Total(3),)


CONVERSATION: list[tuple[str, Any]] = [
    ("planning_update_step", {"step_id": "S001", "details": 7}),
    ("planning_update_step", {"step_id": "S001", "title": None, "details": None, "x": 1}),
    ("planning_add_step", {"steps": [], "x": 1}),
    ("planning_mark_step", {"step_id": "S001"}),
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


# Identifiers, limits, breakers, the session and the log

ONCE = {"mail": "1/minute"}


def test_a_tool_asks_for_its_own_identifiers() -> None:
    for names in (("badge_number",), "badge_number"):
        asking = tool(Mock(return_value="done"), requires_identifier=True, identifiers=names)
        assert through("call", asking, {"email": "a"}).input_request == "Could you give me your badge number?"
        assert through("call", asking, {"badge_number": 7}).success


COUNTED: list[BaseException] = [ValueError(), StorageUnavailable("x"), ToolTimeout("x")]
HARMLESS: list[BaseException] = [
    *(ParameterError("x"), RateLimitExceeded("x"), DataNotFound("x"), KeyboardInterrupt("x")),
    *(UserInputNeeded("x", "y"), QueryTypeUnsupported("x", "y"), asyncio.CancelledError("x")),
]


@pytest.mark.parametrize("error", COUNTED + HARMLESS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
def test_only_failures_of_the_tool_open_its_breaker(entry: str, private: bool, error: BaseException) -> None:
    breaker = CircuitBreaker(failures=1)
    made = raising(error, is_async=entry == "ainvoke", breaker=breaker, returns_private_data=private)
    with pytest.raises(PrivateFailure if private and isinstance(error, Exception) else type(error)):
        through(entry, made)
    assert breaker.state == ("open" if error in COUNTED else "closed")


def opened(*times: float) -> CircuitBreaker:
    """A breaker that opened at 0, and will see these times."""
    breaker = CircuitBreaker(failures=1, clock=iter([0.0, *times]).__next__)
    breaker.record_failure(breaker.admit("other"))
    return breaker


@pytest.mark.parametrize("entry", CALLS)
def test_a_call_that_is_not_made_gives_the_probe_back(entry: str) -> None:
    breaker, counted, limiter = opened(40.0, 40.0, 40.0, 40.0), Mock(return_value="done"), RateLimiter(ONCE)
    limiter.hit("mail")
    made = tool(counted, breaker=breaker, rate_limit_key="mail")
    for _ in range(2):
        assert through(entry, made, limiter=limiter).code == ErrorKind.RATE_LIMIT
        assert (breaker.state, counted.call_count) == ("open", 0)


@pytest.mark.parametrize("entry", CALLS)
def test_an_open_breaker_refuses_in_its_words_until_a_probe_succeeds(entry: str) -> None:
    breaker = opened(4.5, 40.0)
    messages = [through(entry, tool(Mock(return_value="done"), breaker=breaker)).message for _ in range(2)]
    waiting = "t failed 1 time in a row and is paused; try again in 26 s, or continue without it"
    assert (messages, breaker.state) == ([waiting, "done"], "closed")


class BrokenBus(InProcessEventBus):
    def publish(self, event: object) -> PublishResult:
        raise RuntimeError("no bus")


def test_a_broken_bus_a_broken_subscriber_and_a_closed_session_change_no_result() -> None:
    def deaf(_event: object) -> None:
        raise RuntimeError("deaf")

    heard, closed = Session(), Session()
    heard.bus.subscribe(ToolInvoked, deaf)
    heard.bus.subscribe(ToolFailed, deaf)
    closed.close()
    for each in (heard, closed, Session(bus=BrokenBus())):
        toolbox = Toolbox([tool(Mock(return_value="done"))], session=each)
        assert (toolbox.call("t").success, toolbox.call("x").code) == (True, ErrorKind.UNKNOWN_TOOL)
        assert [call.outcome for call in tool_calls(each)] == ["unknown_tool", "success"]


PLAIN_RECORD = logging.LogRecord("", 0, "", 0, "", (), None)


@pytest.mark.parametrize(
    ("error", "level", "code"),
    [
        (None, logging.DEBUG, None),
        (DataNotFound("x"), logging.INFO, "data_not_found"),
        (ValueError("zq4711"), logging.ERROR, "unknown"),
    ],
)
@pytest.mark.parametrize("entry", CALLS)
def test_a_call_is_one_structured_line_without_its_arguments_and_the_text_of_its_error(
    entry: str, error: Exception | None, level: int, code: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    act = tool(Mock(return_value="done", side_effect=error))
    with caplog.at_level(logging.DEBUG):
        result = through(entry, act, {"who": "zq4711"}, context={"trace_id": "abc"})
        through(entry, act, {"who": "zq4711"})
    record, other = (record for record in caplog.records if record.name == "planning.tools")
    said = {name: value for name, value in vars(record).items() if name not in vars(PLAIN_RECORD)}
    ended = {"message": "tool_called"}
    if error is not None:
        ended = {"message": "tool_failed", "error": type(error).__name__}
    assert said == {"tool": "t", "code": code, "elapsed": result.elapsed, "trace_id": "abc", **ended}
    assert (record.levelno, record.exc_info, "trace_id" in vars(other)) == (level, None, False)
    assert "zq4711" not in f"{vars(record)}{vars(other)}{caplog.text}"


# Identifiers: a tool that requires one is not called before somebody is named


NOBODY: list[Any] = [
    None, False, True, "", " \n\t", "\u200b\u00a0\u2060", b"", [], {}, (), set(), deque(),
]  # fmt: skip


UNNAMED = [
    *({name: value} for name in ("identifier", "email", "registration_id") for value in NOBODY),
    *(None, "{}", {"limit": 3}, {"parameters": {"email": "x"}}, {"email ": "x"}),
]


@pytest.mark.parametrize("arguments", UNNAMED, ids=lambda value: ascii(value)[:40])
def test_what_names_nobody_is_no_identifier_nor_is_one_under_another_key(arguments: Any) -> None:
    counted, message = Mock(return_value="done"), f"t was not called: ask the user first. {QUESTION}"
    for entry in CALLS:
        result = through(entry, tool(counted, requires_identifier=True), arguments)
        assert told(result) == (False, message, None, message, QUESTION, ErrorKind.NEEDS_USER_INPUT)
        assert (result.input_request, counted.call_count) == (QUESTION, 0)


@dataclass
class Who:
    email: Any = None


def in_query(parameters: Any) -> dict[str, Any]:
    return {"query_type": "one", "parameters": parameters}


@pytest.mark.parametrize(
    ("arguments", "calls"),
    [
        (in_query({"email": "a"}), ["a"]),
        (in_query('{"email": "a"}'), ["a"]),
        ({"query_type": "one", "email": "x"}, []),
        ({"email": "x", **in_query({})}, []),
        (in_query('{"email": " "}'), []),
        (in_query({"parameters": {"email": "x"}}), []),
        (in_query([]), []),
    ],
)
def test_a_query_has_its_identifier_among_its_parameters(arguments: Any, calls: list[str]) -> None:
    made: list[Any] = []
    spec = ToolSpec("t", {"one": Who}, "t")
    asking = tool(lambda _, who: made.append(who.email), parameters=spec, requires_identifier=True)
    assert through("call", asking, arguments).input_request == (None if calls else QUESTION)
    assert made == calls


# The ledger: a line for every call, newest first, and nothing of arguments and results


def answer(what: str) -> Any:
    if what == "raise":
        raise ToolError("no")
    if what == "report":
        return {"success": False}
    return what


TOOLS = [Tool("answer", "Answer.", answer), Tool("hop", "Hop.", lambda: 1)]
MADE: list[tuple[str, dict[str, Any], str]] = [
    ("answer", {"what": "raise"}, "tool"),
    ("hop", {}, "success"),
    ("answer", {"what": "report"}, "tool"),
    ("nope", {}, "unknown_tool"),
    ("hop", {"x": 1}, "parameter"),
]


def lines(calls: tuple[ToolCall, ...]) -> list[tuple[str, str]]:
    return [(call.tool, call.outcome) for call in calls]


def test_every_call_has_a_line_newest_first_and_the_ledger_can_be_asked_for_a_part(session: Session) -> None:
    toolbox = Toolbox(TOOLS, session=session)
    results = [toolbox.call(name, arguments) for name, arguments, _ in MADE]
    calls = tool_calls(session)
    assert lines(calls) == [(name, outcome) for name, _, outcome in MADE[::-1]]
    assert [call.success for call in calls] == [result.success for result in results][::-1]
    assert [call.elapsed for call in calls] == [result.elapsed for result in results][::-1]
    assert select_all(session, ToolCall) == calls[::-1]
    assert select_latest(session, ToolCall) == calls[0]
    assert select_where(session, ToolCall, lambda call: call.success) == (calls[3],)
    parts: list[tuple[dict[str, Any], list[int]]] = [
        ({"tool": "hop"}, [4, 1]),
        ({"outcome": "tool"}, [2, 0]),
        ({"outcome": ErrorKind.PARAMETER}, [4]),
        ({"tool": "answer", "outcome": "tool", "limit": 1}, [2]),
        ({"limit": 2}, [4, 3]),
    ]
    for query, places in parts:
        assert tool_calls(session, **query) == tuple(calls[4 - place] for place in places), query
    assert [field.name for field in ToolCall.__attrs_attrs__] == [
        "event_id", "tool", "outcome", "elapsed", "created_at", "call_id", "actor", "idempotency_key",
    ]  # fmt: skip
    assert copy.deepcopy(calls) == pickle.loads(pickle.dumps(calls)) == calls  # noqa: S301 - its own
    other = Session()
    for event in (ToolInvoked("t", {}, "of others"), ToolFailed("t", "of others")):
        other.publish(event)
    assert [(call.outcome, call.elapsed) for call in tool_calls(other)] == [("tool", 0.0), ("success", 0.0)]


@pytest.mark.parametrize("way", ["call", "acall"])
def test_the_ids_of_a_call_and_its_actor_are_in_events_ledger_and_history(session: Session, way: str) -> None:
    toolbox = Toolbox([*PlanningToolsSection(session=session).tools(), *TOOLS], session=session)
    calls: list[Any] = [("planning_setup_plan", {"objective": "x"}), *(each[:2] for each in MADE)]
    for number, (name, arguments) in enumerate(calls):
        ids = {"call_id": f"call_{number}", "actor": "p" * 200, "idempotency_key": f"key_{number}"}
        enter(way, toolbox, name, arguments, {**ids, "trace_id": "t"})
    events = [event for change in session.history() for event in change.events]
    for kept in (select_all(session, ToolCall), session.history(), events):
        assert [(each.call_id, each.actor, each.idempotency_key) for each in kept] == [
            (f"call_{number}", "p" * 200, f"key_{number}") for number in range(6)
        ]


@pytest.mark.parametrize("name", ["call_id", "actor", "idempotency_key"])
@pytest.mark.parametrize("value", [7, "", "x" * 201, b"id", "\ud800"])
def test_an_id_that_is_not_a_short_text_is_refused(session: Session, name: str, value: object) -> None:
    result = Toolbox(TOOLS, session=session).call("hop", {}, context={name: value})
    assert result.message == (
        f"hop was not called: the {name} in its context must be text of 1 to 200 printable characters, "
        "or None"
    )
    assert lines(tool_calls(session)) == [("hop", "bad_context")]

"""A call from its entry to its record: identifiers, limits, breakers, the session, the log, the ledger."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from tool_entries import CALLS, QUESTION, piped, raising, returning, through
from tool_entries import made as tool

from planning import PlanningToolsSection
from planning.tools import (
    DataNotFound,
    ParameterError,
    StorageUnavailable,
    Tool,
    Toolbox,
    ToolContext,
    ToolError,
    ToolResult,
    ToolSpec,
)
from planning.tools.errors import ErrorKind, PrivateFailure, RateLimitExceeded, ToolTimeout, UserInputNeeded
from planning.tools.guard import CircuitBreaker
from planning.tools.ledger import ToolCall, tool_calls
from planning.tools.rate_limit import RateLimiter
from session import (
    InProcessEventBus,
    PublishResult,
    Session,
    ToolFailed,
    ToolInvoked,
    select_all,
    select_latest,
    select_where,
)

ONCE = {"mail": "1/minute"}


class Counted:
    """A function that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, **_arguments: Any) -> str:
        self.calls += 1
        return "done"


def test_a_tool_asks_with_its_own_words_for_its_own_identifiers() -> None:
    options = {"requires_identifier": True, "identifiers": ("badge_number",)}
    asked = through("call", tool(Counted(), **options), {"email": "a"})
    assert asked.input_request == "Could you give me your badge number?"
    asked = through("call", tool(Counted(), input_request="Which badge?", **options))
    assert asked.input_request == "Which badge?"
    assert through("call", tool(Counted(), **options), {"badge_number": 7}).success


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (ValueError(), True),
        (StorageUnavailable("x"), True),
        (ToolTimeout("x"), True),
        (ParameterError("x"), False),
        (UserInputNeeded("x", "y"), False),
        (RateLimitExceeded("x"), False),
        (DataNotFound("x"), False),
        (KeyboardInterrupt(), False),
    ],
)
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
def test_only_what_speaks_of_a_tools_health_opens_its_breaker(
    entry: str, private: bool, error: BaseException, counts: bool
) -> None:
    breaker = CircuitBreaker(failures=1)
    made = raising(error, is_async=entry == "ainvoke", breaker=breaker, returns_private_data=private)
    with pytest.raises(PrivateFailure if private and isinstance(error, Exception) else type(error)):
        through(entry, made)
    assert breaker.state == ("open" if counts else "closed")


def opened(*times: float) -> CircuitBreaker:
    """A breaker that opened at 0, and will see these times."""
    breaker = CircuitBreaker(failures=1, clock=iter([0.0, *times]).__next__)
    breaker.record_failure(breaker.admit("other"))
    return breaker


@pytest.mark.parametrize("entry", CALLS)
def test_a_call_that_is_not_made_gives_the_probe_back(entry: str) -> None:
    breaker, counted, limiter = opened(40.0, 40.0, 40.0, 40.0), Counted(), RateLimiter(ONCE)
    limiter.hit("mail")
    made = tool(counted, breaker=breaker, rate_limit_key="mail")
    for _ in range(2):
        assert through(entry, made, limiter=limiter).code == ErrorKind.RATE_LIMIT
        assert (breaker.state, counted.calls) == ("open", 0)


@pytest.mark.parametrize("entry", CALLS)
def test_an_open_breaker_refuses_in_its_words_until_a_probe_succeeds(entry: str) -> None:
    breaker = opened(4.5, 40.0)
    messages = [through(entry, tool(Counted(), breaker=breaker)).message for _ in range(2)]
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
        toolbox = Toolbox([tool(Counted())], session=each)
        assert (toolbox.call("t").success, toolbox.call("x").code) == (True, ErrorKind.UNKNOWN_TOOL)
        assert [call.outcome for call in tool_calls(each)] == ["unknown_tool", "success"]


PLAIN_RECORD = logging.LogRecord("", 0, "", 0, "", (), None)


@pytest.mark.parametrize(
    ("error", "level", "code"),
    [
        (None, logging.DEBUG, None),
        (DataNotFound("x"), logging.INFO, "data_not_found"),
        (ValueError("x"), logging.ERROR, "unknown"),
    ],
)
def test_a_call_is_one_structured_line_without_its_arguments(
    error: Exception | None, level: int, code: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    def act(**_arguments: Any) -> str:
        if error is not None:
            raise error
        return "done"

    with caplog.at_level(logging.DEBUG):
        result = Toolbox([tool(act)]).call("t", {"who": "zq4711"}, context={"trace_id": "abc"})
        Toolbox([tool(act)]).call("t", {"who": "zq4711"})
    record, other = (record for record in caplog.records if record.name == "planning.tools")
    told = {name: value for name, value in vars(record).items() if name not in vars(PLAIN_RECORD)}
    failure = {} if error is None else {"error": type(error).__name__}
    assert told == {
        "message": "tool_called" if error is None else "tool_failed",
        "tool": "t",
        "code": code,
        "elapsed": result.elapsed,
        "trace_id": "abc",
        **failure,
    }
    assert (record.levelno, record.exc_info, "trace_id" in vars(other)) == (level, None, False)
    assert "zq4711" not in f"{vars(record)}{vars(other)}"


def test_the_log_says_what_a_tool_returned_that_is_no_result(caplog: pytest.LogCaptureFixture) -> None:
    through("call", returning(object()))
    through("call", returning({"zq4711": object()}, returns_private_data=True))
    told, private = (vars(record) for record in caplog.records)
    reason = (
        "the function returned object, which has no JSON form; "
        "return text, numbers, booleans, None, lists, dicts or records of these, at most 100 "
        "levels deep"
    )
    assert (told["message"], told["code"], told["reason"]) == ("tool_failed", "bad_result", reason)
    assert (private["code"], "reason" in private, "zq4711" in str(private)) == ("bad_result", False, False)


@pytest.mark.parametrize("entry", ["call", "acall", "invoke", "ainvoke"])
def test_a_tool_sees_the_context_of_its_call(entry: str) -> None:
    def look(context: ToolContext) -> Any:
        return dict(context.values)

    called: Any = getattr(Toolbox([tool(look)]), entry)("t", context={"trace_id": 1})
    result = asyncio.run(called) if asyncio.iscoroutine(called) else called
    assert result.value == {"trace_id": 1}


# Identifiers: a tool that requires one is not called before somebody is named


NOBODY: list[Any] = [
    None, False, True, "", " \n\t", "\u200b\u00a0\u2060", b"", [], {}, (), set(), deque(),
]  # fmt: skip


@pytest.mark.parametrize("name", ["identifier", "email", "registration_id"])
@pytest.mark.parametrize("value", NOBODY, ids=lambda value: ascii(value)[:30])
def test_what_names_nobody_is_no_identifier(value: Any, name: str) -> None:
    counted = Counted()
    result = Toolbox([tool(counted, requires_identifier=True)]).call("t", {name: value})
    assert (result.code, result.message, result.user_message, result.input_request, counted.calls) == (
        ErrorKind.NEEDS_USER_INPUT,
        f"t was not called: ask the user first. {QUESTION}",
        QUESTION,
        QUESTION,
        0,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        "{}",
        {"limit": 3},
        {"parameters": {"email": "x"}},
        {"parameters": '{"email": "x"}'},
        {"Email": "x"},
        {"user": {"email": "x"}},
        {"email ": "x"},
    ],
)
def test_an_identifier_under_another_key_is_none(arguments: Any) -> None:
    counted = Counted()
    asking = tool(counted, requires_identifier=True)
    for entry in ("call", "acall"):
        assert through(entry, asking, arguments).code == ErrorKind.NEEDS_USER_INPUT
    told = piped([asking], [{"tool": "t", "args": arguments}])["t"]
    assert (told["code"], told["input_request"], counted.calls) == ("needs_user_input", QUESTION, 0)


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
        (in_query({"email": []}), []),
        (in_query({"email": None}), []),
        (in_query('{"email": " "}'), []),
        (in_query({"parameters": {"email": "x"}}), []),
        (in_query(None), []),
        (in_query([]), []),
    ],
)
def test_a_query_has_its_identifier_among_its_parameters(arguments: Any, calls: list[str]) -> None:
    made: list[Any] = []
    spec = ToolSpec("t", {"one": Who}, "t")
    tool = Tool(
        "t", "T.", lambda _type, who: made.append(who.email), parameters=spec, requires_identifier=True
    )
    assert Toolbox([tool]).call("t", arguments).input_request == (None if calls else QUESTION)
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
LINES = [(name, outcome) for name, _, outcome in MADE]


def called(session: Session) -> list[ToolResult]:
    toolbox = Toolbox(TOOLS, session=session)
    return [toolbox.call(name, arguments) for name, arguments, _ in MADE]


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


@pytest.mark.parametrize("way", ["call", "acall"])
def test_the_ids_of_a_call_and_its_actor_are_in_events_ledger_and_history(session: Session, way: str) -> None:
    toolbox = Toolbox([*PlanningToolsSection(session=session).tools(), hop, fall], session=session)
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
    toolbox = Toolbox([hop], session=session)
    result = toolbox.call("hop", {}, context={name: value})
    assert result.message == (
        f"hop was not called: the {name} in its context must be text of 1 to 200 printable characters, "
        "or None"
    )
    assert lines(tool_calls(session)) == [("hop", "bad_context")]

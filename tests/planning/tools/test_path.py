"""The path of a call: its stages, their order, and the doors to it, from plain code."""

from __future__ import annotations

import logging
import threading
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pytest

from planning import PlanningToolsSection
from planning.tools import (
    CircuitBreaker,
    CircuitOpen,
    DataNotFound,
    ErrorKind,
    ParameterError,
    PrivateFailure,
    RateLimiter,
    RateLimitExceeded,
    Retry,
    StorageUnavailable,
    Tool,
    Toolbox,
    ToolContext,
    ToolRegistry,
    ToolResult,
    ToolSpec,
    ToolTimeout,
    UserInputNeeded,
    tool_calls,
)
from session import InProcessEventBus, PublishResult, Session, ToolFailed, ToolInvoked

ONCE = {"mail": "1/minute"}
NOW = Retry(attempts=2, wait_initial=0, wait_max=0, wait_jitter=0)
QUESTION = "Could you give me your identifier, email or registration id?"


@dataclass
class Who:
    email: str | None = None
    limit: int = 1


class Counted:
    """A function that counts its calls."""

    def __init__(self, outcome: Any = "done") -> None:
        self.calls = 0
        self.outcome = outcome

    def __call__(self, **_arguments: Any) -> Any:
        self.calls += 1
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


def tool(function: Any, **options: Any) -> Tool:
    return Tool("t", "T.", function, **options)


def test_a_call_over_the_limit_is_refused_and_not_made() -> None:
    counted = Counted()
    toolbox = Toolbox([tool(counted, rate_limit_key="mail")], limiter=RateLimiter(ONCE))
    assert toolbox.call("t").success
    assert toolbox.call("t").code == ErrorKind.RATE_LIMIT
    with pytest.raises(RateLimitExceeded):
        toolbox.invoke("t")
    assert counted.calls == 1


def test_a_registrys_limiter_is_its_toolboxs_too() -> None:
    registry = ToolRegistry([tool(Counted(), rate_limit_key="mail")], limiter=RateLimiter(ONCE))
    assert [Toolbox(registry).call("t").success for _ in range(2)] == [True, False]


def test_tools_of_one_key_are_limited_together() -> None:
    tools = [Tool(name, "T.", Counted(), rate_limit_key="mail") for name in ("a", "b")]
    toolbox = Toolbox(tools, limiter=RateLimiter(ONCE))
    assert (toolbox.call("a").code, toolbox.call("b").code) == (None, ErrorKind.RATE_LIMIT)


def test_a_refused_call_counts_for_no_limit() -> None:
    toolbox = Toolbox(
        [tool(lambda params: "done", parameters=Who, rate_limit_key="mail", requires_identifier=True)],
        limiter=RateLimiter(ONCE),
    )
    codes = [toolbox.call("t", given).code for given in ({"limit": "x"}, {}, {"email": "a", "limit": "x"})]
    assert codes == [ErrorKind.NEEDS_USER_INPUT, ErrorKind.NEEDS_USER_INPUT, ErrorKind.PARAMETER]
    assert toolbox.call("t", {"email": "a"}).success


@pytest.mark.parametrize(
    "arguments",
    [None, "", {}, "{}", {"email": None}, {"email": " \n"}, '{"email": ""}', {"limit": 3}],
)
def test_a_call_without_an_identifier_asks_the_user(arguments: Any) -> None:
    counted = Counted()
    result = Toolbox([tool(counted, requires_identifier=True)]).call("t", arguments)
    assert (result.code, result.needs_user_input, result.input_request, result.user_message) == (
        ErrorKind.NEEDS_USER_INPUT,
        True,
        QUESTION,
        QUESTION,
    )
    assert result.message == f"t was not called: ask the user first. {QUESTION}"
    assert counted.calls == 0


@pytest.mark.parametrize("params", [None, {}, Who(), Who(" "), {"email": ""}])
def test_a_call_from_python_without_an_identifier_raises_the_question(params: Any) -> None:
    toolbox = Toolbox([tool(lambda params: 1, parameters=Who, requires_identifier=True)])
    with pytest.raises(UserInputNeeded) as caught:
        toolbox.invoke("t", params)
    assert caught.value.input_request == QUESTION
    assert toolbox.invoke("t", Who("a@b")).value == 1


def query_tool() -> Tool:
    spec = ToolSpec("t", {"one": Who}, "t")
    return tool(lambda _type, params: params.email, parameters=spec, requires_identifier=True)


@pytest.mark.parametrize("parameters", [{"email": "a"}, '{"email": "a"}'])
def test_an_identifier_among_the_parameters_of_a_query_is_enough(parameters: Any) -> None:
    result = Toolbox([query_tool()]).call("t", {"query_type": "one", "parameters": parameters})
    assert result.value == "a"


@pytest.mark.parametrize("parameters", [{}, None, "", '{"email": " "}', [], {"email": None}])
def test_a_query_without_an_identifier_asks_the_user(parameters: Any) -> None:
    result = Toolbox([query_tool()]).call("t", {"query_type": "one", "parameters": parameters})
    assert result.code == ErrorKind.NEEDS_USER_INPUT


def test_a_tool_asks_with_its_own_words_for_its_own_identifiers() -> None:
    options = {"requires_identifier": True, "identifiers": ("badge_number",)}
    asked = Toolbox([tool(Counted(), **options)]).call("t", {"email": "a"})
    assert asked.input_request == "Could you give me your badge number?"
    asked = Toolbox([tool(Counted(), input_request="Which badge?", **options)]).call("t")
    assert asked.input_request == "Which badge?"
    assert Toolbox([tool(Counted(), **options)]).call("t", {"badge_number": 7}).success


def test_a_plain_tool_is_given_its_time() -> None:
    go = threading.Event()
    result = Toolbox([tool(lambda: go.wait(20), timeout=0.01)]).call("t")
    go.set()
    assert (result.code, result.message) == (
        ErrorKind.TIMEOUT,
        "t took longer than 0.01 s and was given up; call it again, or go on without it",
    )


def test_python_hears_of_a_timeout_as_a_timeout_error() -> None:
    go = threading.Event()
    with pytest.raises(TimeoutError) as caught:
        Toolbox([tool(lambda: go.wait(20))], timeout=0.01).invoke("t")
    go.set()
    assert type(caught.value) is ToolTimeout


def test_a_tools_own_timeout_error_is_its_own() -> None:
    result = tool(Counted(TimeoutError("database")), timeout=20.0).execute()
    assert result["error"] == "database"


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 1e12])
def test_a_timeout_that_nobody_can_wait_for_is_refused_or_holds(seconds: float) -> None:
    try:
        made = tool(Counted(), timeout=seconds)
    except ValueError:
        return
    assert Toolbox([made]).call("t").success


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), True, "5"])
def test_a_toolboxs_timeout_is_held_to_the_rule_of_a_tools(seconds: Any) -> None:
    with pytest.raises(ValueError, match="timeout"):
        Toolbox([tool(Counted())], timeout=seconds)


def test_a_toolboxs_timeout_takes_the_planning_tools_to_no_thread(session: Session) -> None:
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session, timeout=0.05)
    with session.transaction():
        result = toolbox.call("planning_setup_plan", {"objective": "x"})
    assert result.success


def test_a_given_up_tool_is_not_tried_again() -> None:
    go, calls = threading.Event(), list[threading.Thread]()

    def fail() -> None:
        calls.append(threading.current_thread())
        go.wait(20)
        raise StorageUnavailable("later")

    assert Toolbox([tool(fail, timeout=0.01, retry=NOW)]).call("t").code == ErrorKind.TIMEOUT
    go.set()
    calls[0].join(20)
    assert len(calls) == 1


def test_context_variables_reach_a_tool_in_its_thread() -> None:
    word: ContextVar[str] = ContextVar("word", default="nothing")
    word.set("here")
    assert tool(word.get, timeout=20.0).execute()["result"] == "here"


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
def test_only_what_speaks_of_a_tools_health_opens_its_breaker(
    error: BaseException, counts: bool, private: bool
) -> None:
    breaker = CircuitBreaker(failures=1)
    toolbox = Toolbox([tool(Counted(error), breaker=breaker, returns_private_data=private)])
    with pytest.raises(PrivateFailure if private and isinstance(error, Exception) else type(error)):
        toolbox.invoke("t")
    assert breaker.state == ("open" if counts else "closed")


@pytest.mark.parametrize(
    "outcome",
    [{"success": False, "error": "no"}, ToolResult(False, "no"), ValueError, (each for each in [1])],
)
def test_a_returned_failure_counts_for_the_breaker(outcome: Any) -> None:
    breaker = CircuitBreaker(failures=1)
    toolbox = Toolbox([tool(Counted(outcome), breaker=breaker)])
    assert not toolbox.call("t").success
    assert breaker.state == "open"
    with pytest.raises(CircuitOpen):
        toolbox.invoke("t")


def test_a_call_that_is_not_made_gives_the_probe_back() -> None:
    breaker, counted = (
        CircuitBreaker(failures=1, clock=iter([0.0, 40.0, 40.0, 40.0, 40.0]).__next__),
        Counted(),
    )
    breaker.failed(breaker.admit("t"))
    limiter = RateLimiter({"mail": "1/minute"})
    limiter.hit("mail")
    toolbox = Toolbox([tool(counted, breaker=breaker, rate_limit_key="mail")], limiter=limiter)
    assert toolbox.call("t").code == ErrorKind.RATE_LIMIT
    assert (breaker.state, counted.calls) == ("open", 0)
    assert toolbox.call("t").code == ErrorKind.RATE_LIMIT


def test_a_probe_that_succeeds_closes_the_breaker() -> None:
    breaker = CircuitBreaker(failures=1, clock=iter([0.0, 40.0]).__next__)
    breaker.failed(breaker.admit("t"))
    assert Toolbox([tool(Counted(), breaker=breaker)]).call("t").success
    assert breaker.state == "closed"


def test_a_tool_may_call_another_toolbox(session: Session) -> None:
    inner = Toolbox([Tool("inner", "I.", lambda: 2)], session=session)
    outer = Toolbox([Tool("outer", "O.", lambda: inner.invoke("inner").value + 1)], session=session)
    assert outer.call("outer").value == 3
    assert [call.tool for call in tool_calls(session)] == ["outer", "inner"]


def test_a_call_inside_a_transaction_is_part_of_it(session: Session) -> None:
    toolbox = Toolbox([tool(Counted())], session=session)
    with pytest.raises(ValueError, match=r"^back$"), session.transaction():
        assert toolbox.call("t").success
        assert toolbox.call("nope").code == ErrorKind.UNKNOWN_TOOL
        assert len(tool_calls(session)) == 2
        raise ValueError("back")
    assert tool_calls(session) == ()


class BrokenBus(InProcessEventBus):
    def publish(self, event: object) -> PublishResult:
        raise RuntimeError("no bus")


def test_a_bus_or_a_subscriber_that_raises_changes_no_result(session: Session) -> None:
    def deaf(_event: object) -> None:
        raise RuntimeError("deaf")

    session.bus.subscribe(ToolInvoked, deaf)
    session.bus.subscribe(ToolFailed, deaf)
    for each in (session, Session(bus=BrokenBus())):
        toolbox = Toolbox([tool(Counted())], session=each)
        assert (toolbox.call("t").success, toolbox.call("x").code) == (True, ErrorKind.UNKNOWN_TOOL)
        assert [call.outcome for call in tool_calls(each)] == ["unknown_tool", "success"]


def test_a_record_that_fails_is_logged_and_changes_no_result(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_slice: tuple[Any, ...], _event: ToolFailed) -> tuple[Any, ...]:
        raise RuntimeError("4711")

    session.register_reducer(ToolFailed, broken, Who)
    assert Toolbox([tool(Counted())], session=session).call("x").code == ErrorKind.UNKNOWN_TOOL
    record = caplog.records[-1]
    assert (record.message, vars(record)["tool"], vars(record)["error"], record.exc_info) == (
        "call_not_recorded",
        "x",
        "RuntimeError",
        None,
    )


def test_a_closed_session_still_records(session: Session) -> None:
    session.close()
    toolbox = Toolbox([tool(Counted())], session=session)
    assert (toolbox.call("t").success, toolbox.call("x").success) == (True, False)
    assert [call.outcome for call in tool_calls(session)] == ["unknown_tool", "success"]


@pytest.mark.parametrize(
    ("outcome", "level", "code"),
    [
        ("done", logging.DEBUG, None),
        (DataNotFound("x"), logging.INFO, "data_not_found"),
        (ValueError("x"), logging.ERROR, "unknown"),
    ],
)
def test_a_call_is_one_structured_line_without_its_arguments(
    outcome: Any, level: int, code: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        Toolbox([tool(Counted(outcome))]).call("t", {"who": "4711"}, context={"trace_id": "abc"})
    (record,) = [record for record in caplog.records if record.name == "planning.tools"]
    told = vars(record)
    assert (record.levelno, told["tool"], told["code"], told["trace_id"]) == (level, "t", code, "abc")
    assert (record.exc_info, "4711" in str(told)) == (None, False)


def test_the_log_says_what_a_tool_returned_that_is_no_result(caplog: pytest.LogCaptureFixture) -> None:
    Toolbox([tool(object)]).call("t")
    Toolbox([tool(lambda: {"4711": object()}, returns_private_data=True)]).call("t")
    told, private = (vars(record) for record in caplog.records)
    reason = (
        "the function returned object, which has no JSON form; "
        "return text, numbers, booleans, None, lists, dicts or records of these"
    )
    assert (told["message"], told["code"], told["reason"]) == ("tool_failed", "bad_result", reason)
    assert (private["code"], "reason" in private, "4711" in str(private)) == ("bad_result", False, False)


def test_the_message_of_an_open_breaker_names_the_tool_and_how_long() -> None:
    breaker = CircuitBreaker(failures=1, clock=iter([0.0, 4.5]).__next__)
    breaker.failed(breaker.admit("other"))
    assert Toolbox([tool(Counted(), breaker=breaker)]).call("t").message == (
        "t failed 1 time in a row and is left alone; try again in 26 s, or go on without it"
    )


def test_a_tool_sees_the_context_of_its_call() -> None:
    def look(context: ToolContext) -> Any:
        return dict(context.values)

    assert Toolbox([tool(look)]).call("t", context={"trace_id": 1}).value == {"trace_id": 1}
    assert Toolbox([tool(look)]).invoke("t", context={"a": 2}).value == {"a": 2}

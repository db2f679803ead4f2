"""Private data: whatever a tool with private data is given, returns or raises, only its caller reads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from logging.handlers import BufferingHandler
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tool_entries import NOW, QUESTION, SORRY, Answer, in_async, piped, raising, returning, told

from planning.tools import Tool, Toolbox, ToolError, ToolResult, ToolValidationError, errors, execute_tools
from planning.tools.errors import (
    DataNotFound,
    ErrorKind,
    ParameterError,
    QueryTypeUnsupported,
    StorageUnavailable,
    classify_error,
)
from planning.tools.guard import CircuitBreaker
from planning.tools.ledger import ToolCall
from planning.tools.registry import ToolRegistry
from session import Session, SessionEvent, ToolFailed, ToolInvoked

Act = Callable[[Mapping[str, Any]], Any]


def fresh() -> str:
    """A secret: short, or asyncio would only log a part of it."""
    return f"zq{uuid4().hex[:10]}"


class Odd(BaseException):
    pass


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ToolError(self.args[0])

    __repr__ = __str__


class Talking(ToolError):
    def user_message(self) -> str:
        raise ValueError(self.message)


def noted(secret: str) -> Exception:
    error = ValueError()
    error.add_note(secret)
    error.__cause__ = KeyError(secret)
    return error


ERRORS: dict[str, Callable[[str], BaseException]] = {
    **{
        make.__name__: make
        for make in (
            ToolError, Talking, ToolValidationError, errors.ContextInvalid, ValueError, TimeoutError,
            StopIteration, concurrent.futures.CancelledError, Odd, Unspeakable, noted,
        )
    },
    "details": lambda s: ToolError(s, {s: s}),
    "UserInputNeeded": lambda s: errors.UserInputNeeded(s, s),
    "ResultInvalid": lambda s: errors.ResultInvalid(s, s),
    "PrivateFailure": lambda s: errors.PrivateFailure(s, ErrorKind.TOOL),
    "group": lambda s: ExceptionGroup(s, [ValueError(s), ToolError(s)]),
}  # fmt: skip


class Unreadable(dict[str, Any]):
    """A dict that tells what it holds when it is asked for anything."""

    def items(self, *_args: Any) -> Any:
        raise ToolError(str(dict(self)))

    get = __contains__ = items


RETURNED: dict[str, Callable[[str], Any]] = {
    "text": lambda s: s,
    "dict": lambda s: {s: [s, {"deep": s}]},
    "failure": lambda s: {"success": False, "data": s, "error": s, "user_message": s},
    "question": lambda s: {"success": False, "error": s, "needs_user_input": True, "input_request": s},
    "result": lambda s: ToolResult(True, s, s, None, s),
    "failed result": lambda s: ToolResult(False, s, s, s, s, 0.5, ErrorKind.TOOL, s, s),
}
UNUSABLE: dict[str, Callable[[str], Any]] = {
    "generator": lambda s: (each for each in [s]),
    "exception": ValueError,
    "untold": Unspeakable,
    "unreadable": lambda s: Unreadable({s: s}),
}


MADE = {"raised": ERRORS, "returned": RETURNED, "unusable": UNUSABLE}
ENDINGS = [(kind, name) for kind, made in MADE.items() for name in made]


def ending(kind: str, name: str, secret: str) -> Act:
    def act(_arguments: Mapping[str, Any]) -> Any:
        made = MADE[kind][name](secret)
        if kind == "raised":
            raise made
        return made

    return act


def private(function: Callable[..., Any], **options: Any) -> Tool:
    return Tool("t", "Look.", function, returns_private_data=True, **options)


class Look(Answer):
    returns_private_data = True

    async def execute(self, args: Any, context: dict[str, Any]) -> Any:
        found = self.outcome(args)
        is_own = isinstance(found, (Unreadable, ToolResult)) or (type(found) is dict and "success" in found)
        return found if is_own else {"success": True, "data": found}


def base_tool(act: Act, **options: Any) -> Any:
    look = Look(act)
    vars(look).update(options)
    return look


KINDS: dict[str, Callable[..., Any]] = {
    "sync": lambda act, **options: private(lambda **arguments: act(arguments), **options),
    "async": lambda act, **options: private(in_async(lambda **arguments: act(arguments)), **options),
    "base": base_tool,
}
DOORS = ["invoke", "ainvoke", "call", "acall", "execute_tools"]
GUARDS: dict[str, Callable[[], dict[str, Any]]] = {
    "none": dict,
    "retry": lambda: {"retry": NOW},
    "timeout": lambda: {"timeout": 20.0},
    "breaker": lambda: {"breaker": CircuitBreaker(failures=1), "retry": NOW},
    "limit": lambda: {"rate_limit_key": uuid4().hex},
}


async def enter(door: str, tool: Any, arguments: Any, session: Session) -> Any:
    """Call a tool through a door; gives back what the caller gets, or the exception."""
    try:
        if door == "execute_tools":
            state = {"tool_calls": [{"tool": "t", "args": arguments}]}
            return await execute_tools(state, registry=ToolRegistry([tool]), session=session)
        return await getattr(Toolbox([tool], session=session), door)("t", arguments)
    except BaseException as error:  # noqa: BLE001 - what the caller gets
        return error


def through(door: str, tool: Any, arguments: Any, session: Session) -> Any:
    outcome: list[Any] = []

    async def run() -> None:  # gives nothing back: asyncio's log would show it, and that is the caller's
        outcome.append(await enter(door, tool, arguments, session))

    if door in {"invoke", "call"}:
        try:
            return getattr(Toolbox([tool], session=session), door)("t", arguments)
        except BaseException as error:  # noqa: BLE001 - what the caller gets
            return error
    asyncio.run(run())
    return outcome[0]


class Watch(BufferingHandler):
    """Keeps every record, whole."""

    def text(self) -> str:
        return "\n".join(f"{logging.Formatter().format(each)} {vars(each)!r}" for each in self.buffer)


@contextmanager
def watched() -> Iterator[Watch]:
    """All logs at DEBUG, with an asyncio that logs each of its steps."""
    watch, root, make = Watch(10**9), logging.getLogger(), asyncio.new_event_loop
    level = root.level

    def talkative() -> asyncio.AbstractEventLoop:
        loop = make()
        loop.set_debug(True)
        loop.slow_callback_duration = 0
        return loop

    root.addHandler(watch)
    root.setLevel(logging.DEBUG)
    try:
        with patch("asyncio.events.new_event_loop", talkative):
            yield watch
    finally:
        root.removeHandler(watch)
        root.setLevel(level)


def everything(value: Any, seen: tuple[int, ...] = ()) -> str:
    """The text of a value and of everything in it, exceptions with all that hangs on them."""
    if id(value) in seen:
        return ""
    inside: list[Any] = []
    text = f"{value!r} {value}"
    if isinstance(value, BaseException):
        inside = [*value.args, vars(value), value.__cause__, value.__context__]
        text += "".join(traceback.format_exception(value))
    elif isinstance(value, Mapping):
        inside = [*value, *value.values()]
    elif isinstance(value, (list, tuple)):
        inside = list(value)
    elif hasattr(value, "__attrs_attrs__"):
        inside = [getattr(value, field.name) for field in value.__attrs_attrs__]
    return "\n".join([text, *(everything(each, (*seen, id(value))) for each in inside)])


def heard(session: Session, events: list[SessionEvent]) -> str:
    return everything([events, *(session.select_all(kind) for kind in (ToolInvoked, ToolFailed, ToolCall))])


def listening() -> tuple[Session, list[SessionEvent]]:
    session, events = Session(), list[SessionEvent]()
    session.bus.subscribe(SessionEvent, events.append)
    return session, events


@example(("raised", "ToolError"), "invoke", "async", "timeout", False)
@given(
    st.sampled_from(ENDINGS),
    st.sampled_from(DOORS),
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(sorted(GUARDS)),
    st.booleans(),
)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_a_private_tool_is_given_and_how_it_ends_only_its_caller_reads(
    end: tuple[str, str], door: str, kind: str, guard: str, twice: bool
) -> None:
    secret = fresh()
    tool = KINDS[kind](ending(*end, secret), **GUARDS[guard]())
    given_: dict[str, Any] = {"who": secret, "deep": {"in": [{secret: secret}]}, secret: 1}
    session, events = listening()
    with watched() as watch:
        outcomes = [through(door, tool, given_, session) for _ in range(2 if twice else 1)]
    assert secret not in watch.text() + heard(session, events)
    for outcome in outcomes:
        if end[0] != "returned":
            assert secret not in everything(outcome)
        elif isinstance(outcome, ToolResult):
            assert secret not in repr(outcome) + str(outcome)


FAILURES: list[tuple[Exception, str]] = [
    (ParameterError("s"), "cannot work with these arguments. Change them, or continue without it."),
    (QueryTypeUnsupported("s", "t"), "has no such type of query. Ask for another, or continue without it."),
    (StorageUnavailable("s"), "cannot reach its data now. Try again later, or continue without it."),
    (errors.RateLimitExceeded("s"), "was called too often. Try again later, or continue without it."),
    (DataNotFound("s"), "found nothing."),
    (errors.ToolTimeout("s"), "did not answer in time. Call it again, or continue without it."),
    (errors.ResultInvalid("s", "s"), "returned nothing that can be used. Continue without it."),
    (ValueError("s"), "failed. Call it again, or continue without it."),
]


@pytest.mark.parametrize(("error", "said"), FAILURES)
def test_a_model_reads_what_kind_of_failure_a_private_tool_had(error: Exception, said: str) -> None:
    result = Toolbox([raising(error, returns_private_data=True)]).call("t")
    words = (f"t {said}", None, "Tool 't' encountered an error", SORRY)
    assert told(result) == (False, *words, classify_error(error))
    assert (result.cause, result.is_private) == (None, True)
    asking = raising(errors.UserInputNeeded("s", "s"), returns_private_data=True)
    assert Toolbox([asking]).call("t").input_request == QUESTION


@pytest.mark.parametrize("success", [True, False])
def test_the_event_and_the_repr_of_a_private_result_say_how_it_ended_and_no_more(success: bool) -> None:
    session = Session()
    tool = returning({"success": success, "error": "s3cret", "code": "storage"}, returns_private_data=True)
    result = Toolbox([tool], session=session).call("t", context={"idempotency_key": "k"})
    (event,) = session.select_all(ToolInvoked)
    assert event.fingerprint is None  # of short arguments it could be guessed
    words = ("t succeeded.", None) if success else ("t reported a failure.", "Tool 't' reported a failure")
    assert event.result == ToolResult(
        success, words[0], None, words[1], None, result.elapsed, result.code, is_private=True
    )
    envelopes = tool.execute(), piped([tool], [{"tool": "t"}])["t"]
    assert [repr(each) for each in envelopes] == [f"<private, success={success}>"] * 2


@pytest.mark.parametrize("door", ["acall", "execute_tools"])
def test_cancelling_a_private_tool_takes_nothing_along_of_what_it_was_doing(door: str) -> None:
    secret = fresh()

    async def look(**_arguments: Any) -> None:
        try:
            raise ValueError(secret)
        except ValueError:
            await asyncio.sleep(60)

    (session, events), outcomes = listening(), list[Any]()

    async def run() -> None:
        asyncio.get_running_loop().call_later(0.01, asyncio.current_task().cancel)  # type: ignore[union-attr]  # it runs
        outcomes.append(await enter(door, private(look), {"who": secret}, session))

    with watched() as watch:
        asyncio.run(run())
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert secret not in watch.text() + heard(session, events) + everything(outcomes[0])


@pytest.mark.parametrize("door", DOORS)
def test_what_a_private_tool_does_too_late_reaches_nobody(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, go, hooked, threads = fresh(), threading.Event(), list[Any](), list[threading.Thread]()

    def look(**_arguments: Any) -> None:
        threads.append(threading.current_thread())
        go.wait(20)
        raise ValueError(secret)

    monkeypatch.setattr("threading.excepthook", hooked.append)
    session, events = listening()
    with watched() as watch:
        outcome = through(door, private(look, timeout=0.02, retry=NOW), {"who": secret}, session)
        go.set()
        threads[0].join(20)
    assert hooked == []
    assert secret not in watch.text() + heard(session, events) + everything(outcome)

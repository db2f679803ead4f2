"""Errors: bad input and bad tools give a failed result with a code and a text that a model may read."""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import errno
import pickle
import socket
import sqlite3
import ssl
import subprocess
import sys
import urllib.error
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pydantic
import pytest
from tool_entries import CALLS, SORRY, Answer, in_async, made, raising, returning, through, told

from planning import tool
from planning.errors import Problem
from planning.tools import Toolbox, ToolError, ToolSpec, ToolValidationError
from planning.tools.errors import (
    CircuitOpen,
    ContextInvalid,
    DataNotFound,
    ErrorKind,
    ParameterError,
    PrivateFailure,
    QueryTypeUnsupported,
    RateLimitExceeded,
    ResultInvalid,
    StorageUnavailable,
    ToolTimeout,
    UserInputNeeded,
    classify_error,
)
from planning.tools.ledger import ToolCall, tool_calls
from session import Session, SessionBusyError, StoreError
from session.errors import StoreBusy


class Odd(BaseException):
    pass


class Wordless(ToolError):
    user_message: Any = Mock(return_value=None)


class BareQuestion(UserInputNeeded):
    def __init__(self) -> None:
        ToolError.__init__(self, "ask")


class Unspeakable(Exception):
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __str__(self) -> str:
        raise self.error

    def __repr__(self) -> str:
        if isinstance(self.error, Exception):
            raise self.error
        return "Unspeakable"  # asyncio reads it, and does not survive what is no Exception


@dataclass
class Holder:
    part: Any


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    part: object


class Hostile(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise ConnectionError("no")

    __iter__ = __len__ = __getitem__  # type: ignore[assignment]  # what is tested


def nested(levels: int, level: Callable[[Any], Any] = lambda part: [part]) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = level(value)
    return value


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


def add(left: int) -> int:
    """Add one."""
    return left + 1


RETURN = "return text, numbers, booleans, None, lists, dicts or records of these, at most 100 levels deep"
UNUSABLE = "t returned nothing that can be used. Continue without it."


@pytest.mark.parametrize("entry", CALLS)
@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: ValueError, "the class ValueError, which has no JSON form"),
        (lambda: (each for each in [1]), "generator, which has no JSON form"),
        (lambda: Unspeakable(ValueError("no")), "test_tool_errors.Unspeakable, which has no JSON form"),
        (lambda: [{"deep": object()}], "list with object in it, which has no JSON form"),
        (lambda: {"kinds": {int}}, "dict with the class int in it, which has no JSON form"),
        (lambda: Model(part=object()), "test_tool_errors.Model, which cannot be read"),
        (lambda: {1: 2, "1": 3}, "dict, which has two keys that are the same text in JSON"),
        (Hostile, "test_tool_errors.Hostile, which cannot be read"),
        (lambda: nested(101), "list with list in it, which is nested more than 100 levels deep"),
        (lambda: {"tree": nested(100, Holder)}, "dict with test_tool_errors.Holder in it, which is nested "
         "more than 100 levels deep"),
        (lambda: nested(60, lambda part: Model(part=[part])), "test_tool_errors.Model with dict in it, which "
         "is nested more than 100 levels deep"),
        (lambda: {"again": ENDLESS}, "dict with list in it, which contains itself"),
    ],
)  # fmt: skip
def test_what_a_function_returns_and_has_no_json_form_is_a_bad_result_and_the_log_says_what(
    entry: str, make: Callable[[], Any], shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = through(entry, returning(make()))
    assert told(result) == (False, UNUSABLE, None, UNUSABLE, SORRY, "bad_result")
    assert result.cause == f"the function returned {shown}; {RETURN}"
    through(entry, returning(make(), returns_private_data=True))
    said = [(record.message, *map(vars(record).get, ("code", "reason"))) for record in caplog.records]
    assert said == [("tool_failed", "bad_result", result.cause), ("tool_failed", "bad_result", None)]


@pytest.mark.parametrize("entry", CALLS)
def test_a_value_that_is_nested_a_hundred_levels_deep_is_shown_whole(entry: str) -> None:
    assert through(entry, returning(nested(100))).message == "[" * 100 + '"x"' + "]" * 100


NO_ARGUMENTS: list[Any] = ["left", {}, 5]
RAISED: list[tuple[BaseException, str]] = [
    *((error, "unknown") for error in (Odd("x"), Unspeakable(ValueError("x")), Unspeakable(Odd("x")))),
    *((kind("x"), "unknown") for kind in (RecursionError, StopIteration, StopAsyncIteration)),
    (ToolError.__new__(ToolError), "tool"),
    (BareQuestion(), "needs_user_input"),
    (ToolError(Unspeakable(Odd())), "tool"),  # type: ignore[arg-type]  # what is tested
    (concurrent.futures.CancelledError(), "cancelled"),
]


@pytest.mark.parametrize("entry", CALLS)
@pytest.mark.parametrize(
    ("called", "arguments", "code"),
    [
        *((raising(error, is_async=way), {}, code) for way in (False, True) for error, code in RAISED),
        *((add, arguments, "parameter") for arguments in NO_ARGUMENTS),
        (add, Hostile(), "unknown"),
    ],
)
def test_whatever_a_tool_raises_and_a_model_sends_is_a_failed_result_and_the_next_call_works(
    entry: str, called: Any, arguments: Any, code: str, session: Session
) -> None:
    result = through(entry, called, arguments, session)
    assert (result.success, result.code, result.value) == (False, code, None)
    assert result.message
    assert through(entry, add, {"left": 1}, session).value == 2
    assert [call.outcome for call in tool_calls(session)] == ["success", code]


@pytest.mark.parametrize(
    ("error", "is_async"), [(GeneratorExit, False), *product((KeyboardInterrupt, SystemExit), (False, True))]
)
@pytest.mark.parametrize("timeout", [None, 20])
@pytest.mark.parametrize("entry", CALLS)
def test_what_ends_a_program_passes_and_is_in_no_ledger(
    entry: str, timeout: float | None, error: type[BaseException], is_async: bool, session: Session
) -> None:
    with pytest.raises(error):
        through(entry, raising(error, is_async=is_async, timeout=timeout), {}, session)
    assert session.select_all(ToolCall) == ()


def test_an_outcome_of_execute_that_is_none_is_a_bad_result() -> None:
    outcomes: list[Any] = [None, ValueError, {}, {"success": 1}, {"success": True, "data": Hostile()}]
    results = [through("acall", Answer(outcome)) for outcome in outcomes]
    assert {(result.code, result.message) for result in results} == {(ErrorKind.BAD_RESULT, UNUSABLE)}
    assert [result.cause for result in results] == [
        "execute() must return a dict, got NoneType",
        "execute() must return a dict, got the class ValueError",
        "the dict of execute() must say success: True or False, got NoneType",
        "the dict of execute() must say success: True or False, got int",
        f"the function returned test_tool_errors.Hostile, which cannot be read; {RETURN}",
    ]


# Which text of an exception a model reads: a ``ToolError``'s, and that of the types that the tool names

MISSING = "/nowhere/report-4711.txt"
NO_FILE = f"[Errno 2] No such file or directory: '{MISSING}'"
VISIBLE = (FileNotFoundError, ValueError)


def read(path: str) -> str:
    """Read a file."""
    return Path(path).read_text()


class Reading(Answer):
    visible_errors = VISIBLE

    async def execute(self, args: Any, context: dict[str, Any]) -> Any:
        return read(args["path"])


DECLARED: dict[str, Any] = {
    "@tool": tool(name="t", visible_errors=VISIBLE)(read),
    "async": made(in_async(read), visible_errors=VISIBLE),
    "Tool": made(read, visible_errors=list(VISIBLE)),
    "one type": made(read, visible_errors=OSError),
    "BaseTool": Reading(None),
    "ToolSpec": ToolSpec(
        "t", {"a": Model}, "out", function=lambda _, given: read(given.part), visible_errors=VISIBLE
    ),
}


@pytest.mark.parametrize("entry", CALLS)
@pytest.mark.parametrize("way", DECLARED)
def test_the_text_of_a_visible_error_is_what_the_model_reads(entry: str, way: str) -> None:
    query = {"query_type": "a", "parameters": {"part": MISSING}}
    result = through(entry, DECLARED[way], query if way == "ToolSpec" else {"path": MISSING})
    assert told(result) == (False, f"t failed: {NO_FILE}", None, NO_FILE, SORRY, "data_not_found")


@pytest.mark.parametrize("entry", CALLS)
def test_without_it_a_model_reads_the_kind_of_failure_and_never_the_text(entry: str) -> None:
    errors = (FileNotFoundError(2, "No such file", MISSING), KeyError(MISSING), MemoryError())
    results = [through(entry, raising(error, visible_errors=(ZeroDivisionError,))) for error in errors]
    assert {result.error for result in results} == {"Tool 't' encountered an error"}
    assert [(result.message, result.code) for result in results] == [
        ("t found nothing.", "data_not_found"),
        *[("t failed. Call it again, or continue without it.", "unknown")] * 2,
    ]


UNSURE = "It is not known whether t took effect. Check before you call it again."
OF_STORES: list[tuple[Exception, str]] = [
    (MemoryError(), UNSURE),
    (StoreError("x", outcome="unknown"), UNSURE),
    (StoreError("x"), "t cannot reach its data now. Try again later, or continue without it."),
    (StoreBusy("x"), "t could not write: another worker or program is writing to the store. Call it again."),
    (SessionBusyError("x"), "t was not run: x. Call it again."),
]


@pytest.mark.parametrize(("error", "message"), OF_STORES)
def test_a_model_reads_of_its_session_what_to_do(error: Exception, message: str) -> None:
    for visible in ((), (Exception,)):
        assert through("call", raising(error, publishes="own", visible_errors=visible)).message == message


def test_what_is_not_types_of_exceptions_is_refused_where_the_tool_is_declared() -> None:
    declarations: list[Any] = [partial(made, read), partial(ToolSpec, "t", {}, "out")]
    for given in ("x" * 300, (KeyboardInterrupt,), [ValueError("x")], BaseException):
        for declare in declarations:
            with pytest.raises(TypeError) as caught:
                declare(visible_errors=given)
            wanted = "types of exceptions, such as (FileNotFoundError,)"
            assert str(caught.value) == f"a tool's visible_errors must be {wanted}, got {given!r}"[:200]


# Refused or failed: that nothing changed is said only where it is known


@pytest.mark.parametrize("entry", CALLS)
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ToolValidationError("the city is unknown"), "t failed: the city is unknown"),
        (ToolValidationError([Problem("a", "b"), Problem("c")]), "t failed: 2 problems:\n- b: a\n- c"),
        (ToolError("the queue is full"), "the queue is full"),
        (Wordless("the queue is full"), "the queue is full"),
    ],
)
def test_what_a_tool_raises_after_it_began_is_a_failure(entry: str, error: ToolError, message: str) -> None:
    result = through(entry, raising(error))
    assert (result.message, result.error, result.user_message) == (message, error.message, error.message)


@pytest.mark.parametrize("entry", CALLS)
def test_a_refusal_of_another_tool_that_a_tool_calls_is_its_own_failure(entry: str, session: Session) -> None:
    inner = Toolbox([add], session=session)
    result = through(entry, made(lambda: inner.invoke("add", {})), {}, session)
    assert result.message == "t failed: left: missing; send an integer"
    assert [line.outcome for line in tool_calls(session)] == ["parameter", "parameter"]


# Which kind of failure each exception is, and its words for a person

NO_QUERY = "Query type 'q' is not supported by the t tool."
LATER = "Could you try again a little later?"
TWO_PROBLEMS = [Problem("wrong", "a[0].b"), Problem("c", "d")]
OWN: list[tuple[ToolError, str, str]] = [
    (ToolError("m", {"a": 1}), "tool", "m"),
    (ToolError("m", {"code": ErrorKind.STORAGE}), "storage", "m"),
    (ToolValidationError("m"), "parameter", "m"),
    (ToolValidationError([Problem("a", "b"), Problem("c")]), "parameter", "2 problems:\n- b: a\n- c"),
    (ParameterError("m"), "parameter", "Invalid parameter: m"),
    (ParameterError("m", {"field": "f"}), "parameter", "The parameter 'f' is invalid: m"),
    (ParameterError.of(TWO_PROBLEMS), "parameter", "The parameter 'a' is invalid: wrong"),
    (ParameterError.of([Problem("wrong")]), "parameter", "Invalid parameter: wrong"),
    (ParameterError.of([]), "parameter", "Invalid parameter: 0 problems:"),
    (QueryTypeUnsupported("q", "t", ["a", "b"]), "query_type", f"{NO_QUERY} Supported types are: a, b"),
    (QueryTypeUnsupported("q", "t"), "query_type", NO_QUERY),
    (StorageUnavailable("m"), "storage", "m"),
    (DataNotFound("m"), "data_not_found", "m"),
    (RateLimitExceeded("m", 2.5), "rate_limit", f"That was asked for too often. {LATER}"),
    (CircuitOpen("m", 2.5), "circuit_open", f"That does not work at the moment. {LATER}"),
    (UserInputNeeded("m", "Who?"), "needs_user_input", "Who?"),
    (ToolTimeout("m"), "timeout", SORRY),
    (ResultInvalid("m", "c"), "bad_result", SORRY),
    (ContextInvalid("m"), "bad_context", SORRY),
    (PrivateFailure("m", ErrorKind.STORAGE), "storage", SORRY),
]


@pytest.mark.parametrize(("error", "code", "words"), OWN, ids=lambda value: type(value).__name__)
def test_each_error_has_its_code_and_words_and_can_be_copied(error: ToolError, code: str, words: str) -> None:
    assert (classify_error(error), error.user_message()) == (code, words)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301 - its own
        assert (type(again), again.args, vars(again)) == (type(error), error.args, vars(error))
        assert (str(again), again.user_message(), classify_error(again)) == (str(error), words, code)
    for twin in (copy.copy(error), copy.deepcopy(error)):
        assert (type(twin), twin.args, vars(twin)) == (type(error), error.args, vars(error))


NOTHING = DataNotFound("x")
OF_OTHERS: dict[str, list[BaseException]] = {
    "timeout": [
        TimeoutError(), type("Hurried", (TimeoutError, ConnectionError), {})(),
        ExceptionGroup("x", [TimeoutError(), ToolTimeout("x")]),
    ],
    "storage": [
        ConnectionResetError(), urllib.error.URLError("x"), sqlite3.OperationalError("x"), StoreError("x"),
        socket.gaierror(), socket.herror(), ssl.SSLError(),
        *(OSError(getattr(errno, name), "x")
          for name in ("EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH")),
    ],
    "data_not_found": [
        FileNotFoundError(), ExceptionGroup("x", [ExceptionGroup("y", [NOTHING]), NOTHING]),
    ],
    "cancelled": [
        asyncio.CancelledError(), concurrent.futures.CancelledError(),
        BaseExceptionGroup("x", [asyncio.CancelledError()]),
    ],
    "parameter": [pydantic.ValidationError.from_exception_data("Model", [])],
    "unknown": [
        urllib.error.HTTPError("http://x", 404, "Not Found", Message(), None), OSError(),
        sqlite3.Warning("x"), ValueError(), Odd(), KeyboardInterrupt(), subprocess.TimeoutExpired("x", 1),
        ExceptionGroup("x", [TimeoutError(), ValueError()]),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("code", "error"), [(code, each) for code, errors in OF_OTHERS.items() for each in errors]
)
def test_exceptions_of_others_are_classified_by_their_type(error: BaseException, code: str) -> None:
    assert classify_error(error) == code


def test_the_errors_of_a_library_are_known_once_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    late, lost = (type(name, (OSError,), {}) for name in ("Timeout", "ConnectionError"))
    assert [classify_error(kind()) for kind in (late, lost)] == ["unknown", "unknown"]
    monkeypatch.setitem(sys.modules, "requests.exceptions", Mock(Timeout=late, ConnectionError=lost))
    both = type("ConnectTimeout", (lost, late), {})
    assert [classify_error(kind()) for kind in (late, lost, both)] == ["timeout", "storage", "timeout"]

"""The errors of tools, and which kind of failure each exception is."""

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
import urllib.error
from email.message import Message

import pydantic
import pytest
from tool_entries import SORRY

from planning.errors import Problem
from planning.tools import (
    DataNotFound,
    ParameterError,
    QueryTypeUnsupported,
    StorageUnavailable,
    ToolError,
    ToolValidationError,
    classify_error,
)
from planning.tools.errors import (
    CircuitOpen,
    ContextInvalid,
    ErrorKind,
    PrivateFailure,
    RateLimitExceeded,
    ResultInvalid,
    ToolTimeout,
    UserInputNeeded,
)

OWN: list[tuple[ToolError, str, str]] = [
    (ToolError("m", {"a": 1}), "tool", "m"),
    (ToolValidationError("m"), "parameter", "m"),
    (ToolValidationError([Problem("a", "b"), Problem("c")]), "parameter", "2 problems:\n- b: a\n- c"),
    (ParameterError("m"), "parameter", "Invalid parameter: m"),
    (ParameterError("m", {"field": "f"}), "parameter", "The parameter 'f' is invalid: m"),
    (
        ParameterError.of([Problem("wrong", "a[0].b"), Problem("c", "d")]),
        "parameter",
        "The parameter 'a' is invalid: wrong",
    ),
    (ParameterError.of([Problem("wrong")]), "parameter", "Invalid parameter: wrong"),
    (ParameterError.of([]), "parameter", "Invalid parameter: 0 problems:"),
    (
        QueryTypeUnsupported("q", "t", ["a", "b"]),
        "query_type",
        "Query type 'q' is not supported by the t tool. Supported types are: a, b",
    ),
    (QueryTypeUnsupported("q", "t"), "query_type", "Query type 'q' is not supported by the t tool."),
    (StorageUnavailable("m"), "storage", "m"),
    (DataNotFound("m"), "data_not_found", "m"),
    (
        RateLimitExceeded("m", 2.5),
        "rate_limit",
        "That was asked for too often. Could you try again a little later?",
    ),
    (
        CircuitOpen("m", 2.5),
        "circuit_open",
        "That does not work at the moment. Could you try again a little later?",
    ),
    (UserInputNeeded("m", "Who?"), "needs_user_input", "Who?"),
    (ToolTimeout("m"), "timeout", SORRY),
    (ResultInvalid("m", "c"), "bad_result", SORRY),
    (ContextInvalid("m"), "bad_context", SORRY),
    (PrivateFailure("m", ErrorKind.STORAGE), "storage", SORRY),
]


@pytest.mark.parametrize(("error", "code", "told"), OWN, ids=lambda value: type(value).__name__)
def test_each_error_has_its_code_and_words_for_a_person_and_can_be_pickled_and_copied(
    error: ToolError, code: str, told: str
) -> None:
    assert (classify_error(error), error.user_message()) == (code, told)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301 - its own
        assert (type(again), again.args, vars(again)) == (type(error), error.args, vars(error))
        assert (str(again), again.user_message(), classify_error(again)) == (str(error), told, code)
    for twin in (copy.copy(error), copy.deepcopy(error)):
        assert (type(twin), twin.args, vars(twin)) == (type(error), error.args, vars(error))


def pydantic_error() -> Exception:
    class Model(pydantic.BaseModel):
        a: int

    try:
        Model(a="x")  # type: ignore[arg-type]  # what is tested
    except pydantic.ValidationError as error:
        return error
    raise AssertionError


class Hurried(TimeoutError, ConnectionError):
    pass


class Odd(BaseException):
    pass


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TimeoutError(), "timeout"),
        (Hurried(), "timeout"),
        (ConnectionResetError(), "storage"),
        (socket.gaierror(-2, "Name or service not known"), "storage"),
        (ssl.SSLError(1, "EOF"), "storage"),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "storage"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "storage"),
        (urllib.error.URLError(socket.gaierror()), "storage"),
        (urllib.error.HTTPError("http://x", 404, "Not Found", Message(), None), "unknown"),
        (FileNotFoundError(), "data_not_found"),
        (OSError(), "unknown"),
        (PermissionError(), "unknown"),
        (OSError(errno.ENOSPC, "No space left on device"), "unknown"),
        (sqlite3.OperationalError("x"), "storage"),
        (sqlite3.Warning("x"), "unknown"),
        (asyncio.CancelledError(), "cancelled"),
        (concurrent.futures.CancelledError(), "cancelled"),
        (pydantic_error(), "parameter"),
        (ValueError(), "unknown"),
        (Odd(), "unknown"),
        (KeyboardInterrupt(), "unknown"),
        (subprocess.TimeoutExpired("x", 1), "unknown"),
        (ExceptionGroup("x", [TimeoutError(), ToolTimeout("x")]), "timeout"),
        (ExceptionGroup("x", [TimeoutError(), ValueError()]), "unknown"),
        (
            ExceptionGroup("x", [ExceptionGroup("y", [DataNotFound("x")]), DataNotFound("x")]),
            "data_not_found",
        ),
        (BaseExceptionGroup("x", [asyncio.CancelledError()]), "cancelled"),
    ],
    ids=repr,
)
def test_exceptions_of_others_are_classified_by_their_type(error: BaseException, code: str) -> None:
    assert classify_error(error) == code

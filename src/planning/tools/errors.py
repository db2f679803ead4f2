"""The errors of tool calls, their stable codes, and which error has which code."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any

from planning.errors import Problem, ToolError, ToolValidationError, suggestion
from session import StoreError

PASSING = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""The exceptions that no call turns into a result."""

SORRY = "I ran into a problem looking that up. Could you try again?"


class ErrorKind(StrEnum):
    """Why a call failed: stable codes, as results and the ledger carry them."""

    PARAMETER = "parameter"
    QUERY_TYPE = "query_type"
    STORAGE = "storage"
    DATA_NOT_FOUND = "data_not_found"
    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    CANCELLED = "cancelled"
    TOOL = "tool"
    UNKNOWN = "unknown"
    UNKNOWN_TOOL = "unknown_tool"
    NEEDS_USER_INPUT = "needs_user_input"
    CIRCUIT_OPEN = "circuit_open"
    BAD_RESULT = "bad_result"
    BAD_CONTEXT = "bad_context"


class ParameterError(ToolValidationError):
    """The parameters do not match the tool's schema.

    Attributes:
        problems: Everything that is wrong, each with its place.
        details: ``field`` names the first field that is wrong, and ``errors`` lists every problem as
            ``{"path": ..., "message": ...}``, where they are known.
    """

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = dict(details or {})

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> ParameterError:
        """The error that lists these problems."""
        listed = ToolValidationError(problems)
        errors = [{"path": problem.path, "message": problem.message} for problem in listed.problems]
        first = listed.problems[0].path if listed.problems else ""
        field = first.partition(".")[0].partition("[")[0] or None
        error = cls(listed.message, {"field": field, "errors": errors})
        error.problems = listed.problems
        return error

    def user_message(self) -> str:
        """The message for a person: the first field that is wrong, and why."""
        message = self.message
        if "errors" in self.details and self.problems:
            message = self.problems[0].message
        if self.details.get("field") is not None:
            return f"The parameter '{self.details['field']}' is invalid: {message}"
        return f"Invalid parameter: {message}"


class QueryTypeUnsupported(ParameterError):
    """A tool does not support the type of a query.

    Attributes:
        query_type: The unsupported type.
        tool_name: The tool.
        supported_types: The supported types.
    """

    def __init__(self, query_type: str, tool_name: str, supported_types: Iterable[str] | None = None) -> None:
        self.query_type = query_type
        self.tool_name = tool_name
        self.supported_types = list(supported_types or ())
        message = f"Query type '{query_type}' is not supported by the {tool_name} tool."
        if self.supported_types:
            message += f" Supported types are: {', '.join(self.supported_types)}"
        details = {"query_type": query_type, "tool_name": tool_name, "supported_types": self.supported_types}
        super().__init__(message, details)

    user_message = ToolError.user_message


class StorageUnavailable(ToolError):
    """A tool's database, file or server cannot be reached now; later it may be."""


class DataNotFound(ToolError):
    """The requested data does not exist."""


class _Stopped(ToolError):
    """A call that this package stopped: its message is for the model, not for the user."""

    _said = SORRY

    def user_message(self) -> str:
        """The message for a person."""
        return self._said


class ResultNotStored(_Stopped):
    """A tool ran, but its session's store refused the result."""


class CallInterrupted(_Stopped):
    """A call was interrupted before it had a result, and must not be made twice."""


class _Postponed(_Stopped):
    """A call that is possible again later."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message, {"retry_after": retry_after})
        self.retry_after = retry_after


class RateLimitExceeded(_Postponed):
    """A tool, or its group of tools, was called too often."""

    _said = "That was asked for too often. Could you try again a little later?"


class CircuitOpen(_Postponed):
    """A tool failed so often that it is not called for a while."""

    _said = "That does not work at the moment. Could you try again a little later?"


class UserInputNeeded(ToolError):
    """A call lacks information that only the user has.

    Attributes:
        input_request: The question for the user.
    """

    def __init__(self, message: str, input_request: str) -> None:
        super().__init__(message, {"input_request": input_request})
        self.input_request = input_request

    def user_message(self) -> str:
        """The question."""
        return self.input_request


GIVEN_UP = "timed out; call it again, or continue without it"
"""The end of the text of a ``ToolTimeout``."""


class ToolTimeout(_Stopped, TimeoutError):
    """A call took longer than its timeout, and nothing waits for it any more."""


class ResultInvalid(_Stopped):
    """A tool returned something that is not a result: a defect of the tool.

    Attributes:
        cause: The types of what it returned, for the developer.
    """

    def __init__(self, message: str, cause: str) -> None:
        super().__init__(message)
        self.cause = cause


class ContextInvalid(_Stopped):
    """The context of a call is not a mapping: a defect of the caller."""


class PrivateFailure(_Stopped):
    """A tool with private data failed; the text of its error is not passed on.

    Attributes:
        kind: Why it failed.
        input_request: The question to put to the user, where only the user can help.
    """

    def __init__(self, message: str, kind: ErrorKind, input_request: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.input_request = input_request


_OWN: tuple[tuple[type[BaseException], ErrorKind], ...] = (
    (QueryTypeUnsupported, ErrorKind.QUERY_TYPE),
    (ToolValidationError, ErrorKind.PARAMETER),
    (StorageUnavailable, ErrorKind.STORAGE),
    (DataNotFound, ErrorKind.DATA_NOT_FOUND),
    (RateLimitExceeded, ErrorKind.RATE_LIMIT),
    (CircuitOpen, ErrorKind.CIRCUIT_OPEN),
    (UserInputNeeded, ErrorKind.NEEDS_USER_INPUT),
    (ToolTimeout, ErrorKind.TIMEOUT),
    (ResultInvalid, ErrorKind.BAD_RESULT),
    (ResultNotStored, ErrorKind.STORAGE),
    (ContextInvalid, ErrorKind.BAD_CONTEXT),
    (ToolError, ErrorKind.TOOL),
    (TimeoutError, ErrorKind.TIMEOUT),
    (ConnectionError, ErrorKind.STORAGE),
    (FileNotFoundError, ErrorKind.DATA_NOT_FOUND),
    (StoreError, ErrorKind.STORAGE),
)
_UNREACHABLE = frozenset({errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH})
"""The numbers of an ``OSError`` of the network that has no type of its own."""
# Libraries that this package does not import: an error of theirs can only come up once they are loaded.
_FOREIGN = (
    ("asyncio.exceptions", "CancelledError", ErrorKind.CANCELLED),
    ("concurrent.futures._base", "CancelledError", ErrorKind.CANCELLED),
    ("sqlite3", "Error", ErrorKind.STORAGE),
    ("socket", "gaierror", ErrorKind.STORAGE),
    ("socket", "herror", ErrorKind.STORAGE),
    ("ssl", "SSLError", ErrorKind.STORAGE),
    ("urllib.error", "HTTPError", ErrorKind.UNKNOWN),  # the server answered
    ("urllib.error", "URLError", ErrorKind.STORAGE),
    ("requests.exceptions", "Timeout", ErrorKind.TIMEOUT),
    ("requests.exceptions", "ConnectionError", ErrorKind.STORAGE),
    ("pydantic_core", "ValidationError", ErrorKind.PARAMETER),
)


nearest_tool = partial(suggestion, kind="tools")
"""A hint for an unknown tool name."""


def classify_error(error: BaseException) -> ErrorKind:
    """The kind of failure that an exception is: by its type, never by words in its text.

    A group of exceptions is what all its members are, or else unknown.
    """
    todo = [error]
    codes: set[ErrorKind] = set()
    seen: set[int] = set()
    while todo:
        each = todo.pop()
        if id(each) not in seen:  # a group may hold another many times over
            seen.add(id(each))
            code = _code_of(each)
            if code is None and issubclass(type(each), BaseExceptionGroup):
                todo += each.exceptions  # type: ignore[attr-defined]  # it was asked just now
            else:
                codes.add(code or ErrorKind.UNKNOWN)
    return codes.pop() if len(codes) == 1 else ErrorKind.UNKNOWN


def _code_of(error: BaseException) -> ErrorKind | None:
    """The code of an exception of a known type. Its ``__class__`` is not asked: that may raise, too."""
    kind = type(error)
    if issubclass(kind, PrivateFailure):
        return error.kind  # type: ignore[attr-defined, no-any-return]  # the same
    details = error.__dict__.get("details") if issubclass(kind, ToolError) else None
    if details and isinstance(said := details.get("code"), ErrorKind):
        return said
    for known, code in _OWN:
        if issubclass(kind, known):
            return code
    for module, name, code in _FOREIGN:
        foreign = getattr(sys.modules.get(module), name, None)
        if foreign is not None and issubclass(kind, foreign):
            return code
    return ErrorKind.STORAGE if isinstance(error, OSError) and error.errno in _UNREACHABLE else None


def type_name(value: object) -> str:
    """The name of a value's type."""
    return type(value).__name__

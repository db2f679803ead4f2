"""The checks before a call runs: identifiers, the breaker, and rate limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from threading import Lock
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any

from planning.errors import ToolValidationError
from planning.tools.attempts import background
from planning.tools.contract import ToolContract
from planning.tools.errors import PASSING, ErrorKind, UserInputNeeded, classify_error
from planning.tools.outcome import question_of
from planning.tools.parameters.arguments import decode, read_arguments
from planning.tools.parameters.model import FreeModel
from planning.tools.spec import QueryTypes
from session.locks import Block

if TYPE_CHECKING:
    from planning.tools.guard import CircuitBreaker
    from planning.tools.rate_limit import RateLimiter
    from planning.tools.result import ToolResult

# What says nothing of a tool's health: it was never asked, or it answered that there is nothing.
BLAMELESS = frozenset(
    {
        ErrorKind.PARAMETER,
        ErrorKind.QUERY_TYPE,
        ErrorKind.NEEDS_USER_INPUT,
        ErrorKind.RATE_LIMIT,
        ErrorKind.CANCELLED,
        ErrorKind.DATA_NOT_FOUND,
    }
)


class Limits:
    """Holds a limiter that is made when it is first needed, and can be replaced."""

    def __init__(self, limiter: RateLimiter | None = None) -> None:
        self._limiter = limiter
        self._lock = Lock()

    def __call__(self) -> RateLimiter:
        """The limiter; one with 60 calls a minute for each key, counted in this process, if none was given.

        Raises:
            ImportError: The limits library is not installed.
        """
        with self._lock:
            if self._limiter is None:
                from planning.tools.rate_limit import RateLimiter  # noqa: PLC0415 - of an extra

                self._limiter = RateLimiter()
            return self._limiter

    def replace(self, limiter: RateLimiter) -> None:
        """Count with another limiter from now on."""
        with self._lock:
            self._limiter = limiter


DEFAULT_LIMITS = Limits()
"""Those of the default registry, for calls that come from no registry and no toolbox."""


class Admission(Block):
    """A call that a breaker let through, where there is one, and that reports back to it however it ends.

    Attributes:
        is_running: Whether the tool itself has been called.
        result: The result, once there is one.
    """

    __slots__ = ("_breaker", "_name", "_number", "is_running", "result")

    def __init__(self, breaker: CircuitBreaker | None, name: str) -> None:
        super().__init__()
        self._breaker = breaker
        self._name = name
        self._number = -1  # of no period
        self.is_running = False
        self.result: ToolResult | None = None

    def __enter__(self) -> Admission:
        if self._breaker is not None:
            self._number = self._breaker.admit(self._name, self)
        return self

    def _leave(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Report how the call ended."""
        if self._breaker is None:
            pass
        elif self.result is not None and self.result.success:
            self._breaker.succeeded(self._number)
        elif self._is_blameless(error):
            self._breaker.released(self._number)
        else:
            self._breaker.failed(self._number)
        self._end()

    def _is_blameless(self, error: BaseException | None) -> bool:
        if error is None:
            return self.result is not None and self.result.code in BLAMELESS
        return not self.is_running or issubclass(type(error), PASSING) or classify_error(error) in BLAMELESS


def count(
    tool: ToolContract, limiter: Callable[[], RateLimiter], seconds: float | None, started: float
) -> None:
    """Count a call of a tool with a ``rate_limit_key``; waiting for a server is a part of the call's time.

    Raises:
        RateLimitExceeded: It is one too many.
        StorageUnavailable: The server cannot be reached.
        ToolTimeout: The time is over.
    """
    counting = limiter()
    hit = partial(counting.hit, tool.rate_limit_key or "")
    if seconds is None or counting.is_local:
        hit()
    else:
        background().run_in_thread(hit, tool.name, seconds, perf_counter() - started)


async def acount(
    tool: ToolContract, limiter: Callable[[], RateLimiter], seconds: float | None, started: float
) -> None:
    """The same from async code, without blocking the event loop."""
    counting = limiter()
    hit = partial(counting.hit, tool.rate_limit_key or "")
    if counting.is_local:
        hit()
    else:
        await background().run_off_loop(hit, tool.name, seconds, perf_counter() - started)


def with_identifier(tool: ToolContract, arguments: object) -> dict[str, Any]:
    """The arguments, read as far as it takes to see that they say whom the call is about.

    It comes before the parameter model is asked, which would only say that a field is missing.

    Raises:
        UserInputNeeded: They do not, with the question for the user.
        ToolValidationError: They cannot be read.
    """
    given: dict[str, Any] = decode(FreeModel(), arguments, is_private=tool.returns_private_data)
    check_identifiers(tool, given)
    return given


def check_identifiers(tool: ToolContract, arguments: Mapping[str, Any]) -> None:
    """Reject a call without an identifier.

    Raises:
        UserInputNeeded: With the question for the user.
    """
    if isinstance(tool.parameters, QueryTypes):
        inner = arguments.get("parameters")
        if isinstance(inner, (str, bytes, bytearray)):
            with suppress(ToolValidationError):  # it is refused later, with what is wrong
                inner = read_arguments(inner)
        arguments = inner if isinstance(inner, Mapping) else {}
    if any(_names_someone(arguments.get(name)) for name in tool.identifiers):
        return
    question = question_of(tool)
    raise UserInputNeeded(f"{tool.name} was not called: ask the user first. {question}", question)


def _names_someone(value: object) -> bool:
    """Whether a value can be an identifier: None, a boolean, blank text and empty values cannot."""
    if isinstance(value, str):
        return any(character.isprintable() and not character.isspace() for character in value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number or (not isinstance(value, bool) and bool(value))

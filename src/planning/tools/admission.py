"""What a call must pass before it runs: it says whom it is about, and its tool is not left alone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from planning.errors import ToolValidationError
from planning.tools.contract import Tool
from planning.tools.errors import PASSING, ErrorKind, UserInputNeeded, classify_error
from planning.tools.outcome import question_of

if TYPE_CHECKING:
    from planning.tools.guard import CircuitBreaker

__all__ = ["BLAMELESS", "Admission", "check_identifiers", "with_identifier"]

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


class Admission:
    """A call that a breaker let through, and that reports back to it however it ends."""

    __slots__ = ("_breaker", "_name", "_number", "is_running", "success")

    def __init__(self, breaker: CircuitBreaker, name: str) -> None:
        self._breaker = breaker
        self._name = name
        self.is_running = False
        self.success = False

    def __enter__(self) -> Admission:
        self._number = self._breaker.admit(self._name)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is None:
            (self._breaker.succeeded if self.success else self._breaker.failed)(self._number)
        elif not self.is_running or isinstance(error, PASSING) or classify_error(error) in BLAMELESS:
            self._breaker.released(self._number)
        else:
            self._breaker.failed(self._number)


def with_identifier(tool: Tool, arguments: object) -> dict[str, Any]:
    """The arguments, read as far as it takes to see that they say whom the call is about.

    It comes before the parameter model is asked, which would only say that a field is missing.

    Raises:
        UserInputNeeded: They do not, with the question for the user.
        ToolValidationError: They cannot be read.
    """
    given = _read(arguments, is_private=tool.returns_private_data)
    check_identifiers(tool, given)
    return given


def check_identifiers(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Stop a call that says of nobody whom it is about.

    Raises:
        UserInputNeeded: With the question for the user.
    """
    inner = arguments.get("parameters")
    if isinstance(inner, (str, bytes, bytearray)):
        with suppress(ToolValidationError):  # it is refused later, with what is wrong
            inner = _read(inner, is_private=False)
    places = [place for place in (arguments, inner) if isinstance(place, Mapping)]
    given = [place.get(name) for place in places for name in tool.identifiers]
    if any(value is not None and (value.strip() if isinstance(value, str) else True) for value in given):
        return
    question = question_of(tool)
    raise UserInputNeeded(f"{tool.name} was not called: ask the user first. {question}", question)


def _read(arguments: object, *, is_private: bool) -> dict[str, Any]:
    from planning.tools.decode import decode  # noqa: PLC0415 - it needs msgspec

    given: dict[str, Any] = decode(None, arguments, is_private=is_private)
    return given

"""What came of a call -> its result: what a tool returned or raised, in words for the model."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

import attrs

from planning.errors import ToolError, ToolValidationError
from planning.tools.contract import Tool
from planning.tools.errors import (
    PASSING,
    SORRY,
    ErrorKind,
    PrivateFailure,
    ResultInvalid,
    classify_error,
)
from planning.tools.result import ToolResult, plain, safe_text
from session import SessionBusyError

__all__ = ["MOST_TEXT", "failed", "is_cancelling", "question_of", "redacted", "settled", "withheld_failure"]

MOST_TEXT = 50_000
_UNFINISHED = (GeneratorType, AsyncGeneratorType, CoroutineType)
_CODES = frozenset(map(str, ErrorKind))
_AGAIN = "Call it again, or go on without it."
_TOLD = {
    ErrorKind.PARAMETER: "{} cannot work with these arguments. Change them, or go on without it.",
    ErrorKind.QUERY_TYPE: "{} has no such type of query. Ask for another, or go on without it.",
    ErrorKind.STORAGE: "{} cannot reach its data now. Try again later, or go on without it.",
    ErrorKind.DATA_NOT_FOUND: "{} found nothing.",
    ErrorKind.TIMEOUT: "{} did not answer in time. " + _AGAIN,
    ErrorKind.BAD_RESULT: "{} returned nothing that can be used. Go on without it.",
    ErrorKind.RATE_LIMIT: "{} was called too often. Try again later, or go on without it.",
}


def settled(tool: Tool, outcome: Any, started: float) -> ToolResult:
    """The result that stands for what a tool returned.

    Raises:
        ResultInvalid: That is no result.
    """
    if (outcome is None or type(outcome) is str) and not tool.returns_outcome:
        result = ToolResult(True, _told(tool, outcome), outcome, None, None, perf_counter() - started)
    elif isinstance(outcome, ToolResult):
        if outcome.success and outcome.elapsed and not tool.returns_private_data:
            return outcome
        result = _completed(outcome, started)
    elif tool.returns_outcome:
        result = _from_outcome(tool, outcome, started)
    elif isinstance(outcome, Mapping) and outcome.get("success") is False:
        result = _reported(tool, outcome, outcome, started)
    else:
        result = ToolResult(True, _told(tool, outcome), outcome, None, None, perf_counter() - started)
    return attrs.evolve(result, is_private=True) if tool.returns_private_data else result


def failed(
    name: str,
    error: BaseException,
    started: float,
    *,
    is_private: bool = False,
    code: ErrorKind | None = None,
) -> ToolResult:
    """The result that stands for an exception: its own words where it was raised for the model to read."""
    code = classify_error(error) if code is None else code
    question = getattr(error, "input_request", None) if code is ErrorKind.NEEDS_USER_INPUT else None
    told = shortened(safe_text(getattr(error, "message", error)))
    if isinstance(error, ToolError) and not isinstance(error, PrivateFailure) and told.strip():
        message = f"Refused, nothing changed. {told}" if isinstance(error, ToolValidationError) else told
        user_message = _asked(error, told)
    else:
        message = _TOLD.get(code, "{} failed. " + _AGAIN).format(name)
        if isinstance(error, SessionBusyError):
            message = f"{name} was not carried out: {error}. Call it again."
        told, user_message = f"Tool '{name}' encountered an error", SORRY
    cause = None if is_private else shortened(safe_text(error) or type(error).__name__)
    if isinstance(error, ResultInvalid):
        cause = getattr(error, "cause", cause)
    elapsed = perf_counter() - started
    return ToolResult(
        False, message, None, told, user_message, elapsed, code, question, cause, is_private=is_private
    )


def withheld_failure(tool: Tool, error: BaseException) -> PrivateFailure:
    """What is raised in place of what a tool with private data raised."""
    code = classify_error(error)
    question = question_of(tool) if code is ErrorKind.NEEDS_USER_INPUT else None
    return PrivateFailure(_TOLD.get(code, "{} failed. " + _AGAIN).format(tool.name), code, question)


def question_of(tool: Tool) -> str:
    """What to ask the user before a tool that requires an identifier can be called."""
    names = [name.replace("_", " ") for name in tool.identifiers]
    listed = " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
    return tool.input_request or f"Could you give me your {listed}?"


def redacted(name: str, result: ToolResult) -> ToolResult:
    """A private result as events may carry it: how the call ended, and nothing of what it was about."""
    return ToolResult(
        result.success,
        f"{name} succeeded." if result.success else f"{name} reported a failure.",
        None,
        None if result.success else f"Tool '{name}' reported a failure",
        None,
        result.elapsed,
        result.code,
        is_private=True,
    )


def is_cancelling(error: BaseException) -> bool:
    """Whether an exception is the cancelling of a task, which has to go on through everything."""
    return not isinstance(error, Exception) and classify_error(error) is ErrorKind.CANCELLED


def shortened(text: str) -> str:
    """The text, or its beginning and how much more there was."""
    if len(text) <= MOST_TEXT:
        return text
    return f"{text[:MOST_TEXT]}... ({len(text) - MOST_TEXT} more characters; ask for less)"


def _completed(result: ToolResult, started: float) -> ToolResult:
    """What a tool's own result leaves open: how long it took, and that a failure has a code."""
    if not result.success:
        result = attrs.evolve(result, code=_code(result.code))
    return result if result.elapsed else attrs.evolve(result, elapsed=perf_counter() - started)


def _code(given: object) -> ErrorKind:
    """The code of a failure that a tool returned: also from its text, and the tool's own where it is none."""
    return ErrorKind(given) if isinstance(given, str) and given in _CODES else ErrorKind.TOOL


def _from_outcome(tool: Tool, outcome: Any, started: float) -> ToolResult:
    if not isinstance(outcome, Mapping):
        _close(outcome)
        raise _invalid(tool, f"execute() must return a dict, got {_kind(outcome)}")
    success = outcome.get("success")
    if not isinstance(success, bool):
        raise _invalid(tool, f"the dict of execute() must say success: True or False, got {_kind(success)}")
    data = outcome.get("data")
    if not success:
        return _reported(tool, outcome, data, started)
    said = outcome.get("user_message")
    user_message = said if isinstance(said, str) else None
    return ToolResult(True, _told(tool, data), data, None, user_message, perf_counter() - started)


def _reported(tool: Tool, outcome: Mapping[str, Any], value: Any, started: float) -> ToolResult:
    """The failure that a tool returned instead of raising it."""
    error, said = outcome.get("error"), outcome.get("user_message")
    told = shortened(error) if isinstance(error, str) and error.strip() else f"{tool.name} reported a failure"
    asked = outcome.get("input_request") if outcome.get("needs_user_input") is True else None
    question = asked if isinstance(asked, str) else None
    code = _code(outcome.get("code"))
    if question is not None and "code" not in outcome:
        code = ErrorKind.NEEDS_USER_INPUT
    return ToolResult(
        False,
        told,
        value,
        told,
        said if isinstance(said, str) else None,
        perf_counter() - started,
        code,
        question,
        None if tool.returns_private_data else told,
    )


def _told(tool: Tool, value: Any) -> str:
    """A value as the model reads it: text as it is, all else as JSON.

    Raises:
        ResultInvalid: It cannot be told.
    """
    if type(value) is str:
        return shortened(value)
    if value is None:
        return "Done."
    if isinstance(value, (*_UNFINISHED, BaseException, type)):
        _close(value)
        raise _invalid(tool, f"the function returned {_kind(value)}")
    import json  # noqa: PLC0415 - not every tool returns what has to be told as JSON

    try:
        text = json.dumps(plain(value, strict=True), ensure_ascii=False, separators=(",", ":"))
    except Exception:  # noqa: BLE001 - any object may come here, and whatever it is asked may fail
        reason = f"the function returned {_kind(value)}, which has no text"
    else:
        return shortened(text)
    raise _invalid(tool, reason)


def _invalid(tool: Tool, cause: str) -> ResultInvalid:
    return ResultInvalid(_TOLD[ErrorKind.BAD_RESULT].format(tool.name), cause)


def _kind(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def _close(value: object) -> None:
    """End what was begun and will not be awaited or iterated."""
    if isinstance(value, (GeneratorType, CoroutineType)):
        try:
            value.close()
        except PASSING:
            raise
        except BaseException:  # noqa: BLE001 - what is refused already may refuse to end
            return


def _asked(error: ToolError, told: str) -> str:
    try:
        said = error.user_message()
    except Exception:  # noqa: BLE001 - a subclass may answer with anything
        return told
    return told if said is None else shortened(safe_text(said))  # type: ignore[redundant-expr]  # it may answer with None

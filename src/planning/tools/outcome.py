"""The outcome of a call -> its result: what a tool returned or raised, in words for the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from json import JSONEncoder
from time import perf_counter
from typing import Any, Literal

import attrs

from planning.errors import ToolError, ToolValidationError
from planning.tools.contract import ToolContract
from planning.tools.errors import (
    GIVEN_UP,
    PASSING,
    SORRY,
    ErrorKind,
    PrivateFailure,
    ResultInvalid,
    classify_error,
    type_name,
)
from planning.tools.result import ToolResult, copied, safe_text
from session import SessionBusyError, StoreError
from session.errors import StoreBusy
from session.json_form import NoJsonForm, field_names, json_form


class _Private(dict[str, Any]):
    """A dict whose repr hides private data, as in an event loop's log."""

    def __repr__(self) -> str:
        return f"<private, success={self['success']!r}>"


def execution_envelope(tool: str, result: ToolResult) -> dict[str, Any]:
    """The dict that ``Tool.execute`` returns: ``{success, tool, result, error, elapsed}``.

    The error is for the developer who called: it has the text of the exception, if any.
    """
    error = None if result.success else result.cause or result.error or result.message
    envelope = {
        "success": result.success,
        "tool": tool,
        "result": result.value,
        "error": error,
        "elapsed": result.elapsed,
    }
    return _Private(envelope) if result.is_private else envelope


def pipeline_envelope(result: ToolResult) -> dict[str, Any]:
    """The dict that ``BaseTool.safe_execute`` returns: ``{success, data, error, user_message}``.

    A failure has its ``code`` too; one that waits for the user ``needs_user_input`` and
    ``input_request``. No text of an exception is in it.
    """
    envelope: dict[str, Any] = {
        "success": result.success,
        "data": result.value,
        "error": None if result.success else result.error or result.message,
        "user_message": result.user_message,
    }
    if not result.success:
        envelope["code"] = None if result.code is None else str(result.code)
    if result.needs_user_input:
        envelope |= {"needs_user_input": True, "input_request": result.input_request}
    return _Private(envelope) if result.is_private else envelope


class QueryResponses:
    """The two responses of a query, which a tool builds under its own name."""

    __slots__ = ()

    name: str

    def format_success_response(
        self, query_type: str, parameters: Mapping[str, Any], results: Any, **additional: Any
    ) -> dict[str, Any]:
        """Build ``{query_type, parameters, results, output_key, success}`` for a query that was answered.

        Args:
            query_type: The type of query that was run.
            parameters: The parameters that were used.
            results: The results.
            additional: Further fields; they cannot take the place of those five.
        """
        return {
            **additional,
            "query_type": query_type,
            "parameters": dict(parameters),
            "results": results,
            "output_key": self.name,
            "success": True,
        }

    def format_error_response(
        self,
        query_type: str,
        parameters: Mapping[str, Any],
        error: str,
        *,
        kind: Literal["error", "warning"] = "error",
        **additional: Any,
    ) -> dict[str, Any]:
        """Build the same for a query that failed: no results, and ``error`` or ``warning`` with the reason.

        Args:
            query_type: The type of query that was asked for.
            parameters: The parameters that were used.
            error: What went wrong.
            kind: Under which of the two names it is.
            additional: Further fields; they cannot take the place of the others.

        Raises:
            ValueError: ``kind`` is neither.
        """
        if kind not in {"error", "warning"}:
            raise ValueError(f"kind must be 'error' or 'warning', got {kind!r}")
        response = self.format_success_response(query_type, parameters, [], **additional)
        return response | {"success": False, kind: error}


_JSON = JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_CODES = frozenset(map(str, ErrorKind))
_SCALARS = frozenset({type(None), bool, int, float, str})
_MAY_PASS = frozenset({ErrorKind.STORAGE, ErrorKind.TIMEOUT})
_KNOWN = (StoreError, SessionBusyError)  # what they mean for the call is known better than by their text
_AGAIN = "Call it again, or continue without it."
_CHECK = "It may have taken effect: check before you call it again."
"""In place of that for a tool which must not be called twice, once it had begun."""
_FAILED = "{} failed. " + _AGAIN
_MESSAGES = {
    ErrorKind.PARAMETER: "{} cannot work with these arguments. Change them, or continue without it.",
    ErrorKind.QUERY_TYPE: "{} has no such type of query. Ask for another, or continue without it.",
    ErrorKind.STORAGE: "{} cannot reach its data now. Try again later, or continue without it.",
    ErrorKind.DATA_NOT_FOUND: "{} found nothing.",
    ErrorKind.TIMEOUT: "{} did not answer in time. " + _AGAIN,
    ErrorKind.BAD_RESULT: "{} returned nothing that can be used. Continue without it.",
    ErrorKind.RATE_LIMIT: "{} was called too often. Try again later, or continue without it.",
}
_REPORT = ("success", "error", "user_message", "code", "needs_user_input", "input_request")
_RETURN = "return text, numbers, booleans, None, lists, dicts or records of these, at most 100 levels deep"


def settled(tool: ToolContract, outcome: Any, started: float) -> ToolResult:
    """The result for the value that a tool returned."""
    if type(outcome) in _SCALARS:  # which say nothing of a failure
        result = ToolResult(True, text_of(tool.name, outcome), outcome, None, None, perf_counter() - started)
    elif isinstance(outcome, ToolResult):
        if outcome.success is True and outcome.elapsed and not tool.returns_private_data:
            return outcome
        result = _complete(outcome, started)
    elif _is_failure(said := _read_failure(tool.name, outcome)):
        result = _report(tool.name, said, outcome, perf_counter() - started)
    else:
        result = ToolResult(True, text_of(tool.name, outcome), outcome, None, None, perf_counter() - started)
    return attrs.evolve(result, is_private=True, cause=None) if tool.returns_private_data else result


def from_outcome(name: str, outcome: object) -> ToolResult:
    """The result of a tool that must say whether it succeeded, as ``BaseTool.execute`` does."""
    if isinstance(outcome, ToolResult):
        return outcome
    if not isinstance(outcome, Mapping):
        raise _invalid(name, f"execute() must return a dict, got {_kind(outcome)}")
    said, data = _read_failure(name, outcome), outcome.get("data")
    if _is_failure(said):
        return _report(name, said, data)
    if said.get("success") is not True:
        given = _kind(said.get("success"))
        raise _invalid(name, f"the dict of execute() must say success: True or False, got {given}")
    text = said.get("user_message")
    user_message = text if isinstance(text, str) else None
    return ToolResult(True, text_of(name, data), data, None, user_message)


def may_pass(tool: ToolContract, outcome: Any) -> bool:
    """True if a tool returned a failure that is tried again when it is raised."""
    if isinstance(outcome, ToolResult):
        return _is_false(outcome.success) and _code(outcome.code) in _MAY_PASS
    try:
        said = _read_failure(tool.name, outcome)
    except ResultInvalid:
        return False
    return _is_failure(said) and _code(said.get("code")) in _MAY_PASS


def failed(
    name: str,
    error: BaseException,
    started: float,
    *,
    tool: ToolContract | None = None,
    code: ErrorKind | None = None,
) -> ToolResult:
    """The result for an exception: with its text if the model may read it."""
    is_private = tool is not None and tool.returns_private_data
    visible = () if tool is None else tool.visible_errors
    may_have_effect = code is None and tool is not None and not tool.idempotent
    is_open = isinstance(error, StoreError) and error.outcome == "unknown"
    if isinstance(error, MemoryError) and code is None and tool is not None and tool.publishes == "own":
        is_open = True  # it may have come after the commit
    if code is None:
        code = classify_error(error)
    question = getattr(error, "input_request", None) if code is ErrorKind.NEEDS_USER_INPUT else None
    reason = safe_text(getattr(error, "message", error))
    if isinstance(error, ToolError) and not isinstance(error, PrivateFailure) and reason.strip():
        if may_have_effect:
            reason = reason.replace(GIVEN_UP, f"timed out. {_CHECK}")
        message, user_message = reason, _asked(error, reason)
        if isinstance(error, ToolValidationError):
            known = "Refused, nothing changed." if error.nothing_changed else f"{name} failed:"
            message = f"{known} {reason}"
    elif issubclass(type(error), visible) and not isinstance(error, _KNOWN) and reason.strip():
        message, user_message = f"{name} failed: {reason}", SORRY
    else:
        message = _MESSAGES.get(code, _FAILED).format(name)
        if may_have_effect:
            message = message.replace(_AGAIN, _CHECK)
        if isinstance(error, SessionBusyError):
            message = f"{name} was not run: {error}. Call it again."
        if isinstance(error, StoreBusy):
            message = (
                f"{name} could not write: another worker or program is writing to the store. Call it again."
            )
        if is_open:
            message = f"It is not known whether {name} took effect. Check before you call it again."
        reason, user_message = f"Tool '{name}' encountered an error", SORRY
    cause = None if is_private else safe_text(error) or type_name(error)
    if isinstance(error, ResultInvalid):
        cause = error.cause
    elapsed = perf_counter() - started
    return ToolResult(
        False, message, None, reason, user_message, elapsed, code, question, cause, is_private=is_private
    )


@contextmanager
def withholding(tool: ToolContract, but: tuple[type[ToolError], ...] = ()) -> Iterator[None]:
    """Raise something else in place of what a tool with private data raises, which may hold what is private.

    Raises:
        PrivateFailure: In its place; it carries no trace of the other.
    """
    passing: tuple[type[BaseException], ...] = (*PASSING, *but)
    try:
        yield
    except passing:
        raise
    except BaseException as error:
        if not tool.returns_private_data or is_cancelling(error):
            raise
        code = classify_error(error)
    else:
        return
    question = question_of(tool) if code is ErrorKind.NEEDS_USER_INPUT else None
    raise PrivateFailure(_MESSAGES.get(code, _FAILED).format(tool.name), code, question)


def question_of(tool: ToolContract) -> str:
    """The question to the user before a tool that requires an identifier can be called."""
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


def kept(result: ToolResult) -> ToolResult:
    """A result as events keep it: with a value that nothing changes any more."""
    value = copied(result.value)
    return result if value is result.value else attrs.evolve(result, value=value)


def is_cancelling(error: BaseException) -> bool:
    """True if an exception is the cancelling of a task, which nothing may stop."""
    return not issubclass(type(error), Exception) and classify_error(error) is ErrorKind.CANCELLED


def _complete(result: ToolResult, started: float) -> ToolResult:
    """Add what a tool's own result leaves open: how long it took, and that a failure has a code."""
    success = not _is_false(result.success)
    code = result.code if success else _code(result.code)
    elapsed = result.elapsed or perf_counter() - started
    return attrs.evolve(result, success=success, code=code, elapsed=elapsed)


def _code(given: object) -> ErrorKind:
    """The code of a failure that a tool returned, also as text; ``tool`` if it is not a code."""
    return ErrorKind(given) if isinstance(given, str) and given in _CODES else ErrorKind.TOOL


def _read_failure(name: str, outcome: Any) -> Mapping[str, Any]:
    """The fields of a failure in a mapping or a record, by name; nothing if the outcome is neither."""
    try:
        if isinstance(outcome, Mapping):
            return {key: outcome[key] for key in _REPORT if key in outcome}
        names = field_names(outcome) or ()
        return {key: getattr(outcome, key) for key in _REPORT if key in names}
    except Exception:  # noqa: BLE001 - any object may come here, and whatever it is asked may fail
        unread = _unread(outcome)
    raise _invalid(name, unread)


def _is_failure(said: Mapping[str, Any]) -> bool:
    return "success" in said and _is_false(said["success"])


def _is_false(success: Any) -> bool:
    """True if a ``success`` says no, as False, None, 0 and everything empty do."""
    try:
        return not success
    except Exception:  # noqa: BLE001 - what fails to say whether it is true does not count as true
        return True


def _report(name: str, outcome: Mapping[str, Any], value: Any, elapsed: float = 0.0) -> ToolResult:
    """The failure that a tool returned instead of raising it."""
    error, said = outcome.get("error"), outcome.get("user_message")
    reason = error if isinstance(error, str) and error.strip() else f"{name} reported a failure"
    asked = outcome.get("input_request") if outcome.get("needs_user_input") is True else None
    question = asked if isinstance(asked, str) else None
    code = _code(outcome.get("code"))
    if question is not None and "code" not in outcome:
        code = ErrorKind.NEEDS_USER_INPUT
    return ToolResult(
        False, reason, value, reason, said if isinstance(said, str) else None, elapsed, code, question, reason
    )


def text_of(name: str, value: Any) -> str:
    """A value as the model reads it: text as it is, all else as JSON."""
    if type(value) is str:
        return value
    if value is None:
        return "Done."
    try:
        return repr(value) if type(value) is int else _JSON.encode(json_form(value, strict=True))
    except NoJsonForm as error:
        types = _kind(value) if error.part is value else f"{_kind(value)} with {_kind(error.part)} in it"
        cause = f"the function returned {types}, which {error}; {_RETURN}"
    except Exception:  # noqa: BLE001 - the same
        cause = _unread(value)
    raise _invalid(name, cause)


def _invalid(name: str, cause: str) -> ResultInvalid:
    return ResultInvalid(_MESSAGES[ErrorKind.BAD_RESULT].format(name), cause)


def _unread(value: object) -> str:
    return f"the function returned {_kind(value)}, which cannot be read; {_RETURN}"


def _kind(value: object) -> str:
    """The type of a value, with its module unless it is a built-in; a class is named itself."""
    kind = value if isinstance(value, type) else type(value)
    named = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"the class {named}" if kind is value else named


def _asked(error: ToolError, reason: str) -> str:
    try:
        message: object = error.user_message()
    except Exception:  # noqa: BLE001 - a subclass may do anything
        return reason
    return reason if message is None else safe_text(message)

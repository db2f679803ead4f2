"""A planner's text -> tool calls, a question, queries and an intent.

The text is untrusted. It is taken only where it can mean one thing; anything else is the empty output,
with problems that say what to write instead. They repeat no value of the text, which may be private.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal, NoReturn

import attrs

from planning.errors import Problem, ToolValidationError, show
from planning.reading import Document, Found, Unreadable, Wanted, read_document, read_json
from planning.tools.context import SessionOfCall, ToolContext, context_values
from planning.tools.contract import session_of
from planning.tools.errors import ContextInvalid, ErrorKind
from planning.tools.ledger import register_ledger
from planning.tools.outcome import pipeline_envelope
from planning.tools.parameters.words import spell, type_word
from planning.tools.pipeline import CallPipeline
from planning.tools.registry import ToolRegistry, default_registry
from planning.tools.result import ToolResult
from session import Session, StoreError
from session.json_form import json_form

_UNREADABLE = "invalid_call"


async def execute_tools(
    state: Mapping[str, Any], *, registry: ToolRegistry | None = None, session: Session | None = None
) -> dict[str, dict[str, Any]]:
    """Run the tool calls in a pipeline's state, one after the other; never raises.

    Args:
        state: ``tool_calls`` is a list of ``{"tool", "args"}``; the context of the tools is made of
            ``trace_id``, ``conversation_context["conversation_id"]`` and
            ``user_context["conference_id"]``, each None where it is missing.
        registry: The registry of the tools; the default registry if omitted.
        session: Where the calls are published and recorded; if omitted, in the session that tools are bound
            to, and nowhere without such tools.

    Returns:
        ``{"tool_results": {name: envelope}}``, in the order of the calls, with the envelopes of
        ``BaseTool.safe_execute``. The second call to a tool is ``name#2``. An unknown tool or a call that
        cannot be read has an envelope that says so, and the rest runs.
    """
    tools = default_registry() if registry is None else registry
    if not isinstance(state, Mapping):
        return {"tool_results": {}}  # type: ignore[unreachable]  # a pipeline may hand over anything
    calls = state.get("tool_calls")
    if calls is None or (isinstance(calls, (list, tuple, dict, str)) and not calls):
        return {"tool_results": {}}
    if session is None:
        with suppress(ValueError, ContextInvalid, StoreError):  # each call of such a tool says what is wrong
            source = session_of(tools)
            session = None if source is None else SessionOfCall(source, register_ledger).find()
    if session is not None:
        register_ledger(session)
    pipeline = CallPipeline(ToolContext(session, context_values(state)), limiter=lambda: tools.limiter)
    results: dict[str, dict[str, Any]] = {}
    numbers: dict[str, int] = {}
    for call in calls if isinstance(calls, (list, tuple)) else [calls]:
        name = call.get("tool") if isinstance(call, Mapping) else None
        if not isinstance(name, str) or not name:
            envelope, name = _unreadable(call), _UNREADABLE
        else:
            name = json_form(name)  # half a character would break whatever the results are sent by
            envelope = await _run(pipeline, tools, name, call.get("args"))
        results[_free(name, results, numbers)] = envelope
    return {"tool_results": results}


async def _run(pipeline: CallPipeline, tools: ToolRegistry, name: str, arguments: Any) -> dict[str, Any]:
    tool = tools.find(name)
    if tool is None:
        unknown = ToolValidationError(f"Unknown tool: {name[:100]}")
        answer = partial(pipeline.answer_unfound, name[:100], unknown)
        return pipeline_envelope(await pipeline.in_worker(name, pipeline.context.session, answer))
    return pipeline_envelope(await pipeline.acall(tool, arguments))


def _unreadable(call: object) -> dict[str, Any]:
    what = "names no tool" if isinstance(call, Mapping) else f"is {show(call)}"
    error = f'The call {what}; write {{"tool": name, "args": {{...}}}}'
    return pipeline_envelope(ToolResult(False, error, code=ErrorKind.PARAMETER))


def _free(name: str, taken: Mapping[str, object], numbers: dict[str, int]) -> str:
    """The name, or the first of ``name#2``, ``name#3`` ... that is free; ``numbers`` holds the last ones."""
    number = numbers.get(name, 0) + 1
    free = name if number == 1 else f"{name}#{number}"
    while free in taken:
        number += 1
        free = f"{name}#{number}"
    numbers[name] = number
    return free


_Route = Literal["execute_tools", "generate_response", "execute_queries"]

MOST_CHARACTERS: Final = 1_000_000
_MOST_PROBLEMS: Final = 50

_KEYS: Final = ("tool_calls", "needs_user_input", "input_request", "queries", "intent")
_CALL_FIELDS: Final = ("tool", "args", "reason")
_MISNAMED_ARGS: Final = ("arguments", "parameters", "params", "input")
_MARKS: Final = (*_KEYS, "needs_tools")
_ANSWER: Final = Wanted(
    "plan",
    names=(*_MARKS, "tool"),
    fields=frozenset((*_MARKS, *_CALL_FIELDS, *_MISNAMED_ARGS)),
    is_fenced_first=True,
    most_levels=102,
)

_ONE_OBJECT: Final = f"one JSON object with {', '.join(_KEYS[:-1])} or {_KEYS[-1]}"
_NO_OBJECT: Final = f"no plan found; send {_ONE_OBJECT}"
_STRAY_CALL: Final = "a call outside tool_calls; send it in tool_calls"
_CALL: Final = "an object with tool, args, reason"
_KINDS: Final[Mapping[str, tuple[Any, str]]] = {
    "an array": ((list, tuple), "["),
    "an object": (Mapping, "{"),
    _CALL: (Mapping, "{"),
    "a string": (str, ""),
    "a boolean": (bool, ""),
}
"""The name in messages, the type of a value, and the bracket that opens it as JSON text."""
_MORE: Final = Problem("there may be more errors; fix these first")


class _Refused(Exception):
    """Output that cannot be used, with its problems."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__()
        self.problems = problems


def _refuse(message: str) -> NoReturn:
    raise _Refused(Problem(message))


def _as_tuple(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(values)


@attrs.frozen(unsafe_hash=False)
class PlannerOutput(Mapping[str, Any]):
    """The next actions that a planner asks for.

    As a mapping it has the keys ``tool_calls``, ``needs_user_input``, ``input_request``, ``queries`` and
    ``intent``: an update of a pipeline's state, in plain lists and dictionaries. Two outputs are equal
    when their problems are, too; to compare with a dictionary, compare ``dict(output)``.

    Attributes:
        tool_calls: The calls to make, in order: ``{"tool": str, "args": dict, "reason": str or None}`` each.
        needs_user_input: Whether only the user can say what is missing.
        input_request: What to ask the user.
        queries: What to search for, each in the planner's own form.
        intent: What the planner takes the request for.
        problems: What was not understood, each with its place; empty when all of it was.
    """

    tool_calls: tuple[Mapping[str, Any], ...] = attrs.field(default=(), converter=_as_tuple)
    needs_user_input: bool = False
    input_request: str | None = None
    queries: tuple[Any, ...] = attrs.field(default=(), converter=_as_tuple)
    intent: str | None = None
    problems: tuple[Problem, ...] = attrs.field(default=(), converter=_as_tuple)

    @property
    def ok(self) -> bool:
        """True if all of it was understood."""
        return not self.problems

    def __getitem__(self, key: str) -> Any:
        if key not in _KEYS:
            raise KeyError(key)
        value = getattr(self, key)
        return list(value) if isinstance(value, tuple) else value

    def __iter__(self) -> Iterator[str]:
        return iter(_KEYS)

    def __len__(self) -> int:
        return len(_KEYS)


def should_execute_tools(state: Mapping[str, Any]) -> _Route:
    """The next node of a pipeline after planning: tool calls first, a question to the user, else queries.

    Args:
        state: The pipeline's state, or a ``PlannerOutput``; a missing key counts as None.
    """
    if state.get("tool_calls"):
        return "execute_tools"
    if state.get("needs_user_input"):
        return "generate_response"
    return "execute_queries"


def parse_planner_output(text: object, *, finished: bool = False) -> PlannerOutput:
    """Read what a planner wrote; never raises.

    Args:
        text: One JSON object, or an array of calls, as JSON or almost JSON: bare, fenced, after thoughts or
            within prose, of at most ``MOST_CHARACTERS``; as text, as UTF-8, or parsed already. A fenced
            object goes before one in prose. Two different ones in the same place are not chosen from.
        finished: Whether the text is complete, as the provider's finish reason says. Then missing closing
            brackets at the end are added. Otherwise such text was cut, and is a problem.

    Returns:
        What was understood. Broken text gives nothing; a field of the wrong type has its default,
        a malformed call is omitted; and ``problems`` says so.
    """
    try:
        return _output(_find(text, is_finished=finished))
    except _Refused as refused:
        return PlannerOutput(problems=refused.problems[:_MOST_PROBLEMS])
    except RecursionError:  # the caller is near the limit
        return PlannerOutput(problems=(Problem("nested too deep; send a flat JSON object"),))


def _find(given: object, *, is_finished: bool) -> Mapping[str, Any]:
    """The one object in a planner's output."""
    given = "" if given is None else given
    if isinstance(given, (str, bytes, bytearray)):
        if len(given) > MOST_CHARACTERS:
            _refuse(f"{len(given)} characters, at most {MOST_CHARACTERS}; send less")
        if not given.strip():
            _refuse(f"empty; send {_ONE_OBJECT}")
    elif not isinstance(given, (Mapping, list, tuple)):
        _refuse(f"expected {_ONE_OBJECT}, got {type_word(given)}")
    document = read_document(given, _ANSWER, is_finished=is_finished)
    if document.value is None and document.errors[0].code == "no_json":
        _refuse(_NO_OBJECT)
    if document.errors:
        raise _Refused(*(_problem(document, error) for error in document.errors))
    found = _object_in(document.value)
    if found is None:
        _refuse(_STRAY_CALL if _is_call(document.value) else _NO_OBJECT)
    return found


def _problem(document: Document, error: Found) -> Problem:
    path = "" if document.source else spell(error.path)
    return Problem(document.describe(error), path)


def _object_in(value: Any) -> Mapping[str, Any] | None:
    """A planner's output in a JSON value: an object with its fields, or the list of its calls."""
    if isinstance(value, Mapping):
        return value if any(name in value for name in _MARKS) else None
    return {"tool_calls": value} if any(map(_is_call, value)) else None


def _is_call(value: object) -> bool:
    """True if a value looks like one call."""
    return isinstance(value, Mapping) and "tool" in value


def _output(data: Mapping[str, Any]) -> PlannerOutput:
    problems: list[Problem] = []

    def field(name: str, expected: str) -> Any:
        return _read(problems, name, data.get(name), expected)

    if _is_call(data) and "tool_calls" not in data:
        problems.append(Problem(_STRAY_CALL, "tool"))
    entries = enumerate(field("tool_calls", "an array") or ())
    calls = [_call(problems, f"tool_calls[{index}]", entry) for index, entry in entries]
    return PlannerOutput(
        tool_calls=[call for call in calls if call is not None],
        needs_user_input=field("needs_user_input", "a boolean") or False,
        input_request=_strip(field("input_request", "a string")),
        queries=field("queries", "an array") or (),
        intent=_strip(field("intent", "a string")),
        problems=problems[:_MOST_PROBLEMS] + [_MORE] * (len(problems) > _MOST_PROBLEMS),
    )


def _call(problems: list[Problem], place: str, entry: object) -> Mapping[str, Any] | None:
    """One call; None when it is malformed."""
    fields = _read(problems, place, entry, _CALL, is_required=True)
    if fields is None:
        return None
    tool = args = None
    if "tool" not in fields:
        problems.append(Problem("missing; send a string", f"{place}.tool"))
    else:
        tool = _read(problems, f"{place}.tool", fields["tool"], "a string", is_required=True)
        if tool is not None and not tool.strip():
            problems.append(Problem("blank; send the name of a tool", f"{place}.tool"))
    given = fields.get("args")
    # Ignored like any further key, they would leave a call that says something else.
    misnamed = next((name for name in _MISNAMED_ARGS if name in fields), None) if given is None else None
    if misnamed is not None:
        problems.append(Problem(f"missing; rename {misnamed} to args", f"{place}.args"))
    elif given is None or (isinstance(given, str) and not given.strip()):
        args = {}
    else:
        args = _read(problems, f"{place}.args", given, "an object")
    reason = _read(problems, f"{place}.reason", fields.get("reason"), "a string")
    if _strip(tool) is None or args is None:
        return None
    return {"tool": tool, "args": args, "reason": _strip(reason)}


def _read(
    problems: list[Problem], place: str, value: Any, expected: str, *, is_required: bool = False
) -> Any:
    """A value of the kind that is expected, also as JSON text; else None, and a problem."""
    kind, opening = _KINDS[expected]
    if opening and isinstance(value, str) and opening in value:
        try:
            value = read_json(value)
        except Unreadable as unreadable:
            problems.append(Problem(str(unreadable), place))
            return None
    if isinstance(value, kind):
        return value
    if value is not None or is_required:
        problems.append(Problem(f"expected {expected}, got {type_word(value)}", place))
    return None


def _strip(text: str | None) -> str | None:
    return text if text and text.strip() else None

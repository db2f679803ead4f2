"""What a planner wrote, in whatever wrapping, becomes tool calls, a question, queries and an intent.

The text is untrusted. It is taken only where it can mean one thing; anything else is the empty output,
with problems that say what to write instead. They repeat no value of the text, which may be private.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

import attrs

from planning.errors import Problem
from planning.tools.planner_text import (
    KEYS,
    MOST_CHARACTERS,
    ONE_OBJECT,
    STRAY_CALL,
    TOO_DEEP,
    Refused,
    find_output,
    is_call,
    refuse,
    unexpected,
    whole_json,
)

__all__ = ["MOST_CHARACTERS", "PlannerOutput", "parse_planner_output", "should_execute_tools"]

T = TypeVar("T")
_Route = Literal["execute_tools", "generate_response", "execute_queries"]

_MOST_PROBLEMS: Final = 50
_MOST_LEVELS: Final = 100

_MISNAMED_ARGS: Final = ("arguments", "parameters", "params", "input")

_CALL: Final = "an object with tool, args, reason"
_MORE: Final = Problem("more may be wrong; mend these first")
_NOT_JSON_VALUES: Final = "must hold JSON values only: text, finite numbers, booleans, null, arrays, objects"
_BROKEN_UNICODE: Final = "holds half a character (a lone surrogate); send the whole character"
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _copies(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(_copy(value) for value in values)


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, (list, tuple)) else value


@attrs.frozen(repr=False, unsafe_hash=False)
class PlannerOutput(Mapping[str, Any]):
    """What a planner asks for next.

    As a mapping it has the keys ``tool_calls``, ``needs_user_input``, ``input_request``, ``queries`` and
    ``intent``: an update of a pipeline's state, in plain lists and dictionaries. Two outputs are equal
    when their problems are, too; to compare with a dictionary, compare ``dict(output)``. Whatever it
    hands out is a copy, so that nothing changes it.

    Attributes:
        needs_user_input: Whether only the user can say what is missing.
        input_request: What to ask the user.
        intent: What the planner takes the request for.
        problems: What was not understood, each with its place; empty when all of it was.
    """

    _tool_calls: tuple[Mapping[str, Any], ...] = attrs.field(default=(), converter=_copies)
    needs_user_input: bool = False
    input_request: str | None = None
    _queries: tuple[Any, ...] = attrs.field(default=(), converter=_copies)
    intent: str | None = None
    problems: tuple[Problem, ...] = attrs.field(default=(), converter=_copies)

    @property
    def tool_calls(self) -> tuple[Mapping[str, Any], ...]:
        """The calls to make, in order: ``{"tool": str, "args": dict, "reason": str or None}`` each."""
        return _copies(self._tool_calls)

    @property
    def queries(self) -> tuple[Any, ...]:
        """What to search for, each in the planner's own form."""
        return _copies(self._queries)

    @property
    def ok(self) -> bool:
        """Whether all of it was understood."""
        return not self.problems

    def __getitem__(self, key: str) -> Any:
        if key not in KEYS:
            raise KeyError(key)
        value = getattr(self, key)
        return list(value) if isinstance(value, tuple) else value

    def __iter__(self) -> Iterator[str]:
        return iter(KEYS)

    def __len__(self) -> int:
        return len(KEYS)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in (*KEYS, "problems"))
        return f"PlannerOutput({fields})"


def should_execute_tools(state: Mapping[str, Any]) -> _Route:
    """Where a pipeline goes after planning: tool calls first, then a question to the user, else queries.

    Args:
        state: The pipeline's state, or a ``PlannerOutput``; a missing key counts as None.
    """
    if state.get("tool_calls"):
        return "execute_tools"
    if state.get("needs_user_input"):
        return "generate_response"
    return "execute_queries"


def parse_planner_output(text: object) -> PlannerOutput:
    """Read what a planner wrote; never raises.

    Args:
        text: One JSON object, or an array of calls: bare, fenced, or within prose, of at most
            ``MOST_CHARACTERS``; as text, as UTF-8, or parsed already. A fenced object goes before one in
            prose. Two different ones in the same place are not chosen from.

    Returns:
        What was understood. A field of the wrong type has its default, a malformed call is left out,
        and ``problems`` says so.
    """
    try:
        return text if isinstance(text, PlannerOutput) else _read(find_output(text))
    except Refused as refused:
        problem = Problem(str(refused))
    except RecursionError:
        problem = Problem(TOO_DEEP)
    except Exception:  # noqa: BLE001 - an object may fail in any way when it is looked at
        problem = Problem(f"cannot be read; send {ONE_OBJECT} as UTF-8 text")
    return PlannerOutput(problems=(problem,))


def _read(data: Mapping[str, Any]) -> PlannerOutput:
    problems: list[Problem] = []

    def field(name: str, read: Callable[[Any], T]) -> T | None:
        return _attempt(problems, name, read, data.get(name))

    if is_call(data) and "tool_calls" not in data:
        problems.append(Problem(STRAY_CALL, "tool"))
    entries = enumerate(field("tool_calls", _array) or ())
    calls = [_call(problems, f"tool_calls[{index}]", entry) for index, entry in entries]
    return PlannerOutput(
        tool_calls=[call for call in calls if call is not None],
        needs_user_input=field("needs_user_input", _flag) or False,
        input_request=field("input_request", _text),
        queries=field("queries", lambda value: [_plain(query) for query in _array(value)]) or (),
        intent=field("intent", _text),
        problems=problems[:_MOST_PROBLEMS] + [_MORE] * (len(problems) > _MOST_PROBLEMS),
    )


def _attempt(problems: list[Problem], path: str, read: Callable[[Any], T], value: object) -> T | None:
    """What is read from a value; None, and a problem at its path, when it is refused."""
    try:
        return read(value)
    except Refused as refused:
        if len(problems) <= _MOST_PROBLEMS:
            problems.append(Problem(str(refused), path))
        return None


def _call(problems: list[Problem], place: str, entry: object) -> Mapping[str, Any] | None:
    """One call; None when it is malformed."""
    fields = _attempt(problems, place, lambda value: _structure(value, Mapping, _CALL), entry)
    if fields is None:
        return None
    tool = _attempt(problems, f"{place}.tool", _tool, fields)
    args = _attempt(problems, f"{place}.args", _args, fields)
    reason = _attempt(problems, f"{place}.reason", _text, fields.get("reason"))
    return None if tool is None or args is None else {"tool": tool, "args": args, "reason": reason}


def _tool(fields: Mapping[str, Any]) -> str:
    if fields.get("tool") is None:
        refuse("expected a string, got null" if "tool" in fields else "missing; send a string")
    return _text(fields["tool"]) or refuse("blank; send the name of a tool")


def _args(fields: Mapping[str, Any]) -> dict[str, Any]:
    value = fields.get("args")
    if value is None:
        # Ignored like any further key, they would leave a call that says something else.
        misnamed = next((name for name in _MISNAMED_ARGS if name in fields), None)
        return {} if misnamed is None else refuse(f"missing; rename {misnamed} to args")
    if isinstance(value, str) and not value.strip():
        return {}
    args: dict[str, Any] = _plain(_structure(value, Mapping, "an object"))
    return args


def _array(value: object) -> Sequence[Any]:
    return () if value is None else _structure(value, (list, tuple), "an array")


def _structure(value: object, kind: Any, expected: str) -> Any:
    """An array or object, or what a text says that is the JSON of one."""
    if isinstance(value, str) and value.lstrip().startswith("{" if kind is Mapping else "["):
        value = whole_json(value)
    return value if isinstance(value, kind) else unexpected(expected, value)


def _flag(value: object) -> bool:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.strip().lower(), value)
    return bool(value) if value is None or type(value) is bool else unexpected("a boolean", value)


def _text(value: object) -> str | None:
    if value is not None and type(value) is not str:
        unexpected("a string", value)
    text: str | None = _plain(value)
    return text if text and text.strip() else None


def _plain(value: Any, levels: int = _MOST_LEVELS) -> Any:
    """A copy in JSON's own types, of bounded depth, which can be written as UTF-8."""
    if type(value) is str:
        return refuse(_BROKEN_UNICODE) if _LONE_SURROGATE.search(value) else value
    if value is None or type(value) in {bool, int} or (type(value) is float and math.isfinite(value)):
        return value
    if levels == 0 and isinstance(value, (Mapping, list, tuple)):
        refuse(TOO_DEEP)
    if isinstance(value, Mapping) and all(type(name) is str for name in value):
        return {_plain(name): _plain(item, levels - 1) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, levels - 1) for item in value]
    return refuse(_NOT_JSON_VALUES)

"""A transcript of model messages -> the tool calls in it, or the first problem with its place.

Messages are one JSON object a line, or together in one array, or in an object under ``messages``, in one of
these forms: chat completions, Anthropic's messages, items and responses of OpenAI's Responses API, and
LangChain's messages (``messages_to_dict``, ``dumpd``, ``model_dump``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

_A_TRANSCRIPT: Final = (
    'expected one JSON message a line, or one array of them, such as {"role": "assistant", "content": "..."}'
)
_CALLS: Final = ("tool_calls", "invalid_tool_calls")
_LANGCHAIN: Final = ("human", "system", "developer", "tool", "function", "chat", "remove", "generic", "ai")
_ITEMS: Final = ("message", "reasoning", "item_reference", "compaction", "mcp_list_tools")
_ITEM_ENDS: Final = ("_call", "_output", "_request", "_response")
_LONGEST_ID: Final = 200
_MOST_SPENT: Final = 10**12  # tokens of a message; more is not a count
_USAGE: Final = MappingProxyType({
    "input_tokens": "input", "prompt_tokens": "input",
    "output_tokens": "output", "completion_tokens": "output",
    "cost": "cost",
})  # fmt: skip


@attrs.frozen
class Call:
    """One tool call that a model made."""

    name: str
    arguments: str | Mapping[str, Any] | None  # JSON text as the provider hands it over, or the object
    call_id: str | None = attrs.field(default=None, eq=False)
    # What its message cost, and messages since the last call; a further call of one message has nothing.
    usage: Mapping[str, float] = attrs.field(factory=dict, eq=False)


class TranscriptError(ValueError):
    """A transcript cannot be read; none of its calls should be made. The message has the place."""


def parse_transcript(data: bytes) -> tuple[Call, ...]:
    """The tool calls of the assistant's messages, in order."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TranscriptError(f"it is not UTF-8 text: {error.reason} at byte {error.start}") from None
    if not text.strip():
        raise TranscriptError(f"it is empty; {_A_TRANSCRIPT}")
    try:
        messages = _messages_in(json.loads(text))
    except (ValueError, RecursionError) as whole:
        lines = [(f"line {at}", line) for at, line in enumerate(text.split("\n"), start=1) if line.strip()]
        if len(lines) == 1 or lines[0][1].strip() in {"{", "["}:
            raise _not_json(whole) from None
        return _collected((place, _loaded(place, line)) for place, line in lines)
    if not messages:
        raise TranscriptError(f"it holds no message; {_A_TRANSCRIPT}")
    return _collected((f"message {at}", message) for at, message in enumerate(messages, start=1))


def is_transcript(document: Any) -> bool:
    """True if a JSON value begins as a transcript, or as one of its messages."""
    first = next(iter(_messages_in(document)), None)
    if not isinstance(first, dict) or "step_id" in first:
        return False
    try:
        tuple(_calls_of(first))
    except TranscriptError:
        return "role" in first
    return True


def _loaded(place: str, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _not_json(error, place) from None


def _not_json(error: Exception, place: str = "") -> TranscriptError:
    reason = "it is nested too deep, or has a number of too many digits"
    if isinstance(error, json.JSONDecodeError):
        place = place or f"line {error.lineno}"
        reason = f"not JSON at column {error.colno}: {error.msg}"
    return TranscriptError(f"{place}{': ' if place else ''}{reason}; {_A_TRANSCRIPT}")


def _messages_in(document: Any) -> list[Any]:
    """The messages of a whole document: of an array, or of an object that holds one."""
    if isinstance(document, dict) and not isinstance(document.get("role"), str):
        for key in ("messages", "data"):
            if isinstance(document.get(key), list):
                return list(document[key])
    return document if isinstance(document, list) else [document]


def _collected(messages: Iterable[tuple[str, Any]]) -> tuple[Call, ...]:
    calls: list[Call] = []
    spent = Counter[str]()
    for place, message in messages:
        try:
            made = list(_calls_of(message))
        except TranscriptError as error:
            raise TranscriptError(f"{place}: {error}") from None
        except RecursionError:
            raise TranscriptError(f"{place}: nested too deep") from None
        spent.update(_usage_of(message))
        if made:
            made[0], spent = attrs.evolve(made[0], usage=dict(spent)), Counter[str]()
        calls += made
    if calls and spent:  # of the answer, which follows the last call
        spent.update(calls[-1].usage)
        calls[-1] = attrs.evolve(calls[-1], usage=dict(spent))
    return tuple(calls)


def _usage_of(message: Mapping[str, Any]) -> dict[str, float]:
    """The cost of a message, by the names of ``Call.usage``."""
    for key in ("kwargs", "data"):
        if isinstance(message.get(key), dict):
            message = {**message, **message[key]}
    said = message.get("usage") or message.get("usage_metadata")
    given = said.items() if isinstance(said, dict) else ()
    return {_USAGE[name]: value for name, value in given if name in _USAGE and _is_amount(value)}


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _MOST_SPENT


def _calls_of(message: Any) -> Iterator[Call]:
    """The tool calls of one message, in whichever form it is."""
    if not isinstance(message, dict):
        raise TranscriptError(f"not a message; {_A_TRANSCRIPT}")
    role, kind = message.get("role"), message.get("type")
    if isinstance(inner := message.get("kwargs" if "lc" in message else "data"), dict):
        yield from _calls_of({"type": kind, **inner})
    elif isinstance(message.get("output"), list) and kind is None:
        for item in message["output"]:
            yield from _calls_of(item)
    elif _is_of_langchain(message):
        if str(kind).lower().startswith("ai"):
            yield from _listed_calls(message)  # its content repeats them
    elif isinstance(role, str):
        if role == "assistant":
            yield from _block_calls(message.get("content"))
            yield from _listed_calls(message)
    elif kind == "function_call":
        yield _call(message, kind, message.get("call_id"))
    elif isinstance(kind, str) and (kind in _ITEMS or kind.endswith(_ITEM_ENDS)):
        if kind.endswith("_call"):
            yield Call(kind, None)  # a provider's own kind
    else:
        raise TranscriptError(f'not a message: it has no "role"; {_A_TRANSCRIPT}')


def _is_of_langchain(message: Mapping[str, Any]) -> bool:
    """True if it is one of LangChain's messages: a step of a workflow has a type too, but no content."""
    kind = message.get("type")
    is_known = isinstance(kind, str) and kind.removesuffix("MessageChunk").lower() in _LANGCHAIN
    return is_known and "content" in message


def _block_calls(content: Any) -> Iterator[Call]:
    """The calls among the blocks of an Anthropic message."""
    for index, block in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(block, dict):
            raise TranscriptError(f"content[{index}] is not a block, which is an object with a type")
        if block.get("type") == "tool_use":
            yield _call(block, f"content[{index}]", block.get("id"))


def _listed_calls(message: Mapping[str, Any]) -> Iterator[Call]:
    """The calls that a message lists, of chat completions and of LangChain."""
    for key in _CALLS:
        calls = message.get(key) or []
        if not isinstance(calls, list):
            raise TranscriptError(f"{key} is not an array of calls")
        for index, call in enumerate(calls):
            path = f"{key}[{index}]"
            if not isinstance(call, dict):
                raise TranscriptError(f"{path} is not a call, which is an object with a name")
            kind = call.get("type", "function")
            if kind in ("function", "tool_call", "invalid_tool_call"):
                yield _call(call.get("function", call), path, call.get("id"))
            else:
                yield Call(str(kind), None)  # a provider's own kind
    if isinstance(legacy := message.get("function_call"), dict):
        yield _call(legacy, "function_call", None)


def _call(holder: Any, path: str, call_id: object) -> Call:
    """A call by its name and its arguments, which each provider names its own way."""
    name = holder.get("name") if isinstance(holder, dict) else None
    if not isinstance(name, str) or not name:
        raise TranscriptError(f"{path} has no name of a tool")
    given = next((holder[key] for key in ("arguments", "input", "args") if key in holder), None)
    if given is not None and not isinstance(given, (str, dict)):
        raise TranscriptError(f"the arguments of {path} are neither JSON text nor an object")
    known = call_id if isinstance(call_id, str) and len(call_id) <= _LONGEST_ID else None
    return Call(name, given, known)

"""A transcript of model messages -> the tool calls in it, or every problem with its place.

Messages are one JSON object a line, or together in one array, or in an object under ``messages``, in one of
these forms: chat completions, Anthropic's messages, items and responses of OpenAI's Responses API, and
LangChain's messages (``messages_to_dict``, ``dumpd``, ``model_dump``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn

import attrs

__all__ = ["Call", "TranscriptError", "parse_transcript"]

_A_MESSAGE: Final = 'a message such as {"role": "assistant", "content": "..."}'
_A_TRANSCRIPT: Final = "one JSON message a line, or one JSON array of messages"
_A_CALL: Final = '{"function": {"name": "...", "arguments": "{...}"}}'
_A_BLOCK: Final = '{"type": "tool_use", "name": "...", "input": {...}}'
_JSON_WORDS: Final = MappingProxyType({
    bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array",
    dict: "an object", type(None): "nothing",
})  # fmt: skip
# LangChain's names of the roles; messages of other roles hold no calls.
_LANGCHAIN: Final = ("human", "system", "developer", "tool", "function", "chat", "remove", "generic")
_LONGEST_ID: Final = 200
_MOST_SPENT: Final = 10**12  # tokens of a message; more is not a count
_USAGE: Final = MappingProxyType({
    "input": ("input_tokens", "prompt_tokens"),
    "output": ("output_tokens", "completion_tokens"),
    "cost": ("cost",),
})  # fmt: skip
_ITEMS: Final = ("message", "reasoning", "item_reference", "compaction", "mcp_list_tools")
_ITEM_ENDS: Final = ("_call", "_output", "_request", "_response")


@attrs.frozen
class Call:
    """One tool call that a model made.

    Attributes:
        name: The tool's name.
        arguments: JSON text as the provider hands it over, or the object itself.
        call_id: The id that the provider gave it, if there is one.
        usage: The ``input`` and ``output`` tokens and the ``cost`` of its message, and of messages since the
            last call, as far as they are known; a further call of one message has none.
    """

    name: str
    arguments: str | Mapping[str, Any] | None
    call_id: str | None = attrs.field(default=None, eq=False)
    usage: Mapping[str, float] = attrs.field(factory=dict, eq=False)


class TranscriptError(ValueError):
    """A transcript cannot be read; none of its calls should be carried out.

    Attributes:
        problems: Everything that is wrong, in the order of the text, each with its place.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class _MalformedError(Exception):
    """One message, or the text of one, is wrong; ``line`` is the line within that text."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def parse_transcript(data: bytes) -> tuple[Call, ...]:
    """The tool calls of the assistant's messages, in order.

    Args:
        data: The transcript in UTF-8.

    Raises:
        TranscriptError: It is not text, holds no message, or holds something else.
    """
    text = _decode(data)
    try:
        document = _load(text)
    except _MalformedError as wrong:
        if text.lstrip().startswith("[") or text.lstrip().split("\n", 1)[0].strip() == "{":
            raise TranscriptError([f"line {wrong.line}: {wrong}; expected {_A_TRANSCRIPT}"]) from None
        lines = ((f"line {at}", line) for at, line in enumerate(text.split("\n"), start=1) if line.strip())
        return _collect(lines, is_text=True)
    messages = _messages_in(document)
    if not messages:
        raise TranscriptError([f"it holds no message; expected {_A_MESSAGE}"])
    return _collect((f"message {at}", message) for at, message in enumerate(messages, start=1))


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        raise TranscriptError([f"line {line}: not UTF-8: {byte}; save it as UTF-8"]) from None
    if not text.strip():
        raise TranscriptError([f"it is empty; expected {_A_TRANSCRIPT}"])
    return text


def _load(text: str) -> object:
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        reason = error.msg[0].lower() + error.msg[1:]
        raise _MalformedError(f"not JSON at column {error.colno}: {reason}", error.lineno) from None
    except (ValueError, RecursionError):
        raise _MalformedError("nested too deep, or a number of too many digits") from None
    return value


def _messages_in(document: object) -> list[Any]:
    """The messages of a whole document: of an array, or of an object that holds one."""
    if isinstance(document, dict) and not isinstance(document.get("role"), str):
        for key in ("messages", "data"):
            if isinstance(document.get(key), list):
                return list(document[key])
    return document if isinstance(document, list) else [document]


def _collect(items: Iterable[tuple[str, Any]], *, is_text: bool = False) -> tuple[Call, ...]:
    calls: list[Call] = []
    problems: list[str] = []
    spent = Counter[str]()
    for place, item in items:
        try:
            message = _load_line(item) if is_text else item
            made = list(_calls_of(message))
        except _MalformedError as wrong:
            problems.append(f"{place}: {wrong}")
            continue
        spent.update(_usage_of(message))
        if made:
            made[0], spent = attrs.evolve(made[0], usage=dict(spent)), Counter[str]()
        calls += made
    if problems:
        raise TranscriptError(problems)
    if calls and spent:  # of the answer, which follows the last call
        spent.update(calls[-1].usage)
        calls[-1] = attrs.evolve(calls[-1], usage=dict(spent))
    return tuple(calls)


def _usage_of(message: Any) -> dict[str, float]:
    """What a message says that it cost, by the names of ``Call.usage``."""
    for key in ("kwargs", "data"):
        if isinstance(message.get(key), dict):
            message = {**message, **message[key]}
    for key in ("usage", "usage_metadata"):
        said = message.get(key)
        if isinstance(said, dict):
            given: Any = [(name, said.get(word)) for name, words in _USAGE.items() for word in words]
            return {name: value for name, value in given if _is_amount(value)}
    return {}


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _MOST_SPENT


def _load_line(line: str) -> object:
    try:
        return _load(line)
    except _MalformedError as wrong:
        raise _MalformedError(f"{wrong}; expected {_A_MESSAGE}") from None


def _calls_of(message: object) -> Iterator[Call]:
    """The tool calls of one message, in whichever form it is."""
    if not isinstance(message, dict):
        _wrong(f"not a message but {_word(message)}; expected {_A_MESSAGE}")
    role, kind = message.get("role"), message.get("type")
    if isinstance(message.get("kwargs"), dict) and "lc" in message:
        yield from _calls_of(message["kwargs"])
    elif isinstance(message.get("data"), dict) and isinstance(kind, str):
        yield from _calls_of({"type": kind, **message["data"]})
    elif isinstance(message.get("output"), list) and kind is None:
        for item in message["output"]:
            yield from _calls_of(item)
    elif isinstance(kind, str) and "content" in message and _is_langchains(kind, role):
        if kind.lower().startswith("ai"):
            yield from _langchain_calls(message)
    elif isinstance(kind, str) and not isinstance(role, str) and _is_item(kind):
        yield from _item_calls(message, kind)
    elif not isinstance(role, str):
        _wrong(f'not a message: it has no "role"; expected {_A_MESSAGE}')
    elif role == "assistant":
        yield from _chat_calls(message)


def _is_langchains(kind: str, role: object) -> bool:
    name = kind.removesuffix("MessageChunk").lower()
    return name == "ai" or (name in _LANGCHAIN and (not isinstance(role, str) or name == "chat"))


def _is_item(kind: str) -> bool:
    return kind in _ITEMS or kind.endswith(_ITEM_ENDS)


def _chat_calls(message: Mapping[str, Any]) -> Iterator[Call]:
    """Chat completions, and Anthropic's blocks."""
    content = message.get("content")
    if content is not None and not isinstance(content, (str, list)):
        _wrong(f"content: expected a string, an array of blocks or null, got {_word(content)}")
    for index, block in enumerate(content if isinstance(content, list) else ()):
        yield from _block_calls(block, f"content[{index}]")
    for index, call in enumerate(_array(message, "tool_calls", _A_CALL)):
        yield _tool_call(call, f"tool_calls[{index}]")
    if message.get("function_call") is not None:
        yield _function(message["function_call"], "function_call")


def _block_calls(block: object, path: str) -> Iterator[Call]:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        _wrong(f'{path}: expected a block with a "type", such as {_A_BLOCK}')
    if block["type"] == "tool_use":
        arguments = block.get("input")
        if not isinstance(arguments, dict):
            _wrong(f"{path}.input: expected an object, got {_word(arguments)}")
        yield Call(_name(block, path), arguments, _id(block, "id"))


def _tool_call(call: object, path: str) -> Call:
    if not isinstance(call, dict):
        _wrong(f"{path}: expected {_A_CALL}, got {_word(call)}")
    kind = call.get("type", "function")
    if isinstance(kind, str) and kind != "function":
        return Call(_name({"name": kind}, path), None)  # a provider's own kind: not a planning tool
    return attrs.evolve(_function(call.get("function"), f"{path}.function"), call_id=_id(call, "id"))


def _function(function: object, path: str) -> Call:
    if not isinstance(function, dict):
        _wrong(f'{path}: expected {{"name": "...", "arguments": "{{...}}"}}, got {_word(function)}')
    return Call(_name(function, path), _arguments(function, "arguments", path))


def _item_calls(item: Mapping[str, Any], kind: str) -> Iterator[Call]:
    """An item of the Responses API."""
    if kind == "function_call":
        yield Call(_name(item, kind), _arguments(item, "arguments", kind), _id(item, "call_id"))
    elif kind.endswith("_call"):
        yield Call(kind, None)  # a provider's own kind


def _langchain_calls(message: Mapping[str, Any]) -> Iterator[Call]:
    """An AIMessage of LangChain; old ones have the provider's own calls alone."""
    shape = '{"name": "...", "args": {...}}'
    found = False
    for key in ("tool_calls", "invalid_tool_calls"):
        for index, call in enumerate(_array(message, key, shape)):
            path = f"{key}[{index}]"
            if not isinstance(call, dict):
                _wrong(f"{path}: expected {shape}, got {_word(call)}")
            found = True
            yield Call(_name(call, path), _arguments(call, "args", path), _id(call, "id"))
    extra = message.get("additional_kwargs")
    if not found and isinstance(extra, dict):
        yield from _chat_calls({key: extra.get(key) for key in ("tool_calls", "function_call")})


def _array(message: Mapping[str, Any], key: str, shape: str) -> list[Any]:
    calls = message.get(key)
    if calls is not None and not isinstance(calls, list):
        _wrong(f"{key}: expected an array of {shape}, got {_word(calls)}")
    return calls or []


def _arguments(holder: Mapping[str, Any], key: str, path: str) -> str | Mapping[str, Any] | None:
    arguments = holder.get(key)
    if arguments is not None and not isinstance(arguments, (str, dict)):
        _wrong(f"{path}.{key}: expected JSON text, got {_word(arguments)}")
    return arguments


def _name(holder: Mapping[str, Any], path: str) -> str:
    name = holder.get("name")
    if not isinstance(name, str) or not name:
        _wrong(f"{path}.name: expected the tool's name, got {'an empty one' if name == '' else _word(name)}")
    return name


def _id(holder: Mapping[str, Any], key: str) -> str | None:
    found = holder.get(key)
    return found if isinstance(found, str) and len(found) <= _LONGEST_ID else None


def _word(value: object) -> str:
    return _JSON_WORDS[type(value)]


def _wrong(message: str) -> NoReturn:
    raise _MalformedError(message)

"""The anthropic client: the Messages API.

    tools, sent = anthropic.tools(section), anthropic.with_reminder(messages, section)
    message = client.messages.create(model=..., messages=sent, tools=tools, max_tokens=...)
    messages += anthropic.turn(message)
    messages += anthropic.run_calls(message, toolbox)

It takes the client's objects and plain dictionaries alike, and does not import the client. For a streamed
reply, pass the list of its events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from planning.integrations._calls import Call, acarry_out, carry_out, in_turn, toolbox_of
from planning.integrations._messages import (
    dicts,
    is_json,
    listed_or_plain,
    record,
    unknown_response,
    with_reminder,
)
from planning.prompt.definitions import ToolSource, tool_definitions
from planning.tools import ToolResult

__all__ = ["arun_calls", "run_calls", "tools", "turn", "with_reminder"]

Content = tuple[list[dict[str, Any]], bool, dict[str, Any]]
"""The content of a message, whether it ended before the model had finished, and what names the message."""

_CUT = ("max_tokens", "model_context_window_exceeded")
_DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
    "citations_delta": "citation",
}
"""The field that each kind of delta extends."""


def tools(source: ToolSource | None = None, *, strict: bool = False) -> list[Any]:
    """The ``tools`` of a request.

    Args:
        source: A toolbox, a section or tools; the six planning tools if omitted.
        strict: Whether the provider enforces the schemas; see ``tool_definitions``.

    Raises:
        ValueError: A strict schema cannot describe a tool.
    """
    defined: list[Any] = tool_definitions("anthropic", strict=strict, tools=source)
    return defined


def turn(response: Any) -> list[dict[str, Any]]:
    """The model's turn as plain data, to append to the conversation: its message.

    Args:
        response: A message, or the list of the events of a streamed one.

    Raises:
        TypeError: It is neither.
    """
    content = [_sendable(block) for block in _read(response)[0]]
    return [{"role": "assistant", "content": content}] if content else []


def run_calls(response: Any, toolbox: ToolSource, *, actor: str | None = None) -> list[dict[str, Any]]:
    """Run the calls of a turn in order, and answer each of them.

    A call that is refused, of an unknown tool or with arguments that are not JSON is answered too: the model
    reads what to send instead, in a result with ``is_error``.

    Args:
        response: As for ``turn``.
        toolbox: A toolbox; or a section or tools, which make a toolbox for this turn.
        actor: The agent's name, for the events and the history.

    Returns:
        The message to append after the turn, in a list; an empty list when the model called nothing.

    Raises:
        TypeError: The response or the toolbox is something else.
    """
    box = toolbox_of(toolbox)
    return _message([_result(call, carry_out(box, call, actor)) for call in _calls(_read(response))])


async def arun_calls(response: Any, toolbox: ToolSource, *, actor: str | None = None) -> list[dict[str, Any]]:
    """Run the calls in async code. For an async stream, pass ``[event async for event in stream]``."""
    box = toolbox_of(toolbox)
    return _message([_result(call, await acarry_out(box, call, actor)) for call in _calls(_read(response))])


def _read(response: Any) -> Content:
    data = listed_or_plain(response, "a message")
    if isinstance(data, list) and [each.get("role") for each in data] == ["assistant"]:
        data = data[0]
    if isinstance(data, list):
        if not all("type" in each for each in data):
            raise unknown_response(response, "a message")
        return _of_events(data)
    content, is_cut = data.get("content"), data.get("stop_reason") in _CUT
    if isinstance(content, list):
        return dicts(content), is_cut, data
    if isinstance(content, str):
        return [{"type": "text", "text": content}], is_cut, {}
    raise unknown_response(response, "a message")


def _of_events(events: list[dict[str, Any]]) -> Content:
    """The blocks that the events of a streamed message add up to."""
    blocks: dict[str, dict[str, Any]] = {}
    message, usage, stop_reason = dict[str, Any](), dict[str, Any](), None
    for event in events:
        kind, index, delta = event.get("type"), str(event.get("index")), record(event.get("delta"))
        if kind == "content_block_start":
            blocks[index] = dict(record(event.get("content_block")))
        elif kind == "content_block_delta":
            block, name = blocks.setdefault(index, {}), _DELTAS.get(str(delta.get("type")))
            if name == "citation":
                block["citations"] = [*dicts(block.get("citations")), delta.get(name)]
            elif name:
                block[name] = str(block.get(name, "")) + str(delta.get(name, ""))
        elif kind == "message_start":
            message = record(event.get("message"))
            usage = record(message.get("usage"))
        elif kind == "message_delta":
            stop_reason = delta.get("stop_reason") or stop_reason
            later = record(event.get("usage")).items()
            usage = {**usage, **{name: value for name, value in later if value is not None}}
    return list(blocks.values()), stop_reason in (None, *_CUT), {**message, "usage": usage}


def _sendable(block: dict[str, Any]) -> dict[str, Any]:
    """A block as the server takes it back: of streamed input that is not a JSON object, nothing."""
    if "partial_json" not in block:
        return block
    streamed = block["partial_json"]
    given = json.loads(streamed) if is_json(streamed) else {}
    kept = {name: value for name, value in block.items() if name != "partial_json"}
    return {**kept, "input": given if isinstance(given, dict) else {}}


def _calls(content: Content) -> list[Call]:
    blocks, is_cut, message = content
    return in_turn(message, list(_find(blocks, is_cut=is_cut)))


def _find(blocks: list[dict[str, Any]], *, is_cut: bool) -> Iterator[Call]:
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    for block in calls:
        arguments = block.get("partial_json") or block.get("input")
        # Input that is not streamed is an object in any case: of one that was cut it is only the beginning.
        is_whole = is_json(block.get("partial_json"))
        is_last = block is blocks[-1]
        yield Call(block.get("id"), block.get("name"), arguments, is_cut and is_last and not is_whole)


def _result(call: Call, result: ToolResult) -> dict[str, Any]:
    answer = {"type": "tool_result", "tool_use_id": call.call_id, "content": result.message}
    return answer if result.success else {**answer, "is_error": True}


def _message(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": results}] if results else []

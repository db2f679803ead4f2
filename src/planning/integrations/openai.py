"""The openai client, and every server that speaks its protocols: Chat Completions and Responses.

    tools, sent = openai.tools(section), openai.with_reminder(messages, section)
    completion = client.chat.completions.create(model=..., messages=sent, tools=tools)
    messages += openai.turn(completion)
    messages += openai.run_calls(completion, toolbox)

It takes the client's objects and plain dictionaries alike, and does not import the client. For a streamed
reply, pass the list of its chunks or events.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from planning.tools import Tool, ToolResult, tool_from_schema

__all__ = ["arun_calls", "run_calls", "tools", "tools_from", "turn", "with_reminder"]

Turn = tuple[list[dict[str, Any]], bool, dict[str, Any]]
"""The message or items of a turn, whether it ended before the model had finished, and what names it."""

_KINDS = "a completion, a message, a response"
_OUTPUTS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
"""The items of a response that call a tool by its name, and how each is answered. The server answers calls of
its own tools; those of its tools for a computer, a shell or patches are for the code that offers them."""

_CUT = ("length", "content_filter")
_LAST_EVENTS = ("response.completed", "response.incomplete", "response.failed")
_OF_CLIENT = frozenset({"parsed", "parsed_arguments"})  # the client adds these, and a server refuses them


def tools(source: ToolSource | None = None, *, strict: bool = False, responses: bool = False) -> list[Any]:
    """The ``tools`` of a request.

    Args:
        source: A toolbox, a section or tools; the six planning tools if omitted.
        strict: Whether the provider enforces the schemas; see ``tool_definitions``.
        responses: Whether the request goes to the Responses API.

    Raises:
        ValueError: A strict schema cannot describe a tool.
    """
    defined: list[Any] = tool_definitions(
        "openai-responses" if responses else "openai", strict=strict, tools=source
    )
    return defined


def turn(response: Any) -> list[dict[str, Any]]:
    """The model's turn as plain data, to append to the conversation: its message, or the items of its output.

    Args:
        response: A completion, a message, a response of the Responses API, or the list of the chunks or
            events of a streamed one.

    Raises:
        TypeError: It is not one of these.
    """
    return _read(response)[0]


def run_calls(response: Any, toolbox: ToolSource, *, actor: str | None = None) -> list[dict[str, Any]]:
    """Run the calls of a turn in order, and answer each of them.

    A call that is refused, of an unknown tool or with arguments that are not JSON is answered too: the model
    reads what to send instead.

    Args:
        response: As for ``turn``.
        toolbox: A toolbox; or a section or tools, which make a toolbox for this turn.
        actor: The agent's name, for the events and the history.

    Returns:
        The messages or items to append after the turn; empty when the model called nothing.

    Raises:
        TypeError: The response or the toolbox is something else.
    """
    box = toolbox_of(toolbox)
    return [_answer(item, carry_out(box, call, actor)) for item, call in _calls(_read(response))]


async def arun_calls(response: Any, toolbox: ToolSource, *, actor: str | None = None) -> list[dict[str, Any]]:
    """Run the calls in async code. For an async stream, pass ``[chunk async for chunk in stream]``."""
    box = toolbox_of(toolbox)
    return [_answer(item, await acarry_out(box, call, actor)) for item, call in _calls(_read(response))]


def tools_from(
    definitions: Iterable[Mapping[str, Any]], functions: Mapping[str, Callable[..., Any]], **options: Any
) -> tuple[Tool, ...]:
    """Tools for a ``Toolbox``, from the ``tools`` of a request and the functions that they describe.

    Args:
        definitions: Those of Chat Completions or of Responses; only those of the type ``function`` are used.
        functions: By name; each is called with its arguments by keyword.
        options: Further attributes of each ``Tool``.

    Raises:
        KeyError: A definition has no function.
        TypeError: A function cannot be called as its definition says.
        ValueError: A name or a schema is invalid.
    """
    about = [each.get("function", each) for each in definitions if each.get("type") == "function"]
    return tuple(
        tool_from_schema(
            each["name"],
            each.get("description") or "",
            each.get("parameters"),
            functions[each["name"]],
            **options,
        )
        for each in about
    )


def _read(response: Any) -> Turn:
    data = listed_or_plain(response, _KINDS)
    if isinstance(data, list):
        if any("choices" in each for each in data):
            return _of_chunks(data)
        if any(str(each.get("type")).startswith("response.") for each in data):
            return _of_events(data)
    elif "choices" in data:
        choice = next(iter(dicts(data["choices"])), {})
        message = [_sendable(each) for each in dicts([choice.get("message")])]
        return message, choice.get("finish_reason") in _CUT, data
    elif "output" in data:
        return _of_output(data)
    items = data if isinstance(data, list) else [data]
    if not all("role" in each or "type" in each for each in items):
        raise unknown_response(response, _KINDS)
    return [_sendable(each) for each in items], False, {}


def _of_chunks(chunks: list[dict[str, Any]]) -> Turn:
    """The message that the chunks of a streamed completion add up to."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: list[dict[str, Any]] = []
    finish_reason = None
    for choice in (each for chunk in chunks for each in dicts(chunk.get("choices"))):
        if not choice.get("index"):
            finish_reason = choice.get("finish_reason") or finish_reason
            for name, value in record(choice.get("delta")).items():
                if name == "tool_calls":
                    for delta in dicts(value):
                        _add_call(calls, delta)
                elif isinstance(value, str) and isinstance(message.get(name), str) and name != "role":
                    message[name] += value
                elif value is not None:
                    message[name] = value
    for call in calls:
        del call["index"]
    named = {name: value for chunk in reversed(chunks) for name, value in chunk.items() if value}
    whole = {**message, "tool_calls": calls} if calls else message
    return [whole], finish_reason in (None, *_CUT), named


def _of_output(response: dict[str, Any]) -> Turn:
    items = [_sendable(each) for each in dicts(response.get("output"))]
    return items, response.get("status") == "incomplete", response


def _add_call(calls: list[dict[str, Any]], delta: dict[str, Any]) -> None:
    """Add a part of a call to the call that it continues; some servers give all calls one index, or none."""
    index, call_id = delta.get("index"), delta.get("id")
    call = next((each for each in reversed(calls) if index is None or each.get("index") == index), None)
    if call is None or (call_id and call["id"] and call_id != call["id"]):
        call = {
            "id": call_id,
            "type": "function",
            "index": index,
            "function": {"name": None, "arguments": ""},
        }
        calls.append(call)
    call["id"] = call["id"] or call_id
    call.update({name: value for name, value in delta.items() if name not in call and value is not None})
    given = record(delta.get("function"))
    call["function"]["name"] = call["function"]["name"] or given.get("name")
    arguments = given.get("arguments") or ""
    call["function"]["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments)


def _of_events(events: list[dict[str, Any]]) -> Turn:
    """The items of a streamed response: those of its end, or else those that are complete."""
    done = [each.get("item") for each in events if each.get("type") == "response.output_item.done"]
    responses = [record(each.get("response")) for each in events if "response" in each]
    ends = [record(each.get("response")) for each in events if each.get("type") in _LAST_EVENTS]
    last = (ends or responses or [{}])[-1]
    return _of_output(last if ends and dicts(last.get("output")) else {**last, "output": done})


def _sendable(item: dict[str, Any]) -> dict[str, Any]:
    """A message or an item as a server takes it back."""
    kept = {name: value for name, value in item.items() if value is not None and name not in _OF_CLIENT}
    kept.pop("tool_calls", None)  # servers refuse a list without calls, or read it as a call
    if calls := dicts(item.get("tool_calls")):
        kept["tool_calls"] = [
            {
                name: {key: part for key, part in value.items() if key not in _OF_CLIENT}
                if isinstance(value, dict)
                else value
                for name, value in call.items()
            }
            for call in calls
        ]
    return {**kept, "content": item["content"]} if "role" in item and "content" in item else kept


def _calls(read: Turn) -> Iterator[tuple[dict[str, Any], Call]]:
    """The calls of a turn, each with the part of the turn that it answers."""
    items, is_cut, response = read
    found = list(_find(items, is_cut=is_cut))
    calls = iter(in_turn(response, [call for _, call in found]))
    return ((item, next(calls)) for item, _ in found)


def _find(items: list[dict[str, Any]], *, is_cut: bool) -> Iterator[tuple[dict[str, Any], Call]]:
    for item in items:
        calls = dicts(item.get("tool_calls"))
        for number, each in enumerate(calls, 1):
            asked = record(each.get("function") or each.get("custom"))
            name, arguments = asked.get("name"), asked.get("arguments", asked.get("input"))
            lost = is_cut and number == len(calls) and not is_json(arguments)
            yield each, Call(each.get("id"), name, arguments, lost)
        if str(item.get("type")) in _OUTPUTS:
            is_custom = item["type"] == "custom_tool_call"  # these do not say whether they are complete
            lost = item.get("status") == "incomplete" or (is_custom and is_cut and item is items[-1])
            arguments = item.get("input" if is_custom else "arguments")
            yield item, Call(item.get("call_id"), item.get("name"), arguments, lost)


def _answer(item: dict[str, Any], result: ToolResult) -> dict[str, Any]:
    output = _OUTPUTS.get(str(item.get("type")))
    if output is not None:
        return {"type": output, "call_id": item.get("call_id"), "output": result.message}
    return {"role": "tool", "tool_call_id": item.get("id"), "content": result.message}

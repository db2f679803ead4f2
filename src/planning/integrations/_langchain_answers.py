"""Answers to calls of LangChain's agents, as updates of their state, and the reminder behind a request."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import ExtendedModelResponse, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from planning.errors import ToolValidationError
from planning.integrations._common import Call, dicts, out_of_reach, with_text
from planning.integrations._rewind import Position, checked, position_of
from planning.tools import ToolResult
from planning.tools.parameters.arguments import read_arguments
from session import Session

TEXT, CUT = "__text__", "__cut__"  # the arguments of a call that LangChain could not read
_CUT_OFF = ("length", "max_tokens")


def message_of(call: Call, result: ToolResult) -> ToolMessage | str:
    if call.call_id is None:
        return result.message
    status: Any = "success" if result.success else "error"
    return ToolMessage(result.message, name=call.name, tool_call_id=call.call_id, status=status)


def answered(
    answer: ToolMessage | Command[Any],
    session: Session | None,
    before: Position | None,
    step: str = "",
    **more: Any,
) -> ToolMessage | Command[Any]:
    """The answer to a call as an update of the agent's state, with the session's position."""
    if session is None:
        return answer
    position = {**position_of(session, before, step), **more}
    if isinstance(answer, ToolMessage):
        return Command(update={"messages": [answer], "planning": position})
    if answer.graph is not None or not isinstance(answer.update, dict | None):
        return answer
    return dataclasses.replace(answer, update={**(answer.update or {}), "planning": position})


def away(request: ToolCallRequest, error: Exception) -> ToolMessage | Command[Any]:
    """The answer to a call whose session is out of reach."""
    return refused(request, out_of_reach(request.tool_call["name"], error).message)


def refused(request: ToolCallRequest, reason: str) -> ToolMessage:
    """The answer to a call that is not made."""
    call = request.tool_call
    return ToolMessage(reason, name=call["name"], tool_call_id=call["id"], status="error")


def _arguments(text: str, *, is_cut: bool) -> dict[str, Any]:
    """Arguments that LangChain could not read: repaired, or as they are for the toolbox to refuse."""
    if is_cut:
        return {TEXT: text, CUT: True}
    try:
        return read_arguments(text)
    except ToolValidationError:
        return {TEXT: text}


def with_tail(messages: Sequence[AnyMessage], text: str) -> list[AnyMessage]:
    """The messages of a request with a text at their end, which may be empty."""
    *others, last = messages or (None,)
    if not text or not isinstance(last, HumanMessage | ToolMessage):
        return [*messages, *([HumanMessage(text)] if text else ())]
    return [*others, last.model_copy(update={"content": with_text(last.content, text)})]


def position_in(state: Mapping[str, Any]) -> Position | None:
    return checked(state.get("planning"))


def extended(
    response: ModelResponse[Any], position: dict[str, Any] | None
) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
    if position is None:
        return response
    return ExtendedModelResponse(response, Command(update={"planning": position}))


def last_turn(state: Mapping[str, Any]) -> tuple[Sequence[Mapping[str, Any]], set[str]]:
    """The calls of the model's last turn, and the ids of those that are answered."""
    over: set[str] = set()
    for message in reversed(state.get("messages", [])):
        if isinstance(message, ToolMessage):
            over.add(message.tool_call_id)
        elif isinstance(message, AIMessage):
            return message.tool_calls, over
    return (), over


def readable(response: ModelResponse[Any], names: Container[str]) -> ModelResponse[Any]:
    """Let calls whose arguments are not JSON come to the toolbox, which repairs or refuses them.

    Args:
        response: The model's.
        names: The tools of the toolbox.
    """
    for index, message in enumerate(response.result):
        if isinstance(message, AIMessage) and message.invalid_tool_calls:
            response.result[index] = _with_calls(message, names)
    return response


def _with_calls(message: AIMessage, names: Container[str]) -> AIMessage:
    reasons = (message.response_metadata.get(key) for key in ("finish_reason", "stop_reason"))
    is_cut = any(reason in _CUT_OFF for reason in reasons)
    calls, others = list(message.tool_calls), []
    for call in message.invalid_tool_calls:
        name = call["name"]
        if name is not None and name in names and call["id"] is not None:
            arguments = _arguments(call["args"] or "", is_cut=is_cut)
            calls.append({"name": name, "args": arguments, "id": call["id"], "type": "tool_call"})
        else:
            others.append(call)
    # LangChain sorts the calls by whether it can read them; what the provider sent has the model's order.
    sent = getattr(message, "tool_call_chunks", None) or message.additional_kwargs.get("tool_calls")
    places = {each.get("id"): place for place, each in enumerate(dicts(sent))}
    calls.sort(key=lambda call: places.get(call["id"], len(places)))
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": others})

"""LangChain's messages and tools as ours, and ours as LangChain's."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

from langchain.agents.middleware import ModelResponse
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import BaseTool, ToolException
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from pydantic import ValidationError

from planning.errors import Problem, ToolError, ToolValidationError
from planning.integrations._calls import Call, acarry_out, carry_out
from planning.integrations._messages import dicts, with_text
from planning.integrations._rewind import Position, checked, position_of
from planning.tools import Tool, Toolbox, ToolContext, ToolResult
from planning.tools.once import Turn
from planning.tools.parameters.arguments import read_arguments
from session import Session
from session.json_form import json_form

_TEXT, _CUT = "__text__", "__cut__"  # the arguments of a call that LangChain could not read
_CUT_OFF = ("length", "max_tokens")


caller: ContextVar[tuple[Any, ...]] = ContextVar("caller", default=(None,) * 4)
"""The id of the running call, its turn, its run, and who makes it."""


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


def refused(request: ToolCallRequest, reason: str) -> ToolMessage:
    """The answer to a call that is not made."""
    call = request.tool_call
    return ToolMessage(reason, name=call["name"], tool_call_id=call["id"], status="error")


def _arguments(text: str, *, is_cut: bool) -> dict[str, Any]:
    """Arguments that LangChain could not read: repaired, or as they are for the toolbox to refuse."""
    if is_cut:
        return {_TEXT: text, _CUT: True}
    try:
        return read_arguments(text)
    except ToolValidationError:
        return {_TEXT: text}


def with_tail(messages: Sequence[AnyMessage], text: str) -> list[AnyMessage]:
    """The messages of a request with text at their end, which may be empty."""
    *others, last = messages or (None,)
    if not text or not isinstance(last, HumanMessage | ToolMessage):
        return [*messages, *([HumanMessage(text)] if text else ())]
    return [*others, last.model_copy(update={"content": with_text(last.content, text)})]


def with_system(system: SystemMessage | None, text: str) -> SystemMessage:
    """The system message of a request with text at its end."""
    if system is None:
        return SystemMessage(text)
    return system.model_copy(update={"content": with_text(system.content, text)})


def position_in(state: Mapping[str, Any]) -> Position | None:
    return checked(state.get("planning"))


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
    """Let calls whose arguments are not JSON come to the toolbox, which repairs or refuses them."""
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


# Tools


def tools_from(tools: Iterable[BaseTool]) -> tuple[Tool, ...]:
    """LangChain's tools as tools of a toolbox, a workflow or the engine.

    A ``ToolException`` and arguments that the tool refuses are what the model reads; any other error is not.
    Arguments that LangChain injects from an agent's state or store have no counterpart here.

    Raises:
        TypeError: One is not a LangChain tool.
        ValueError: A name is not one that providers take.
    """
    return tuple(map(_tool_from, tools))


def _tool_from(tool: BaseTool) -> Tool:
    if not isinstance(tool, BaseTool):
        raise TypeError(f"expected a LangChain tool, got {type(tool).__name__}: decorate it with @tool")

    is_plain = _is_plain(tool)

    def request(params: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        if is_plain and params.get("type") != "tool_call":
            return dict(params)
        call_id = context.call_id or str(uuid4())
        return {"type": "tool_call", "name": tool.name, "args": dict(params), "id": call_id}

    def run(params: Mapping[str, Any], context: ToolContext) -> Any:
        with _refusals(tool):
            return _value(tool.invoke(request(params, context)))

    async def arun(params: Mapping[str, Any], context: ToolContext) -> Any:
        with _refusals(tool):
            return _value(await tool.ainvoke(request(params, context)))

    schema: Any = tool.tool_call_schema
    parameters = schema if isinstance(schema, dict) else schema.model_json_schema()
    is_async = getattr(tool, "coroutine", None) is not None and getattr(tool, "func", None) is None
    function, reads = arun if is_async else run, bool(readers([tool]))
    return Tool(tool.name, tool.description, function, parameters=parameters, read_only=reads)


def _is_plain(tool: BaseTool) -> bool:
    """True if a call needs no id: its result is then what the tool returned, not text."""
    schema, is_injected = tool.tool_call_schema, bool(getattr(tool, "_injected_args_keys", ()))
    if not isinstance(schema, dict):
        every, shown = ([*getattr(each, "model_fields", ())] for each in (tool.get_input_schema(), schema))
        is_injected |= every != shown
    is_handled = tool.handle_tool_error or tool.handle_validation_error
    return not (is_injected or is_handled) and tool.response_format == "content"


def readers(tools: Iterable[object]) -> set[str]:
    """The names of the tools that say that they change nothing."""
    known = (each for each in tools if isinstance(each, BaseTool))
    return {each.name for each in known if (each.metadata or {}).get("read_only") is True}


class BoundTool(BaseTool):
    """A tool of a toolbox as LangChain calls it. Only the toolbox checks the arguments."""

    box: Any

    @classmethod
    def of(cls, tool: Tool, box: Toolbox) -> BoundTool:
        """Take a tool's name, description and schema."""
        schema = _add_title(tool.name, tool.parameters_schema())
        return cls(name=tool.name, description=tool.description, args_schema=schema, box=box)

    def _run(self, /, **arguments: Any) -> Any:
        call, actor = _running(self.name, arguments)
        return _message_of(call, carry_out(self.box, call, actor))

    async def _arun(self, /, **arguments: Any) -> Any:
        call, actor = _running(self.name, arguments)
        return _message_of(call, await acarry_out(self.box, call, actor))


def offered(tools: Iterable[Any], schemas: Mapping[str, dict[str, Any]]) -> list[Any]:
    """The tools of a request, of the toolbox's own only those with a schema, and with that."""
    return [
        each.model_copy(update={"args_schema": _add_title(each.name, schemas[each.name])})
        if isinstance(each, BoundTool)
        else each
        for each in tools
        if not isinstance(each, BoundTool) or each.name in schemas
    ]


def _add_title(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"title": name, **schema}


def _running(name: str, arguments: Mapping[str, Any]) -> tuple[Call, str | None]:
    """The running call, with the arguments as the model sent them, and who makes it."""
    call_id, turn, run, actor = caller.get()
    return Call(call_id, name, arguments.get(_TEXT, arguments), _CUT in arguments, turn, run), actor


def _message_of(call: Call, result: ToolResult) -> ToolMessage | str:
    if call.call_id is None:
        return result.message
    status: Any = "success" if result.success else "error"
    return ToolMessage(result.message, name=call.name, tool_call_id=call.call_id, status=status)


@contextmanager
def _refusals(tool: BaseTool) -> Iterator[None]:
    try:
        yield
    except ToolException as error:
        raise ToolError(str(error)) from error
    except ValidationError as error:
        if error.title != getattr(tool.args_schema, "__name__", None):
            raise  # of the tool's own work, not of its arguments
        problems = [Problem(each["msg"], ".".join(map(str, each["loc"]))) for each in error.errors()]
        raise ToolValidationError(problems) from None


def _value(answer: Any) -> Any:
    if not isinstance(answer, ToolMessage):
        try:
            json_form(answer, strict=True)
        except Exception:  # noqa: BLE001 - LangChain's own text of what has no JSON form
            return str(answer)
        return answer
    if answer.status == "error":
        raise ToolError(answer.text)
    return answer.content


def turn_of(place: str | None, conversation: Iterable[BaseMessage]) -> Turn | None:
    """The last turn of a conversation; the id of the model's message names it, behind those before it.

    A model may give a message the same id in two conversations. LangGraph draws the ids of what the user says
    and the tools answer.
    """
    messages = list(conversation)
    while messages and not isinstance(messages[-1], AIMessage):
        messages.pop()
    ids = [each.id for each in messages]
    turn = messages[-1] if messages else None
    if not isinstance(turn, AIMessage) or not any(ids[:-1]) or not ids[-1]:
        return None
    return Turn(repr((place, ids)), [each["id"] for each in turn.tool_calls])

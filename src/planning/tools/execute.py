"""The step of an agent's pipeline that carries out what a planner asked for."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from planning.errors import ToolValidationError, show
from planning.tools.context import SessionOfCall, ToolContext, context_values
from planning.tools.contract import session_of
from planning.tools.envelopes import pipeline_envelope
from planning.tools.errors import ContextInvalid, ErrorKind
from planning.tools.ledger import register_ledger
from planning.tools.pipeline import CallPipeline
from planning.tools.registry import ToolRegistry, default_registry
from session import Session, StoreError
from session.json_form import json_form

_UNREADABLE = "invalid_call"


async def execute_tools(
    state: Mapping[str, Any], *, registry: ToolRegistry | None = None, session: Session | None = None
) -> dict[str, dict[str, Any]]:
    """Carry out the tool calls in a pipeline's state, one after the other; never raises.

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
            name = json_form(
                name
            )  # without half characters, which would break whatever the results are sent by
            envelope = await _carried_out(pipeline, tools, name, call.get("args"))
        results[_free(name, results, numbers)] = envelope
    return {"tool_results": results}


async def _carried_out(
    pipeline: CallPipeline, tools: ToolRegistry, name: str, arguments: Any
) -> dict[str, Any]:
    tool = tools.find(name)
    if tool is None:
        unknown = ToolValidationError(f"Unknown tool: {name[:100]}")
        answer = partial(pipeline.answer_unfound, name[:100], unknown)
        return pipeline_envelope(await pipeline.off_loop(name, pipeline.context.session, answer))
    return pipeline_envelope(await pipeline.acall(tool, arguments))


def _unreadable(call: object) -> dict[str, Any]:
    what = "names no tool" if isinstance(call, Mapping) else f"is {show(call)}"
    return {
        "success": False,
        "data": None,
        "error": f'The call {what}; write {{"tool": name, "args": {{...}}}}',
        "user_message": None,
        "code": ErrorKind.PARAMETER.value,
    }


def _free(name: str, taken: Mapping[str, object], numbers: dict[str, int]) -> str:
    """The name, or the first of ``name#2``, ``name#3`` ... that is free; ``numbers`` holds the last ones."""
    number = numbers.get(name, 0) + 1
    free = name if number == 1 else f"{name}#{number}"
    while free in taken:
        number += 1
        free = f"{name}#{number}"
    numbers[name] = number
    return free

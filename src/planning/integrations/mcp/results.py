"""Tools, their calls and their results as MCP has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from contextlib import suppress
from typing import Any, Final, get_args

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from planning.errors import LONGEST_MESSAGE
from planning.integrations._calls import call_context
from planning.plan.model import STEP_STATUSES, Plan, PlanStatus
from planning.plan.render import plan_to_dict
from planning.tools.context import AGENT
from planning.tools.parameters.schema import declared_names, single_types
from planning.tools.result import ToolResult
from planning.tools.tool import Tool
from session import Session
from session.json_form import json_form

CLIENT_FIELDS: Final = (
    *("toolCallId", "sessionId", "action", "chatInput"),  # n8n
    "wait_for_previous",  # Gemini CLI
    "random_string",  # Cursor, for a tool without parameters
)
"""The arguments that clients add to a model's call by themselves."""

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_STEP: Final = {
    "type": "object",
    "properties": {
        "step_id": _TEXT,
        "title": _TEXT,
        "details": {"type": ["string", "null"]},
        "status": {"type": "string", "enum": list(STEP_STATUSES)},
        "notes": {"type": "array", "items": _TEXT},
    },
}
_PLAN: Final[dict[str, Any]] = {
    "type": ["object", "null"],
    "description": "The plan as it is now.",
    "properties": {
        "objective": _TEXT,
        "status": {"type": "string", "enum": list(get_args(PlanStatus))},
        "done": _COUNT,
        "total": _COUNT,
        "next_step": {"type": ["string", "null"], "description": "The id of the next open step."},
    },
}
_STEPS: Final = {"type": "array", "items": _STEP, "description": "Absent when they are too long."}
_WHOLE_PLAN: Final = _PLAN | {"properties": {**_PLAN["properties"], "steps": _STEPS}}
_READ: Final = "planning_read_plan"
_OWN: Final = "own"
_ALWAYS_LOAD: Final = "anthropic/alwaysLoad"
_CALL_ID: Final = "planning/call_id"
_CALL_ID_OF_CLAUDE_CODE: Final = "claudecode/toolUseId"
_KEY: Final = "planning/idempotency_key"


def _outputs(name: str, about: Mapping[str, Any]) -> dict[str, Any]:
    message = {"type": "string", "description": "What the model reads."}
    return {"type": "object", "properties": {"message": message, name: about}, "required": ["message"]}


_OF_PLAN: Final = _outputs("plan", _PLAN)
_OF_READ: Final = _outputs("plan", _WHOLE_PLAN)
_OF_ANY: Final = _outputs(
    "value", {"description": "What the tool returned; absent when it is too long or not JSON."}
)


def definition(tool: Tool, *, always_load: bool, structured: bool) -> types.Tool:
    """The definition of a tool: its schemas, where each ``type`` is one word, as clients expect."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=single_types(tool.parameters_schema()),
        output_schema=single_types(_output_schema(tool)) if structured else None,
        annotations=_hints(tool),
        _meta={_ALWAYS_LOAD: True} if always_load else None,
    )


def declared(arguments: dict[str, Any], schema: Mapping[str, Any], ignored: Set[str]) -> dict[str, Any]:
    """The arguments of a call without those that are ignored, unless the tool's schema names them."""
    dropped = ignored & arguments.keys()
    if dropped:
        dropped -= declared_names(schema)
    return {name: value for name, value in arguments.items() if name not in dropped}


def is_single(ctx: ServerRequestContext[Any]) -> bool:
    """True if a request over HTTP belongs to no connection."""
    return ctx.request is not None and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def connection_of(ctx: ServerRequestContext[Any]) -> Any:
    """An object that lives as long as the connection of a request; there is no public way to it."""
    return ctx.lifespan_context if ctx.request is None else ctx.session._connection


def context_of(ctx: ServerRequestContext[Any]) -> dict[str, Any]:
    """The values that a call gets from its client.

    The id of a JSON-RPC request counts the messages of one connection, so that each connection has the
    same ones: it does not identify a call. Only an id and a key that the client gives are passed on. A key
    that is not text is refused, and not omitted: with it the client marks a repeated call.
    """
    client = ctx.session.client_params
    meta: Any = ctx.meta or {}
    actor = None if client is None else client.client_info.name
    call_id = meta.get(_CALL_ID, meta.get(_CALL_ID_OF_CLAUDE_CODE))
    agent = None if is_single(ctx) else connection_of(ctx).state.setdefault(AGENT, object())
    return call_context(call_id, actor, **{"idempotency_key": meta.get(_KEY), AGENT: agent})


def called(
    tool: Tool | None, result: ToolResult, session: Session | None, *, structured: bool
) -> types.CallToolResult:
    """The result of a call; one that failed is an error with the message that the model can act on."""
    if tool is None or not result.success:
        return refused(result.message)
    if not structured:
        return types.CallToolResult(content=_text(result.message))
    data: dict[str, Any] = {"message": result.message}
    if not _is_of_plan(tool):
        with suppress(Exception):  # it has no JSON form, and reading it may do anything
            data |= _if_short("value", json_form(result.value, strict=True))
    elif session is not None:
        data["plan"] = _plan_now(session.select_latest(Plan), with_steps=tool.name == _READ)
    return types.CallToolResult(content=_text(result.message), structured_content=data)


def refused(message: str) -> types.CallToolResult:
    """A failed result."""
    return types.CallToolResult(content=_text(message), is_error=True)


def _text(message: str) -> list[types.ContentBlock]:
    return [types.TextContent(type="text", text=message)]


def _output_schema(tool: Tool) -> dict[str, Any]:
    if not _is_of_plan(tool):
        return _OF_ANY
    return _OF_READ if tool.name == _READ else _OF_PLAN


def _is_of_plan(tool: Tool) -> bool:
    return tool.name.startswith("planning_") and tool.publishes == _OWN


def _hints(tool: Tool) -> types.ToolAnnotations | None:
    """True if a client may call it without asking its user."""
    if not _is_of_plan(tool):
        return None
    return types.ToolAnnotations(
        read_only_hint=tool.name == _READ,
        destructive_hint=tool.name in {"planning_setup_plan", "planning_clear_plan"},
        open_world_hint=False,
    )


def _plan_now(plan: Plan | None, *, with_steps: bool) -> dict[str, Any] | None:
    if plan is None:
        return None
    (done, total), following = plan.progress, plan.next_step
    shown = {"objective": plan.objective, "status": plan.status, "done": done, "total": total}
    shown["next_step"] = None if following is None else following.step_id
    whole = plan_to_dict(plan) if with_steps else None  # of a long plan that takes its time
    return shown if whole is None else shown | _if_short("steps", whole["steps"])


def _if_short(name: str, value: Any) -> dict[str, Any]:
    """A value under its name, unless it is longer than a message may be."""
    return {name: value} if len(json.dumps(value)) <= LONGEST_MESSAGE else {}

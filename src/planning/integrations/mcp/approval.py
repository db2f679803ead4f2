"""The user of an MCP client is asked to approve a plan, where the client can ask."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

import attrs
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from planning.plan.commands import AddStep, RejectPlan, SetupPlan, UpdateStep
from planning.plan.facts import PlanFacts
from planning.suite.approval import PendingApproval, decide_approval, decision_of, pending_approval, state_of
from planning.tools import Tool, ToolResult
from planning.tools.context import Gate
from session import Session, StoreError

_Context = ServerRequestContext[Any]
_KEY: Final = "planning/approval"
_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "enum": ["approve", "reject"], "description": "May the work begin?"},
        "reason": {"type": "string", "description": "If you reject it: what should change?"},
    },
    "required": ["decision"],
}
_CHANGING: Final = (SetupPlan, AddStep, UpdateStep)
_CHANGED: Final = "The plan changed before the user could decide."
_DECLINED: Final = "the user declined it"


async def before_call(
    ctx: _Context, params: types.CallToolRequestParams, session: Session, tool: Tool | None
) -> types.InputRequiredResult | ToolResult | None:
    """Take the user's decision that a call brings, or ask for it where the plan holds the tool back.

    Returns:
        The answer to the call in place of making it: in the newer protocol a client asks its user, and sends
        the call again; None where it is to be made.
    """
    if tool is None:
        return None
    answer = (params.input_responses or {}).get(_KEY)
    if isinstance(answer, types.ElicitResult):
        digest, reply = _state_of(params)
        said = await session.run_in_worker(partial(_decide, session, digest, answer))
        return None if reply is None else _with(ToolResult(True, reply), said)
    refusal = None if tool.read_only else Gate.of(session, tool.name)
    if refusal is None or await session.run_in_worker(refusal) is None:
        return None
    asked = await _ask(ctx, session, None)
    return None if isinstance(asked, str) else asked


async def after_call(
    ctx: _Context, session: Session, tool: Tool | None, result: ToolResult
) -> types.InputRequiredResult | ToolResult:
    """Ask the user to approve a plan that a call has set up or changed; the result with the decision."""
    if tool is None or not result.success or not isinstance(result.value, _CHANGING):
        return result
    try:
        asked = await _ask(ctx, session, result)
    except StoreError:  # the call was run
        return result
    return _with(result, asked) if isinstance(asked, str) else asked


async def _ask(ctx: _Context, session: Session, reply: ToolResult | None) -> types.InputRequiredResult | str:
    """Ask the user; returns the decision for the model to read, empty if there is none."""
    pending, client = pending_approval(session), ctx.session.client_params
    if pending is None or client is None or client.capabilities.elicitation is None:
        return ""
    if reply is not None and not _is_of(pending, reply.value):
        return _CHANGED  # by another client, which asks about it
    message = f"{pending.text}\n\nThe agent wants to work on this plan. Do you approve it?"
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        params = types.ElicitRequestFormParams(message=message, requested_schema=_FORM)
        state = json.dumps([pending.digest, None if reply is None else reply.message])
        asked: dict[str, Any] = {_KEY: types.ElicitRequest(params=params)}
        return types.InputRequiredResult(input_requests=asked, request_state=state)
    try:
        answer = await ctx.session.elicit_form(message, _FORM, ctx.request_id)
    except MCPError:  # the client cannot be asked after all
        return ""
    return await session.run_in_worker(partial(_decide, session, pending.digest, answer))


def _state_of(params: types.CallToolRequestParams) -> tuple[Any, str | None]:
    """The question, and the reply to the call if it was made: as the client sends them back."""
    try:
        digest, reply = json.loads(params.request_state or "")
    except (ValueError, TypeError, RecursionError):
        return None, None
    return digest, reply if isinstance(reply, str) else None


def _with(result: ToolResult, outcome: str) -> ToolResult:
    return attrs.evolve(result, message=f"{result.message} {outcome}".strip())


def _decide(session: Session, digest: object, answer: types.ElicitResult) -> str:
    decision = decision_of(answer.content) if answer.action == "accept" else None
    if answer.action == "decline":
        decision = RejectPlan(_DECLINED)
    if decision is None:
        return ""
    pending = pending_approval(session)
    if pending is not None and pending.digest == digest:
        decide_approval(session, pending, decision)
    state, facts = state_of(session, str(digest)), session.select_latest(PlanFacts)
    if state == "rejected" and facts is not None:
        return f"The user rejected it: {facts.reason}. Change the plan."
    return "The user approved it." if state == "approved" else _CHANGED


def _is_of(pending: PendingApproval, command: object) -> bool:
    """True if the plan that waits still has what a call set up or changed."""
    objective, steps, _ = pending.content
    made = [step.title for step in getattr(command, "initial_steps", getattr(command, "steps", ()))]
    made += [command.title] if isinstance(command, UpdateStep) and command.title is not None else []
    is_same = getattr(command, "objective", objective) == objective
    return is_same and {title for _, title, _ in steps}.issuperset(made)

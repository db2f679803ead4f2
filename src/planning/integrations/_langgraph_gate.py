"""The end of a model's turn in LangGraph: the user is asked for approval, and work must not be left open."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from langchain_core.messages import HumanMessage
from langgraph.types import interrupt

from planning.integrations._agents import AgentPlan
from planning.integrations._langchain_messages import last_turn
from planning.integrations._langgraph import Here
from planning.integrations._rewind import Position, checked, is_current, position_of
from planning.plan.facts import PlanFacts
from planning.plan.model import as_text, written_alike
from planning.suite.approval import PendingApproval, decide_approval, decision_of, pending_approval, state_of
from session import Session, VersionError

_OWN: Final = "planning-"
_HOW: Final = 'resume with "approve", or with {"decision": "reject", "reason": "..."}'


def after_turn(
    session: Session, plan: AgentPlan, state: Mapping[str, Any], here: Here
) -> dict[str, Any] | None:
    """The step after a model's turn: the user's decision on a plan that waits, or more work.

    The user decides on the plan that the model had before it: the state's position has that version, so that
    another plan is never approved, whenever and wherever the run is resumed.
    """
    messages = state.get("messages", [])
    made, over = last_turn(state)
    calls = [call for call in made if call["id"] not in over]
    is_end = not calls and (not made or state.get("structured_response") is not None)
    position, can_ask = checked(state.get("planning")), here.saver is not None  # to interrupt the graph
    before, message = session.version, ""
    shown = _find_pending(session, position, plan)
    if shown is not None and (is_end or any(_needs(call, shown, plan) for call in calls)):
        if can_ask and pending_approval(session) == shown:
            decide_approval(session, shown, _asked(shown))
        if can_ask or pending_approval(session) != shown:
            message = _outcome(session, shown)
    if is_end and not message:
        user = next((each for each in reversed(messages) if isinstance(each, HumanMessage)), None)
        is_new = user is not None and not str(user.id).startswith(_OWN)
        message = plan.section.may_finish(session, is_new_turn=is_new).message
    update: dict[str, Any] = {}
    if session.version != before:
        update["planning"] = position_of(session, position, here.step)
    if message and is_end:
        update["messages"] = [HumanMessage(message, id=f"{_OWN}{uuid4()}")]
        update["jump_to"] = "model"
    return update or None


def _find_pending(session: Session, position: Position | None, plan: AgentPlan) -> PendingApproval | None:
    """The plan or steps that waited for approval when the model answered."""
    if position is None:
        return None
    if is_current(session, position):
        return pending_approval(session)
    with suppress(VersionError):  # a session in memory may keep a part of its history
        past = plan.sessions.read(position)
        return None if past is None else pending_approval(past)
    return None


def _needs(call: Mapping[str, Any], shown: PendingApproval, plan: AgentPlan) -> bool:
    """True if a call waits for what the user is shown: work, or a mark of a step that waits by itself."""
    if not shown.step_ids:
        return plan.holds(call["name"])
    sent = call["args"].get("marks") if isinstance(call["args"], Mapping) else None
    marks = [call["args"], *(sent if isinstance(sent, list) else ())]
    ids = [str(as_text(each.get("step_id"))).strip() for each in marks if isinstance(each, Mapping)]
    return call["name"] == "planning_mark_step" and any(written_alike(each, shown.step_ids) for each in ids)


def _asked(shown: PendingApproval) -> Any:
    """The user's decision; interrupts the graph until there is one."""
    value = {"type": "plan_approval", "plan": shown.data, "step_ids": list(shown.step_ids), "answer": _HOW}
    while (decision := decision_of(interrupt(value))) is None:
        value = {**value, "problem": f"that is not an answer: {_HOW}"}
    return decision


def _outcome(session: Session, shown: PendingApproval) -> str:
    """The user's decision on the plan that was shown."""
    state, facts = state_of(session, shown.digest), session.select_latest(PlanFacts)
    if state == "rejected" and facts is not None:
        return f"The user rejected the plan: {facts.reason}. Change it."
    if state == "approved":
        return "The user approved the plan. Do the work."
    return "The plan changed before the user could decide. Read it before you continue."

"""A change of the plan by the host, who looks at it: approve, reject, remove or move a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from planning.errors import Problem, ToolValidationError, line_of
from planning.plan import handlers
from planning.plan.commands import ApprovePlan, MoveStep, RejectPlan, RemoveStep
from planning.plan.model import Plan
from planning.plan.render import plan_to_dict
from planning.plan.text import UNSEEN
from planning.suite.approval import HOST, decide_approval, pending_approval
from session import Session

HostCommand = ApprovePlan | RejectPlan | RemoveStep | MoveStep
_LONGEST_REASON = 512


@attrs.frozen
class PlanMoved(Exception):
    """The plan differs from the one that the host has seen."""

    version: int
    plan: dict[str, Any] | None

    def __str__(self) -> str:
        return "The plan has changed meanwhile; nothing was done. Look at it again."


def command_of(fields: Mapping[str, Any]) -> HostCommand:
    """The command in what a page sends: its ``command``, and ``reason``, ``step_id`` and ``index``."""
    match fields.get("command"):
        case "approve":
            return ApprovePlan()
        case "reject":
            return RejectPlan(fields.get("reason", ""))
        case "remove":
            return RemoveStep(fields.get("step_id", ""))
        case "move":
            return MoveStep(fields.get("step_id", ""), fields.get("index", -1))
    raise ToolValidationError("command: use approve, reject, remove or move")


def steer(session: Session, command: HostCommand, version: int) -> int:
    """Change a plan as its host, named ``host`` in the history; all or nothing."""
    seen = session.at(min(version, session.version))
    if isinstance(command, ApprovePlan | RejectPlan):
        pending = pending_approval(seen)
        if pending is None:
            raise ToolValidationError("nothing waits for approval")
        is_done = decide_approval(session, pending, _with_reason(command))
    else:
        with session.transaction(actor=HOST) as transaction:
            plan = transaction.latest(Plan)
            is_done = plan == seen.select_latest(Plan)
            if is_done:
                transaction.dispatch(_check(command, plan))
    if not is_done:
        raise PlanMoved(session.version, plan_to_dict(session))
    return session.version


def _check(command: RemoveStep | MoveStep, plan: Plan | None) -> RemoveStep | MoveStep:
    if isinstance(command, RemoveStep):
        return handlers.remove_step(command, plan)
    return handlers.move_step(command, plan)


def _with_reason(command: ApprovePlan | RejectPlan) -> ApprovePlan | RejectPlan:
    if isinstance(command, ApprovePlan):
        return command
    given: object = command.reason  # a page sends anything
    reason = line_of(given, kept=UNSEEN) if isinstance(given, str) else ""
    if not 0 < len(reason) <= _LONGEST_REASON:
        problem = f"say what is wrong with the plan, in 1 to {_LONGEST_REASON} characters"
        raise ToolValidationError([Problem(problem, "reason")])
    return RejectPlan(reason)

"""A change of the plan by the host, who looks at it: approve, reject, remove or move a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from planning import handlers
from planning.commands import ApprovePlan, MoveStep, RejectPlan, RemoveStep
from planning.errors import Problem, ToolValidationError, printable
from planning.facts import PlanFacts
from planning.model import Plan
from planning.render import plan_data
from session import Session

__all__ = ["HostCommand", "PlanMoved", "command_of", "steer"]

HostCommand = ApprovePlan | RejectPlan | RemoveStep | MoveStep
_LONGEST_REASON = 512


@attrs.frozen
class PlanMoved(Exception):
    """The plan is another than the one that the host has seen.

    Attributes:
        version: The session's version now.
        plan: The plan now, as ``plan_to_dict`` has it.
    """

    version: int
    plan: dict[str, Any] | None

    def __str__(self) -> str:
        return "The plan has changed meanwhile; nothing was done. Look at it again."


def command_of(fields: Mapping[str, Any]) -> HostCommand:
    """The command in what a page sends: its ``command``, and ``reason``, ``step_id`` and ``index``.

    Raises:
        ToolValidationError: There is none.
    """
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


def steer(session: Session, command: HostCommand, version: int | None = None) -> int:
    """Change a plan as its host, named ``host`` in the history; all or nothing.

    Args:
        session: The session, whose facts are registered, as ``open_session`` does.
        command: The change.
        version: The version that the host has seen; None for whatever the plan is now.

    Returns:
        The version now.

    Raises:
        PlanMoved: The plan or its approval is not what it was at that version.
        ToolValidationError: The command does not fit the plan.
        StoreError: The store cannot be read, or does not take the change.
    """
    with session.transaction(actor="host") as transaction:
        plan, facts = transaction.latest(Plan), transaction.latest(PlanFacts)
        if version is not None:
            then = session.at(min(version, session.version))
            if _seen(then.select_latest(Plan), then.select_latest(PlanFacts)) != _seen(plan, facts):
                raise PlanMoved(session.version, None if plan is None else plan_data(plan, facts))
        transaction.dispatch(_checked(command, plan, facts or PlanFacts()))
    return session.version


def _seen(plan: Plan | None, facts: PlanFacts | None) -> Any:
    """What a host decides about."""
    known = facts or PlanFacts()
    return plan, known.approval, known.reason, known.waiting, known.depends_on


def _checked(command: HostCommand, plan: Plan | None, facts: PlanFacts) -> HostCommand:
    match command:
        case RemoveStep():
            return handlers.remove_step(command, plan)
        case MoveStep():
            return handlers.move_step(command, plan)
    if facts.approval not in {"waiting", "rejected"} and not facts.waiting:
        raise ToolValidationError("nothing waits for approval")
    if isinstance(command, ApprovePlan):
        return command
    given: object = command.reason  # a page sends anything
    reason = printable(" ".join(given.split())) if isinstance(given, str) else ""
    if not 0 < len(reason) <= _LONGEST_REASON:
        problem = f"say what is wrong with the plan, in 1 to {_LONGEST_REASON} characters"
        raise ToolValidationError([Problem(problem, "reason")])
    return RejectPlan(reason)

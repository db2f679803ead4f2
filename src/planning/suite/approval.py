"""Plans that wait for the user's approval, and the user's decision about them."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final

import attrs

from planning.errors import line_of
from planning.plan.commands import ApprovePlan, RejectPlan
from planning.plan.facts import HasPlan, PlanFacts
from planning.plan.model import Plan
from planning.plan.render import plan_text, plan_to_dict
from planning.plan.text import NOTE
from planning.suite.events import sign
from session import Session

HOST: Final = "host"
"""Who approves and rejects, in the history."""
_NO_REASON: Final = "no reason was given"


@attrs.frozen
class PendingApproval:
    """A plan that waits for approval, or steps of it that do.

    Attributes:
        text: The plan as a person reads it.
        data: The plan as ``plan_to_dict`` gives it.
        step_ids: The steps that wait by themselves; empty where the plan waits as a whole.
        content: What is approved: the objective, the steps with their titles and details, and their order.
            How far the work is does not count.
    """

    text: str = attrs.field(eq=False)
    data: dict[str, Any] | None = attrs.field(eq=False, repr=False)
    step_ids: tuple[str, ...]
    content: tuple[Any, ...] = attrs.field(repr=False)

    @property
    def digest(self) -> str:
        """A digest of the content, to find out later whether the plan is still the one that was shown."""
        return _digest(self.content)


def pending_approval(source: HasPlan) -> PendingApproval | None:
    """The plan or steps that wait for approval; None if nothing does.

    Args:
        source: A session, ``session.at(version)`` or a snapshot.
    """
    plan: Plan | None = source.select_latest(Plan)
    facts: PlanFacts | None = source.select_latest(PlanFacts)
    if plan is None or facts is None or not is_pending(plan, facts):
        return None
    step_ids = () if facts.approval == "waiting" else facts.waiting
    return PendingApproval(plan_text(plan, facts), plan_to_dict(source), step_ids, _content(plan, facts))


def _content(plan: Plan, facts: PlanFacts) -> tuple[Any, ...]:
    steps = tuple([(step.step_id, step.title, step.details) for step in plan.steps])
    return plan.objective, steps, tuple(sorted(facts.depends_on.items()))


def _digest(content: tuple[Any, ...]) -> str:
    return sha256(json.dumps(content).encode()).hexdigest()


def state_of(source: HasPlan, digest: str) -> str | None:
    """The state of a plan that was shown: ``waiting``, ``approved``, ``rejected``; None if it has changed."""
    plan: Plan | None = source.select_latest(Plan)
    facts: PlanFacts | None = source.select_latest(PlanFacts)
    if plan is None or facts is None or _digest(_content(plan, facts)) != digest:
        return None
    return "waiting" if is_pending(plan, facts) else facts.approval


def is_pending(plan: Plan, facts: PlanFacts) -> bool:
    """True if a plan waits for approval, or steps of it do."""
    if plan.status == "abandoned" or facts.approval == "rejected":
        return False
    return facts.approval == "waiting" or bool(facts.waiting)


def decide_approval(session: Session, shown: PendingApproval, decision: ApprovePlan | RejectPlan) -> bool:
    """Approve or reject what was shown, in one transaction, with the actor ``host``.

    Args:
        session: The session.
        shown: What the user was shown.
        decision: What the user decided.

    Returns:
        Whether it was applied; False if another plan waits now, or none does.

    Raises:
        StoreError: The session's store does not take it.
    """
    with session.transaction(actor=HOST) as transaction:
        if pending_approval(session) != shown:
            return False
        transaction.dispatch(decision)
        sign(transaction)
        return True


def decision_of(answer: Any) -> ApprovePlan | RejectPlan | None:
    """The decision that a user's answer is, as a framework brings it; None where it is not one.

    It is ``"approve"``, ``"reject"``, or a mapping with the key ``decision`` (or ``type``), and with
    ``reason`` (or ``message``).
    """
    said = answer if isinstance(answer, dict) else {"decision": answer}
    decision = said.get("decision", said.get("type"))
    if decision == "approve":
        return ApprovePlan()
    if decision != "reject":
        return None
    reason = said.get("reason", said.get("message"))
    text = line_of(reason, NOTE.limit) if isinstance(reason, str) else ""
    return RejectPlan(text or _NO_REASON)

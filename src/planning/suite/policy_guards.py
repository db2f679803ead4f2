"""What a policy registers with a session: the facts of the plan, the guards of a change, the gate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from planning.plan.commands import AddStep, MarkStep, MarkSteps, RenumberSteps, SetupPlan
from planning.plan.facts import EvidenceCall, PlanFacts
from planning.plan.model import Plan
from planning.policy.checks import refuse_order
from planning.policy.policy import PlanPolicy, strictest
from planning.policy.reducers import evidence_call
from planning.suite.events import sign
from planning.suite.kept import Policies, facts_in, new_ids, register_facts
from planning.tools.context import BEGAN, Gate
from session import Session, ToolFailed, ToolInvoked, Transaction


def register_policy(session: Session, policy: PlanPolicy) -> None:
    """Register what a policy needs with a session; repeating it changes nothing."""
    register_facts(session)
    for setup in (SetupPlan, AddStep):
        session.register_guard(setup, _first_ids)
    if policy.evidence is not None or policy.stale_after is not None:
        for event in (ToolInvoked, ToolFailed):
            session.register_guard(event, _call_made)
        session.companion(Gate).moment = _moment
    if policy.dependencies or policy.most_in_progress is not None:
        for command in (MarkStep, MarkSteps):
            session.register_guard(command, _Order(policy))
    policies = session.companion(Policies)
    policies.policy = strictest(policy, policies.policy)


def _moment(session: Session) -> int:
    return (session.select_latest(PlanFacts) or PlanFacts()).next_call


def _first_ids(command: Any, transaction: Transaction) -> Iterable[RenumberSteps]:
    """With a policy, from the first change on."""
    if transaction.latest(PlanFacts) is not None:
        return ()
    facts_in(transaction)
    return new_ids(command, transaction)


def _call_made(event: Any, transaction: Transaction) -> tuple[EvidenceCall, ...]:
    """Keep a call, planning calls excepted, to be found as evidence.

    The change carries where in a framework it was made, as those of the plan do.
    """
    began, facts = BEGAN.get(), transaction.latest(PlanFacts) or PlanFacts()
    call = evidence_call(event, facts.next_call if began is None else began)
    if call is None:
        return ()
    sign(transaction)
    return (call,)


@attrs.frozen
class _Order:
    """The guard of every mark: prerequisites, and how many steps are in progress."""

    policy: PlanPolicy

    def __call__(self, command: Any, transaction: Transaction) -> tuple[()]:
        plan = transaction.latest(Plan)
        if plan is not None and not getattr(command, "is_report", False):
            refuse_order(self.policy, marks_of(command), plan, facts_in(transaction))
        return ()


def marks_of(command: Any) -> tuple[MarkStep, ...]:
    """The marks in a command; none in one that marks nothing."""
    if type(command) is MarkStep:
        return (command,)
    return command.marks if type(command) is MarkSteps else ()

"""What a policy registers with a session: the facts of the plan, the guards of a change, the gate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from planning.checks import refuse_order, waits
from planning.commands import AddStep, MarkStep, MarkSteps, RemoveStep, RenumberSteps, SetupPlan
from planning.events import sign
from planning.facts import (
    FACT_REDUCERS,
    PLANNING_TOOLS,
    EvidenceCall,
    PlanFacts,
    evidence_call,
    first_facts,
)
from planning.model import Plan
from planning.policy import PlanPolicy
from planning.step_ids import highest_number
from planning.text import TextRules, rules_for
from planning.tools.context import Gate
from session import Session, ToolFailed, ToolInvoked, Transaction, append, replace_latest

__all__ = ["Policies", "facts_in", "marks_of", "register_facts", "register_policy", "rules_of"]


@attrs.define
class Policies:
    """The policy of a session in this process; the engine's mirror reads its alphabet there."""

    policy: PlanPolicy | None = None


def register_facts(session: Session, *, always: bool = True) -> None:
    """Register the facts of a policy; repeating it changes nothing.

    Ids are never given out twice, with a policy and without. Without one nothing is kept until a step is
    removed, or a store or a snapshot brings what a policy kept.

    Args:
        session: The session.
        always: Whether everything is kept; otherwise only the ids of steps that were removed.
    """
    session.register_reducer(PlanFacts, replace_latest)
    session.register_reducer(EvidenceCall, append)
    for command, reducer in FACT_REDUCERS.items():
        if always or command in {RemoveStep, RenumberSteps}:
            session.register_reducer(command, reducer, PlanFacts, check=_is_written)
    session.register_guard(RemoveStep, _keep_ids)
    for setup in (SetupPlan, AddStep):
        session.register_guard(setup, _new_ids)


def _is_written(_command: object) -> None:
    """What a command brings into the facts is checked where the command itself is written."""


def facts_in(transaction: Transaction) -> PlanFacts:
    """What is known of the plan; from now on, if nothing was before."""
    facts = transaction.latest(PlanFacts)
    if facts is None:
        facts = first_facts(transaction.latest(Plan), len(transaction.select_all(EvidenceCall)))
        transaction.dispatch(facts)
    return facts


def _keep_ids(_command: Any, transaction: Transaction) -> tuple[()]:
    facts_in(transaction)
    return ()


def _first_ids(command: Any, transaction: Transaction) -> Iterable[RenumberSteps]:
    """With a policy, from the first change on."""
    if transaction.latest(PlanFacts) is not None:
        return ()
    facts_in(transaction)
    return _new_ids(command, transaction)


def _new_ids(command: Any, transaction: Transaction) -> Iterable[RenumberSteps]:
    """Give the steps of a plan ids that no step of it has had."""
    facts, plan = transaction.latest(PlanFacts), transaction.latest(Plan)
    if facts is None:
        return ()
    if isinstance(command, SetupPlan):
        return (RenumberSteps(len(command.initial_steps), 1),)
    if plan is None or plan.status != "active":
        return ()
    highest = max(facts.highest, highest_number(step.step_id for step in plan.steps))
    return (RenumberSteps(len(command.steps), highest + 1),)


def register_policy(session: Session, policy: PlanPolicy) -> None:
    """Register what a policy needs with a session; repeating it changes nothing."""
    register_facts(session)
    for setup in (SetupPlan, AddStep):
        session.register_guard(setup, _first_ids)
    if policy.evidence is not None or policy.stale_after is not None:
        for event in (ToolInvoked, ToolFailed):
            session.register_guard(event, _call_made)
    if policy.dependencies or policy.most_in_progress is not None:
        for command in (MarkStep, MarkSteps):
            session.register_guard(command, _Order(policy))
    session.companion(Policies).policy = policy
    if policy.approval:
        session.companion(Gate).refusal = _refusal


def rules_of(session: Session) -> TextRules:
    """The rules for the texts of a session's plan, by its policy in this process; ASCII without one."""
    policy = session.companion(Policies).policy
    return rules_for("ascii" if policy is None else policy.text)


def _call_made(event: Any, transaction: Transaction) -> tuple[EvidenceCall, ...]:
    """Keep a call, planning calls excepted, to be found as evidence.

    The change carries where in a framework it was made, as those of the plan do.
    """
    call = evidence_call(event)
    if call is None:
        return ()
    sign(transaction)
    return (call,)


def _refusal(session: Session, tool: str) -> str | None:
    if tool in PLANNING_TOOLS:
        return None
    refusal = waits(session.select_latest(PlanFacts), tool)
    if refusal is not None and session.store is not None:
        session.refresh()  # another process may have approved the plan
        refusal = waits(session.select_latest(PlanFacts), tool)
    return refusal


@attrs.frozen
class _Order:
    """The guard of every mark: prerequisites, and how many steps are in progress."""

    policy: PlanPolicy

    def __call__(self, command: Any, transaction: Transaction) -> tuple[()]:
        plan = transaction.latest(Plan)
        if plan is not None:
            refuse_order(self.policy, marks_of(command), plan, facts_in(transaction))
        return ()


def marks_of(command: Any) -> tuple[MarkStep, ...]:
    """The marks in a command; none in one that marks nothing."""
    if type(command) is MarkStep:
        return (command,)
    return command.marks if type(command) is MarkSteps else ()

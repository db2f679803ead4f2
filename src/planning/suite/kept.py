"""The facts that every session keeps beside its plan, and with them ids that are never given out twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from planning.plan.commands import AddStep, RemoveStep, RenumberSteps, SetupPlan
from planning.plan.facts import EvidenceCall, PlanFacts
from planning.plan.model import Plan
from planning.plan.text import TextRules, rules_for
from planning.policy.gates import waits
from planning.policy.reducers import FACT_COMMANDS, PLANNING_TOOLS, first_facts, reduce_facts, renumbering
from planning.tools.context import Gate
from session import Session, Transaction, TransactionError, append, replace_latest

if TYPE_CHECKING:
    from planning.policy.policy import PlanPolicy


class Policies:
    """The demands of the policies of a session's sections, in this process; a companion of the session.

    Attributes:
        policy: The strictest of each demand, whichever section serves a call; its text is that of the newest
            policy, which the engine's mirror reads. None if no section has a policy.
    """

    policy: PlanPolicy | None = None


def demands_on(session: Session | None, own: PlanPolicy | None) -> PlanPolicy | None:
    """The strictest of a section's own policy and those of the session's other sections; None without any."""
    others = None if session is None else session.local_object(Policies).policy
    if own is None or others is None:
        return own or others
    from planning.policy.policy import strictest  # noqa: PLC0415 - few sessions have one

    return strictest(own, others)


def register_facts(session: Session, *, always: bool = True) -> None:
    """Register what is kept beside the plan; a second time changes nothing.

    Ids are never given out twice, with a policy and without. Without one nothing is kept until a step is
    removed, or a store or a snapshot brings what a policy kept.
    """
    session.register_reducer(PlanFacts, replace_latest)
    session.register_reducer(EvidenceCall, append)
    for command in FACT_COMMANDS if always else (RemoveStep, RenumberSteps):
        session.register_reducer(command, reduce_facts, PlanFacts, check=_is_written)
    session.register_guard(RemoveStep, _keep_ids)
    for setup in (SetupPlan, AddStep):
        session.register_guard(setup, new_ids)


def hold_back(session: Session) -> None:
    """Let work wait for the approval of the plan, in this process."""
    session.local_object(Gate).refusal = _gate


def _gate(session: Session, tool: str) -> Callable[[], str | None] | None:
    policy, facts = session.local_object(Policies).policy, session.select_latest(PlanFacts)
    is_submitted = facts is not None and facts.approval != "none"  # by a section here, or in another process
    if tool in PLANNING_TOOLS or not (is_submitted or (policy is not None and policy.approval)):
        return None
    return partial(_refusal, session, tool)


def _refusal(session: Session, tool: str) -> str | None:
    if session.store is not None:
        with suppress(TransactionError):  # inside a transaction, this is the newest version
            session.refresh()  # another process may have approved or rejected the plan
    return waits(session.select_latest(PlanFacts), session.select_latest(Plan), tool)


def _is_written(_command: object) -> None:
    """Accept any command: what it brings into the facts is checked where the command itself is written."""


def facts_in(transaction: Transaction) -> PlanFacts:
    """The facts about the plan; kept from now on, if they were not before."""
    facts = transaction.latest(PlanFacts)
    if facts is None:
        facts = first_facts(transaction.latest(Plan), len(transaction.select_all(EvidenceCall)))
        transaction.dispatch(facts)
    return facts


def _keep_ids(command: RemoveStep, transaction: Transaction) -> tuple[()]:
    plan = transaction.latest(Plan)
    if plan is not None and any(step.step_id == command.step_id for step in plan.steps):
        facts_in(transaction)
    return ()


def new_ids(command: Any, transaction: Transaction) -> Iterable[RenumberSteps]:
    """Give the steps of a plan ids that no step of it has had."""
    facts = transaction.latest(PlanFacts)
    return () if facts is None else renumbering(command, facts, transaction.latest(Plan))


def rules_of(session: Session) -> TextRules:
    """The rules for the strings of a session's plan, by its policy in this process; ASCII without one."""
    policy = session.local_object(Policies).policy
    return rules_for("ascii" if policy is None else policy.text)

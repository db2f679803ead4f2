"""Changes of the facts of a plan: the policy's own commands, and pure reducers.

``Plan`` and the six commands never grow: dependencies, evidence, approval and the counters of the gates are
here, by step id. A rewind takes them back with the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from planning.plan.commands import (
    AddStep,
    ApprovePlan,
    ClearPlan,
    MarkStep,
    MarkSteps,
    MoveStep,
    RejectPlan,
    RemoveStep,
    RenumberSteps,
    SetupPlan,
    UpdateStep,
)
from planning.plan.facts import EvidenceCall, PlanFacts, Proof
from planning.plan.model import Plan, format_id, highest_number


@dataclass(slots=True, frozen=True)
class SetDependencies:
    """Steps depend on others: the ids that each waits for."""

    depends_on: Mapping[str, tuple[str, ...]]


@dataclass(slots=True, frozen=True)
class RecordEvidence:
    """A step is done, and this shows it."""

    step_id: str
    proof: Proof


@dataclass(slots=True, frozen=True)
class RequestApproval:
    """The plan waits for approval; or, if steps are named, only these."""

    step_ids: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class TakeNotice:
    """The agent was reminded that the plan is stale."""


@dataclass(slots=True, frozen=True)
class AskToFinish:
    """The agent asked to finish while steps were open.

    Attributes:
        open_steps: Their ids.
        let_go: Whether it may, because it was refused often enough.
        is_new_turn: Whether the user has spoken since it last asked.
    """

    open_steps: tuple[str, ...]
    let_go: bool
    is_new_turn: bool = False


Facts = tuple[PlanFacts, ...]
SEED_TOOLS: Final = ("setup_plan", "add_step", "update_step", "mark_step", "clear_plan", "read_plan")
OPTIONAL_TOOLS: Final = ("remove_step", "move_step")
"""The tools that an agent has only with ``agent_edits``."""
PLANNING_TOOLS: Final = frozenset(f"planning_{name}" for name in SEED_TOOLS + OPTIONAL_TOOLS)


def first_facts(plan: Plan | None, calls: int) -> PlanFacts:
    """The facts about a plan that was there before: each of its calls may be evidence."""
    steps = () if plan is None else plan.steps
    return PlanFacts(highest_number(step.step_id for step in steps), calls, calls)


def reduce_facts(slice_: Facts, command: Any) -> Facts:
    """The facts after a command; none if there were none before: the session never had a policy."""
    if not slice_:
        return slice_
    changed = _CHANGES[type(command)](slice_[-1], command)
    return slice_ if changed is slice_[-1] else (changed,)


def _change(facts: PlanFacts, **fields: Any) -> PlanFacts:
    """The facts after a change of the plan: the counters of the gates start over."""
    return replace(facts, changed=facts.calls, is_noticed=False, asked=0, **fields)


def _give_ids(facts: PlanFacts, plan: Plan) -> PlanFacts:
    first, now = first_facts(plan, facts.calls), facts.next_begin
    return replace(first, begun=now, began=dict.fromkeys([step.step_id for step in plan.steps], now))


def _renumber(facts: PlanFacts, command: RenumberSteps) -> PlanFacts:
    last, now = command.first + command.count, facts.next_begin
    fresh = dict.fromkeys(map(format_id, range(command.first, last)), now)
    return _change(facts, highest=last - 1, begun=now, began={**facts.began, **fresh})


def _mark(facts: PlanFacts, *marks: MarkStep) -> PlanFacts:
    reopened = {mark.step_id for mark in marks if mark.status != "done"}
    proofs = facts.proofs if reopened.isdisjoint(facts.proofs) else _without(facts.proofs, reopened)
    began = dict.fromkeys([mark.step_id for mark in marks if mark.status == "in_progress"], facts.next_begin)
    if began:
        return _change(facts, begun=facts.next_begin, began={**facts.began, **began}, proofs=proofs)
    return _change(facts, proofs=proofs)


def _remove(facts: PlanFacts, command: RemoveStep) -> PlanFacts:
    gone = {command.step_id}
    depends_on = {
        waiting: tuple([step_id for step_id in needed if step_id not in gone])
        for waiting, needed in _without(facts.depends_on, gone).items()
    }
    return _change(
        facts,
        began=_without(facts.began, gone),
        depends_on={waiting: needed for waiting, needed in depends_on.items() if needed},
        proofs=_without(facts.proofs, gone),
        waiting=tuple([step_id for step_id in facts.waiting if step_id not in gone]),
    )


def _request(facts: PlanFacts, command: RequestApproval) -> PlanFacts:
    if command.step_ids and facts.approval not in {"waiting", "rejected"}:
        new = [step_id for step_id in command.step_ids if step_id not in facts.waiting]
        return replace(facts, waiting=(*facts.waiting, *new))
    return replace(facts, approval="waiting", reason=None)


def _approve(facts: PlanFacts, _command: ApprovePlan) -> PlanFacts:
    if facts.approval in {"none", "approved"} and not facts.waiting:
        return facts
    return replace(facts, approval="approved", reason=None, waiting=())


def renumbering(command: Any, facts: PlanFacts, plan: Plan | None) -> tuple[RenumberSteps, ...]:
    """A function that gives the new steps of a command ids that no step of the plan has had."""
    if type(command) is SetupPlan:
        return (RenumberSteps(len(command.initial_steps), 1),)
    if type(command) is not AddStep or plan is None or plan.status != "active":
        return ()
    highest = max(facts.highest, highest_number(step.step_id for step in plan.steps))
    return (RenumberSteps(len(command.steps), highest + 1),)


def evidence_call(event: Any, began: int) -> EvidenceCall | None:
    """The record of a call that was made, or failed, to be found as evidence; None for a planning call."""
    if event.name in PLANNING_TOOLS:
        return None
    success = hasattr(event, "value") and getattr(event.result, "success", True) is True
    return EvidenceCall(event.name, event.call_id, success, began)


def _without(by_step: Mapping[str, Any], gone: Iterable[str]) -> Mapping[str, Any]:
    return {step_id: value for step_id, value in by_step.items() if step_id not in gone}


_CHANGES: Final[Mapping[type, Callable[[PlanFacts, Any], PlanFacts]]] = {
    EvidenceCall: lambda facts, _: replace(facts, calls=facts.calls + 1),
    Plan: _give_ids,
    SetupPlan: lambda facts, _: PlanFacts(calls=facts.calls, changed=facts.calls, begun=facts.begun),
    RenumberSteps: _renumber,
    UpdateStep: lambda facts, _: _change(facts),
    MarkStep: _mark,
    MarkSteps: lambda facts, command: _mark(facts, *command.marks),
    # An abandoned plan has no steps; one that was not approved still waits, so that work does not begin.
    ClearPlan: lambda facts, _: _change(facts, began={}, depends_on={}, proofs={}, waiting=()),
    RemoveStep: _remove,
    MoveStep: lambda facts, _: _change(facts),
    SetDependencies: lambda facts, new: replace(facts, depends_on={**facts.depends_on, **new.depends_on}),
    RecordEvidence: lambda facts, new: replace(facts, proofs={**facts.proofs, new.step_id: new.proof}),
    RequestApproval: _request,
    ApprovePlan: _approve,
    RejectPlan: lambda facts, command: replace(facts, approval="rejected", reason=command.reason),
    TakeNotice: lambda facts, _: replace(facts, is_noticed=True),
    AskToFinish: lambda facts, ask: replace(facts, asked=1 if ask.is_new_turn else facts.asked + 1),
}
FACT_COMMANDS: Final = tuple(_CHANGES)
"""The commands that change the facts."""

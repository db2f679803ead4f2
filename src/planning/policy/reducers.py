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
    """The plan waits for approval; or, where steps are named, these alone."""

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


def first_facts(plan: Plan | None, calls: int = 0) -> PlanFacts:
    """What is known of a plan that was there before: each of its calls may be evidence.

    Args:
        plan: The plan.
        calls: How many calls the slice ``EvidenceCall`` has.
    """
    steps = () if plan is None else plan.steps
    return PlanFacts(highest_number(step.step_id for step in steps), calls, calls)


def reduce_facts(facts: Facts, command: Any) -> Facts:
    """The facts after a command; none where there were none: the session never had a policy."""
    if not facts:
        return facts
    known = facts[-1]
    changed = _CHANGES[type(command)](known, command)
    return facts if changed is known else (changed,)


def _changed(known: PlanFacts, **fields: Any) -> PlanFacts:
    """The facts after a change of the plan: the counters of the gates start over."""
    return replace(known, changed=known.calls, is_noticed=False, asked=0, **fields)


def _set_up(known: PlanFacts, _command: SetupPlan) -> PlanFacts:
    return PlanFacts(calls=known.calls, changed=known.calls, begun=known.begun)


def _given(known: PlanFacts, plan: Plan) -> PlanFacts:
    first, now = first_facts(plan, known.calls), known.next_begin
    return replace(first, begun=now, began=dict.fromkeys([step.step_id for step in plan.steps], now))


def _renumbered(known: PlanFacts, command: RenumberSteps) -> PlanFacts:
    last, now = command.first + command.count, known.next_begin
    fresh = dict.fromkeys(map(format_id, range(command.first, last)), now)
    return _changed(known, highest=last - 1, begun=now, began={**known.began, **fresh})


def _marked(known: PlanFacts, command: MarkStep) -> PlanFacts:
    step_id, status = command.step_id, command.status
    proofs = known.proofs
    if status != "done" and step_id in proofs:
        proofs = _without(proofs, {step_id})
    if status == "in_progress":
        now = known.next_begin
        return _changed(known, begun=now, began={**known.began, step_id: now}, proofs=proofs)
    if proofs is known.proofs and known.changed == known.calls and not (known.asked or known.is_noticed):
        return known
    return _changed(known, proofs=proofs)


def _all_marked(known: PlanFacts, command: MarkSteps) -> PlanFacts:
    now = known.next_begin
    began = {mark.step_id: now for mark in command.marks if mark.status == "in_progress"}
    reopened = {mark.step_id for mark in command.marks if mark.status != "done"}
    proofs = _without(known.proofs, reopened)
    return _changed(known, begun=now, began={**known.began, **began}, proofs=proofs)


def _cleared(known: PlanFacts, _command: ClearPlan) -> PlanFacts:
    """An abandoned plan has no steps; one that was not approved still waits, so that work does not begin."""
    return _changed(known, began={}, depends_on={}, proofs={}, waiting=())


def _removed(known: PlanFacts, command: RemoveStep) -> PlanFacts:
    step_id = command.step_id
    gone = {step_id}
    depends_on = {
        waiting: tuple([each for each in needed if each != step_id])
        for waiting, needed in known.depends_on.items()
        if waiting != step_id
    }
    return _changed(
        known,
        began=_without(known.began, gone),
        depends_on={waiting: needed for waiting, needed in depends_on.items() if needed},
        proofs=_without(known.proofs, gone),
        waiting=tuple([each for each in known.waiting if each != step_id]),
    )


def _touched(known: PlanFacts, _command: UpdateStep | MoveStep) -> PlanFacts:
    return _changed(known)


def _with_dependencies(known: PlanFacts, command: SetDependencies) -> PlanFacts:
    return replace(known, depends_on={**known.depends_on, **command.depends_on})


def _proved(known: PlanFacts, command: RecordEvidence) -> PlanFacts:
    return replace(known, proofs={**known.proofs, command.step_id: command.proof})


def _requested(known: PlanFacts, command: RequestApproval) -> PlanFacts:
    if command.step_ids and known.approval not in {"waiting", "rejected"}:
        new = [each for each in command.step_ids if each not in known.waiting]
        return replace(known, waiting=(*known.waiting, *new))
    return replace(known, approval="waiting", reason=None)


def _approved(known: PlanFacts, _command: ApprovePlan) -> PlanFacts:
    if known.approval in {"none", "approved"} and not known.waiting:
        return known
    return replace(known, approval="approved", reason=None, waiting=())


def _rejected(known: PlanFacts, command: RejectPlan) -> PlanFacts:
    return replace(known, approval="rejected", reason=command.reason)


def _noticed(known: PlanFacts, _command: TakeNotice) -> PlanFacts:
    return replace(known, is_noticed=True)


def _asked(known: PlanFacts, command: AskToFinish) -> PlanFacts:
    return replace(known, asked=1 if command.is_new_turn else known.asked + 1)


def _counted(known: PlanFacts, _call: EvidenceCall) -> PlanFacts:
    return replace(known, calls=known.calls + 1)


def renumbering(command: Any, facts: PlanFacts, plan: Plan | None) -> tuple[RenumberSteps, ...]:
    """What gives the new steps of a command ids that no step of the plan has had."""
    if type(command) is SetupPlan:
        return (RenumberSteps(len(command.initial_steps), 1),)
    if type(command) is not AddStep or plan is None or plan.status != "active":
        return ()
    highest = max(facts.highest, highest_number(step.step_id for step in plan.steps))
    return (RenumberSteps(len(command.steps), highest + 1),)


def evidence_call(event: Any, began: int) -> EvidenceCall | None:
    """What is kept of a call that was made, or failed, to be found as evidence; None for a planning call."""
    if event.name in PLANNING_TOOLS:
        return None
    success = hasattr(event, "value") and getattr(event.result, "success", True) is True
    return EvidenceCall(event.name, event.call_id, success, began)


def _without(known: Mapping[str, Any], gone: Iterable[str]) -> Mapping[str, Any]:
    return {step_id: value for step_id, value in known.items() if step_id not in gone}


_CHANGES: Final[Mapping[type, Callable[[PlanFacts, Any], PlanFacts]]] = {
    EvidenceCall: _counted,
    Plan: _given,
    SetupPlan: _set_up,
    RenumberSteps: _renumbered,
    UpdateStep: _touched,
    MarkStep: _marked,
    MarkSteps: _all_marked,
    ClearPlan: _cleared,
    RemoveStep: _removed,
    MoveStep: _touched,
    SetDependencies: _with_dependencies,
    RecordEvidence: _proved,
    RequestApproval: _requested,
    ApprovePlan: _approved,
    RejectPlan: _rejected,
    TakeNotice: _noticed,
    AskToFinish: _asked,
}
FACT_COMMANDS: Final = tuple(_CHANGES)
"""What changes the facts."""

"""Changes of the facts of a plan: the policy's own commands, and pure reducers.

``Plan`` and the six commands never grow: dependencies, evidence, approval and the counters of the gates are
here, by step id. A rewind takes them back with the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from planning.plan.commands import (
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
from planning.plan.model import Plan
from planning.plan.step_ids import format_id, highest_number


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


def _with(known: PlanFacts, **fields: Any) -> Facts:
    """The facts with some fields changed: ``replace``, in a tenth of its time."""
    facts = object.__new__(PlanFacts)
    vars(facts).update(vars(known), **fields)
    return (facts,)


def _changed(known: PlanFacts, **fields: Any) -> Facts:
    """The facts after a change of the plan: the counters of the gates start over."""
    return _with(known, changed=known.calls, is_noticed=False, asked=0, **fields)


def _set_up(facts: Facts, _command: SetupPlan) -> Facts:
    known = facts[-1]
    return (PlanFacts(calls=known.calls, changed=known.calls, begun=known.begun),)


def _given(facts: Facts, plan: Plan) -> Facts:
    known = facts[-1]
    first, now = first_facts(plan, known.calls), known.next_begin
    return _with(first, begun=now, began=dict.fromkeys([step.step_id for step in plan.steps], now))


def _renumbered(facts: Facts, command: RenumberSteps) -> Facts:
    known, last = facts[-1], command.first + command.count
    now = known.next_begin
    fresh = dict.fromkeys(map(format_id, range(command.first, last)), now)
    return _changed(known, highest=last - 1, begun=now, began={**known.began, **fresh})


def _marked(facts: Facts, command: MarkStep) -> Facts:
    known = facts[-1]
    step_id, status = command.step_id, command.status
    proofs = known.proofs
    if status != "done" and step_id in proofs:
        proofs = _without(proofs, {step_id})
    if status == "in_progress":
        now = known.next_begin
        return _changed(known, begun=now, began={**known.began, step_id: now}, proofs=proofs)
    if proofs is known.proofs and known.changed == known.calls and not (known.asked or known.is_noticed):
        return facts
    return _changed(known, proofs=proofs)


def _all_marked(facts: Facts, command: MarkSteps) -> Facts:
    known = facts[-1]
    now = known.next_begin
    began = {mark.step_id: now for mark in command.marks if mark.status == "in_progress"}
    reopened = {mark.step_id for mark in command.marks if mark.status != "done"}
    proofs = _without(known.proofs, reopened)
    return _changed(known, begun=now, began={**known.began, **began}, proofs=proofs)


def _cleared(facts: Facts, _command: ClearPlan) -> Facts:
    """An abandoned plan has no steps; one that was not approved still waits, so that work does not begin."""
    known = facts[-1]
    return _changed(known, began={}, depends_on={}, proofs={}, waiting=())


def _removed(facts: Facts, command: RemoveStep) -> Facts:
    known, step_id = facts[-1], command.step_id
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


def _touched(facts: Facts, _command: UpdateStep | MoveStep) -> Facts:
    return _changed(facts[-1])


def _with_dependencies(facts: Facts, command: SetDependencies) -> Facts:
    known = facts[-1]
    return _with(known, depends_on={**known.depends_on, **command.depends_on})


def _proved(facts: Facts, command: RecordEvidence) -> Facts:
    known = facts[-1]
    return _with(known, proofs={**known.proofs, command.step_id: command.proof})


def _requested(facts: Facts, command: RequestApproval) -> Facts:
    known = facts[-1]
    if command.step_ids and known.approval not in {"waiting", "rejected"}:
        new = [each for each in command.step_ids if each not in known.waiting]
        return _with(known, waiting=(*known.waiting, *new))
    return _with(known, approval="waiting", reason=None)


def _approved(facts: Facts, _command: ApprovePlan) -> Facts:
    known = facts[-1]
    if known.approval in {"none", "approved"} and not known.waiting:
        return facts
    return _with(known, approval="approved", reason=None, waiting=())


def _rejected(facts: Facts, command: RejectPlan) -> Facts:
    return _with(facts[-1], approval="rejected", reason=command.reason)


def _noticed(facts: Facts, _command: TakeNotice) -> Facts:
    return _with(facts[-1], is_noticed=True)


def _asked(facts: Facts, command: AskToFinish) -> Facts:
    known = facts[-1]
    return _with(known, asked=1 if command.is_new_turn else known.asked + 1)


def _counted(facts: Facts, _call: EvidenceCall) -> Facts:
    known = facts[-1]
    return _with(known, calls=known.calls + 1)


def evidence_call(event: Any, began: int) -> EvidenceCall | None:
    """What is kept of a call that was made, or failed, to be found as evidence; None for a planning call."""
    if event.name in PLANNING_TOOLS:
        return None
    success = hasattr(event, "value") and getattr(event.result, "success", True) is True
    return EvidenceCall(event.name, event.call_id, success, began)


def _without(known: Mapping[str, Any], gone: Iterable[str]) -> Mapping[str, Any]:
    return {step_id: value for step_id, value in known.items() if step_id not in gone}


@dataclass(slots=True, frozen=True)
class _WhereKnown:
    """A reducer that leaves a session without facts as it is: no policy was ever registered with it."""

    reducer: Callable[[Facts, Any], Facts]

    def __call__(self, facts: Facts, command: Any) -> Facts:
        return self.reducer(facts, command) if facts else facts


_REDUCERS: Final[Mapping[type, Callable[[Facts, Any], Facts]]] = {
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
FACT_REDUCERS: Final = MappingProxyType({
    command: _WhereKnown(reducer) for command, reducer in _REDUCERS.items()
})  # fmt: skip
"""What each command does to the facts."""

"""What a policy has to know of a plan beyond the plan: one value beside it, changed by pure reducers.

``Plan`` and the six commands never grow: dependencies, evidence, approval and the counters of the gates are
here, by step id. A rewind takes them back with the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from planning.commands import (
    AddStep,
    ApprovePlan,
    ClearPlan,
    Command,
    MarkStep,
    MarkSteps,
    MoveStep,
    RejectPlan,
    RemoveStep,
    SetupPlan,
    UpdateStep,
)
from planning.policy import OPTIONAL_TOOLS, SEED_TOOLS
from planning.step_ids import format_id, number_of

__all__ = [
    "FACT_REDUCERS",
    "AskToFinish",
    "EvidenceCall",
    "PlanFacts",
    "Proof",
    "RecordEvidence",
    "RequestApproval",
    "SetDependencies",
    "TakeNotice",
    "count_call",
    "evidence_call",
]

Approval = Literal["none", "waiting", "approved", "rejected"]


@dataclass(slots=True, frozen=True)
class Proof:
    """What shows that a step is done.

    Attributes:
        evidence: Calls by their alias, such as ``C12``, and texts.
        verified: Whether the host's ``verify`` accepted a text of it; otherwise it is reported by the agent.
        tools: The tool of each call, by its alias.
    """

    evidence: tuple[str, ...]
    verified: bool = False
    tools: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """As a person reads it: ``verified with C4 (run_tests)``."""
        shown = [f"{each} ({self.tools[each]})" if each in self.tools else each for each in self.evidence]
        return f"{'verified' if self.verified else 'reported'} with {', '.join(shown)}"


@dataclass(slots=True, frozen=True)
class PlanFacts:
    """What is known of a plan beside it. Its mappings are never changed.

    Attributes:
        highest: The highest number that a step's id has had.
        calls: How many tool calls were made, planning calls not counted.
        changed: How many there were at the last change of the plan.
        began: How many there were when a step began: when it was last marked in progress, or else added.
        depends_on: The ids of the steps that must be done first, by the step that waits for them.
        proofs: What shows that a step is done.
        approval: Whether the host has approved the plan; ``"none"`` where nobody was asked.
        reason: Why it was rejected.
        waiting: The steps that wait for approval by themselves.
        is_noticed: Whether the agent was reminded that the plan is stale.
        asked: How often the agent asked to finish since the last change.
    """

    highest: int = 0
    calls: int = 0
    changed: int = 0
    began: Mapping[str, int] = field(default_factory=dict)
    depends_on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    approval: Approval = "none"
    reason: str | None = None
    waiting: tuple[str, ...] = ()
    is_noticed: bool = False
    asked: int = 0


@dataclass(slots=True, frozen=True)
class EvidenceCall:
    """A call that was made on the present branch; its alias is ``C`` and its place in the slice, from 1.

    Attributes:
        tool: The tool's name.
        call_id: The id that the provider gave the call, when there is one.
        success: Whether it succeeded.
    """

    tool: str
    call_id: str | None
    success: bool


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
PLANNING_TOOLS: Final = frozenset(f"planning_{name}" for name in SEED_TOOLS + OPTIONAL_TOOLS)
_COMMANDS: Final = frozenset({*get_args(Command), MarkSteps, RemoveStep, MoveStep})
_NONE: Final = PlanFacts()


def _latest(facts: Facts) -> PlanFacts:
    return facts[-1] if facts else _NONE


def _changed(facts: PlanFacts, **fields: Any) -> Facts:
    """The facts after a change of the plan: the counters of the gates start over."""
    return (replace(facts, changed=facts.calls, is_noticed=False, asked=0, **fields),)


def _set_up(facts: Facts, command: SetupPlan) -> Facts:
    known = _latest(facts)
    calls, steps = known.calls, len(command.initial_steps)
    began = dict.fromkeys(map(format_id, range(1, steps + 1)), calls)
    return (PlanFacts(highest=steps, calls=calls, changed=calls, began=began),)


def _added(facts: Facts, command: AddStep) -> Facts:
    known = _latest(facts)
    highest = known.highest + len(command.steps)
    fresh = dict.fromkeys(map(format_id, range(known.highest + 1, highest + 1)), known.calls)
    return _changed(known, highest=highest, began={**known.began, **fresh})


def _marked(facts: Facts, command: MarkStep) -> Facts:
    known = _latest(facts)
    step_id, status = command.step_id, command.status
    begins, reopens = status == "in_progress", status != "done" and step_id in known.proofs
    if not (begins or reopens or known.asked or known.is_noticed) and known.changed == known.calls:
        return facts
    # Built by hand, where ``replace`` would take five times as long; see ``mark_step`` in ``reducers``.
    return (
        PlanFacts(
            known.highest,
            known.calls,
            known.calls,
            {**known.began, step_id: known.calls} if begins else known.began,
            known.depends_on,
            _without(known.proofs, {step_id}) if reopens else known.proofs,
            known.approval,
            known.reason,
            known.waiting,
        ),
    )


def _all_marked(facts: Facts, command: MarkSteps) -> Facts:
    known = _latest(facts)
    began = {mark.step_id: known.calls for mark in command.marks if mark.status == "in_progress"}
    reopened = {mark.step_id for mark in command.marks if mark.status != "done"}
    return _changed(known, began={**known.began, **began}, proofs=_without(known.proofs, reopened))


def _cleared(facts: Facts, _command: ClearPlan) -> Facts:
    """An abandoned plan has no steps; one that was not approved still waits, so that work does not begin."""
    known = _latest(facts)
    return _changed(known, began={}, depends_on={}, proofs={}, waiting=())


def _removed(facts: Facts, command: RemoveStep) -> Facts:
    known, step_id = _latest(facts), command.step_id
    gone = {step_id}
    depends_on = {
        waiting: tuple([each for each in needed if each != step_id])
        for waiting, needed in known.depends_on.items()
        if waiting != step_id
    }
    return _changed(
        known,
        highest=max(known.highest, number_of(step_id) or 0),
        began=_without(known.began, gone),
        depends_on={waiting: needed for waiting, needed in depends_on.items() if needed},
        proofs=_without(known.proofs, gone),
        waiting=tuple([each for each in known.waiting if each != step_id]),
    )


def _touched(facts: Facts, _command: UpdateStep | MoveStep) -> Facts:
    return _changed(_latest(facts))


def _with_dependencies(facts: Facts, command: SetDependencies) -> Facts:
    known = _latest(facts)
    return (replace(known, depends_on={**known.depends_on, **command.depends_on}),)


def _proved(facts: Facts, command: RecordEvidence) -> Facts:
    known = _latest(facts)
    return (replace(known, proofs={**known.proofs, command.step_id: command.proof}),)


def _requested(facts: Facts, command: RequestApproval) -> Facts:
    known = _latest(facts)
    if command.step_ids and known.approval not in {"waiting", "rejected"}:
        new = [each for each in command.step_ids if each not in known.waiting]
        return (replace(known, waiting=(*known.waiting, *new)),)
    return (replace(known, approval="waiting", reason=None),)


def _approved(facts: Facts, _command: ApprovePlan) -> Facts:
    known = _latest(facts)
    if known.approval in {"none", "approved"} and not known.waiting:
        return facts
    return (replace(known, approval="approved", reason=None, waiting=()),)


def _rejected(facts: Facts, command: RejectPlan) -> Facts:
    return (replace(_latest(facts), approval="rejected", reason=command.reason),)


def _noticed(facts: Facts, _command: TakeNotice) -> Facts:
    return (replace(_latest(facts), is_noticed=True),)


def _asked(facts: Facts, command: AskToFinish) -> Facts:
    known = _latest(facts)
    return (replace(known, asked=1 if command.is_new_turn else known.asked + 1),)


def count_call(facts: Facts, event: Any) -> Facts:
    """One more tool call was made or failed; planning calls do not count."""
    if _is_planning(event):
        return facts
    known = _latest(facts)
    return (replace(known, calls=known.calls + 1),)


def evidence_call(event: Any) -> EvidenceCall | None:
    """What is kept of a call to be found as evidence; None for a planning call."""
    if _is_planning(event):
        return None
    success = hasattr(event, "value") and getattr(event.result, "success", True) is True
    return EvidenceCall(event.name, event.call_id, success)


def _is_planning(event: Any) -> bool:
    """Whether an event is of a planning tool: a call carries its command, a refused one its name alone."""
    value = getattr(event, "value", None)
    return type(value) in _COMMANDS if value is not None else event.name in PLANNING_TOOLS


def _without(known: Mapping[str, Any], gone: Iterable[str]) -> Mapping[str, Any]:
    return {step_id: value for step_id, value in known.items() if step_id not in gone}


FACT_REDUCERS: Final = MappingProxyType[type, Callable[[Facts, Any], Facts]]({
    SetupPlan: _set_up,
    AddStep: _added,
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
})  # fmt: skip
"""What each command does to the facts."""

"""The decisions of a policy about a command: a refusal that says what to do, or the commands that follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final
from unicodedata import normalize

import attrs

from planning.errors import Problem, ToolValidationError, show
from planning.graph import Graph, written
from planning.plan.commands import AddStep, ClearPlan, MarkStep, MarkSteps, SetupPlan
from planning.plan.facts import EvidenceCall, PlanFacts
from planning.plan.model import Plan, PlanStep, StepStatus, alike_key, listed_ids
from planning.plan.reducers import REDUCERS
from planning.plan.text import ASCII, TextRule
from planning.policy.evidence import NOTHING_ASKED, Accepted, evidence_for, refuse_evidence
from planning.policy.gates import irreplaceable
from planning.policy.policy import PlanPolicy
from planning.policy.reducers import (
    RecordEvidence,
    RequestApproval,
    SetDependencies,
    reduce_facts,
    renumbering,
)

_MOST_MARKS: Final = 100
_BEGINS: Final = ("in_progress", "done")


@attrs.define(eq=False)
class Extras:
    """The arguments that an agent sent beside those of the plan's own command.

    Attributes:
        evidence: That of each mark; None where the tool takes none.
        depends_on: That of each new step: ids, titles, or places among the new steps, from 1.
        accepted: What ``verify`` said.
        note: The rule for text that is evidence.
        clears: Whether the agent may clear the plan.
    """

    evidence: Sequence[Sequence[str]] | None = None
    depends_on: Sequence[Sequence[Any]] = ()
    accepted: Accepted = NOTHING_ASKED
    note: TextRule = ASCII.note
    clears: bool = True


@attrs.define(eq=False)
class _Case:
    """The arguments of ``decide``, and what follows from them."""

    policy: PlanPolicy
    facts: PlanFacts
    plan: Plan | None
    command: Any
    extras: Extras
    calls: Sequence[EvidenceCall]
    marks: tuple[MarkStep, ...]

    @cached_property
    def after(self) -> Plan:
        """The plan after the command, with the ids that its new steps get."""
        plans: tuple[Plan, ...] = () if self.plan is None else (self.plan,)
        for command in (self.command, *renumbering(self.command, self.facts, self.plan)):
            plans = REDUCERS[type(command)](plans, command)
        return plans[-1]


def decide(
    policy: PlanPolicy,
    facts: PlanFacts,
    plan: Plan | None,
    command: Any,
    extras: Extras,
    calls: Sequence[EvidenceCall],
) -> list[Any]:
    """Decide about a command that its handler accepted.

    Raises:
        ToolValidationError: It is refused: by the first of the rules that refuses it.
    """
    case = _Case(policy, facts, plan, command, extras, calls, marks_of(command))
    follows = list[Any]()
    for rule in _RULES.get(type(command), _FOR_OTHERS):
        follows += rule(case) or ()
    return follows


def marks_of(command: Any) -> tuple[MarkStep, ...]:
    """The marks in a command; none in one that marks nothing."""
    if type(command) is MarkStep:
        return (command,)
    return command.marks if type(command) is MarkSteps else ()


def _refuse_order(case: _Case) -> None:
    if case.plan is not None:
        refuse_order(case.policy, case.marks, case.plan, case.facts)


def refuse_order(policy: PlanPolicy, marks: Sequence[MarkStep], plan: Plan, facts: PlanFacts) -> None:
    """Refuse marks that begin or finish a step too early, or begin too many; each after those before it."""
    statuses = {step.step_id: step.status for step in plan.steps}
    most = policy.most_in_progress
    for step_id, status in [(mark.step_id, mark.status) for mark in marks]:
        needed = _find_needed(step_id, statuses, facts) if policy.dependencies and status in _BEGINS else []
        if needed:
            verb = "is" if len(needed) == 1 else "are"
            first = _first_needed(needed[0], statuses, facts)
            raise ToolValidationError(
                f"{step_id} depends on {listed_ids(needed)}, which {verb} not done; do {first} first"
            )
        if most is not None and status == "in_progress":
            running = [each for each in statuses if statuses[each] == "in_progress" and each != step_id]
            if len(running) >= most:
                limit = f"at most {'1 step' if most == 1 else f'{most} steps'} may be in progress"
                remedy = f"mark {listed_ids(running)} done, blocked or pending first"
                raise ToolValidationError(f"{limit}; {remedy}")
        statuses[step_id] = status


def _find_needed(step_id: str, statuses: Mapping[str, StepStatus], facts: PlanFacts) -> list[str]:
    """The open steps on which a step depends."""
    return [each for each in facts.depends_on.get(step_id, ()) if statuses.get(each, "done") != "done"]


def _first_needed(step_id: str, statuses: Mapping[str, StepStatus], facts: PlanFacts) -> str:
    """The step to do first: an open one on which this one depends, and which depends on no open one."""
    for _ in statuses:
        needed = _find_needed(step_id, statuses, facts)
        if not needed:
            break
        step_id = needed[0]
    return step_id


def _refuse_replacement(case: _Case) -> None:
    """A new plan over one with open steps."""
    open_ = irreplaceable(case.policy, case.plan)
    if open_:
        verb = "is" if len(open_) == 1 else "are"
        remedy = "finish the plan" + (", or drop it with planning_clear_plan" if case.extras.clears else "")
        raise ToolValidationError(f"{listed_ids(open_)} {verb} not done; {remedy} before you set up another")


def _refuse_waiting(case: _Case) -> None:
    """To begin or finish a step that waits for approval by itself."""
    waiting = [
        mark.step_id for mark in case.marks if mark.status in _BEGINS and mark.step_id in case.facts.waiting
    ]
    if waiting:
        verb = "waits" if len(waiting) == 1 else "wait"
        raise ToolValidationError(
            f"{listed_ids(waiting)} {verb} for approval; work on another step, or ask the user to approve it"
        )


def _prove(case: _Case) -> Iterable[RecordEvidence]:
    """The evidence of the steps that the command marks done."""
    policy, extras = case.policy, case.extras
    if policy.evidence is None:
        return ()
    proved: dict[str, RecordEvidence] = {}
    begun: set[str] = set()
    done = {step.step_id for step in case.plan.steps if step.status == "done"} if case.plan else set()
    facts = case.facts if len(case.marks) == 1 else reduce_facts((case.facts,), case.command)[-1]
    for place, mark in enumerate(case.marks):
        step_id = mark.step_id
        if mark.status != "done":
            proved.pop(step_id, None)
            begun.add(step_id)
            continue
        if step_id in begun:
            raise ToolValidationError(
                f"{step_id} cannot begin and end in one call; mark it in_progress, do its work, and "
                "then mark it done"
            )
        is_new = step_id not in done or mark.note is not None
        if not (is_new or (extras.evidence and extras.evidence[place])):
            continue  # it says again what is so
        if extras.evidence is None:
            raise ToolValidationError(
                f"{step_id} needs evidence, which this tool does not take; leave this mark to an agent "
                "whose tool takes it"
            )
        evidence = extras.evidence[place]
        if len(evidence) > 1:  # a single string was checked before ``verify``, or is refused
            refuse_evidence(step_id, evidence, extras.note)
        texts = extras.accepted.texts_of(step_id, case.plan) if extras.accepted.steps and case.plan else ()
        record = proved[step_id] = evidence_for(policy, step_id, evidence, facts, case.calls, texts)
        if policy.evidence == "unique":
            facts = replace(facts, proofs={**facts.proofs, step_id: record.proof})
    return proved.values()


def _depend(case: _Case) -> Iterable[SetDependencies]:
    """The dependencies of the new steps, as a command."""
    needed = case.extras.depends_on
    if not any(needed):
        return ()
    field = "initial_steps" if type(case.command) is SetupPlan else "steps"
    return (SetDependencies(dependencies_of(needed, case.after.steps, field)),)


def _ask(case: _Case) -> Iterable[RequestApproval]:
    """True if the user is to approve the plan, or the steps that are new in it."""
    facts, before = case.facts, case.plan
    if case.marks or not (case.policy.approval or facts.approval != "none"):
        return ()
    said = {(step.step_id, step.title): step.details for step in before.steps} if before else {}
    says = {(step.step_id, step.title): step.details for step in case.after.steps}
    waiting = tuple([key[0] for key in says if key not in said])
    is_other = says != said or isinstance(case.command, ClearPlan)  # a move changes nothing that a step says
    if isinstance(case.command, SetupPlan) or (facts.approval == "rejected" and is_other):
        return (RequestApproval(),)
    return (RequestApproval(waiting),) if waiting else ()


def dependencies_of(
    given: Sequence[Sequence[Any]], steps: Sequence[PlanStep], field: str
) -> dict[str, tuple[str, ...]]:
    """The dependencies of the last of the steps, by id, from the ids, titles or places that each names."""
    new = [step.step_id for step in steps[len(steps) - len(given) :]]
    places = {str(place): step_id for place, step_id in enumerate(new, 1)}
    titles: dict[str, list[str]] = {}
    alike: dict[str, list[str]] = {}
    for step in steps:
        titles.setdefault(step.title, []).append(step.step_id)
        alike.setdefault(alike_key(step.step_id), []).append(step.step_id)

    def meant(reference: Any) -> Sequence[str]:
        text = normalize("NFC", str(reference).strip())
        key = alike_key(text)
        if text in alike.get(key, ()):
            return (text,)
        if text in titles:
            return titles[text]
        if text.isdecimal() and key in places:
            return (places[key],)
        return alike.get(key, ())

    problems: list[Problem] = []
    found: dict[str, tuple[str, ...]] = {}
    for index, references in enumerate(given):
        needed: dict[str, None] = {}
        for reference in references:
            ids = meant(reference)
            if len(ids) == 1:
                needed[ids[0]] = None
                continue
            shown = show(str(reference))
            said = f"{shown} is {listed_ids(ids)}; use one of these ids"
            if not ids:
                said = f"no step is {shown}; use an id, a title, or a place in this call, from 1"
            problems.append(Problem(said, f"{field}[{index}].depends_on"))
        if needed:
            found[new[index]] = tuple(needed)
    if problems:
        raise ToolValidationError(problems)
    match Graph(found).cycle:
        case [step_id, _]:
            raise ToolValidationError(
                f"{step_id} cannot depend on itself; name another step by its id or its title"
            )
        case [_, *_] as cycle:
            said = f"these steps wait for each other: {written(cycle)}; remove one of the dependencies"
            raise ToolValidationError(said)
    return found


def refuse_marks(marks: Sequence[Any], step_id: str | None) -> None:
    """Refuse several marks beside a single one, too many of them, or none at all."""
    if marks and step_id is not None:
        raise ToolValidationError("send a step_id or marks, not both")
    if len(marks) > _MOST_MARKS:
        raise ToolValidationError(f"{len(marks)} marks; send at most {_MOST_MARKS} in one call")
    if not marks and step_id is None:
        raise ToolValidationError("send a step_id and its status, or marks")


Rule = Callable[[_Case], Iterable[Any] | None]
_FOR_MARKS: Final[Sequence[Rule]] = (_refuse_waiting, _refuse_order, _prove)
_FOR_OTHERS: Final[Sequence[Rule]] = (_ask,)
_RULES: Final[Mapping[type, Sequence[Rule]]] = {
    MarkStep: _FOR_MARKS,
    MarkSteps: _FOR_MARKS,
    SetupPlan: (_refuse_replacement, _depend, _ask),
    AddStep: (_depend, _ask),
}
"""By command, the rules in the order in which they refuse it, and in which what they entail follows."""

"""Calls and text as evidence that a step is done: pure functions of the recorded calls."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

import attrs

from planning.errors import Problem, ToolValidationError, cut, show
from planning.plan.facts import EvidenceCall, PlanFacts, Proof
from planning.plan.model import Plan, PlanStep, index_of
from planning.plan.text import TextRule
from planning.policy.policy import PlanPolicy
from planning.policy.reducers import RecordEvidence

Question = tuple[PlanStep, str]
_ALIAS: Final = re.compile(r"C0*([1-9][0-9]{0,8})")
_OFFERED: Final = 3
_MOST_EVIDENCE: Final = 10
_LONGEST_NAME: Final = 80


def evidence_for(
    policy: PlanPolicy,
    step_id: str,
    evidence: Sequence[str],
    facts: PlanFacts,
    calls: Sequence[EvidenceCall],
    accepted: Container[str],
) -> RecordEvidence:
    """The evidence that a step is done."""
    since = facts.began.get(step_id, -1)
    used = _find_used(step_id, facts) if policy.evidence == "unique" else {}

    def refusal(reason: str) -> ToolValidationError:
        offered = latest_calls(since, calls, used)
        remedy = f"send evidence with a call made since it began: {offered}"
        if not offered:
            more = ", or send text that shows it" if policy.verify is not None else ""
            remedy = f"call a tool that does the work of {step_id} first{more}"
        return ToolValidationError(f"{reason}; {remedy}")

    if not evidence:
        raise refusal(f"{step_id} needs evidence")
    kept: dict[str, str] = {}
    verified = False
    for each in evidence:
        number = number_of_call(each, calls)
        if number is None:
            if each not in accepted:
                is_refused = policy.verify is not None and not is_alias(each)
                said = "the host does not accept it" if is_refused else "no call has this id"
                raise refusal(f"{show(each)} is not evidence for {step_id}: {said}")
            kept[each], verified = "", True
            continue
        alias, call = f"C{number}", calls[number - 1]
        is_late = _began_after(since, number, call)
        if not call.success or not is_late or alias in used:
            wrong = f"was made before {step_id} began" if call.success else "failed"
            if alias in used and is_late:
                wrong = f"is already the evidence of {used[alias]}"
            raise refusal(f"{alias} ({cut(call.tool, _LONGEST_NAME)}) {wrong}")
        kept[alias] = call.tool
    tools = {alias: tool for alias, tool in kept.items() if tool}
    return RecordEvidence(step_id, Proof(tuple(kept), verified, tools))


def refuse_evidence(step_id: str, evidence: Sequence[str], rule: TextRule) -> None:
    """Refuse evidence that is too much, or text that no note may be."""
    if len(evidence) > _MOST_EVIDENCE:
        raise ToolValidationError(
            f"{len(evidence)} pieces of evidence for {step_id}; send at most {_MOST_EVIDENCE}"
        )
    for index, each in enumerate(evidence):
        for problem in rule.problems(each):
            raise ToolValidationError([Problem(problem, f"evidence[{index}]")])


def _find_used(step_id: str, facts: PlanFacts) -> dict[str, str]:
    """The evidence of other steps, with theirs."""
    return {
        each: other for other, proof in facts.proofs.items() if other != step_id for each in proof.evidence
    }


def is_alias(evidence: str) -> bool:
    """True if text is written as the alias of a call: such text proves nothing by itself."""
    return _ALIAS.fullmatch(evidence.strip().upper()) is not None


def number_of_call(evidence: str, calls: Sequence[EvidenceCall]) -> int | None:
    """The number of the call that is meant, by its alias or its id; None when there is none."""
    alias = _ALIAS.fullmatch(evidence)
    if alias is not None and int(alias[1]) <= len(calls):
        return int(alias[1])
    evidence = evidence.strip()
    for number in range(len(calls), 0, -1):
        if calls[number - 1].call_id == evidence:
            return number
    alias = _ALIAS.fullmatch(evidence.upper())
    return int(alias[1]) if alias is not None and int(alias[1]) <= len(calls) else None


def latest_calls(since: int, calls: Sequence[EvidenceCall], used: Container[str] = ()) -> str:
    """The newest successful calls that began after a moment, with their aliases: ``C4 (test), C5 (edit)``."""
    offered: list[str] = []
    for number in range(len(calls), 0, -1):
        call = calls[number - 1]
        if call.success and _began_after(since, number, call) and f"C{number}" not in used:
            offered.insert(0, f"C{number} ({cut(call.tool, _LONGEST_NAME)})")
        if len(offered) == _OFFERED:
            break
    return ", ".join(offered)


def _began_after(moment: int, number: int, call: EvidenceCall) -> bool:
    """True if a call began after a step did, whose moment is given."""
    return (number - 1 if call.began is None else call.began) >= moment


@attrs.frozen
class Accepted:
    """The answers of ``verify``, before the transaction: the steps as it saw them, the accepted strings."""

    steps: Mapping[str, PlanStep] = attrs.field(factory=dict)
    texts: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, questions: list[Question], accepted: Iterable[Question]) -> Accepted:
        """Keep what was asked, and what of it was accepted."""
        texts = frozenset((step.step_id, text) for step, text in accepted)
        return cls({step.step_id: step for step, _ in questions}, texts)

    def texts_of(self, step_id: str, plan: Plan) -> set[str]:
        """The strings that prove a step."""
        asked, index = self.steps.get(step_id), index_of(plan.steps, step_id)
        step = None if index is None else plan.steps[index]
        if (
            asked is not None
            and step is not None
            and (step.title, step.details) != (asked.title, asked.details)
        ):
            raise ToolValidationError(
                f"{step_id} changed while its evidence was checked; read the plan, and mark it again"
            )
        return {text for proved, text in self.texts if proved == step_id}


NOTHING_ASKED = Accepted()

"""The facts of a policy about a plan, in words and as the page has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from planning.plan.diff import PlanDiff
from planning.plan.facts import PlanFacts
from planning.plan.model import listed_ids

NO_FACTS: Final = PlanFacts()
"""The facts without a policy."""
_NAMED: Final = 8


def facts_words(before: PlanFacts, after: PlanFacts, diff: PlanDiff | None) -> list[str]:
    """The differences between two states of a policy's facts, in sentences."""
    new = set() if diff is None else {each.step.step_id for each in diff.added}
    gone = set() if diff is None else set(diff.removed) - new
    proved = [
        f"{step_id} {proof}."
        for step_id, proof in after.proofs.items()
        if before.proofs.get(step_id) != proof
    ]
    depending = list[str]()
    if before.depends_on is not after.depends_on:
        for step_id in {**before.depends_on, **after.depends_on}.keys() - gone:
            old = () if step_id in new else before.depends_on.get(step_id, ())
            now = after.depends_on.get(step_id, ())
            if lost := [each for each in old if each not in now]:
                depending.append(f"{step_id} no longer depends on {listed_ids(lost)}.")
            if added := [each for each in now if each not in old]:
                depending.append(f"{step_id} depends on {listed_ids(added)}.")
    noticed = ["The agent was reminded that the plan has not changed."]
    return [
        *_cut(proved),
        *_cut(sorted(depending)),
        *_approval(before, after, gone),
        *(noticed if after.is_noticed and not before.is_noticed else []),
    ]


def _cut(sentences: list[str]) -> list[str]:
    more = len(sentences) - _NAMED
    return [*sentences[:_NAMED], f"And {more} more."] if more > 0 else sentences


def _approval(before: PlanFacts, after: PlanFacts, gone: set[str]) -> Iterator[str]:
    if (before.approval, before.reason) != (after.approval, after.reason):
        if after.approval == "approved":
            yield "The host approved the plan."
        elif words := approval_words(after):
            yield words
    if waiting := [each for each in after.waiting if each not in before.waiting]:
        yield f"{listed_ids(waiting)} {'waits' if len(waiting) == 1 else 'wait'} for approval."
    freed = [each for each in before.waiting if each not in after.waiting and each not in gone]
    if freed and after.approval == "approved":
        yield f"The host approved {listed_ids(freed)}."


def approval_words(facts: PlanFacts) -> str:
    """Why work may not begin, in a sentence; empty where it may."""
    if facts.approval == "rejected":
        return f"The host rejected the plan: {facts.reason}"
    return "The plan waits for approval." if facts.approval == "waiting" else ""


def plan_facts(facts: PlanFacts) -> dict[str, Any]:
    """The fields of the plan, as the page has them: ``approval`` and ``reason``; without what is empty."""
    fields = {"approval": None if facts.approval == "none" else facts.approval, "reason": facts.reason}
    return {name: value for name, value in fields.items() if value is not None}


def step_facts(step_id: str, facts: PlanFacts) -> dict[str, Any]:
    """The fields of a step, as the page has them: ``proof``, ``after`` and ``waits``."""
    proof, after = facts.proofs.get(step_id), facts.depends_on.get(step_id)
    return {
        **({} if proof is None else {"proof": str(proof)}),
        **({"after": list(after)} if after else {}),
        **({"waits": True} if step_id in facts.waiting else {}),
    }

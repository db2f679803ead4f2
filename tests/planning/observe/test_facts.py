"""What a policy knows of a plan, in sentences: of a difference, and why work may not begin."""

from __future__ import annotations

from typing import Any

import pytest

from planning import Plan, PlanStep, diff_plans
from planning.observe.fact_words import facts_words, plan_facts, step_facts
from planning.plan.facts import PlanFacts, Proof

REPORTED, VERIFIED = Proof(("C4",), tools={"C4": "run_tests"}), Proof(("all green", "C5"), verified=True)
THREE = Plan("Fix it", "active", tuple(PlanStep(f"S00{n}", "Do it", None, "pending", ()) for n in (1, 2, 3)))
TWO = Plan("Fix it", "active", THREE.steps[1:])
OTHER = Plan("Else", "active", (PlanStep("S001", "Other", None, "pending", ()),))
DEPENDS = {"S003": ("S001", "S002"), "S002": ("S001",)}
REJECTED = {"approval": "rejected", "reason": "too long"}
CASES: list[tuple[dict[str, Any], dict[str, Any], Plan, list[str]]] = [
    ({}, {}, THREE, []),
    ({}, {"calls": 7, "highest": 3, "began": {"S001": 2}, "asked": 1}, THREE, []),
    ({}, {"proofs": {"S001": REPORTED}}, THREE, ["S001 reported with C4 (run_tests)."]),
    ({"proofs": {"S001": REPORTED}}, {"proofs": {"S001": REPORTED, "S002": VERIFIED}}, THREE,
     ["S002 verified with all green, C5."]),
    ({"proofs": {"S001": REPORTED}}, {}, THREE, []),
    ({}, {"depends_on": DEPENDS}, THREE, ["S002 depends on S001.", "S003 depends on S001 to S002."]),
    ({"depends_on": {**DEPENDS, "S001": ("S009",)}}, {"depends_on": {"S003": ("S002",)}}, TWO,
     ["S002 no longer depends on S001.", "S003 no longer depends on S001."]),
    ({"depends_on": {"S001": ("S002",)}}, {"depends_on": {"S001": ("S002",)}}, THREE, []),
    ({"depends_on": {"S003": ("S001",)}, "approval": "approved"}, {"calls": 1}, OTHER, []),
    ({}, {"approval": "waiting"}, THREE, ["The plan waits for approval."]),
    ({"approval": "waiting"}, {"approval": "approved"}, THREE, ["The host approved the plan."]),
    ({"approval": "waiting"}, REJECTED, THREE, ["The host rejected the plan: too long"]),
    (REJECTED, {**REJECTED, "reason": "too short"}, THREE, ["The host rejected the plan: too short"]),
    ({"approval": "approved"}, {"approval": "approved", "waiting": ("S003",)}, THREE,
     ["S003 waits for approval."]),
    ({"approval": "approved", "waiting": ("S001", "S002", "S003")}, {"approval": "approved"}, TWO,
     ["The host approved S002 to S003."]),
    ({}, {"is_noticed": True}, THREE, ["The agent was reminded that the plan has not changed."]),
    ({}, {"proofs": {f"S{n:03}": REPORTED for n in range(1, 11)}}, THREE,
     [*(f"S{n:03} reported with C4 (run_tests)." for n in range(1, 9)), "And 2 more."]),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "plan", "words"), CASES)
def test_a_difference_is_said_in_sentences(
    before: dict[str, Any], after: dict[str, Any], plan: Plan, words: list[str]
) -> None:
    assert facts_words(PlanFacts(**before), PlanFacts(**after), diff_plans(THREE, plan)) == words


def test_the_page_has_the_same_as_fields() -> None:
    facts = PlanFacts(
        proofs={"S001": REPORTED, "S002": VERIFIED},
        depends_on={"S001": (), "S002": ("S001",)},
        waiting=("S001",),
        approval="rejected",
        reason="too long",
    )
    assert [step_facts(step_id, facts) for step_id in ("S001", "S002", "S003")] == [
        {"proof": "reported with C4 (run_tests)", "waits": True},
        {"proof": "verified with all green, C5", "after": ["S001"]},
        {},
    ]
    assert plan_facts(facts) == {"approval": "rejected", "reason": "too long"}
    assert plan_facts(PlanFacts(approval="waiting")) == {"approval": "waiting"}
    assert plan_facts(PlanFacts()) == {}

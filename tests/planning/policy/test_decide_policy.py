"""The decision of a policy is a pure function, whose rules refuse in the order of the page."""

from __future__ import annotations

from typing import Any

import pytest

from planning import PlanPolicy, ToolValidationError
from planning.plan.commands import AddStep, MarkStep, MarkSteps, NewPlanStep, SetupPlan
from planning.plan.facts import EvidenceCall, PlanFacts, Proof
from planning.plan.model import Plan, PlanStep
from planning.policy.decide import Extras, decide
from planning.policy.reducers import RecordEvidence, RequestApproval, SetDependencies

POLICY = PlanPolicy(
    evidence="required", approval=True, replace="refuse_unfinished", dependencies=True, most_in_progress=1
)
STEPS = (PlanStep("S001", "Look", None, "in_progress"), PlanStep("S002", "Ship", None, "pending"))
PLAN = Plan("Ship it", "active", STEPS)
FACTS = PlanFacts(highest=2, calls=1, depends_on={"S002": ("S001",)}, approval="approved", waiting=("S002",))
NOTHING = Extras(evidence=[()])


def refusal(facts: PlanFacts, command: Any, given: Extras, policy: PlanPolicy = POLICY) -> str:
    with pytest.raises(ToolValidationError) as refused:
        decide(policy, facts, PLAN, command, given, [EvidenceCall("work", None, success=False)])
    return str(refused.value.problems[0].message)


def test_a_mark_is_refused_by_the_first_rule_that_the_page_names() -> None:
    done, begun = MarkStep("S002", "done"), MarkStep("S002", "in_progress")
    assert refusal(FACTS, done, NOTHING) == (
        "S002 waits for approval; work on another step, or ask the user to approve it"
    )
    approved = PlanFacts(highest=2, calls=1, depends_on=FACTS.depends_on, approval="approved")
    assert refusal(approved, done, NOTHING) == "S002 depends on S001, which is not done; do S001 first"
    independent = PlanFacts(highest=2, calls=1, approval="approved")
    assert refusal(independent, begun, NOTHING) == (
        "at most 1 step may be in progress; mark S001 done, blocked or pending first"
    )
    assert refusal(independent, done, NOTHING) == (
        "S002 needs evidence; call a tool that does the work of S002 first"
    )
    assert refusal(independent, done, Extras()) == (
        "S002 needs evidence, which this tool does not take; leave this mark to an agent whose tool takes it"
    )


def test_a_new_plan_is_refused_for_open_steps_before_its_dependencies() -> None:
    command = SetupPlan("Again", (NewPlanStep("a"),))
    given = Extras(depends_on=[["none"]], clears=False)
    assert refusal(FACTS, command, given) == (
        "S001 to S002 are not done; finish the plan before you set up another"
    )
    free = PlanPolicy(dependencies=True)
    assert refusal(FACTS, command, given, free) == (
        "no step is 'none'; use an id, a title, or a place in this call, from 1"
    )


def test_what_follows_names_the_ids_that_new_steps_will_have() -> None:
    facts = PlanFacts(highest=7, approval="approved")
    steps = AddStep((NewPlanStep("Test"), NewPlanStep("Tell")))
    assert decide(POLICY, facts, PLAN, steps, Extras(depends_on=[["Ship"], [1]]), ()) == [
        SetDependencies({"S008": ("S002",), "S009": ("S008",)}),
        RequestApproval(("S008", "S009")),
    ]
    plan = SetupPlan("Again", (NewPlanStep("a"), NewPlanStep("b")))
    free = PlanPolicy(approval=True, dependencies=True)
    assert decide(free, facts, PLAN, plan, Extras(depends_on=[[], ["a"]]), ()) == [
        SetDependencies({"S002": ("S001",)}),
        RequestApproval(),
    ]


def test_evidence_of_a_step_that_is_reopened_in_the_same_call_is_free_again() -> None:
    unique = PlanPolicy(evidence="unique")
    facts = PlanFacts(highest=2, calls=1, proofs={"S001": Proof(("C1",), tools={"C1": "work"})})
    marks = MarkSteps((MarkStep("S001", "pending"), MarkStep("S002", "done")))
    calls = [EvidenceCall("work", None, success=True)]
    assert decide(unique, facts, PLAN, marks, Extras(evidence=[(), ("C1",)]), calls) == [
        RecordEvidence("S002", Proof(("C1",), tools={"C1": "work"}))
    ]

"""What a policy keeps beside the plan, whoever changes the plan, and in whichever process."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import pytest
from policy_cases import EVERYTHING, Agent

from planning import (
    AddStep,
    ApprovePlan,
    ClearPlan,
    MarkStep,
    NewPlanStep,
    Plan,
    PlanPolicy,
    PlanStep,
    RejectPlan,
    RemoveStep,
    SetupPlan,
    ToolValidationError,
    UpdateStep,
    plan_to_dict,
    register_plan,
)
from planning.plan.commands import MarkSteps, MoveStep, RenumberSteps
from planning.plan.facts import EvidenceCall, PlanFacts, Proof
from planning.policy.reducers import (
    AskToFinish,
    RecordEvidence,
    RequestApproval,
    SetDependencies,
    TakeNotice,
    reduce_facts,
)
from planning.suite.events import framework
from planning.tools import Tool, Toolbox
from session import Session, Snapshot, append
from session.stores import SqliteStore


@dataclass(frozen=True)
class Kept:
    """What a tool publishes."""

    text: str


def test_an_id_is_never_given_out_twice_whoever_adds(session: Session) -> None:
    register_plan(session)
    agent = Agent(None, session).plans("A", "B")
    session.dispatch(RemoveStep("S002"))
    assert agent.call("add_step", steps=["C"]) == "Added S003."
    session.dispatch(RemoveStep("S003"))
    session.dispatch(AddStep((NewPlanStep("D"),)))
    plan = session.select_latest(Plan)
    assert plan is not None and [step.step_id for step in plan.steps] == ["S001", "S004"]
    agent.plans("A")
    assert agent.call("add_step", steps=["B"]) == "Added S002."


def test_a_step_that_is_not_there_is_removed_without_a_trace(session: Session) -> None:
    Agent(None, session).plans("A")
    version = session.version
    session.dispatch(RemoveStep("S009"))
    assert (session.version, session.select_all(PlanFacts)) == (version, ())


@pytest.mark.parametrize("last", [MarkStep("S001", "done"), ClearPlan()])
def test_a_step_that_a_plan_does_not_take_gets_no_id(session: Session, last: Any) -> None:
    Agent(EVERYTHING, session).plans("A")
    session.dispatch(last)
    facts = session.select_latest(PlanFacts)
    session.dispatch(AddStep((NewPlanStep("B"),)))
    assert session.select_latest(PlanFacts) is facts


def test_a_plan_that_was_there_before_the_policy_is_followed_from_now_on(session: Session) -> None:
    Agent(None, session).plans("A", "B", "C")
    agent = Agent(EVERYTHING, session)
    assert agent.call("work") == "fine"
    assert "C1 (work) was made before" not in agent.mark(1, "done", "C1")
    agent.call("add_step", steps=["D"])
    facts = session.select_latest(PlanFacts)
    assert facts is not None and (facts.highest, facts.began["S004"]) == (4, 1)


def test_a_process_without_the_policy_reads_and_changes_what_it_keeps(store_file: Any) -> None:
    with closing(SqliteStore(store_file)) as one, closing(SqliteStore(store_file)) as other:
        agent = Agent(EVERYTHING, Session(store=one, session_id="s")).plans(
            "A", {"title": "B", "depends_on": ["1"]}
        )
        agent.call("work")
        agent.mark(1, "done", "C1")
        reader = Session(store=other, session_id="s")
        register_plan(reader)
        assert plan_to_dict(reader) == plan_to_dict(agent.session)
        assert reader.select_all(EvidenceCall) == agent.session.select_all(EvidenceCall)
        reader.dispatch(MarkStep("S001", "pending"))
        agent.session.refresh()
        facts = agent.session.select_latest(PlanFacts)
        assert facts is not None and facts.proofs == {}
        again = Session()
        register_plan(again)
        again.rollback(Snapshot.from_json(agent.session.snapshot().to_json()))
        assert plan_to_dict(again) == plan_to_dict(agent.session)


def test_what_a_tool_publishes_within_a_framework_is_there_once_after_a_restart(store_file: Any) -> None:
    with closing(SqliteStore(store_file)) as one, closing(SqliteStore(store_file)) as other:
        session, there = (Session(session_id="s", store=store) for store in (one, other))
        for each in (session, there):
            register_plan(each, EVERYTHING)
            each.register_reducer(Kept, append)
        keep = Tool("keep", "Keep a text.", Kept, publishes="value")
        running = framework.set(("s", "thread 1", "checkpoint 1"))
        try:
            for text in ("a", "b"):
                assert Toolbox([keep], session=session).call("keep", {"text": text}).success
        finally:
            framework.reset(running)
        assert there.refresh() == 2
        assert session.select_all(Kept) == there.select_all(Kept) == (Kept("a"), Kept("b"))
        assert [there.at(version).select_all(Kept) for version in (0, 1)] == [(), (Kept("a"),)]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"dependencies": True}, "S002 depends on S001, which is not done; do S001 first"),
        (
            {"most_in_progress": 1},
            "at most 1 step may be in progress; mark S003 done, blocked or pending first",
        ),
    ],
)  # fmt: skip
def test_the_host_keeps_to_the_order_too_and_a_report_need_not(policy: dict[str, Any], message: str) -> None:
    agent = Agent(PlanPolicy(**policy))
    mark = MarkStep("S002", "in_progress")
    agent.session.dispatch(mark)  # there is no plan yet
    needed = {"depends_on": [1]} if "dependencies" in policy else {}
    agent.plans("A", {"title": "B", **needed}, "C")
    agent.session.dispatch(MarkStep("S003", "in_progress"))
    before = agent.session.snapshot()
    for command in (mark, MarkSteps((mark,))):
        with pytest.raises(ToolValidationError) as refused:
            agent.session.dispatch(command)
        assert str(refused.value) == message
        assert agent.session.snapshot() == before
    agent.session.dispatch(MarkSteps((mark,), is_report=True))
    plan = agent.session.select_latest(Plan)
    assert plan is not None and plan.steps[1].status == "in_progress"


PROOF = Proof(("C1",), tools={"C1": "work"})
KNOWN = PlanFacts(
    highest=3,
    calls=4,
    changed=1,
    begun=5,
    began={"S001": 5, "S002": 0, "S003": 0},
    depends_on={"S002": ("S001", "S003"), "S003": ("S001",)},
    proofs={"S001": PROOF, "S003": PROOF},
    approval="rejected",
    reason="too long",
    waiting=("S002", "S003"),
    is_noticed=True,
    asked=2,
)
CHANGED = {"changed": 4, "is_noticed": False, "asked": 0}
BEGUN = {**CHANGED, "begun": 6, "began": {**KNOWN.began, "S001": 6}, "proofs": {"S003": PROOF}}
STEPS = tuple(PlanStep(step_id, "x", None, "pending") for step_id in ("S001", "S007"))


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        (EvidenceCall("work", None, success=False), {"calls": 5}),
        (RenumberSteps(2, 4),
         {**CHANGED, "highest": 5, "begun": 6, "began": {**KNOWN.began, "S004": 6, "S005": 6}}),
        (UpdateStep("S001", "x"), CHANGED),
        (MoveStep("S001", 1), CHANGED),
        (MarkStep("S002", "done"), CHANGED),
        (MarkStep("S001", "blocked"), {**CHANGED, "proofs": {"S003": PROOF}}),
        (MarkStep("S001", "in_progress"), BEGUN),
        (MarkSteps((MarkStep("S001", "in_progress"), MarkStep("S002", "done"))), BEGUN),
        (MarkSteps((MarkStep("S001", "pending"), MarkStep("S003", "pending"))), {**CHANGED, "proofs": {}}),
        (ClearPlan(), {**CHANGED, "began": {}, "depends_on": {}, "proofs": {}, "waiting": ()}),
        (RemoveStep("S003"),
         {**CHANGED, "began": {"S001": 5, "S002": 0}, "depends_on": {"S002": ("S001",)},
          "proofs": {"S001": PROOF}, "waiting": ("S002",)}),
        (RemoveStep("S001"),
         {**CHANGED, "began": {"S002": 0, "S003": 0}, "depends_on": {"S002": ("S003",)},
          "proofs": {"S003": PROOF}}),
        (SetDependencies({"S003": ("S002",)}), {"depends_on": {**KNOWN.depends_on, "S003": ("S002",)}}),
        (RecordEvidence("S002", PROOF), {"proofs": {**KNOWN.proofs, "S002": PROOF}}),
        (RequestApproval(), {"approval": "waiting", "reason": None}),
        (RequestApproval(("S004",)), {"approval": "waiting", "reason": None}),
        (ApprovePlan(), {"approval": "approved", "reason": None, "waiting": ()}),
        (RejectPlan("no"), {"reason": "no"}),
        (TakeNotice(), {}),
        (AskToFinish(("S001",), let_go=False), {"asked": 3}),
        (AskToFinish(("S001",), let_go=False, is_new_turn=True), {"asked": 1}),
    ],
)  # fmt: skip
def test_what_is_known_of_a_plan_follows_each_command(command: Any, changes: dict[str, Any]) -> None:
    assert reduce_facts((KNOWN,), command) == (replace(KNOWN, **changes),)
    assert reduce_facts((), command) == ()


@pytest.mark.parametrize(
    ("facts", "command", "after"),
    [
        (KNOWN, SetupPlan("x"), PlanFacts(calls=4, changed=4, begun=5)),
        (KNOWN, Plan("x", "active", STEPS),
         PlanFacts(highest=7, calls=4, changed=4, begun=6, began={"S001": 6, "S007": 6})),
        (PlanFacts(approval="approved", waiting=("S002",)), RequestApproval(("S003", "S002")),
         PlanFacts(approval="approved", waiting=("S002", "S003"))),
        (PlanFacts(approval="waiting", waiting=("S002",)), RequestApproval(("S003",)),
         PlanFacts(approval="waiting", waiting=("S002",))),
        (PlanFacts(waiting=("S002",)), ApprovePlan(), PlanFacts(approval="approved")),
        (PlanFacts(), ApprovePlan(), PlanFacts()),
        (PlanFacts(approval="waiting"), ApprovePlan(), PlanFacts(approval="approved")),
        (PlanFacts(), RejectPlan("no"), PlanFacts(approval="rejected", reason="no")),
        (PlanFacts(), TakeNotice(), PlanFacts(is_noticed=True)),
        (PlanFacts(calls=2, began={"S001": 0}), MarkStep("S002", "in_progress"),
         PlanFacts(calls=2, changed=2, begun=2, began={"S001": 0, "S002": 2})),
        (PlanFacts(calls=2, began={"S001": 2}), MarkStep("S002", "in_progress"),
         PlanFacts(calls=2, changed=2, begun=3, began={"S001": 2, "S002": 3})),
    ],
)  # fmt: skip
def test_a_new_plan_and_a_decision_change_what_is_known(
    facts: PlanFacts, command: Any, after: PlanFacts
) -> None:
    assert reduce_facts((facts,), command) == (after,)

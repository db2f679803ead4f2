"""What a policy keeps beside the plan, whoever changes the plan, and in whichever process."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from policy_cases import EVERYTHING, Agent

from planning import (
    AddStep,
    MarkStep,
    NewPlanStep,
    Plan,
    PlanPolicy,
    RemoveStep,
    plan_to_dict,
    register_plan,
)
from planning.plan_facts import EvidenceCall, PlanFacts
from session import Session, Snapshot
from session.stores import SqliteStore


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


def test_what_others_changed_is_read_once() -> None:
    agent = Agent(PlanPolicy()).plans("A", "B", "C")
    agent.session.dispatch(RemoveStep("S003"))
    assert agent.mark(1, "done") == "Since you last looked: S003 was removed. S001 done. Next: S002 B"
    assert agent.mark(2, "pending") == "S002 pending."

"""What a policy keeps beside the plan, whoever changes the plan, and in whichever process."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
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
from planning.plan.facts import EvidenceCall, PlanFacts
from planning.policy.reducers import FACT_COMMANDS
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
    assert agent.mark(2, "blocked") == "S002 blocked. No other step is open."


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


@pytest.mark.parametrize("kind", FACT_COMMANDS)
def test_what_changes_the_facts_is_a_frozen_value(kind: Any) -> None:
    assert (kind.__dataclass_params__.frozen, hasattr(kind, "__slots__")) == (True, True)

"""The gates of a policy: the end of the work, a plan that does not change, and what the reminder shows."""

from __future__ import annotations

from typing import Any

import pytest
from policy_cases import Agent

from planning import (
    AddStep,
    ApprovePlan,
    MarkStep,
    NewPlanStep,
    Plan,
    PlanningToolsSection,
    PlanPolicy,
    PlanStep,
    RejectPlan,
    RemoveStep,
    SetupPlan,
)
from planning.plan.commands import MarkSteps
from planning.plan.facts import EvidenceCall, PlanFacts
from planning.policy.gates import Finish
from planning.policy.reducers import AskToFinish
from session import ToolFailed, ToolInvoked

OPEN = "Do the work and mark what is done; mark a step blocked, with a note, if it cannot be done now."


def asks(agent: Agent) -> list[AskToFinish]:
    """What the history has of the agent's wish to finish."""
    events = (event for change in agent.session.history() for event in change.events)
    return [event for event in events if isinstance(event, AskToFinish)]


def test_an_agent_with_open_steps_is_held_back_so_often_and_then_let_go() -> None:
    agent = Agent(PlanPolicy(finish_gate=2)).plans("A", "B", "C")
    agent.mark(2, "blocked")
    both = Finish(ok=False, open_steps=("S001", "S003"), message=f"S001, S003 are open. {OPEN}")
    let_go = Finish(ok=True, open_steps=("S001", "S003"))
    assert [agent.section.may_finish() for _ in range(4)] == [both, both, let_go, let_go]
    assert agent.section.may_finish(is_new_turn=True) == both
    assert [agent.section.may_finish(agent.session) for _ in range(2)] == [both, let_go]
    agent.mark(1, "done")
    one = Finish(ok=False, open_steps=("S003",), message=f"S003 is open. {OPEN}")
    assert [agent.section.may_finish() for _ in range(3)] == [one, one, Finish(ok=True, open_steps=("S003",))]
    assert [(each.open_steps, each.let_go, each.is_new_turn) for each in asks(agent)] == [
        *[(("S001", "S003"), let_go, False) for let_go in (False, False, True, True)],
        *[
            (("S001", "S003"), let_go, is_new)
            for let_go, is_new in ((False, True), (False, False), (True, False))
        ],
        *[(("S003",), let_go, False) for let_go in (False, False, True)],
    ]
    agent.mark(3, "in_progress")
    assert agent.section.may_finish() == one


PLANNED = SetupPlan("Ship it", (NewPlanStep("A"), NewPlanStep("B")))
APPROVAL = PlanPolicy(finish_gate=1, approval=True)


@pytest.mark.parametrize(
    ("policy", "calls"),
    [
        (None, [PLANNED]),
        (PlanPolicy(), [PLANNED]),
        (PlanPolicy(finish_gate=1), []),
        (PlanPolicy(finish_gate=1), [PLANNED, MarkStep("S001", "blocked"), MarkStep("S002", "done")]),
        (PlanPolicy(finish_gate=1), [PLANNED, MarkSteps((), is_last=True)]),
        (APPROVAL, [("setup_plan", {"objective": "x", "initial_steps": ["A"]})]),
        (APPROVAL, [("setup_plan", {"objective": "x", "initial_steps": ["A"]}), RejectPlan("no")]),
        (APPROVAL, [("setup_plan", {"objective": "x"}), ApprovePlan(), ("add_step", {"steps": ["A"]})]),
    ],
)
def test_without_open_steps_or_while_the_user_decides_an_agent_may_finish(
    policy: PlanPolicy | None, calls: list[Any]
) -> None:
    agent = Agent(policy)
    for each in calls:
        if isinstance(each, tuple):
            agent.call(each[0], **each[1])
        else:
            agent.session.dispatch(each)
    version = agent.session.version
    assert agent.section.may_finish() == Finish(ok=True)
    assert (agent.session.version, asks(agent)) == (version, [])


def stale(agent: Agent) -> str:
    """What the reminder says below the plan."""
    return agent.section.reminder().partition("\n\n")[0].split("pending: B", 1)[1].strip()


def unchanged(calls: int) -> str:
    return f"The plan has not changed for {calls} tool calls. Mark what is done, or change it."


def test_a_plan_that_does_not_change_is_recalled_until_the_agent_has_noticed() -> None:
    agent = Agent(PlanPolicy(stale_after=2)).plans("A", "B")
    agent.call("work")
    version = agent.session.version
    agent.section.take_notice()
    assert (stale(agent), agent.session.version) == ("", version)
    agent.call("broken")
    agent.call("read_plan")
    assert stale(agent) == unchanged(2)
    agent.call("work")
    assert stale(agent) == unchanged(3)
    agent.section.take_notice(agent.session)
    version = agent.session.version
    agent.section.take_notice()
    assert (stale(agent), agent.session.version) == ("", version)
    agent.call("work")
    assert stale(agent) == ""
    agent.mark(1, "in_progress")
    agent.call("work")
    assert stale(agent) == ""
    agent.call("work")
    assert stale(agent) == unchanged(2)
    agent.session.dispatch(AddStep((NewPlanStep("C"),)))
    assert stale(agent) == "S003 pending: C"
    agent.call("work")
    agent.session.dispatch(Plan("Ship it", "active", (PlanStep("S001", "B", None, "pending"),)))
    agent.call("work")
    assert stale(agent) == ""
    agent.call("work")
    assert stale(agent) == unchanged(2)
    agent.session.dispatch(MarkStep("S001", "blocked"))
    for _ in range(3):
        agent.call("work")
    assert agent.section.reminder() == "Ship it (active, 0 of 1 done)\nS001 blocked: B"


def test_a_section_without_a_policy_notices_what_another_of_the_session_demands() -> None:
    agent = Agent(PlanPolicy(stale_after=1)).plans("A", "B")
    agent.call("work")
    plain = PlanningToolsSection(session=agent.session)
    assert plain.reminder().endswith(unchanged(1))
    plain.take_notice()
    assert (
        plain.reminder()
        == agent.section.reminder()
        == ("Ship it (active, 0 of 2 done)\nS001 pending: A\nS002 pending: B")
    )


def test_without_a_plan_or_a_policy_there_is_nothing_to_notice() -> None:
    for policy in (None, PlanPolicy(), PlanPolicy(stale_after=1)):
        agent = Agent(policy)
        agent.call("work")
        version = agent.session.version
        agent.section.take_notice()
        assert (agent.section.reminder(), agent.session.version) == ("", version)
    agent = Agent(None).plans("A", "B")
    agent.session.dispatch(RemoveStep("S002"))
    agent.section.take_notice()
    assert agent.section.reminder() == "Ship it (active, 0 of 1 done)\nS001 pending: A"


def test_the_reminder_shows_what_the_user_decides_and_the_evidence_for_the_step_at_hand() -> None:
    agent = Agent(PlanPolicy(approval=True, evidence="required")).plans("A", "B", is_approved=False)
    assert stale(agent) == "The plan waits for the user's approval."
    agent.session.dispatch(RejectPlan("too short"))
    assert stale(agent) == "The user rejected the plan: too short"
    agent.session.dispatch(ApprovePlan())
    assert stale(agent) == ""
    agent.call("work")
    agent.call("broken")
    assert stale(agent) == "Evidence for S001: C1 (work)"
    agent.mark(2, "in_progress")
    agent.call("work")
    assert agent.section.reminder() == (
        "Ship it (active, 0 of 2 done)\nS001 pending: A\nS002 in_progress: B\nEvidence for S002: C3 (work)"
    )


@pytest.mark.parametrize(
    ("event", "is_evidence"),
    [
        (ToolInvoked("search", {}, "found"), True),
        (ToolInvoked("search", {}, {"success": True}), True),
        (ToolFailed("search", "not found"), False),
    ],
)
def test_a_call_that_the_host_reports_is_evidence_when_it_succeeded(event: Any, is_evidence: bool) -> None:
    agent = Agent(PlanPolicy(evidence="required")).plans("A")
    agent.session.dispatch(event)
    assert agent.session.select_all(EvidenceCall) == (EvidenceCall("search", None, is_evidence),)
    assert agent.mark(1, "done", "C1").startswith("S001 done" if is_evidence else "Refused")
    facts = agent.session.select_latest(PlanFacts)
    assert facts is not None and facts.calls == 1

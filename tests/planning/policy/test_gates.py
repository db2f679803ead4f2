"""The gates of a policy: the end of the work, a plan that does not change, and what the reminder shows."""

from __future__ import annotations

from typing import Any

import pytest
from policy_cases import Agent
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanningToolsSection, PlanPolicy, PlanStep, Toolbox, plan_text, plan_to_dict
from planning.plan.commands import (
    AddStep,
    ApprovePlan,
    MarkStep,
    MarkSteps,
    NewPlanStep,
    RejectPlan,
    RemoveStep,
    SetupPlan,
)
from planning.plan.facts import EvidenceCall, PlanFacts
from planning.policy.gates import Finish
from planning.policy.reducers import AskToFinish
from planning.suite.approval import decide_approval, decision_of, pending_approval, state_of
from session import Session, ToolFailed, ToolInvoked


def asks(agent: Agent) -> list[AskToFinish]:
    """What the history has of the agent's wish to finish."""
    events = (event for change in agent.session.history() for event in change.events)
    return [event for event in events if isinstance(event, AskToFinish)]


def test_an_agent_with_open_steps_is_held_back_so_often_and_then_let_go(snapshot: SnapshotAssertion) -> None:
    agent = Agent(PlanPolicy(finish_gate=2)).plans("A", "B", "C")
    agent.mark(2, "blocked")
    told = [agent.section.may_finish() for _ in range(4)]
    told += [agent.section.may_finish(is_new_turn=True)]
    told += [agent.section.may_finish(agent.session) for _ in range(2)]
    agent.mark(1, "done")
    told += [agent.section.may_finish() for _ in range(3)]
    agent.mark(3, "in_progress")
    told += [agent.section.may_finish()]
    assert "\n".join(map(str, [*told, *asks(agent)])) == snapshot


PLANNED = SetupPlan("Ship it", (NewPlanStep("A"), NewPlanStep("B")))
APPROVAL = PlanPolicy(finish_gate=1, approval=True)


@pytest.mark.parametrize(
    ("policy", "calls"),
    [
        (None, [PLANNED]),
        (PlanPolicy(finish_gate=1), []),
        (PlanPolicy(finish_gate=1), [PLANNED, MarkStep("S001", "blocked"), MarkStep("S002", "done")]),
        (PlanPolicy(finish_gate=1), [PLANNED, MarkSteps((), is_last=True)]),
        (APPROVAL, [("setup_plan", {"objective": "x", "initial_steps": ["A"]})]),
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
    plain = PlanningToolsSection(session=agent.session)  # it notices what another of the session demands
    assert plain.reminder() == agent.section.reminder()
    plain.take_notice()
    assert (stale(agent), plain.reminder()) == ("", agent.section.reminder())
    agent.session.dispatch(MarkStep("S001", "blocked"))
    for _ in range(3):
        agent.call("work")
    assert agent.section.reminder() == "Ship it (active, 0 of 1 done)\nS001 blocked: B"


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


@pytest.mark.parametrize("event", [
    ToolInvoked("search", {}, "found"), ToolInvoked("search", {}, {"success": True}),
    ToolFailed("search", "not found"),
])  # fmt: skip
def test_a_call_that_the_host_reports_is_evidence_when_it_succeeded(event: ToolInvoked | ToolFailed) -> None:
    agent, is_evidence = Agent(PlanPolicy(evidence="required")).plans("A"), isinstance(event, ToolInvoked)
    agent.session.dispatch(event)
    assert agent.session.select_all(EvidenceCall) == (EvidenceCall("search", None, is_evidence),)
    assert agent.mark(1, "done", "C1").startswith("S001 done" if is_evidence else "Refused")
    facts = agent.session.select_latest(PlanFacts)
    assert facts is not None and facts.calls == 1


# Approval: what waits, and decisions that hold for what was shown alone

SETUP = ("setup_plan", {"objective": "Open the shop", "initial_steps": ["Rent a room", "Buy shelves"]})
ADD = ("add_step", {"steps": ["Paint it"]})
BEGIN = ("mark_step", {"step_id": "S001", "status": "in_progress"})
Call = tuple[str, dict[str, Any]]
POLICY = PlanPolicy(approval=True, dependencies=True)
NOT_ANSWERS: list[Any] = [None, True, 1, "", "Approve", [], {}, {"decision": True}, {"approve": True}]


def test_the_agent_is_told_to_ask_for_what_the_user_has_to_approve() -> None:
    agent = Agent(POLICY)
    assert agent.call(SETUP[0], **SETUP[1]) == "Plan set: S001 to S002. Ask the user to approve it first."
    agent.session.dispatch(ApprovePlan())
    agent.session.dispatch(ApprovePlan())  # once more, which changes nothing
    assert agent.session.version == 2
    assert agent.call(ADD[0], **ADD[1]) == "Added S003. Ask the user to approve it first."
    assert agent.call("update_step", step_id="S001", details="In town") == "S001 updated."


def after(agent: Agent, *calls: Call | ApprovePlan | RejectPlan) -> Agent:
    """The agent, after its calls and commands of the host."""
    for each in calls:
        if isinstance(each, tuple):
            assert agent.toolbox.call(f"planning_{each[0]}", each[1]).success
        else:
            agent.session.dispatch(each)
    return agent


@pytest.mark.parametrize(
    ("calls", "waiting"),
    [
        ((), None),
        ((SETUP,), ()),
        ((SETUP, RejectPlan("no")), None),
        ((SETUP, RejectPlan("no"), ADD), ()),
        ((SETUP, ApprovePlan()), None),
        ((SETUP, ApprovePlan(), ADD), ("S003",)),
        ((SETUP, ApprovePlan(), ADD, RejectPlan("no")), None),
        ((SETUP, ApprovePlan(), ADD, RejectPlan("no"), ADD), ()),
        ((SETUP, ("clear_plan", {})), None),
    ],
)
def test_what_waits(calls: tuple[Any, ...], waiting: tuple[str, ...] | None) -> None:
    agent = after(Agent(POLICY), *calls)
    for source in (agent.session, agent.session.snapshot(), agent.session.at(agent.session.version)):
        pending = pending_approval(source)
        assert (None if pending is None else pending.step_ids) == waiting
        if pending is not None:
            plan, facts = source.select_latest(Plan), source.select_latest(PlanFacts)
            assert plan is not None
            assert (state_of(source, pending.digest), state_of(source, "0")) == ("waiting", None)
            assert (pending.text, pending.data) == (plan_text(plan, facts), plan_to_dict(source))
            assert repr(pending) == f"PendingApproval(text={pending.text!r}, step_ids={waiting!r})"


def test_a_plan_that_no_policy_knows_does_not_wait(session: Session, toolbox: Toolbox) -> None:
    toolbox.call("planning_setup_plan", SETUP[1])
    assert pending_approval(session) is None


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ((), True),
        ((BEGIN,), True),
        ((ADD,), False),
        ((("update_step", {"step_id": "S001", "title": "Buy a room"}),), False),
        ((("update_step", {"step_id": "S001", "details": "In town"}),), False),
        ((("add_step", {"steps": [{"title": "Paint it", "depends_on": ["S001"]}]}),), False),
        ((ApprovePlan(),), False),
        ((RejectPlan("no"),), False),
    ],
)
@pytest.mark.parametrize("decision", [ApprovePlan(), RejectPlan("too dear")])
def test_a_decision_is_carried_out_only_for_the_plan_that_was_shown(
    change: tuple[Any, ...], decision: Any, *, holds: bool
) -> None:
    agent = after(Agent(POLICY), SETUP)
    shown = pending_approval(agent.session)
    assert shown is not None
    after(agent, *change)
    version = agent.session.version
    if change == (ADD,):  # it is another plan than the one that was shown
        assert state_of(agent.session, shown.digest) is None
    assert decide_approval(agent.session, shown, decision) is holds
    if holds:
        said = "approved" if isinstance(decision, ApprovePlan) else "rejected"
        assert state_of(agent.session, shown.digest) == said
    made = [(each.actor, each.events) for each in agent.session.history(after=version)]
    assert made == ([("host", (decision,))] if holds else [])


REASON = {"decision": "reject", "reason": " too\n dear "}
ANSWERS: list[Any] = [
    *("approve", {"decision": "approve"}, {"type": "approve"}, REASON, {"type": "reject", "message": "no"}),
    *("reject", {**REASON, "reason": 7}, {**REASON, "reason": "x" * 5_000}),
]


def test_an_answer_that_is_not_a_decision_is_none(snapshot: SnapshotAssertion) -> None:
    assert [decision_of(each) for each in NOT_ANSWERS] == [None] * len(NOT_ANSWERS)
    assert "\n".join(str(decision_of(each)) for each in ANSWERS) == snapshot

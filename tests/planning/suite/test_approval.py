"""What waits for approval, and decisions that hold for what was shown alone."""

from __future__ import annotations

from typing import Any

import pytest
from policy_cases import Agent

from planning import (
    ApprovePlan,
    Plan,
    PlanPolicy,
    RejectPlan,
    Toolbox,
    plan_text,
    plan_to_dict,
)
from planning.plan.facts import PlanFacts
from planning.suite.approval import decide_approval, decision_of, pending_approval, state_of
from session import Session

SETUP = ("setup_plan", {"objective": "Open the shop", "initial_steps": ["Rent a room", "Buy shelves"]})
ADD = ("add_step", {"steps": ["Paint it"]})
BEGIN = ("mark_step", {"step_id": "S001", "status": "in_progress"})
Call = tuple[str, dict[str, Any]]
POLICY = PlanPolicy(approval=True, dependencies=True)
NOT_ANSWERS: list[Any] = [None, True, 1, "", "Approve", [], {}, {"decision": True}, {"approve": True}]


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
        ((SETUP, BEGIN), ()),
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
    assert decide_approval(agent.session, shown, decision) is holds
    if holds:
        said = "approved" if isinstance(decision, ApprovePlan) else "rejected"
        assert state_of(agent.session, shown.digest) == said
    made = [(each.actor, each.events) for each in agent.session.history(after=version)]
    assert made == ([("host", (decision,))] if holds else [])


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ("approve", ApprovePlan()),
        ({"decision": "approve"}, ApprovePlan()),
        ({"type": "approve"}, ApprovePlan()),
        ({"decision": "reject", "reason": " too\n dear "}, RejectPlan("too dear")),
        ({"type": "reject", "message": "no"}, RejectPlan("no")),
        ("reject", RejectPlan("no reason was given")),
        ({"decision": "reject", "reason": 7}, RejectPlan("no reason was given")),
        ({"decision": "reject", "reason": "x" * 5_000}, RejectPlan("x" * 509 + "...")),
        *[(each, None) for each in NOT_ANSWERS],
    ],
)
def test_an_answer_that_is_not_a_decision_is_none(answer: Any, decision: Any) -> None:
    assert decision_of(answer) == decision

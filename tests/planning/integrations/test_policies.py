"""What a policy asks of every framework's agent, whose other tools the framework has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from frameworks import (
    MADE,
    OPEN,
    SHOP,
    TABLE,
    Call,
    EntryPoint,
    facts_of,
    maker,
    mark,
    play,
    proved,
    refusals,
    toolbox,
)
from syrupy.assertion import SnapshotAssertion

from planning import ApprovePlan, MarkStep, PlanningToolsSection, PlanPolicy
from planning.plan.facts import EvidenceCall
from planning.policy.reducers import AskToFinish
from session import Session, ToolFailed, ToolInvoked

WORK: Call = ("work", {"on": "shelves"})
LOOK: Call = ("look", {})
worked: list[str] = []


def work(on: str) -> Any:
    """Work."""
    worked.append(on)
    return {"success": False} if on == "nothing" else f"worked on {on}"


def look() -> str:
    """Look around."""
    return "seen"


@pytest.fixture(autouse=True)
def _nothing_worked() -> None:
    worked.clear()


def through(*without: str) -> Callable[[Any], Any]:
    """Test a promise through each framework, but for some."""
    entries = [each for each in TABLE if each.needs not in {"planning", "mcp", *without}]
    return pytest.mark.parametrize("entry", entries, ids=[each.name for each in entries])


@through()
def test_until_the_user_has_approved_the_plan_only_tools_that_read_are_called(
    entry: EntryPoint, opens: Callable[[], Session]
) -> None:
    session, elsewhere = opens(), opens()
    agent = entry.agent(session, (), PlanPolicy(approval=True), others=[work, look])
    play(agent, [[SHOP], [LOOK], [WORK]])
    assert (facts_of(session).approval, worked) == ("waiting", [])
    elsewhere.dispatch(ApprovePlan())
    play(agent, [[WORK]])
    assert worked == ["shelves"]
    made = [each for change in session.history() for each in change.events]
    calls = [
        each for each in made if isinstance(each, (ToolFailed, ToolInvoked)) and each.name in {"work", "look"}
    ]
    is_asked_by_langgraph = entry.needs == "langchain"  # before the call is made
    assert [(type(each).__name__, each.name) for each in calls] == [
        ("ToolInvoked", "look"),
        *[("ToolFailed", "work")] * (not is_asked_by_langgraph),
        ("ToolInvoked", "work"),
    ]


@through()
def test_of_two_users_the_one_who_approved_has_work_done(entry: EntryPoint) -> None:
    ada, bob = Session(), Session()
    current = [ada]
    agent = entry.agent(lambda: current[0], (), PlanPolicy(approval=True), others=[work, look])
    done = []
    for calls in ([SHOP], [WORK]):
        for current[0] in (ada, bob):
            play(agent, [calls])
            done.append([*worked])
        bob.dispatch(ApprovePlan())
    assert done == [[], [], [], ["shelves"]]


@through()
def test_a_call_that_succeeded_is_evidence_and_one_that_failed_is_not(entry: EntryPoint) -> None:
    session = Session()
    agent = entry.agent(session, (), PlanPolicy(evidence="required"), others=[work, look])
    talk = play(
        agent,
        [
            [SHOP, mark("S001", "in_progress")],
            [mark("S001"), proved("S001", "I did it")],
            [("work", {"on": "nothing"}), proved("S001", "C1")],
            [WORK, proved("1", "C2")],
        ],
    )
    refused = "Refused, nothing changed. "
    first, second, *_, third = [each for each in talk.texts if each.startswith(refused)]
    assert "evidence" in first
    assert "I did it" in second
    assert third == f"{refused}C1 (work) failed; call a tool that does the work of S001 first"
    assert talk.texts[-1] == "S001 done. Next: S002 Buy shelves"
    assert session.select_all(EvidenceCall) == (
        EvidenceCall("work", "call_5", False),
        EvidenceCall("work", "call_7", True),
    )


@through()
def test_a_call_that_began_before_its_step_is_no_evidence(entry: EntryPoint) -> None:
    session = Session()

    def work(on: str) -> str:
        """Work; the host begins the step meanwhile."""
        session.dispatch(MarkStep("S001", "in_progress"))
        return on

    agent = entry.agent(session, (), PlanPolicy(evidence="required"), others=[work])
    refused, _, _news = play(agent, [[SHOP], [WORK], [proved("S001", "C1")]]).texts[-1].partition(". Since ")
    assert refused == (
        "Refused, nothing changed. C1 (work) was made before S001 began; call a tool that does the work of "
        "S001 first"
    )


@through()
def test_a_plan_that_does_not_change_is_mentioned_once(entry: EntryPoint) -> None:
    agent = entry.agent(Session(), (), PlanPolicy(stale_after=2), others=[look])
    talk = play(agent, [[SHOP], [LOOK], [LOOK], [LOOK]])
    stale = f"{OPEN}\nThe plan has not changed for 2 tool calls. Mark what is done, or change it."
    assert [each.last for each in talk.requests] == ["", OPEN, OPEN, stale, OPEN]


@through("agents")
def test_an_agent_that_insists_is_let_go_and_the_history_says_why(entry: EntryPoint) -> None:
    session = Session()
    agent = entry.agent(session, (), PlanPolicy(finish_gate=1), others=[look])
    after = play(agent, [[SHOP], []]).after
    play(agent, [], after)  # a new message of the user counts again
    asked = [each for change in session.history() for each in change.events if isinstance(each, AskToFinish)]
    open_ = ("S001", "S002")
    assert asked == [AskToFinish(open_, False, True), AskToFinish(open_, True)] * 2


@through()
def test_a_store_that_is_gone_holds_the_work(entry: EntryPoint, stored: Session, path: Path) -> None:
    def look() -> str:
        """Look around: the store is gone then."""
        path.write_bytes(b"something else")
        return "seen"

    policy = PlanPolicy(approval=True, finish_gate=1, stale_after=1, evidence="required")
    talk = play(entry.agent(stored, (), policy, others=[work, look]), [[SHOP], [LOOK], [WORK]])
    away = "work cannot reach its data now. Try again later, or continue without it."
    assert (talk.texts[-1], worked) == (away, [])


@pytest.mark.parametrize("needs", MADE)
def test_what_an_agent_cannot_be_given_is_refused(needs: str, snapshot: SnapshotAssertion) -> None:
    make, section = maker(needs), PlanningToolsSection(session=Session())
    make(Session(), strategy="plan-act-reflect")
    refused = refusals(
        lambda: make(Session(), strategy="reakt"),
        lambda: make(Session(), read_only="look"),
        lambda: make(section=section, policy=PlanPolicy(approval=True)),
        lambda: make(section=section, session=Session()),
        lambda: make(session=7),
    )
    assert refused == snapshot


NARROWED = [each for each in TABLE if each.needs not in {"agents", "mcp"}]
"""The entry points that define the tools for each request; the others define them once."""


@pytest.mark.parametrize("entry", NARROWED, ids=[each.name for each in NARROWED])
def test_each_request_offers_what_the_plan_takes_and_other_calls_are_answered(entry: EntryPoint) -> None:
    session = Session()
    agent = entry.agent(session, (), PlanPolicy(offer="possible"))
    clear: Call = ("planning_clear_plan", {})
    talk = play(agent, [[mark("S001")], [SHOP], [mark("S001"), mark("S002")], [clear], []])
    offered = [
        {
            name.removeprefix("planning_"): schema["properties"].get("step_id", {}).get("enum")
            for name, (_, schema) in each.tools.items()
        }
        for each in talk.requests
    ]
    ids = ["S001", "S002"]
    active = {"setup_plan": None, "add_step": None, "update_step": ids, "mark_step": ids}
    active |= {"clear_plan": None, "read_plan": None}
    completed = {name: active[name] for name in ("setup_plan", "mark_step", "clear_plan", "read_plan")}
    assert offered == [
        {"setup_plan": None},
        {"setup_plan": None},
        active,
        completed,
        {"setup_plan": None, "read_plan": None},
    ]
    assert talk.texts[0] == "Refused, nothing changed. no plan yet; call planning_setup_plan first"


@through("agents")
def test_a_request_offers_what_anothers_plan_takes(entry: EntryPoint, opens: Callable[[], Session]) -> None:
    agent = entry.agent(opens(), (), PlanPolicy(offer="possible"), others=[look])
    first = play(agent, [])
    assert toolbox(opens(), ()).call(*SHOP).success
    second = play(agent, [], first.after)
    assert [len(each.tools) for each in (*first.requests, *second.requests)] == [2, 7]

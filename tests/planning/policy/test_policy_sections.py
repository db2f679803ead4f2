"""What a policy keeps and demands, whoever changes the plan: in each section, session and process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from policy_cases import EVERYTHING, Agent, work
from postgres_server import store_for

from planning import (
    AddStep,
    ApprovePlan,
    ClearPlan,
    MarkStep,
    NewPlanStep,
    PlanningToolsSection,
    PlanPolicy,
    RejectPlan,
    RemoveStep,
    SetupPlan,
    Toolbox,
    ToolValidationError,
    UpdateStep,
    plan_to_dict,
    register_plan,
    tool,
)
from planning.plan.commands import MarkSteps
from planning.plan.facts import EvidenceCall, PlanFacts
from planning.plan.model import Plan, PlanStep
from planning.suite.events import framework
from planning.tools import Tool
from session import Session, Snapshot, append
from session.stores import SqliteStore, Store

WAITS = "work was not called: the plan waits for approval; end your turn and ask the user to approve it"
PARENT = "work was not called: the plan of the parent session is not approved; end your turn and say so"


@pytest.fixture
def process(opened: Callable[..., SqliteStore]) -> Callable[..., Session]:
    """Opens the session of the store, as each process does for itself."""
    return lambda **options: Session(store=opened(**options), session_id="s")


@pytest.fixture(params=["memory", "store"])
def session(request: pytest.FixtureRequest, process: Callable[..., Session]) -> Session:
    return Session() if request.param == "memory" else process()


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "opened", [SqliteStore, pytest.param(store_for, marks=pytest.mark.postgres)], ids=["sqlite", "postgres"]
)
def test_a_decision_from_elsewhere_holds_the_very_next_call(
    store_file: Path, opened: Callable[[Path], Store], *, is_async: bool
) -> None:
    with closing(opened(store_file)) as one, closing(opened(store_file)) as other:
        agent = Agent(PlanPolicy(approval=True), Session(store=one, session_id="s")).plans("A")
        elsewhere = Agent(None, Session(store=other, session_id="s"))
        assert agent.call_in(is_async, "work", {}) == "fine"
        elsewhere.session.dispatch(RejectPlan("stop"))
        assert agent.call_in(is_async, "work", {}) == (
            "work was not called: the plan was rejected (stop); change the plan first"
        )
        elsewhere.session.dispatch(ApprovePlan())
        assert agent.call_in(is_async, "work", {}) == "fine"
        elsewhere.call("setup_plan", objective="Other")
        assert agent.call_in(is_async, "work", {}) == WAITS


@pytest.mark.parametrize("is_async", [False, True])
def test_text_is_verified_for_a_step_that_another_process_has_just_added(
    process: Callable[..., Session], *, is_async: bool
) -> None:
    policy = PlanPolicy(evidence="required", verify=lambda _step, _text: True)
    here, there = Agent(policy, process()), Agent(policy, process())
    there.plans("A")
    done = {"step_id": 1, "status": "done", "evidence": ["seen"]}
    assert here.call_in(is_async, "planning_mark_step", done) == "S001 done. Plan completed."


CHANGED = (
    "Refused, nothing changed. S001 changed while its evidence was checked; read the plan, and mark it again."
)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (AddStep((NewPlanStep("B"),)), "Since you last looked: Added S002. S001 done. Next: S002 B"),
        (UpdateStep("S001", "B"), f"{CHANGED} Since you last looked: S001 retitled: B."),
    ],
)
def test_another_process_may_write_while_evidence_is_verified(
    process: Callable[..., Session], command: AddStep | UpdateStep, message: str
) -> None:
    here, elsewhere = process(), Agent(None, process(timeout=0)).session

    def verify(_step: PlanStep, _text: str) -> bool:
        elsewhere.dispatch(command)
        return True

    policy = PlanPolicy(evidence="required", verify=verify)
    assert Agent(policy, here).plans("A").mark(1, "done", "seen") == message
    elsewhere.refresh()
    assert elsewhere.history()[-2].events[0] == command


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("policy", "times"), [({"approval": True}, 0), ({"dependencies": True}, 1)])
def test_work_that_waits_for_approval_never_runs_when_the_gate_cannot_read_the_store(
    process: Callable[..., Session], policy: dict[str, Any], times: int, *, is_async: bool
) -> None:
    ran, session = list[int](), process()
    Agent(PlanPolicy(**policy), session).plans("A")
    box = Toolbox([tool(name="act", description="Act.")(lambda: ran.append(1))], session=session)
    assert session.store is not None
    session.store.delete("s")
    result = asyncio.run(box.acall("act", {})) if is_async else box.call("act", {})
    assert (result.success, result.code, ran) == (False, "storage", [1] * times)
    away = "act cannot reach its data now. Try again later, or continue without it."
    assert (result.message == away) is (times == 0)


def test_the_host_sets_up_a_plan_without_approval(session: Session) -> None:
    agent = Agent(PlanPolicy(approval=True), session).plans("A", is_approved=False)
    session.dispatch(SetupPlan("The host's"))
    assert agent.call("work") == "fine"


def test_a_disabled_section_still_demands(session: Session) -> None:
    PlanningToolsSection(session=session, policy=PlanPolicy(approval=True), enabled=lambda: False)
    agent = Agent(None, session)
    agent.call("setup_plan", objective="Ship it", initial_steps=["A"])
    assert agent.call("work") == WAITS


def test_a_plan_that_waits_is_held_from_a_snapshot(session: Session) -> None:
    Agent(PlanPolicy(approval=True), session).plans("A", is_approved=False)
    restored = Agent(None)
    restored.session.rollback(Snapshot.from_json(session.snapshot().to_json()))
    assert restored.call("work") == WAITS


@pytest.mark.parametrize("policy", [None, PlanPolicy(approval=True)])
@pytest.mark.parametrize("has_plan", [True, False])
def test_a_child_waits_with_its_parent(policy: PlanPolicy | None, *, has_plan: bool) -> None:
    parent = Agent(PlanPolicy(approval=True)).plans("A", is_approved=False)
    child = Agent(policy, Session(parent=Session(parent=parent.session)))
    if has_plan:
        child.plans("B")
    assert child.call("work") == PARENT
    assert Toolbox([tool(work)], session=child.session).call("work", {}).message == PARENT
    parent.session.dispatch(RejectPlan("no"))
    assert child.call("work") == PARENT
    parent.session.dispatch(ApprovePlan())
    assert child.call("work") == "fine"


def test_the_reply_to_a_new_plan_names_the_step_that_its_own_dependencies_let_begin() -> None:
    agent = Agent(PlanPolicy(dependencies=True))
    for first, second, is_next in (
        ({"title": "A", "depends_on": ["2"]}, "B", "S002 B"),
        ("A", "B", "S001 A"),
    ):
        said = agent.call("setup_plan", objective="Ship it", initial_steps=[first, second])
        assert said == f"Plan set: S001 to S002. Next: {is_next}"
        assert [agent.mark(number, "done") for number in (2, 1)][1] == "S001 done. Plan completed."


def test_a_toolbox_without_the_session_is_not_held() -> None:
    Agent(PlanPolicy(approval=True)).plans("A", is_approved=False)
    assert Toolbox([tool(work)]).call("work", {}).message == "fine"


# Calls that began before their step


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_that_began_before_its_step_is_no_evidence(session: Session, *, is_async: bool) -> None:
    agent = Agent(PlanPolicy(evidence="required"), session).plans("A", "B")

    def slow() -> str:
        """Begin steps while it runs."""
        assert agent.mark(1, "in_progress") == "S001 in_progress."
        assert agent.call("add_step", steps=["C"]) == "Added S003."
        return "fine"

    box = Toolbox([tool(slow)], session=session)
    assert (asyncio.run(box.acall("slow", {})) if is_async else box.call("slow", {})).success
    for step_id in ("S001", "S003"):
        assert agent.mark(step_id, "done", "C1") == (
            f"Refused, nothing changed. C1 (slow) was made before {step_id} began; call a tool that does the "
            f"work of {step_id} first"
        )
    assert agent.section.reminder().endswith("S003 pending: C")  # no evidence is offered for S001
    assert agent.mark(2, "done", "C1") == "S002 done. Next: S003 C"
    agent.call("work")
    assert agent.mark(1, "done", "C2") == "S001 done. Next: S003 C"


def test_a_call_is_no_evidence_for_a_later_step_though_its_own_is_gone(session: Session) -> None:
    agent = Agent(PlanPolicy(evidence="required"), session).plans("A", "B", "C")
    agent.mark(2, "in_progress")
    agent.mark(3, "in_progress")
    agent.call("work")
    session.dispatch(RemoveStep("S003"))
    agent.mark(1, "in_progress")
    assert agent.mark(1, "done", "C1") == (
        "Refused, nothing changed. C1 (work) was made before S001 began; call a tool that does the work of "
        "S001 first"
    )


# What is kept beside the plan


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


def test_a_process_without_a_policy_reads_and_changes_what_it_keeps(process: Callable[..., Session]) -> None:
    agent = Agent(EVERYTHING, process()).plans("A", {"title": "B", "depends_on": ["1"]})
    agent.call("work")
    agent.mark(1, "done", "C1")
    register_plan(reader := process())
    assert plan_to_dict(reader) == plan_to_dict(agent.session)
    assert reader.select_all(EvidenceCall) == agent.session.select_all(EvidenceCall)
    reader.dispatch(MarkStep("S001", "pending"))
    agent.session.refresh()
    facts = agent.session.select_latest(PlanFacts)
    assert facts is not None and facts.proofs == {}
    register_plan(again := Session())
    again.rollback(Snapshot.from_json(agent.session.snapshot().to_json()))
    assert plan_to_dict(again) == plan_to_dict(agent.session)


def test_what_a_tool_publishes_in_a_framework_is_kept_once(process: Callable[..., Session]) -> None:
    session, there = process(), process()
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
        ({"most_in_progress": 1},
         "at most 1 step may be in progress; mark S003 done, blocked or pending first"),
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

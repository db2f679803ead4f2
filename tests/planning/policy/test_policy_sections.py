"""Several sections of one session: the strictest policy holds for all of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from policy_cases import Agent, work
from postgres_server import store_for

from planning import (
    AddStep,
    ApprovePlan,
    NewPlanStep,
    PlanningToolsSection,
    PlanPolicy,
    PlanStep,
    RejectPlan,
    SetupPlan,
    Toolbox,
    UpdateStep,
    tool,
)
from planning.tools import ToolResult
from session import Session, Snapshot
from session.stores import SqliteStore, Store

WAITS = "work was not called: the plan waits for approval; end your turn and ask the user to approve it"
PARENT = "work was not called: the plan of the parent session is not approved; end your turn and say so"


def rejected(reason: str) -> str:
    return f"work was not called: the plan was rejected ({reason}); change the plan first"


@pytest.fixture(params=["memory", "store"])
def session(request: pytest.FixtureRequest, store_file: Path) -> Any:
    if request.param == "memory":
        yield Session()
        return
    with closing(SqliteStore(store_file)) as store:
        yield Session(store=store, session_id="s")


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

        def call() -> str:
            made: ToolResult = (
                asyncio.run(agent.toolbox.acall("work", {})) if is_async else agent.toolbox.call("work", {})
            )
            return made.message

        assert call() == "fine"
        elsewhere.session.dispatch(RejectPlan("stop"))
        assert call() == rejected("stop")
        elsewhere.session.dispatch(ApprovePlan())
        assert call() == "fine"
        elsewhere.call("setup_plan", objective="Other")
        assert call() == WAITS


@pytest.mark.parametrize("is_async", [False, True])
def test_text_is_verified_for_a_step_that_another_process_has_just_added(
    store_file: Path, *, is_async: bool
) -> None:
    policy = PlanPolicy(evidence="required", verify=lambda _step, _text: True)
    with closing(SqliteStore(store_file)) as one, closing(SqliteStore(store_file)) as other:
        here, there = (Agent(policy, Session(store=store, session_id="s")) for store in (one, other))
        there.plans("A")
        done = {"step_id": 1, "status": "done", "evidence": ["seen"]}
        box = here.toolbox
        call = (
            asyncio.run(box.acall("planning_mark_step", done))
            if is_async
            else box.call("planning_mark_step", done)
        )
        assert call.message == "S001 done. Plan completed."


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
    store_file: Path, command: AddStep | UpdateStep, message: str
) -> None:
    with closing(SqliteStore(store_file)) as one, closing(SqliteStore(store_file, timeout=0)) as other:
        elsewhere = Agent(None, Session(store=other, session_id="s")).session

        def verify(_step: PlanStep, _text: str) -> bool:
            elsewhere.dispatch(command)
            return True

        policy = PlanPolicy(evidence="required", verify=verify)
        assert Agent(policy, Session(store=one, session_id="s")).plans("A").mark(1, "done", "seen") == message
        elsewhere.refresh()
        assert elsewhere.history()[-2].events[0] == command


@pytest.mark.parametrize("is_async", [False, True])
def test_work_never_runs_when_the_gate_cannot_read_the_store(store_file: Path, *, is_async: bool) -> None:
    ran = list[int]()
    with closing(SqliteStore(store_file)) as store:
        session = Session(store=store, session_id="s")
        Agent(PlanPolicy(approval=True), session).plans("A")
        act = tool(name="act", description="Act.")(lambda: ran.append(1))
        box = Toolbox([act], session=session)
        store.delete("s")
        result = asyncio.run(box.acall("act", {})) if is_async else box.call("act", {})
    away = "act cannot reach its data now. Try again later, or continue without it."
    assert (result.success, result.message, ran) == (False, away, [])


def test_every_section_asks_to_finish_and_reminds(session: Session) -> None:
    Agent(PlanPolicy(finish_gate=1, approval=True), session).plans("A", is_approved=False)
    other = Agent(None, session)
    assert other.section.reminder().endswith("\nThe plan waits for the user's approval.")
    session.dispatch(ApprovePlan())
    assert [other.section.may_finish().ok for _ in range(2)] == [False, True]


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


def test_a_toolbox_without_the_session_is_not_held() -> None:
    Agent(PlanPolicy(approval=True)).plans("A", is_approved=False)
    assert Toolbox([tool(work)]).call("work", {}).message == "fine"


# Calls that began before their step


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_that_began_before_its_step_is_no_evidence(session: Session, *, is_async: bool) -> None:
    agent = Agent(PlanPolicy(evidence="required"), session).plans("A", "B")
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        """Wait."""
        begun.set()
        assert go_on.wait(20)
        return "fine"

    box = Toolbox([tool(slow)], session=session)

    def run() -> None:
        asyncio.run(box.acall("slow", {})) if is_async else box.call("slow", {})

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(20)
    assert agent.mark(1, "in_progress") == "S001 in_progress."
    assert agent.call("add_step", steps=["C"]) == "Added S003."
    go_on.set()
    thread.join()
    for step_id in ("S001", "S003"):
        assert agent.mark(step_id, "done", "C1") == (
            f"Refused, nothing changed. C1 (slow) was made before {step_id} began; call a tool that does the "
            f"work of {step_id} first"
        )
    assert agent.section.reminder().endswith("S003 pending: C")  # no evidence is offered for S001
    assert agent.mark(2, "done", "C1") == "S002 done. Next: S003 C"
    agent.call("work")
    assert agent.mark(1, "done", "C2") == "S001 done. Next: S003 C"

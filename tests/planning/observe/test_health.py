"""What a session's state is: of a plan of an agent, of a workflow run, of both, and of a recording."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from planning import ApprovePlan, Plan, PlanningToolsSection, PlanPolicy, PlanStep, RejectPlan, Toolbox
from planning.observe.health import QUIET, Health, health_of
from planning.plan.model import PlanStatus, StepStatus
from planning.suite.tools import register_plan
from planning.workflow import Workflow, WorkflowStep
from planning.workflow.failures import StepFailure
from planning.workflow.model import WorkflowStatus
from planning.workflow.run.mirror import own_ids
from planning.workflow.run.records import (
    RunChanged,
    StepChanged,
    StepRecord,
    WorkflowRun,
    is_alive,
    new_token,
    register_workflow,
)
from session import Session, SessionView
from session.stores import SqliteStore

BEGAN = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)
CHANGED = BEGAN + timedelta(minutes=5)
NOW = CHANGED + timedelta(minutes=1)
DEAD = f"{'0' * 8}-0000-0000-0000-{'0' * 12}.{new_token().split('.')[1]}.999999999.1"


def health(session: Session | SessionView, now: datetime = NOW) -> Any:
    """What is known of a session, as a dict without what is empty."""
    found = health_of(session, now, began_at=BEGAN, changed_at=CHANGED)
    return None if found is None else said(found)


def said(found: Health) -> dict[str, Any]:
    return {name: value for name, value in attrs.asdict(found).items() if value and name not in HIDDEN}


HIDDEN = {"began_at", "changed_at", "_token", "objective"}


def with_plan(status: PlanStatus, *steps: StepStatus, notes: tuple[str, ...] = ()) -> Session:
    """A session with a plan whose steps have these statuses."""
    session = Session()
    register_plan(session)
    each = (
        PlanStep(f"S00{n}", f"Step {n}", None, status, notes if status == "blocked" else ())
        for n, status in enumerate(steps, start=1)
    )
    session.dispatch(Plan("Open the shop", status, tuple(each)))
    return session


PLANS: list[tuple[Session, dict[str, Any]]] = [
    (with_plan("active"), {"state": "working"}),
    (
        with_plan("active", "pending", "pending"),
        {"state": "working", "total": 2, "step": "S001", "title": "Step 1"},
    ),
    (
        with_plan("active", "done", "pending", "in_progress", "in_progress"),
        {"state": "working", "done": 1, "total": 4, "step": "S003", "title": "Step 3", "others": 1},
    ),
    (
        with_plan("active", "blocked", "pending"),
        {"state": "working", "total": 2, "step": "S002", "title": "Step 2"},
    ),
    (
        with_plan("active", "done", "blocked", notes=("first", "No key")),
        {
            "state": "stopped",
            "done": 1,
            "total": 2,
            "step": "S002",
            "title": "Step 2",
            "error": "S002 is blocked: No key",
        },
    ),
    (
        with_plan("active", "blocked"),
        {"state": "stopped", "total": 1, "step": "S001", "title": "Step 1", "error": "S001 is blocked"},
    ),
    (with_plan("active", "done", "done"), {"state": "finished", "done": 2, "total": 2}),
    (with_plan("completed", "done"), {"state": "finished", "done": 1, "total": 1}),
    (with_plan("completed", "done", "blocked"), {"state": "finished", "done": 1, "total": 2}),
    (with_plan("abandoned"), {"state": "stopped"}),
    (with_plan("abandoned", "pending"), {"state": "stopped", "total": 1}),
]


@pytest.mark.parametrize(("session", "wanted"), PLANS)
def test_the_state_of_an_agents_plan(session: Session, wanted: dict[str, Any]) -> None:
    assert health(session) == wanted
    assert health(session.at(session.version)) == wanted


def test_without_a_plan_and_a_run_there_is_no_state() -> None:
    assert health(Session()) is None


def test_what_waits_for_approval_says_so_until_it_is_decided() -> None:
    session = Session()
    tools = PlanningToolsSection(session=session, policy=PlanPolicy(approval=True)).tools()
    toolbox = Toolbox(tools, session=session)
    setup = {"objective": "Open the shop", "initial_steps": ["Rent a room"]}
    toolbox.call("planning_setup_plan", setup)
    step = {"total": 1, "step": "S001", "title": "Rent a room"}
    assert health(session) == {"state": "waiting", **step}
    assert health(session, NOW + 9 * QUIET) == {"state": "waiting", **step}
    session.dispatch(RejectPlan("It is too dear"))
    assert health(session) == {"state": "working", "error": "The plan was rejected: It is too dear", **step}
    toolbox.call("planning_setup_plan", setup)
    session.dispatch(ApprovePlan())
    assert health(session) == {"state": "working", **step}
    toolbox.call("planning_add_step", {"steps": ["Paint it"]})
    assert health(session) == {"state": "waiting", **step, "total": 2}


def test_a_plan_without_a_change_for_an_hour_is_stopped() -> None:
    session = with_plan("active", "pending")
    assert health(session, CHANGED + QUIET - timedelta(seconds=1))["state"] == "working"
    assert health(session, CHANGED + QUIET)["state"] == "stopped"
    done = with_plan("completed", "done")
    assert health(done, CHANGED + QUIET)["state"] == "finished"


def test_nothing_works_on_a_recording() -> None:
    for session, wanted in PLANS:
        found = health_of(session, NOW)
        assert found is not None
        assert said(found) == {**wanted, "state": wanted["state"].replace("working", "stopped")}
        assert found.elapsed(NOW) is None


FLOW = Workflow(
    goal="Open the shop",
    steps=(
        WorkflowStep(step_id="rent", description="Rent a room", type="tool", name="rent"),
        WorkflowStep(step_id="paint", description="Paint it", depends_on=("rent",)),
        WorkflowStep(step_id="ask", description="Ask around", on_failure="continue"),
    ),
)
PENDING = {"step": "rent", "title": "Rent a room", "total": 3}


def with_run(
    status: WorkflowStatus = "in_progress",
    token: str = "",
    records: tuple[tuple[str, WorkflowStatus, str | None], ...] = (),
    completed_at: str | None = None,
) -> Session:
    """A session with a run whose steps came so far, a minute each."""
    session = Session()
    register_plan(session)
    register_workflow(session)
    run = WorkflowRun(
        run_id="one",
        workflow=FLOW,
        status=status,
        token=token,
        started_at=BEGAN.isoformat(),
        completed_at=completed_at,
    )
    session.dispatch(RunChanged(run, session_id=session.session_id))
    for minutes, (step_id, status_, message) in enumerate(records, start=1):
        at = (BEGAN + timedelta(minutes=minutes)).isoformat()
        error = None if message is None else StepFailure(message)
        record = StepRecord(run_id="one", step_id=step_id, status=status_, at=at, error=error)
        session.dispatch(StepChanged(record, session_id=session.session_id))
    return session


RUNS: list[tuple[Session, dict[str, Any]]] = [
    (with_run(token=new_token()), {"state": "working", **PENDING}),
    (with_run(token=DEAD), {"state": "stopped", **PENDING}),
    (with_run(), {"state": "stopped", **PENDING}),
    (
        with_run(
            token=new_token(),
            records=(
                ("rent", "in_progress", None),
                ("rent", "completed", None),
                ("ask", "in_progress", None),
            ),
        ),
        {"state": "working", "step": "ask", "title": "Ask around", "done": 1, "total": 3},
    ),
    (
        with_run(token=new_token(), records=(("rent", "in_progress", None), ("ask", "in_progress", None))),
        {"state": "working", **PENDING, "others": 1},
    ),
    (
        with_run(token=new_token(), records=(("ask", "failed", "It is closed"),)),
        {"state": "working", **PENDING, "error": "ask: It is closed"},
    ),
    (
        with_run("failed", records=(("rent", "failed", "It is let"), ("ask", "failed", "It is closed"))),
        {"state": "failed", **PENDING, "error": "rent: It is let"},
    ),
    (
        with_run("completed", records=(("rent", "completed", None), ("paint", "completed", None))),
        {"state": "finished", "done": 2, "total": 3},
    ),
    (
        with_run("completed", records=(("rent", "completed", None), ("ask", "failed", "It is closed"))),
        {"state": "finished", "done": 1, "total": 3, "error": "ask: It is closed"},
    ),
]


@pytest.mark.parametrize(("session", "wanted"), RUNS)
def test_the_state_of_a_workflow_run(session: Session, wanted: dict[str, Any]) -> None:
    assert health(session) == wanted


def test_a_run_works_as_long_as_its_process_and_elsewhere_as_long_as_it_changes() -> None:
    assert health(with_run(token=new_token()), NOW + 9 * QUIET)["state"] == "working"
    elsewhere = DEAD.replace(DEAD.split(".")[1], "0" * 16)
    for token in (elsewhere, "a-token-of-an-older-release"):
        assert health(with_run(token=token), CHANGED + QUIET - timedelta(seconds=1))["state"] == "working"
        assert health(with_run(token=token), CHANGED + QUIET)["state"] == "stopped"


def test_of_a_token_that_names_no_process_nothing_is_known() -> None:
    token = new_token()
    tokens = ["", "x", token.replace(".", "-"), "\ud800", f"{token.rpartition('.')[0]}.", f"{token}\n"]
    assert [is_alive(each) for each in tokens] == [None] * len(tokens)


def test_a_token_names_the_process_that_made_it() -> None:
    token = new_token()
    assert is_alive(token) is True
    code = "from planning.workflow.run.records import new_token; print(new_token())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert is_alive(other.stdout.strip()) is False
    assert token.split(".")[:1] != new_token().split(".")[:1]


def test_how_long_it_took_ends_with_the_run_and_goes_on_while_it_works() -> None:
    failed = with_run("failed", records=(("rent", "in_progress", None), ("rent", "failed", "It is let")))
    working = with_run(token=new_token())
    finished = with_run("completed", completed_at=(BEGAN + timedelta(seconds=90)).isoformat())
    stopped = with_run()
    took = [
        health_of(each, NOW, began_at=BEGAN - timedelta(days=1), changed_at=CHANGED)
        for each in (failed, working, finished, stopped)
    ]
    assert [each and each.elapsed(NOW) for each in took] == [120, 360, 90, 300]
    waiting = health_of(with_plan("active", "pending"), NOW, began_at=BEGAN, changed_at=CHANGED)
    assert waiting is not None
    assert waiting.elapsed(NOW) == 360


def test_of_a_session_with_a_plan_of_its_own_the_plan_counts_and_the_runs_error_is_kept() -> None:
    session = with_run("failed", records=(("rent", "failed", "It is let"),))
    session.dispatch(Plan("Another", "active", (PlanStep("S001", "Think", None, "pending", ()),)))
    assert health(session) == {
        "state": "working",
        "total": 1,
        "step": "S001",
        "title": "Think",
        "error": "rent: It is let",
    }


KILLED = """
import os, sys
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session
from session.stores import SqliteStore

steps = [WorkflowStep(step_id=each, description=each, type="tool", name=each, depends_on=after)
         for each, after in (("rent", ()), ("paint", ("rent",)))]
tools = {"rent": lambda: "here", "paint": lambda: os._exit(9)}
session = Session(session_id="shop", store=SqliteStore(sys.argv[1]))
run_workflow(Workflow(goal="Open", steps=tuple(steps)), Capabilities(tools=tools), session=session)
"""


def test_a_run_whose_process_was_killed_is_stopped_at_once(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "s.db")], check=False)
    assert done.returncode == 9
    session = Session(session_id="shop", store=SqliteStore(tmp_path / "s.db"))
    register_plan(session)
    register_workflow(session)
    now = datetime.now(UTC)
    found = health_of(session, now, began_at=now, changed_at=now)
    assert found is not None
    assert said(found) == {"state": "stopped", "done": 1, "total": 2, "step": "paint", "title": "paint"}
    run, plan = session.select_latest(WorkflowRun), session.select_latest(Plan)
    assert own_ids(plan, run) == {"S001": "rent", "S002": "paint"}
    assert own_ids(plan, None) == own_ids(None, run) == {}

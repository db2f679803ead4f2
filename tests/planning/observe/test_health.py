"""How a session is doing: an agent's plan, a workflow run, both, a recording, and all in its family."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta
from typing import Any

import pytest
from page_data import BEGAN, recorded
from policy_cases import Agent
from syrupy.assertion import SnapshotAssertion

from laws import work_of
from planning import Plan, PlanPolicy, PlanStep, RejectPlan
from planning.observe.family import family_progress
from planning.observe.health import QUIET, Health, health_of
from planning.plan.commands import MarkStep, NewPlanStep, SetupPlan
from planning.plan.model import PlanStatus, StepStatus
from planning.suite.tools import register_plan
from planning.workflow import Workflow, WorkflowStep
from planning.workflow.failures import StepFailure
from planning.workflow.model import WorkflowStatus
from planning.workflow.run import records as runs
from session import Session, SessionView

CHANGED = BEGAN + timedelta(minutes=5)
NOW = CHANGED + timedelta(minutes=1)
DEAD = f"{'0' * 8}-0000-0000-0000-{'0' * 12}.{runs.new_token().split('.')[1]}.999999999.1"


def health(session: Session | SessionView, now: datetime = NOW) -> str | None:
    """How a session is doing, on a line."""
    return said(health_of(session, now, began_at=BEGAN, changed_at=CHANGED))


def said(found: Health | None) -> str | None:
    """The state, how far it is, the step at hand, how many others are in progress, and the error."""
    if found is None:
        return None
    others = f"+{found.other_steps}" if found.other_steps else None
    words = [found.state, f"{found.done}/{found.total}", found.step, others, found.error]
    return " ".join(filter(None, words))


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


NOTES = ("first", "No key")
PLANS: list[tuple[Session, str]] = [
    (with_plan("active"), "working 0/0"),
    (with_plan("active", "pending", "pending"), "working 0/2 S001"),
    (with_plan("active", "done", "pending", "in_progress", "in_progress"), "working 1/4 S003 +1"),
    (with_plan("active", "blocked", "pending"), "working 0/2 S002"),
    (with_plan("active", "done", "blocked", notes=NOTES), "stopped 1/2 S002 S002 is blocked: No key"),
    (with_plan("active", "blocked"), "stopped 0/1 S001 S001 is blocked"),
    (with_plan("active", "blocked", notes=("x" * 512,)), f"stopped 0/1 S001 S001 is blocked: {'x' * 480}..."),
    (with_plan("active", "done", "done"), "finished 2/2"),
    (with_plan("completed", "done"), "finished 1/1"),
    (with_plan("completed", "done", "blocked"), "finished 1/2"),
    (with_plan("abandoned"), "stopped 0/0"),
    (with_plan("abandoned", "pending"), "stopped 0/1"),
]


def test_what_waits_for_approval_says_so_until_it_is_decided() -> None:
    agent = Agent(PlanPolicy(approval=True)).plans("Rent a room", is_approved=False)
    session = agent.session
    assert health(session) == "waiting 0/1 S001"
    assert health(session, NOW + 9 * QUIET) == "waiting 0/1 S001"
    session.dispatch(RejectPlan("It is too dear"))
    assert health(session) == "working 0/1 S001 The plan was rejected: It is too dear"
    agent.plans("Rent a room")
    assert health(session) == "working 0/1 S001"
    agent.call("add_step", steps=["Paint it"])
    assert health(session) == "waiting 0/2 S001"
    found = health_of(session, NOW)
    assert found is not None
    shown = (found.objective, found.title, found.label)
    assert shown == ("Ship it", "Rent a room", "waiting for approval")
    for step_id in ("S001", "S002"):
        session.dispatch(MarkStep(step_id, "blocked"))
    assert health(session) == "waiting 0/2 S001 S001 is blocked"


def test_a_plan_without_a_change_for_an_hour_is_stopped() -> None:
    session = with_plan("active", "pending")
    assert health(session, CHANGED + QUIET - timedelta(seconds=1)) == "working 0/1 S001"
    assert health(session, CHANGED + QUIET) == "stopped 0/1 S001"
    assert health(with_plan("completed", "done"), CHANGED + QUIET) == "finished 1/1"


def test_nothing_works_on_a_recording() -> None:
    for session, wanted in PLANS:
        found = health_of(session, NOW)
        assert found is not None
        assert said(found) == wanted.replace("working", "stopped")
        assert found.elapsed(NOW) is None


STEPS = (
    WorkflowStep(step_id="rent", description="Rent a room", type="tool", name="rent"),
    WorkflowStep(step_id="paint", description="Paint it", depends_on=("rent",)),
    WorkflowStep(step_id="ask", description="Ask around", on_failure="continue"),
)
FLOW = Workflow(goal="Open the shop", steps=STEPS)


def with_run(
    status: WorkflowStatus = "in_progress",
    token: str = "",
    records: tuple[tuple[str, Any, str | None], ...] = (),
    **more: Any,
) -> Session:
    """A session with a run whose steps came so far, a minute each."""
    session = Session()
    register_plan(session)
    changes = [
        {step_id: (state, 60 * minutes, {"error": None if message is None else StepFailure(message)})}
        for minutes, (step_id, state, message) in enumerate(records, start=1)
    ]
    return recorded(session, FLOW, *changes, status=status, token=token, **more)


BEGUN, DONE = ("rent", "in_progress", None), ("rent", "completed", None)
LET, CLOSED = ("rent", "failed", "It is let"), ("ask", "failed", "It is closed")
ASKING, LONG = ("ask", "in_progress", None), ("rent", "failed", "x" * 600)
RUNS: list[tuple[Session, str]] = [
    (with_run(token=runs.new_token()), "working 0/3 rent"),
    (with_run(token=DEAD), "stopped 0/3 rent"),
    (with_run(), "stopped 0/3 rent"),
    (with_run(token=runs.new_token(), records=(BEGUN, DONE, ASKING)), "working 1/3 ask"),
    (with_run(token=runs.new_token(), records=(BEGUN, ASKING)), "working 0/3 rent +1"),
    (with_run(token=runs.new_token(), records=(CLOSED,)), "working 0/3 rent ask: It is closed"),
    (with_run("failed", records=(LET, CLOSED)), "failed 0/3 rent rent: It is let"),
    (with_run("failed", records=(LONG,)), f"failed 0/3 rent rent: {'x' * 491}..."),
    (with_run("completed", records=(DONE, ("paint", "completed", None))), "finished 2/3"),
    (with_run("completed", records=(DONE, CLOSED)), "finished 1/3 ask: It is closed"),
]


@pytest.mark.parametrize(("session", "wanted"), [*PLANS, *RUNS])
def test_the_state_of_an_agents_plan_and_of_a_workflow_run(session: Session, wanted: str) -> None:
    assert health(session) == wanted
    assert health(session.at(session.version)) == wanted


def test_a_run_works_as_long_as_its_process_and_elsewhere_as_long_as_it_changes() -> None:
    assert health(with_run(token=runs.new_token()), NOW + 9 * QUIET) == "working 0/3 rent"
    elsewhere = DEAD.replace(DEAD.split(".")[1], "0" * 16)
    for token in (elsewhere, "a-token-of-an-older-release"):
        session = with_run(token=token)
        assert health(session, CHANGED + QUIET - timedelta(seconds=1)) == "working 0/3 rent"
        assert health(session, CHANGED + QUIET) == "stopped 0/3 rent"


def test_of_a_token_that_names_no_process_nothing_is_known() -> None:
    token = runs.new_token()
    tokens = ["", "x", token.replace(".", "-"), "\ud800", f"{token.rpartition('.')[0]}.", f"{token}\n"]
    assert [runs.is_alive(each) for each in tokens] == [None] * len(tokens)


def test_a_token_names_the_process_that_made_it() -> None:
    token = runs.new_token()
    assert runs.is_alive(token) is True
    code = "from planning.workflow.run.records import new_token; print(new_token())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert runs.is_alive(other.stdout.strip()) is False
    assert token.split(".")[:1] != runs.new_token().split(".")[:1]


def test_how_long_it_took_ends_with_the_run_and_goes_on_while_it_works() -> None:
    failed = with_run("failed", records=(BEGUN, LET))
    working = with_run(token=runs.new_token())
    finished = with_run("completed", completed_at=(BEGAN + timedelta(seconds=90)).isoformat())
    stopped = with_run()
    options = {"began_at": BEGAN - timedelta(days=1), "changed_at": CHANGED}
    took = [health_of(each, NOW, **options) for each in (failed, working, finished, stopped)]
    plan = health_of(with_plan("active", "pending"), NOW, began_at=BEGAN, changed_at=CHANGED)
    assert [each and each.elapsed(NOW) for each in (*took, plan)] == [120, 360, 90, 300, 360]


def test_of_a_session_with_a_plan_of_its_own_the_plan_counts_and_the_runs_error_is_kept() -> None:
    session = with_run("failed", records=(LET,))
    session.dispatch(Plan("Another", "active", (PlanStep("S001", "Think", None, "pending", ()),)))
    assert health(session) == "working 0/1 S001 rent: It is let"


def planned(name: str, steps: int, done: int, parent: Session | None = None) -> Session:
    session = Session(session_id=name, parent=parent)
    register_plan(session)
    session.dispatch(SetupPlan(f"Goal of {name}", tuple(NewPlanStep(f"Step {n}") for n in range(steps))))
    for number in range(1, done + 1):
        session.dispatch(MarkStep(f"S{number:03}", "done"))
    return session


def test_the_tree_has_each_session_with_its_counts_and_those_below(snapshot: SnapshotAssertion) -> None:
    root = planned("root", 3, 1)
    first = planned("first", 2, 2, root)
    planned("inner", 4, 3, first)
    Session(session_id="none", parent=root)
    planned("closed", 1, 0, root).close()
    family = family_progress(root)
    assert [each.totals for each in (family, *family.children)] == [(6, 9), (5, 6), (0, 0)]
    assert {family: "hashable"}[family_progress(root)]
    assert str(family) == snapshot
    assert family_progress(first) == family.children[0] != family.children[1]


def test_the_work_grows_with_the_children_alone() -> None:
    def work(count: int) -> int:
        root = planned("root", 1, 0)
        children = [planned(f"child-{number}", 3, 1, root) for number in range(count)]
        assert family_progress(root).totals == (len(children), 1 + 3 * count)
        return work_of(lambda: family_progress(root))

    assert work(80) < 4.2 * work(20)


def test_a_long_chain_of_parents_does_not_recurse() -> None:
    depth = 1_100  # more than Python recurses
    chain = [planned("s0", 1, 1)]
    for number in range(1, depth):
        chain.append(planned(f"s{number}", 1, 1, chain[-1]))
    family = family_progress(chain[0])
    assert family.totals == (depth, depth)
    assert family == family_progress(chain[0])
    assert repr(family).endswith(f"totals={family.totals}, children=<1>)")
    assert str(family).splitlines()[-1] == f'{"  " * 20}s1099: completed, 1 of 1 done: "Goal of s1099"'

"""The commands on a session with a policy, and ``planning approve``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from cli_runs import plain, run, written_in_terminal
from store_files import call, timeless
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanningToolsSection, PlanPolicy, Toolbox
from planning.plan.commands import ApprovePlan, RejectPlan, RemoveStep
from planning.plan.facts import PlanFacts
from planning.tools import Tool
from session import Session
from session.stores import SqliteStore

Agent = tuple[Session, Toolbox]


@pytest.fixture
def session() -> Session:
    """A session in a store, whose agent works under every policy that shows."""
    session = Session(session_id="nightly", store=SqliteStore("plans.db"))
    policy = PlanPolicy(
        evidence="required",
        verify=lambda _, text: text == "build 7",
        approval=True,
        dependencies=True,
        stale_after=1,
        finish_gate=1,
        batch_marks=True,
    )
    section = PlanningToolsSection(session=session, policy=policy)
    toolbox = Toolbox(
        [*section.tools(), Tool("run_tests", "Run the tests.", lambda: "42 passed")], session=session
    )
    steps = ["Find it", {"title": "Mend it", "depends_on": [1]}, {"title": "Tell", "depends_on": [1, 2]}]
    call(toolbox, "setup_plan", "c1", objective="Fix the login", initial_steps=steps)
    session.dispatch(RejectPlan("Say which login"))
    call(toolbox, "update_step", "c2", step_id="S001", title="Find the mobile login")
    session.dispatch(ApprovePlan())
    call(toolbox, "mark_step", "c3", step_id="S001", status="in_progress")
    toolbox.call("run_tests", {}, context={"call_id": "c4", "actor": "model"})
    section.take_notice()
    call(toolbox, "mark_step", "c5", step_id="S001", status="done", evidence=["C1"])
    call(toolbox, "mark_step", "c6", step_id="S002", status="in_progress")
    marks = [
        {"step_id": "S002", "status": "done", "evidence": ["build 7"]},
        {"step_id": "S003", "status": "in_progress"},
    ]
    call(toolbox, "mark_step", "c7", marks=marks)
    call(toolbox, "add_step", "c8", steps=["Write it down", "Rest"])
    section.may_finish()
    section.may_finish()
    with session.transaction(actor="ann") as transaction:
        transaction.dispatch(RemoveStep("S001"))
    return session


COMMANDS = [
    "history plans.db nightly",
    "show plans.db nightly",
    "show plans.db nightly --at 2",
    "show plans.db nightly --json",
    "diff plans.db nightly 1 8",
    "diff plans.db nightly 3 4",
    "diff plans.db nightly 5 6",
    "rewind plans.db nightly 1",
    "sessions plans.db",
]


@pytest.mark.usefixtures("session")
def test_what_people_read_of_a_policy(snapshot: SnapshotAssertion) -> None:
    shown = "".join(f"-- {command}\n{timeless(run(*command.split()))}" for command in COMMANDS)
    assert shown == snapshot


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("columns", [60, 120])
def test_a_terminal_shows_it_beside_the_steps(columns: int, snapshot: SnapshotAssertion) -> None:
    shown = plain(written_in_terminal(columns, "show", "plans.db", "nightly", NO_COLOR="1"))
    assert max(map(len, shown.splitlines())) <= columns
    assert timeless(shown) == snapshot


def test_a_snapshot_keeps_it(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text(session.snapshot().to_json())
    store = re.sub(r", \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(, took [\d.]+ s)?", "", run("show", "plans.db"))
    snapshot = run("show", str(file))  # it has no times
    assert snapshot == store.replace("== nightly, version 14 of 14 ==", "== Final plan ==")


# Approval


@pytest.fixture
def agent() -> Agent:
    """An agent with a tool, and a plan that waits, in ``plans.db`` of the current folder."""
    session = Session(session_id="nightly", store=SqliteStore("plans.db"))
    policy = PlanPolicy(approval=True, evidence="required", stale_after=2)
    section = PlanningToolsSection(session=session, policy=policy)
    box = Toolbox([*section.tools(), Tool("work", "Work.", lambda: "worked")], session=session)
    box.call(
        "planning_setup_plan", {"objective": "Open the shop", "initial_steps": ["Rent a room", "Paint it"]}
    )
    return session, box


RUNS: dict[str, tuple[list[str], str | None]] = {
    "approve": ([], "approve\n"),
    "reject": ([], "what?\n\nreject\nBuy a room\n"),
    "reject without a reason": ([], "reject\n\n"),
    "no answer of the two": ([], "yes\n" * 9),
    "no answer": ([], None),
    "yes": (["--yes"], None),
    "reject with the option": (["--reject", "Buy a room"], None),
    "both": (["--yes", "--reject", "no"], None),
    "a blank reason": (["--reject", " "], None),
}


@pytest.mark.parametrize("name", RUNS)
def test_what_the_user_is_asked_and_what_comes_of_it(
    name: str, agent: Agent, snapshot: SnapshotAssertion
) -> None:
    options, stdin = RUNS[name]
    shown = run("approve", "plans.db", "nightly", *options, stdin=stdin)
    called = agent[1].call("work", {}).message  # in its own process, as it were
    facts, actors = agent[0].select_latest(PlanFacts), [change.actor for change in agent[0].history()]
    assert facts is not None
    assert f"{shown}-- {facts.approval}, by {actors}\n{called}\n" == snapshot


def test_nothing_waits(agent: Agent) -> None:
    run("approve", "plans.db", "--yes")
    assert run("approve", "plans.db", "--yes") == "exit code 1\n--- stdout\nNothing waits for approval.\n"
    assert run("approve", "plans.db", "weekly").startswith("exit code 2\n")
    assert run("approve", "other.db").startswith("exit code 2\n")


def test_a_plan_that_changes_while_the_user_thinks_is_shown_anew(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    session, box = agent
    answers: list[Any] = [("planning_add_step", {"steps": ["Sell it"]}), None]

    def answer(_question: str) -> str:
        change = answers.pop(0)
        if change is not None:
            assert box.call(*change).success
        return "approve"

    monkeypatch.setattr("builtins.input", answer)
    assert run("approve", "plans.db") == snapshot
    session.refresh()
    plan, facts = session.select_latest(Plan), session.select_latest(PlanFacts)
    assert plan is not None
    assert facts is not None
    assert (len(plan.steps), facts.approval) == (3, "approved")


def test_a_step_that_waits_alone_is_approved_and_the_work_in_progress_does_not_matter(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    box = agent[1]
    run("approve", "plans.db", "--yes")
    box.call("planning_add_step", {"steps": ["Sell it"]})

    def answer(_question: str) -> str:
        assert box.call("planning_mark_step", {"step_id": "S001", "status": "in_progress"}).success
        return "approve"

    monkeypatch.setattr("builtins.input", answer)
    assert run("approve", "plans.db") == snapshot
    assert box.call("planning_mark_step", {"step_id": "S003", "status": "in_progress"}).success

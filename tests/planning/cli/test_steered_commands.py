"""``planning approve`` and ``watch``, and the commands on a session with a policy."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_runs import commands_in, plain, printed, run, runs, started, written_in_terminal
from page_data import call, kept, run_of, waiting
from run_folders import PATIENCE
from store_files import timeless
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanningToolsSection, PlanPolicy, Toolbox
from planning.cli import history
from planning.plan.commands import ApprovePlan, RejectPlan, RemoveStep
from planning.plan.facts import PlanFacts
from planning.policy.reducers import AskToFinish
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


@pytest.mark.usefixtures("session")
def test_what_people_read_of_a_policy(snapshot: SnapshotAssertion) -> None:
    assert timeless(runs(commands_in(snapshot))) == snapshot


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
def agent(folder: Path) -> Agent:
    """A session whose plan waits, in ``plans.db`` of the current folder, and its tools."""
    return waiting(folder / "plans.db")


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
def test_what_the_user_is_asked_and_answers(name: str, agent: Agent, snapshot: SnapshotAssertion) -> None:
    options, stdin = RUNS[name]
    shown = run("approve", "plans.db", "nightly", *options, stdin=stdin)
    called = agent[1].call("copy", {}).message  # in its own process, as it were
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
    assert (len(plan.steps), facts.approval) == (4, "approved")


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
    assert box.call("planning_mark_step", {"step_id": "S004", "status": "in_progress"}).success


# A plan that another program changes: planning watch

STEPS = ["Find it", "Mend it"]
BEGIN = "New plan: Fix it. Added S001, S002.\n  S001  Find it\n  S002  Mend it\n"
Watched = Callable[..., str]


@pytest.fixture
def planned(folder: Path) -> Agent:
    """A session with a plan of two steps, and its tools."""
    session, toolbox = kept(folder / "plans.db")
    call(toolbox, "setup_plan", objective="Fix it", initial_steps=STEPS)
    return session, toolbox


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """What a watch shows of changes, one between two looks at the store, until the session is deleted."""

    def watch(*changes: Callable[[], object], options: str = "") -> str:
        ends = (lambda: SqliteStore("plans.db").delete("nightly"), lambda: None)
        left: Iterator[Callable[[], object]] = iter((*changes, *ends))
        monkeypatch.setattr(history, "time", SimpleNamespace(sleep=lambda _: next(left)()))
        return run("watch", "plans.db", "nightly", *options.split())

    return watch


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_an_interrupted_watch_ends_without_a_word(number: signal.Signals, code: int, planned: Agent) -> None:
    with started("watch", "plans.db", "nightly") as process:
        assert process.stdout is not None
        assert "".join(process.stdout.readline() for _ in range(3)) == BEGIN
        call(planned[1], "mark_step", step_id="S001", status="done")
        assert process.stdout.readline() == "S001 done.\n"
        process.send_signal(number)
        assert (*process.communicate(timeout=PATIENCE), process.returncode) == ("", "", code)


def test_each_change_is_shown_until_the_session_is_deleted(
    planned: Agent, watched: Watched, snapshot: SnapshotAssertion
) -> None:
    session, toolbox = planned
    assert snapshot == watched(
        lambda: call(toolbox, "mark_step", step_id="S001", status="done", note="In the cookie"),
        lambda: call(toolbox, "mark_step", step_id="S009", status="done"),
        lambda: session.rewind(1),
        lambda: call(toolbox, "setup_plan", objective="Fix more", initial_steps=["Look"]),
        session.reset,
    )


def test_steps_of_a_workflow_have_their_ids(
    folder: Path, watched: Watched, snapshot: SnapshotAssertion
) -> None:
    session, toolbox = kept(folder / "plans.db")
    run_of(session, {"S002": [], "load": []})
    assert snapshot == watched(
        lambda: session.rewind(1),
        lambda: call(toolbox, "mark_step", step_id="S001", status="done"),
        lambda: call(toolbox, "setup_plan", objective="Else", initial_steps=["Look"]),
    )


def test_approval_and_evidence_are_shown(agent: Agent, watched: Watched, snapshot: SnapshotAssertion) -> None:
    session, toolbox = agent
    assert snapshot == watched(
        lambda: session.dispatch(ApprovePlan()),
        lambda: toolbox.call("copy", {}),
        lambda: call(toolbox, "mark_step", step_id="S001", status="done", evidence=["C1"]),
        lambda: session.dispatch(AskToFinish(("S002", "S003"), let_go=False)),
    )


def test_json_has_one_line_for_each_change(planned: Agent, watched: Watched) -> None:
    told = list[Any]()
    shown = watched(
        lambda: call(planned[1], "read_plan"),
        lambda: call(planned[1], "mark_step", step_id="S002", status="in_progress"),
        lambda: told.extend(printed("history", "plans.db", "nightly", "--json")),
        options="--json",
    )
    _, _, head, _, *lines = shown.splitlines()
    assert head == "planning: the session was deleted"
    assert [json.loads(line) for line in lines] == told[1:]


@pytest.mark.usefixtures("planned")
def test_a_store_that_is_gone_ends_the_watch(folder: Path, watched: Watched) -> None:
    shown = watched(lambda: (folder / "plans.db").rename("moved.db"))
    reason = f"planning: the store {folder / 'plans.db'} is gone"
    assert shown == f"exit code 1\n--- stderr\n{reason}\n--- stdout\n{BEGIN}"

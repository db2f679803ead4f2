"""``planning approve``: the question, the answers, and an agent that changes its plan meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli_runs import run
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanningToolsSection, PlanPolicy, Toolbox
from planning.plan.facts import PlanFacts
from session import Session
from session.stores import SqliteStore

POLICY = PlanPolicy(approval=True, evidence="required", stale_after=2)


def opened(path: Path) -> tuple[Session, Toolbox]:
    """The session of an agent, with a tool of its own."""
    session = Session(session_id="nightly", store=SqliteStore(path))
    section = PlanningToolsSection(session=session, policy=POLICY)
    return session, Toolbox([*section.tools(), work], session=session)


def work() -> str:
    """Work."""
    return "worked"


@pytest.fixture
def agent(folder: Path) -> tuple[Session, Toolbox]:
    """An agent with a plan that waits, in ``plans.db`` of the current folder."""
    session, box = opened(folder / "plans.db")
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
    name: str, agent: tuple[Session, Toolbox], snapshot: SnapshotAssertion
) -> None:
    options, stdin = RUNS[name]
    shown = run("approve", "plans.db", "nightly", *options, stdin=stdin)
    called = agent[1].call("work", {}).message  # in its own process, as it were
    facts, actors = agent[0].select_latest(PlanFacts), [change.actor for change in agent[0].history()]
    assert facts is not None
    assert f"{shown}-- {facts.approval}, by {actors}\n{called}\n" == snapshot


def test_nothing_waits(agent: tuple[Session, Toolbox]) -> None:
    run("approve", "plans.db", "--yes")
    assert run("approve", "plans.db", "--yes") == "exit code 1\n--- stdout\nNothing waits for approval.\n"
    assert run("approve", "plans.db", "weekly").startswith("exit code 2\n")
    assert run("approve", "other.db").startswith("exit code 2\n")


def test_a_plan_that_changes_while_the_user_thinks_is_shown_anew(
    agent: tuple[Session, Toolbox], monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
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
    agent: tuple[Session, Toolbox], monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
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

"""``planning watch``: a plan that another program changes."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli_runs import run, started
from page_data import call, kept
from run_folders import PATIENCE

from planning import PlanningToolsSection, PlanPolicy, Toolbox
from planning.cli import history
from planning.plan.commands import ApprovePlan
from planning.tools import Tool
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session
from session.stores import SqliteStore

STEPS = ["Find it", "Mend it"]
BEGIN = "New plan: Fix it. Added S001, S002.\n  S001  Find it\n  S002  Mend it\n"
DELETED = "planning: the session was deleted\n"


Agent = tuple[Session, Toolbox]


@pytest.fixture
def agent(folder: Path) -> Agent:
    """A session with a plan of two steps, and its tools."""
    session, toolbox = kept(folder / "plans.db")
    call(toolbox, "setup_plan", objective="Fix it", initial_steps=STEPS)
    return session, toolbox


Watched = Callable[..., str]


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
def test_an_interrupted_watch_ends_without_a_word(number: signal.Signals, code: int, agent: Agent) -> None:
    with started("watch", "plans.db", "nightly") as process:
        assert process.stdout is not None
        assert "".join(process.stdout.readline() for _ in range(3)) == BEGIN
        call(agent[1], "mark_step", step_id="S001", status="done")
        assert process.stdout.readline() == "S001 done.\n"
        process.send_signal(number)
        assert (*process.communicate(timeout=PATIENCE), process.returncode) == ("", "", code)


def test_each_change_is_shown_until_the_session_is_deleted(agent: Agent, watched: Watched) -> None:
    session, toolbox = agent
    shown = watched(
        lambda: call(toolbox, "mark_step", step_id="S001", status="done", note="In the cookie"),
        lambda: call(toolbox, "mark_step", step_id="S009", status="done"),
        lambda: session.rewind(1),
        lambda: call(toolbox, "setup_plan", objective="Fix more", initial_steps=["Look"]),
        session.reset,
    )
    assert shown == (
        f"exit code 0\n--- stderr\n{DELETED}--- stdout\n{BEGIN}"
        "S001 done: In the cookie.\n"
        "Refused planning_mark_step: step_id: the plan has no step S009; its steps are S001 to S002\n"
        "S001 pending. Notes of S001 removed.\n"
        "New plan: Fix more. Added S001.\n"
        "  S001  Look\n"
        "Plan removed.\n"
    )


def test_the_steps_of_a_workflow_have_their_own_ids(folder: Path, watched: Watched) -> None:
    session, toolbox = kept(folder / "plans.db")
    steps = tuple(WorkflowStep(step_id=each, description=f"Do {each}") for each in ("S002", "load"))
    run_workflow(Workflow(goal="Load it", steps=steps), Capabilities(), session=session)
    shown = watched(
        lambda: session.rewind(1),
        lambda: call(toolbox, "mark_step", step_id="S001", status="done"),
        lambda: call(toolbox, "setup_plan", objective="Else", initial_steps=["Look"]),
    )
    assert shown.split("--- stdout\n")[1] == (
        "New plan: Load it. Added S002, load. Plan completed.\n"
        "  S002  Do S002\n"
        "  load  Do load\n"
        "S002, load pending. Notes of S002, load removed. Plan reopened.\n"
        "S002 done.\n"
        "New plan: Else. Added S001.\n"
        "  S001  Look\n"
    )


def test_approval_and_evidence_are_shown_as_they_come(folder: Path, watched: Watched) -> None:
    session = Session(session_id="nightly", store=SqliteStore(folder / "plans.db"))
    policy = PlanPolicy(approval=True, evidence="required", finish_gate=1)
    section = PlanningToolsSection(session=session, policy=policy)
    look = Tool(name="look", description="Look", function=lambda: "seen")
    toolbox = Toolbox([*section.tools(), look], session=session)
    call(toolbox, "setup_plan", objective="Fix it", initial_steps=STEPS)
    shown = watched(
        lambda: session.dispatch(ApprovePlan()),
        lambda: toolbox.call("look", {}),
        lambda: call(toolbox, "mark_step", step_id="S001", status="done", evidence=["C1"]),
        section.may_finish,
    )
    assert shown.split("--- stdout\n")[1] == (
        f"{BEGIN}The plan waits for approval.\n"
        "The host approved the plan.\n"
        "S001 done.\n"
        "S001 reported with C1 (look).\n"
        "The agent was not allowed to finish with S002 open.\n"
    )


def test_json_has_one_line_for_each_change(agent: Agent, watched: Watched) -> None:
    shown = watched(
        lambda: call(agent[1], "read_plan"),
        lambda: call(agent[1], "mark_step", step_id="S002", status="in_progress"),
        options="--json",
    )
    head, *lines = shown.splitlines()[2:]
    assert [f"{head}\n", *lines[:1]] == [DELETED, "--- stdout"]
    read, marked = (json.loads(line) for line in lines[1:])
    assert (read["version"], read["text"], read["changed"], read["diff"]) == (
        2, "Called planning_read_plan.", False, None,
    )  # fmt: skip
    assert (marked["version"], marked["text"]) == (3, "S002 in_progress.")
    assert marked["plan"]["steps"][1]["status"] == "in_progress"


@pytest.mark.usefixtures("agent")
def test_a_store_that_is_gone_ends_the_watch(folder: Path, watched: Watched) -> None:
    shown = watched(lambda: (folder / "plans.db").rename("moved.db"))
    reason = f"planning: the store {folder / 'plans.db'} is gone"
    assert shown == f"exit code 1\n--- stderr\n{reason}\n--- stdout\n{BEGIN}"

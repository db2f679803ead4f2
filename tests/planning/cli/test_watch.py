"""``planning watch``: a plan that another process changes."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_runs import started
from run_folders import PATIENCE

from planning import PlanningToolsSection, PlanPolicy, Toolbox
from planning.plan.commands import ApprovePlan
from planning.tools import Tool
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session
from session.stores import SqliteStore

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """A store with a plan."""
    store = SqliteStore(tmp_path / "plans.db")
    yield store
    store.close()


@pytest.fixture
def session(store: SqliteStore) -> Session:
    """A session in the store."""
    return Session(session_id="nightly", store=store)


@pytest.fixture
def toolbox(session: Session) -> Toolbox:
    """The tools of the session, which has a plan of two steps."""
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    toolbox.invoke("planning_setup_plan", {"objective": "Fix it", "initial_steps": ["Find it", "Mend it"]})
    return toolbox


Watch = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Starts to watch the session."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*options: str) -> subprocess.Popen[str]:
        begun.append(started("watch", "plans.db", "nightly", *options))
        return begun[-1]

    yield begin
    for process in begun:
        if process.poll() is None:
            process.kill()
            process.communicate()


def next_line(process: subprocess.Popen[str]) -> str:
    """The next line that is printed."""
    assert process.stdout is not None
    return process.stdout.readline()


BEGIN = ["New plan: Fix it. Added S001, S002.\n", "  S001  Find it\n", "  S002  Mend it\n"]


@pytest.mark.usefixtures("toolbox")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_watch_that_is_interrupted_ends_without_a_word(
    number: signal.Signals, code: int, watch: Watch
) -> None:
    process = watch()
    assert [next_line(process) for _ in BEGIN] == BEGIN
    process.send_signal(number)
    assert (*process.communicate(timeout=PATIENCE), process.returncode) == ("", "", code)


def test_each_change_is_shown_until_the_session_is_deleted(
    toolbox: Toolbox, session: Session, store: SqliteStore, watch: Watch
) -> None:
    process = watch()
    assert [next_line(process) for _ in BEGIN] == BEGIN
    toolbox.invoke("planning_mark_step", {"step_id": "S001", "status": "done", "note": "In the cookie"})
    toolbox.call("planning_mark_step", {"step_id": "S009", "status": "done"})
    session.rewind(1)
    toolbox.invoke("planning_setup_plan", {"objective": "Fix more", "initial_steps": ["Look"]})
    session.reset()
    shown = [next_line(process) for _ in range(6)]
    store.delete("nightly")
    out, errors = process.communicate(timeout=PATIENCE)
    assert "".join([*shown, out]) == (
        "S001 done: In the cookie.\n"
        "Refused planning_mark_step: step_id: the plan has no step S009; its steps are S001 to S002\n"
        "S001 pending. Notes of S001 removed.\n"
        "New plan: Fix more. Added S001.\n"
        "  S001  Look\n"
        "Plan removed.\n"
    )
    assert (errors, process.returncode) == ("planning: the session was deleted\n", 0)


def test_the_steps_of_a_workflow_have_their_own_ids(session: Session, watch: Watch) -> None:
    steps = tuple(WorkflowStep(step_id=each, description=f"Do {each}") for each in ("S002", "load"))
    run_workflow(Workflow(goal="Load it", steps=steps), Capabilities(), session=session)
    process = watch()
    assert [next_line(process) for _ in range(3)] == [
        "New plan: Load it. Added S002, load. Plan completed.\n",
        "  S002  Do S002\n",
        "  load  Do load\n",
    ]
    session.rewind(1)
    assert next_line(process).startswith("S002, load pending. ")
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    toolbox.invoke("planning_mark_step", {"step_id": "S001", "status": "done"})
    assert next_line(process) == "S002 done.\n"
    toolbox.invoke("planning_setup_plan", {"objective": "Else", "initial_steps": ["Look"]})
    assert [next_line(process) for _ in range(2)] == ["New plan: Else. Added S001.\n", "  S001  Look\n"]


def test_approval_and_evidence_are_shown_as_they_come(session: Session, watch: Watch) -> None:
    policy = PlanPolicy(approval=True, evidence="required", finish_gate=1)
    section = PlanningToolsSection(session=session, policy=policy)
    look = Tool(name="look", description="Look", function=lambda: "seen")
    toolbox = Toolbox([*section.tools(), look], session=session)
    toolbox.invoke("planning_setup_plan", {"objective": "Fix it", "initial_steps": ["Find it", "Mend it"]})
    process = watch()
    expected = [*BEGIN, "The plan waits for approval.\n"]
    assert [next_line(process) for _ in expected] == expected
    session.dispatch(ApprovePlan())
    toolbox.call("look", {})
    toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done", "evidence": ["C1"]})
    section.may_finish()
    assert [next_line(process) for _ in range(4)] == [
        "The host approved the plan.\n",
        "S001 done.\n",
        "S001 reported with C1 (look).\n",
        "The agent was not allowed to finish with S002 open.\n",
    ]


def test_json_has_one_line_for_each_change(
    toolbox: Toolbox, session: Session, store: SqliteStore, watch: Watch
) -> None:
    process, lines = watch("--json"), list[str]()
    # Nothing is printed before the first change: changes until it is heard.

    reader = threading.Thread(target=lambda: lines.append(next_line(process)))
    reader.start()
    while reader.is_alive():
        toolbox.call("planning_read_plan", {})
        reader.join(0.05)
    first = json.loads(lines[0])
    toolbox.invoke("planning_mark_step", {"step_id": "S002", "status": "in_progress"})
    store_version = session.version
    found = [first]
    while found[-1]["version"] < store_version:
        found.append(json.loads(next_line(process)))
    assert [each["version"] for each in found] == list(range(first["version"], store_version + 1))
    assert (found[0]["text"], found[0]["changed"], found[0]["diff"]) == (
        "Called planning_read_plan.",
        False,
        None,
    )
    assert (found[-1]["text"], found[-1]["plan"]["steps"][1]["status"]) == (
        "S002 in_progress.",
        "in_progress",
    )
    store.delete("nightly")
    assert (process.communicate(timeout=PATIENCE)[0], process.returncode) == ("", 0)


@pytest.mark.usefixtures("toolbox")
def test_a_store_that_is_gone_ends_the_watch(tmp_path: Path, watch: Watch) -> None:
    process = watch()
    assert [next_line(process) for _ in BEGIN] == BEGIN
    (tmp_path / "plans.db").rename(tmp_path / "moved.db")
    assert (*process.communicate(timeout=PATIENCE), process.returncode) == (
        "",
        f"planning: the store {tmp_path / 'plans.db'} is gone\n",
        1,
    )

"""A store and snapshots that were written when the classes had other places are read and written on.

``tests/stored`` has a plan without a policy, one under a policy, and a workflow's run that failed, as they
were written before version 0.2.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from session_records import printed
from syrupy.assertion import SnapshotAssertion

from planning import (
    ApprovePlan,
    Plan,
    PlanningToolsSection,
    PlanPolicy,
    Toolbox,
    plan_text,
    plan_to_dict,
    register_plan,
)
from planning.tools import tool
from planning.workflow import Capabilities, run_workflow
from planning.workflow.model import Workflow
from planning.workflow.run.records import register_workflow
from session import Session, Snapshot, select_latest
from session.stores import SqliteStore

STORED = Path(__file__).parents[2] / "stored"
POLICY = PlanPolicy(evidence="required", approval=True, dependencies=True, batch_marks=True, agent_edits=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "plans.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"PRAGMA journal_mode = WAL; {(STORED / 'store.sql').read_text()}")
    return path


def opened(path: Path, name: str) -> Session:
    session = Session(session_id=name, store=SqliteStore(path))
    register_plan(session, POLICY if name == "steered" else None)
    register_workflow(session)
    return session


def read_of(session: Session) -> dict[str, Any]:
    """All that is read of a session."""
    versions = {version: session.at(version) for version in range(1, session.version + 1)}
    plans = {version: past.select_latest(Plan) for version, past in versions.items() if version < 12}
    return {
        "plan": plan_to_dict(session),
        "plans": {version: plan and plan_text(plan) for version, plan in plans.items()},
        "history": [
            (change.version, change.actor, list(map(repr, change.events))) for change in session.history()
        ],
    }


@pytest.mark.parametrize(
    "name", ["plain", "plain:fork", "steered", "run"], ids=["plain", "fork", "steered", "run"]
)
def test_a_stored_session_is_read_as_it_was_written(
    path: Path, name: str, snapshot: SnapshotAssertion
) -> None:
    session = opened(path, name)
    assert session.store is not None
    assert session.store.verify(name) == session.version
    assert json.dumps(read_of(session), indent=1, default=str) == snapshot


def test_a_stored_session_is_rewound_and_written_on(path: Path) -> None:
    session = opened(path, "plain")
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    first = {
        "objective": "Fix the login",
        "initial_steps": ["Reproduce it", {"title": "Fix it", "details": "In auth.py"}],
    }
    known = toolbox.call("planning_setup_plan", first, context={"idempotency_key": "k1"})
    assert known.message == "Plan set: S001 to S002. Next: S001 Reproduce it"
    session.rewind(2)
    assert toolbox.call("planning_add_step", {"steps": ["c"]}).message == "Added S003."
    again = opened(path, "plain")
    assert select_latest(again, Plan) == select_latest(session, Plan)
    assert again.store is not None
    assert again.store.verify("plain") == again.version


def test_a_plan_under_a_policy_goes_on(path: Path) -> None:
    session = opened(path, "steered")
    toolbox = Toolbox(PlanningToolsSection(session=session, policy=POLICY).tools(), session=session)
    refused = toolbox.call("planning_mark_step", {"step_id": "S004", "status": "in_progress"})
    assert refused.message == (
        "Refused, nothing changed. S004 waits for approval; work on another step, or ask the user to "
        "approve it"
    )
    session.dispatch(ApprovePlan())
    assert toolbox.call("planning_remove_step", {"step_id": "S004"}).message == "S004 removed."
    assert toolbox.call("planning_add_step", {"steps": ["New"]}).message == (
        "Added S005. Ask the user to approve it first."
    )


def test_a_run_is_resumed(path: Path) -> None:
    @tool
    def search(query: str) -> dict:  # type: ignore[type-arg]  # as it was written
        """Search the web."""
        raise AssertionError(query)

    @tool
    def fetch(url: str) -> str:
        """Read a page."""
        return f"The text of {url}"

    session = opened(path, "run")
    workflow = select_latest(session, Workflow)
    assert workflow is not None
    result = run_workflow(
        workflow, Capabilities(tools=[search, fetch]), session=session, user_prompt="What is new?"
    )
    assert (result.status, result.outputs["read"]) == ("completed", "The text of https://example.org")


@pytest.mark.parametrize("name", ["plain", "steered", "run"])
def test_a_snapshot_is_read_by_a_program_that_imports_the_package_alone(name: str) -> None:
    file = STORED / f"snapshot_{name}.json"
    code = (
        "import sys, planning.workflow.run.records\n"
        "from session import Snapshot\n"
        "print(Snapshot.from_json(open(sys.argv[1]).read()).to_json())"
    )
    assert printed(code, file) == file.read_text()


@pytest.mark.parametrize("name", ["plain", "steered", "run"])
def test_a_snapshot_is_restored(path: Path, name: str) -> None:
    session = Session()
    register_plan(session)
    register_workflow(session)
    session.rollback(Snapshot.from_json((STORED / f"snapshot_{name}.json").read_text()))
    assert plan_to_dict(session) == plan_to_dict(opened(path, name))


def test_a_program_with_a_class_of_the_same_name_and_without_the_package_reads_its_own(path: Path) -> None:
    code = (
        "import sys, attrs\n"
        "from session import Session, replace_latest, select_latest\n"
        "Plan = attrs.make_class('Plan', ['name'], frozen=True)\n"
        "session = Session(session_id='plain', store=sys.argv[1])\n"
        "session.register_reducer(Plan, replace_latest)\n"
        "print(select_latest(session, Plan), 'planning' in sys.modules)"
    )
    assert printed(code, path) == "None False\n"

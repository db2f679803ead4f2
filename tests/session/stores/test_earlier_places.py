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
    Plan,
    PlanPolicy,
    plan_text,
    plan_to_dict,
    register_plan,
)
from planning.workflow.run.records import register_workflow
from session import Session
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


@pytest.mark.parametrize("name", ["plain", "steered", "run"])
def test_a_snapshot_is_read_by_a_program_that_imports_the_package_alone(name: str) -> None:
    file = STORED / f"snapshot_{name}.json"
    code = (
        "import sys, planning.workflow.run.records\n"
        "from session import Snapshot\n"
        "print(Snapshot.from_json(open(sys.argv[1]).read()).to_json())"
    )
    assert printed(code, file) == file.read_text()


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

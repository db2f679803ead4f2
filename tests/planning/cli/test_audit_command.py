"""``planning audit``: what it prints of stores, transcripts and snapshots, for whom, and its exit codes."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli_runs import TRIAGE, commands_in, run, runs, written_in_terminal
from store_files import timeless
from syrupy.assertion import SnapshotAssertion

from planning import PlanningToolsSection, PlanPolicy, Toolbox, ToolError, tool
from session import Session
from session.stores import SqliteStore


@tool(returns_private_data=True)
def search(query: str) -> str:
    """Search."""
    if query == "bad":
        raise ToolError("secret")
    return "secret"


def played(name: str, *acts: Any, policy: PlanPolicy | None = None) -> None:
    """A session of an agent: the steps of a plan, marks, queries to search for, versions to go back to."""
    session = Session(session_id=name, store=SqliteStore("plans.db"))
    section = PlanningToolsSection(session=session, policy=policy)
    toolbox = Toolbox([*section.tools(), search], session=session)
    for act in acts:
        if isinstance(act, int):
            session.rewind(act, actor="ann")
        elif isinstance(act, tuple):
            step_id, status, *more = act[0].split()
            arguments = {"step_id": step_id, "status": status, **dict(zip(more, act[1:], strict=True))}
            toolbox.call("planning_mark_step", arguments, context={"actor": "model"})
        elif isinstance(act, list):
            arguments = {"objective": "Fix the login", "initial_steps": act}
            toolbox.call("planning_setup_plan", arguments, context={"actor": "model"})
        else:
            toolbox.call("search", {"query": act})
    Path(f"{name}.json").write_text(session.snapshot().to_json())


STEPS = ["Find it", "Mend it", "Test it", "Ship it"]


@pytest.fixture(autouse=True)
def agents() -> None:
    """A store of agents that are good, careless and cheat."""
    work = ("secret", ("S001 done",), "secret", ("S002 done",))
    played("good", STEPS[:2], ("S002 done",), 1, *work)
    marks = ("S9 done", "S003 pending", "S001 in_progress", "S004 in_progress")
    first, *later = ((mark,) for mark in marks)
    played(
        "careless", STEPS, *["secret"] * 10, ("S003 done",), first, ("S3 finished note", "\x1b[31m"), *later,
        STEPS[:3], "bad", ("S001 done",), ("S003 done",),
    )  # fmt: skip
    played(
        "cheat", [f"Step {number}" for number in range(1, 13)], *((f"S{n:03} done",) for n in range(1, 13))
    )
    seen = PlanPolicy(evidence="required", verify=lambda _step, text: text == "seen")
    proofs = [("S001 done evidence", ["C1"]), ("S002 done evidence", ["seen"])]
    played("policy", STEPS[:2], ("S001 done",), "secret", *proofs, policy=seen)


def test_what_it_prints(snapshot: SnapshotAssertion) -> None:
    shutil.copy(TRIAGE, TRIAGE.name)
    text = timeless(runs(commands_in(snapshot)))
    assert text == snapshot
    assert "secret" not in text
    assert "\x1b" not in text


def test_what_it_refuses(snapshot: SnapshotAssertion) -> None:
    Path("plan.json").write_text('{"steps": [{"step_id": "a"}]}')
    assert runs(commands_in(snapshot)) == snapshot


def test_in_a_terminal_of_eighty_columns_no_line_is_longer() -> None:
    lines = written_in_terminal(80, "audit", "plans.db", "careless").splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > 20


def test_a_damaged_history_is_judged_up_to_the_damage() -> None:
    with closing(sqlite3.connect("plans.db")) as database, database:
        database.execute("UPDATE changes SET text = 'x' || text WHERE version = 5")
    text = run("audit", "plans.db", "cheat")
    assert text.startswith("exit code 1\n--- stderr\nplanning: ")
    assert "version 5" in text
    assert text.count("Marked done without a call") == 3

"""``planning audit``: what it prints of stores, transcripts and snapshots, for whom, and its exit codes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_runs import TRIAGE, run, runs, written_in_terminal
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


class Agent:
    """A scripted agent on a session of the store."""

    def __init__(self, name: str, policy: PlanPolicy | None = None) -> None:
        self.session = Session(session_id=name, store=SqliteStore("plans.db"))
        section = PlanningToolsSection(session=self.session, policy=policy)
        self._toolbox = Toolbox([*section.tools(), search], session=self.session)

    def search(self, query: str = "secret") -> None:
        self._toolbox.call("search", {"query": query})

    def plan(self, *steps: str) -> None:
        self._call("setup_plan", objective="Fix the login", initial_steps=steps)

    def mark(self, step_id: str, status: str = "done", **more: object) -> None:
        self._call("mark_step", step_id=step_id, status=status, **more)

    def _call(self, name: str, **arguments: object) -> None:
        self._toolbox.call(f"planning_{name}", arguments, context={"actor": "model"})


@pytest.fixture(autouse=True)
def agents() -> None:
    """A store of agents that are good, careless and cheat."""
    good = Agent("good")
    good.plan("Find it", "Mend it")
    good.mark("S002")
    good.session.rewind(1, actor="ann")
    for step_id in ("S001", "S002"):
        good.search()
        good.mark(step_id)
    careless = Agent("careless")
    careless.plan("Find it", "Mend it", "Test it", "Ship it")
    for _ in range(10):
        careless.search()
    careless.mark("S003")
    careless.mark("S9")
    careless.mark("S3", "finished", note="\x1b[31m")
    for mark in ("S003 pending", "S001 in_progress", "S004 in_progress"):
        careless.mark(*mark.split())
    careless.plan("Find it", "Mend it", "Test it")
    careless.search("bad")
    careless.mark("S001")
    careless.mark("S003")
    Path("snapshot.json").write_text(careless.session.snapshot().to_json())
    cheat = Agent("cheat")
    cheat.plan(*[f"Step {number}" for number in range(1, 13)])
    for number in range(1, 13):
        cheat.mark(f"S{number:03}")
    seen = PlanPolicy(evidence="required", verify=lambda _step, text: text == "seen")
    policy = Agent("policy", seen)
    policy.plan("Find it", "Mend it")
    policy.mark("S001")
    policy.search()
    policy.mark("S001", evidence=["C1"])
    policy.mark("S002", evidence=["seen"])
    Path("policy.json").write_text(policy.session.snapshot().to_json())


SHOWN = [
    "audit plans.db good",
    "audit plans.db careless",
    "audit plans.db cheat",
    "audit plans.db policy",
    "audit snapshot.json --json",
    "audit policy.json",
    f"audit {TRIAGE}",
    "audit plans.db careless --format github --fail-on stale,done_without_call",
    "audit plans.db cheat --fail-on unfinished,stale",
    "audit plans.db policy --json",
    "audit plans.db good --json --fail-on unfinished",
]

WRONG = [
    "audit plans.db",
    "audit plans.db goud",
    "audit plans.db cheat --fail-on done",
    "audit snapshot.json good",
    "audit missing.db",
    "audit plan.json",
    "audit",
]


def test_what_it_prints(snapshot: SnapshotAssertion) -> None:
    text = "".join(
        f"-- {each.replace(str(TRIAGE), TRIAGE.name)}\n{timeless(run(*each.split()))}" for each in SHOWN
    )
    assert text == snapshot
    assert "secret" not in text
    assert "\x1b" not in text


def test_what_it_refuses(snapshot: SnapshotAssertion) -> None:
    Path("plan.json").write_text('{"steps": [{"step_id": "a"}]}')
    assert runs(WRONG) == snapshot


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

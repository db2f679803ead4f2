"""``planning show``: what it reads, and what it shows of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_runs import TRIAGE, left_in, printed, run, runs, written_in_terminal
from page_data import call, in_memory, kept
from run_folders import FINE
from store_files import Mine, timeless
from syrupy.assertion import SnapshotAssertion

from planning import PlanningToolsSection, Toolbox
from planning.observe.stores import open_session
from session import Session, append
from session.stores import SqliteStore

WITH = ("--tools", "step_tools:tools", "--prompt", "larks", "--store", "runs.db")


@pytest.fixture(autouse=True)
def runs_in_a_store(folder: Path, run_folder: None) -> None:
    """Two runs in a store, and a snapshot of each in place of its workflow."""
    for name in ("fine", "failing"):
        plan = (folder / f"{name}.json").rename(f"{name}.plan.json")
        run("run", plan.name, *WITH, name)
        snapshot = open_session(SqliteStore("runs.db"), name).snapshot()
        (folder / f"{name}.json").write_text(snapshot.to_json())


@pytest.mark.parametrize("options", [[], ["--verbose"]], ids=["brief", "verbose"])
@pytest.mark.parametrize("name", ["fine", "failing"])
def test_a_run_is_shown_with_its_answer(name: str, options: list[str], snapshot: SnapshotAssertion) -> None:
    shown = run("show", f"{name}.json", *options)
    assert timeless(shown) == snapshot
    stored = run("show", "runs.db", name, *options)  # has its version in a line
    assert stored.split("\n", 3)[3] == shown.split("\n", 2)[2]


def test_json_holds_the_plan_and_the_run() -> None:
    shown = printed("show", "fine.json", "--json")
    assert (list(shown), shown["plan"]["status"]) == (["plan", "run"], "completed")
    again = run("run", "fine.plan.json", *WITH[-2:], "fine", "--resume", "--json")
    assert shown["run"] == json.loads(again.split("--- stdout\n")[1])


def test_a_transcript_is_shown_with_its_final_plan() -> None:
    whole = run("replay", str(TRIAGE)).split("== Final plan ==")[1].rsplit("\n\n", 1)[0]
    assert run("show", str(TRIAGE)) == f"exit code 0\n--- stdout\n== Final plan =={whole}\n"
    assert run("show", "-", stdin=TRIAGE.read_text()) == run("show", str(TRIAGE))


def test_a_session_of_a_program_is_shown_without_its_other_slices(folder: Path) -> None:
    session, toolbox = in_memory()
    session.register_reducer(Mine, append)
    session.dispatch(Mine("x"))
    call(toolbox, "setup_plan", objective="Fix it", initial_steps=["Find it"])
    text = session.snapshot().to_json().replace("store_files:Mine", "elsewhere:Mine")
    (folder / "session.json").write_text(text)
    assert run("show", "session.json") == (
        "exit code 0\n--- stdout\n== Final plan ==\nFix it (active, 0 of 1 done)\nS001 pending: Find it\n"
    )
    assert printed("show", "session.json", "--json")["run"] is None


START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_each_step_of_a_plan_has_its_time_and_how_long_it_took(
    monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    times = (START.timestamp() + 65 * number for number in range(99))
    monkeypatch.setattr("session.transaction.time", lambda: next(times))
    session, toolbox = kept(Path("timed.db"), "timed")
    call(toolbox, "setup_plan", objective="Fix it", initial_steps=["Find it", "Mend it", "Try it"])
    for mark in ("S001 in_progress", "S001 done", "S002 in_progress", "S002 pending", "S003 done"):
        step_id, status = mark.split()
        call(toolbox, "mark_step", step_id=step_id, status=status)
    session.rewind(5)
    assert runs(["show timed.db", "show timed.db --at 4", "show timed.db --json"]) == snapshot


def test_a_reminder_is_the_active_plan_as_a_model_reads_it() -> None:
    session = Session(session_id="agent", store=SqliteStore("plans.db"))
    section = PlanningToolsSection(session=session)
    toolbox = Toolbox(section.tools())
    toolbox.call("planning_setup_plan", {"objective": "Fix it", "initial_steps": ["Look", "Mend"]})
    toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done", "note": "Seen"})
    shown = run("show", "plans.db", "agent", "--reminder")
    assert shown == f"exit code 0\n--- stdout\n{section.reminder()}\n"
    toolbox.call("planning_mark_step", {"step_id": "S002", "status": "done"})
    assert run("show", "plans.db", "--reminder") == "exit code 0\n"
    assert run("show", "plans.db", "--at", "1", "--reminder", "agent").endswith("S002 pending: Mend\n")


def test_a_terminal_gets_the_run_as_a_table(snapshot: SnapshotAssertion) -> None:
    text = written_in_terminal(80, "show", "fine.json", NO_COLOR="1")
    assert timeless(left_in(text)) == snapshot


WRONG: dict[str, str | bytes] = {
    "empty": "",
    "deep": "[" * 100_000,
    "bytes": b"\xff",
    "list": "[]",
    "workflow": FINE,
    "version": '{"slices": {}}',
    "hostile": json.dumps({"slices": {"planning.model:Plan": [{"objective": "\x1b[2J"}]}, "version": 2}),
}


def test_what_cannot_be_shown_is_refused(folder: Path, snapshot: SnapshotAssertion) -> None:
    for name, text in WRONG.items():
        (folder / f"{name}.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    shown = runs([f"{name}.txt" for name in WRONG], "show ")
    assert (shown.count("exit code 2\n"), "\x1b" in shown) == (len(WRONG), False)
    assert shown == snapshot

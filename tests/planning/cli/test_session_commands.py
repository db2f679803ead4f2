"""``planning sessions``, ``show``, ``history``, ``diff``, ``rewind``, ``fork``, ``verify``; files shown."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_runs import TRIAGE, commands_in, in_terminal, left_in, printed, run, runs, written_in_terminal
from page_data import call, in_memory, kept
from run_folders import FINE
from store_files import Mine, all_of, timeless
from syrupy.assertion import SnapshotAssertion

from planning import PlanningToolsSection, Toolbox
from planning.observe.stores import open_session
from planning.plan.model import Plan
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session, append
from session.stores import SqliteStore

pytestmark = pytest.mark.usefixtures("store_folder")


PLANS = Path("plans.db")


CHANGING = {"rewind", "fork"}  # which stand last
JSON = "sessions plans.db, history plans.db nightly, diff plans.db nightly 2 6, verify plans.db nightly"


def test_what_each_command_shows_of_a_session(snapshot: SnapshotAssertion) -> None:
    before, shown = all_of(SqliteStore(PLANS)), ""
    for command in commands_in(snapshot):
        shown += f"-- {command}\n{timeless(run(*command.split()))}"
        if command.split()[0] not in CHANGING:
            assert all_of(SqliteStore(PLANS)) == before
    assert shown == snapshot


def test_what_each_command_prints_as_json(snapshot: SnapshotAssertion) -> None:
    assert "".join(timeless(run(*each.split(), "--json")) for each in JSON.split(", ")) == snapshot


UUIDS = [f"0e8f2a4c-7b1d-4f6e-9a3b-5c2d1e0f{number:04}" for number in range(3)]


@pytest.mark.parametrize("columns", [40, 60, 80, 160])
def test_a_terminal_has_one_line_for_a_session_or_two_in_40_columns_and_every_id_whole(
    columns: int, folder: Path, snapshot: SnapshotAssertion
) -> None:
    for name in (*UUIDS, "nightly"):
        toolbox, goal = kept(folder / "ids.db", name)[1], "Mend the login of the app " * 4
        call(toolbox, "setup_plan", objective=goal, initial_steps=["Find it"])
    shown = written_in_terminal(columns, "sessions", "ids.db", NO_COLOR="1")
    assert max(map(len, shown.splitlines())) <= columns
    assert [name for name in UUIDS if name not in shown] == []
    assert timeless(shown) == snapshot


NOTES = {
    "done": '{"city": "Bern", "said": "it \\"rains\\""}',
    "pending": '["' + "ab " * 160,
    "blocked": "It was [odd]",
}


def test_the_history_has_json_as_json_and_breaks_between_words(snapshot: SnapshotAssertion) -> None:
    toolbox = kept(PLANS, "notes")[1]
    toolbox.call("planning_setup_plan", {"objective": "Report the weather", "initial_steps": ["Look"]})
    for status, note in NOTES.items():
        toolbox.call("planning_mark_step", {"step_id": "S001", "status": status, "note": note})
    shown = run("history", "plans.db", "notes") + written_in_terminal(80, "history", "plans.db", "notes")
    shown += run("diff", "plans.db", "notes", "1", "2") + run("rewind", "plans.db", "notes", "2")
    assert timeless(shown) == snapshot
    kept(PLANS, "notes")[0].rewind(2, actor="\x1b[2Jann")
    assert "<ESC>[2J" not in in_terminal(80, "history", "plans.db", "notes", NO_COLOR="1")
    assert run("history", "plans.db", "notes", "--limit", "2").count("\n") == 4
    assert run("history", "plans.db", "notes", "--limit", "9", "--after", "5").count("\n") == 3


def test_a_failed_run_says_why_in_red_and_has_its_own_step_ids(snapshot: SnapshotAssertion) -> None:
    def boom() -> None:
        raise ConnectionError("it is gone")

    session, toolbox = kept(PLANS, "flow")
    tools = {"S002": lambda: "worked", "fetch": lambda: "worked", "S001": boom}
    steps = tuple(WorkflowStep(step_id=each, description=each, type="tool", name=each) for each in tools)
    flow, known = Workflow(goal="Load it", steps=steps), Capabilities(tools=tools)
    run_workflow(flow, known, session=session, max_parallel=1)
    assert "\nflow     <ESC>[1;31mfailed<ESC>[0m    2 of 3  " in in_terminal(150, "sessions", "plans.db")
    (found,) = (each for each in printed("sessions", "plans.db", "--json") if each["session_id"] == "flow")
    assert 0 < found["seconds"] < 60
    assert timeless(json.dumps(found, indent=1)) == snapshot(name="json")
    assert timeless(run("sessions", "plans.db")) == snapshot(name="sessions")
    call(toolbox, "add_step", steps=["Tell the team"])
    between = f"diff plans.db flow 1 {session.version}"
    assert timeless(runs(["history plans.db flow", between, "show plans.db flow"])) == snapshot
    first = printed("history", "plans.db", "flow", "--json")[0]
    assert first["names"] == {"S001": "S002", "S002": "fetch", "S003": "S001"}
    assert first["diff"]["added"][0]["step"]["step_id"] == "S001"
    assert printed(*between.split(), "--json")["names"] == first["names"]


def test_a_rewind_is_a_new_change_of_the_session_and_a_fork_has_a_history_of_its_own() -> None:
    before = kept(PLANS)[0].at(2).select_latest(Plan)
    shown = printed("rewind", "plans.db", "nightly", "2", "--json")
    session = kept(PLANS)[0]
    assert (shown["session_id"], shown["version"], session.version) == ("nightly", 7, 7)
    assert (session.select_latest(Plan), session.history(6)[0].actor) == (before, "planning rewind")
    shown = printed("fork", "plans.db", "nightly", "--as", "mine", "--json")
    assert shown == {"session_id": "mine", "version": 7}
    assert kept(PLANS, "mine")[0].select_latest(Plan) == before
    random = printed("fork", "plans.db", "nightly", "--at", "2", "--json")
    assert (len(random["session_id"]), random["version"]) == (36, 2)


def test_the_fifty_sessions_that_were_changed_last_are_listed(folder: Path) -> None:
    store = SqliteStore(folder / "many.db")
    for number in range(53):
        Session(session_id=f"s{number:02}", store=store).reset()
    lines = run("sessions", "many.db").split("--- stdout\n")[1].splitlines()
    assert (lines[1].split()[0], lines[50].split()[0]) == ("s52", "s03")
    assert lines[51:] == ["and 3 more; --all lists all"]
    assert len(run("sessions", "many.db", "--all").splitlines()) == 2 + 1 + 53
    assert len(printed("sessions", "many.db", "--all", "--json")) == 53


SHOWN: dict[str, str | bytes] = {
    "empty": "",
    "deep": "[" * 100_000,
    "bytes": b"\xff",
    "list": "[]",
    "workflow": FINE,
    "version": '{"slices": {}}',
    "hostile": json.dumps({"slices": {"planning.model:Plan": [{"objective": "\x1b[2J"}]}, "version": 2}),
    "sqlite": b"SQLite format 3\0",
    "errors": '[{"step_id": "a", "depends_on": ["b"]}]',
}


def test_wrong_input_is_refused_and_creates_nothing(folder: Path, snapshot: SnapshotAssertion) -> None:
    (folder / "empty.db").touch()
    (folder / "notes.txt").write_text("Remember the milk.")
    for name, text in SHOWN.items():
        (folder / f"{name}.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    with closing(sqlite3.connect(folder / "bare.db")) as bare:
        bare.executescript("CREATE TABLE t (x); DROP TABLE t; VACUUM")
    (folder / "cut.db").write_bytes((folder / "plans.db").read_bytes()[:50])
    (folder / "newer.db").write_bytes((folder / "plans.db").read_bytes())
    with closing(sqlite3.connect("newer.db")) as newer:
        newer.execute("PRAGMA user_version = 3")
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(folder / "pipe")
    files, kept_ = {path.name: path.stat().st_size for path in folder.iterdir()}, all_of(SqliteStore(PLANS))
    commands = commands_in(snapshot)
    shown = runs(commands).replace(f"{folder}/", "")
    assert (shown.count("exit code 2\n"), "\x1b" in shown) == (len(commands), False)
    assert shown == snapshot
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == files
    assert all_of(SqliteStore(PLANS)) == kept_


def test_of_a_damaged_session_all_before_the_damage_is_shown(snapshot: SnapshotAssertion) -> None:
    with closing(sqlite3.connect("plans.db")) as database, database:
        database.execute("UPDATE changes SET text = replace(text, 'at', 'aT') WHERE version = 3")
    names = ("history", "verify")
    commands = [f"{name} plans.db nightly{more}" for more in (" --json", "") for name in names]
    commands += ["show plans.db nightly", "show plans.db nightly --at 2"]
    assert timeless("\n".join(run(*each.split()) for each in commands)) == snapshot


def test_a_plan_that_an_own_reducer_changed_is_not_made_up(snapshot: SnapshotAssertion) -> None:
    session = kept(PLANS)[0]
    session.register_reducer(str, lambda _plans, text: (Plan(text, "active"),), Plan)
    session.dispatch("Mine")
    assert run("show", "plans.db", "nightly") == snapshot
    history = printed("history", "plans.db", "nightly", "--json")
    assert (len(history), history[-1]["diff"], history[-1]["plan"]) == (7, None, None)


def test_a_whole_id_names_its_session_though_another_begins_with_it() -> None:
    before = run("history", "plans.db", "nightly")
    run("fork", "plans.db", "nightly", "--as", "nightly-2")
    assert run("history", "plans.db", "nightly") == before


@pytest.mark.parametrize("command", ["show", "history", "audit", "verify"])
def test_the_store_of_planning_run_is_read_by_default(command: str) -> None:
    Path(".planning").mkdir()
    run("store", "copy", "plans.db", ".planning/runs.db", "nightly")
    assert run(command) == run(command, ".planning/runs.db")
    assert run(command).startswith("exit code 0\n")


# planning show: what it reads, and what it shows of it

WITH = ("--tools", "step_tools:tools", "--prompt", "larks", "--store", "runs.db")


@pytest.fixture
def runs_in_a_store(folder: Path, run_folder: None) -> None:
    """Two runs in a store, and a snapshot of each in place of its workflow."""
    for name in ("fine", "failing"):
        plan = (folder / f"{name}.json").rename(f"{name}.plan.json")
        run("run", plan.name, *WITH, name)
        snapshot = open_session(SqliteStore("runs.db"), name).snapshot()
        (folder / f"{name}.json").write_text(snapshot.to_json())


@pytest.mark.usefixtures("runs_in_a_store")
@pytest.mark.parametrize("options", [[], ["--verbose"]], ids=["brief", "verbose"])
@pytest.mark.parametrize("name", ["fine", "failing"])
def test_a_run_is_shown_with_its_answer(name: str, options: list[str], snapshot: SnapshotAssertion) -> None:
    shown = run("show", f"{name}.json", *options)
    assert timeless(shown) == snapshot
    stored = run("show", "runs.db", name, *options)  # has its version in a line
    assert stored.split("\n", 3)[3] == shown.split("\n", 2)[2]


@pytest.mark.usefixtures("runs_in_a_store")
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


def test_each_step_has_its_time(monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
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
    session = Session(session_id="agent", store=SqliteStore("agent.db"))
    section = PlanningToolsSection(session=session)
    toolbox = Toolbox(section.tools())
    toolbox.call("planning_setup_plan", {"objective": "Fix it", "initial_steps": ["Look", "Mend"]})
    toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done", "note": "Seen"})
    shown = run("show", "agent.db", "agent", "--reminder")
    assert shown == f"exit code 0\n--- stdout\n{section.reminder()}\n"
    toolbox.call("planning_mark_step", {"step_id": "S002", "status": "done"})
    assert run("show", "agent.db", "--reminder") == "exit code 0\n"
    assert run("show", "agent.db", "--at", "1", "--reminder", "agent").endswith("S002 pending: Mend\n")


@pytest.mark.usefixtures("runs_in_a_store")
def test_a_terminal_gets_the_run_as_a_table(snapshot: SnapshotAssertion) -> None:
    text = written_in_terminal(80, "show", "fine.json", NO_COLOR="1")
    assert timeless(left_in(text)) == snapshot

"""``planning sessions``, ``show``, ``history``, ``diff``, ``rewind``, ``fork`` and ``verify`` on a store."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli_runs import in_terminal, run, runs, written_in_terminal
from store_files import timeless
from syrupy.assertion import SnapshotAssertion

from planning import PlanningToolsSection, Toolbox
from planning.integrations._rewind import calling
from planning.plan.model import Plan
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session
from session.stores import SqliteStore

pytestmark = pytest.mark.usefixtures("store_folder")


def opened(session_id: str) -> Session:
    """A session of the store."""
    session = Session(session_id=session_id, store=SqliteStore("plans.db"))
    PlanningToolsSection(session=session)
    return session


def printed(*arguments: str) -> Any:
    """What a command prints as JSON."""
    head, text = run(*arguments, "--json").split("--- stdout\n")
    assert head == "exit code 0\n"
    return json.loads(text)


COMMANDS = [
    "sessions plans.db",
    "show plans.db nightly",
    "show plans.db nightly --at 2",
    "show plans.db nightly --at 0",
    "show plans.db run",
    "show plans.db run --at 2",
    "show plans.db other",
    "history plans.db nightly --after 1",
    "history plans.db run",
    "history plans.db other",
    "history plans.db what-if",
    "diff plans.db nightly 2 6",
    "diff plans.db nightly 2 2",
    "diff plans.db nightly 2",
    "diff plans.db nightly",
    "verify plans.db nightly",
    "rewind plans.db nightly 2",
    "fork plans.db nightly --at 2 --as another",
]


JSON = [
    "sessions plans.db",
    "history plans.db nightly",
    "diff plans.db nightly 2 6",
    "verify plans.db nightly",
]


def test_what_each_command_shows_of_a_session(snapshot: SnapshotAssertion) -> None:
    shown = [f"-- {each}\n{timeless(run(*each.split()))}" for each in COMMANDS]
    assert "".join(shown) == snapshot


def test_what_each_command_prints_as_json(snapshot: SnapshotAssertion) -> None:
    shown = [timeless(run(*each.split(), "--json")) for each in JSON]
    for text in shown:
        json.loads(text.split("--- stdout\n")[1])
    assert "".join(shown) == snapshot


UUIDS = [f"0e8f2a4c-7b1d-4f6e-9a3b-5c2d1e0f{number:04}" for number in range(3)]


@pytest.mark.parametrize("columns", [40, 60, 80, 160])
def test_a_terminal_has_one_line_for_a_session_or_two_in_40_columns_and_every_id_whole(
    columns: int, folder: Path, snapshot: SnapshotAssertion
) -> None:
    store = SqliteStore(folder / "ids.db")
    for name in (*UUIDS, "nightly"):
        session = Session(session_id=name, store=store)
        toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
        toolbox.call(
            "planning_setup_plan",
            {"objective": "Mend the login of the app " * 4, "initial_steps": ["Find it"]},
        )
    shown = written_in_terminal(columns, "sessions", "ids.db", NO_COLOR="1")
    assert max(map(len, shown.splitlines())) <= columns
    assert [name for name in UUIDS if name not in shown] == []
    assert timeless(shown) == snapshot


def test_an_id_that_is_wider_than_the_terminal_is_not_cut(folder: Path) -> None:
    name = "x" * 128
    Session(session_id=name, store=SqliteStore(folder / "ids.db")).reset()
    for columns in (40, 80, 160):
        assert name in written_in_terminal(columns, "sessions", "ids.db").replace("\n", "")


def test_reading_changes_nothing_in_the_store() -> None:
    before = [(head.session_id, head.version) for head in SqliteStore("plans.db").sessions()]
    for command in COMMANDS[:-2]:
        run(*command.split())
    assert [(head.session_id, head.version) for head in SqliteStore("plans.db").sessions()] == before


def test_the_history_has_no_words_for_the_framework_that_made_a_change() -> None:
    session = Session(session_id="agents", store=SqliteStore("plans.db"))
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    with calling(session, "langchain:thread-a", "1"):
        toolbox.call("planning_setup_plan", {"objective": "Open the shop", "initial_steps": ["Rent a room"]})
        toolbox.call("planning_read_plan", {})
    assert [each["text"] for each in printed("history", "plans.db", "agents")] == [
        "New plan: Open the shop. Added S001.",
        "Called planning_read_plan.",
    ]


NOTES = {
    "json": '{"city": "Bern", "said": "it \\"rains\\""}',
    "cut": '["' + "ab " * 160,
    "words": "It was [odd]",
}


def test_the_history_has_json_as_json_and_breaks_between_words(snapshot: SnapshotAssertion) -> None:
    session = Session(session_id="notes", store=SqliteStore("plans.db"))
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    toolbox.call("planning_setup_plan", {"objective": "Report the weather", "initial_steps": ["Look"]})
    for status, note in zip(("done", "pending", "blocked"), NOTES.values(), strict=True):
        toolbox.call("planning_mark_step", {"step_id": "S001", "status": status, "note": note})
    shown = run("history", "plans.db", "notes") + written_in_terminal(80, "history", "plans.db", "notes")
    shown += run("diff", "plans.db", "notes", "1", "2") + run("rewind", "plans.db", "notes", "2")
    assert timeless(shown) == snapshot
    assert run("history", "plans.db", "notes", "--limit", "2").count("\n") == 4
    assert run("history", "plans.db", "notes", "--limit", "9", "--after", "4").count("\n") == 3


def a_workflow_run(*step_ids: str) -> None:
    """Run a workflow with these ids in a session of the store; its last tool fails."""

    def boom() -> None:
        raise ConnectionError("it is gone")

    steps = tuple(
        WorkflowStep(
            step_id=each, description=each, type="tool", name="boom" if each == step_ids[-1] else "work"
        )
        for each in step_ids
    )
    tools = {"work": lambda: "worked", "boom": boom}
    session = Session(session_id="flow", store=SqliteStore("plans.db"))
    run_workflow(
        Workflow(goal="Load it", steps=steps), Capabilities(tools=tools), session=session, max_parallel=1
    )


def test_a_step_of_a_workflow_has_its_own_id_in_every_command() -> None:
    a_workflow_run("S002", "fetch", "S001")
    toolbox = Toolbox(PlanningToolsSection(session=opened("flow")).tools())
    toolbox.call("planning_add_step", {"steps": ["Tell the team"]})
    last = opened("flow").version
    shown = printed("history", "plans.db", "flow")
    assert shown[0]["text"] == "Run in progress: Load it. New plan: Load it. Added S002, fetch, S001."
    assert shown[0]["names"] == {"S001": "S002", "S002": "fetch", "S003": "S001"}
    assert shown[0]["diff"]["added"][0]["step"]["step_id"] == "S001"
    assert shown[-1]["text"] == "Added S004."
    text = run("history", "plans.db", "flow")
    assert "S001 blocked: Failed: boom cannot reach its data now" in text
    assert "S003" not in text
    difference = printed("diff", "plans.db", "flow", "1", str(last))
    assert difference["text"].startswith("S002 done: worked. fetch done: worked. S001 blocked: Failed:")
    assert difference["text"].endswith(" Added S004.")
    assert difference["names"] == shown[0]["names"]
    shown = run("show", "plans.db", "flow").partition("Load it: ")[0]
    steps = re.findall(r"^(\S+) (?:done|blocked|pending)\b", shown, re.MULTILINE)
    assert steps == ["S002", "fetch", "S001", "S004"]


def test_a_failed_run_says_so_in_red_and_why() -> None:
    a_workflow_run("fetch", "load")
    (line,) = (each for each in run("sessions", "plans.db").splitlines() if each.startswith("flow "))
    assert re.split("  +", line)[:3] == ["flow", "failed", "1 of 2"]
    assert line.endswith("  load: it is gone (Load it)")
    assert "\nflow     <ESC>[1;31mfailed<ESC>[0m    1 of 2  " in in_terminal(150, "sessions", "plans.db")
    (found,) = (each for each in printed("sessions", "plans.db") if each["session_id"] == "flow")
    assert 0 < found["seconds"] < 60
    names = ("state", "objective", "done", "total", "step", "title", "others", "error")
    assert {name: found[name] for name in names} == {
        "state": "failed",
        "objective": "Load it",
        "done": 1,
        "total": 2,
        "step": "load",
        "title": "load",
        "others": 0,
        "error": "load: it is gone",
    }


def test_a_rewind_is_a_new_change_of_the_session() -> None:
    before = opened("nightly").at(2).select_latest(Plan)
    shown = printed("rewind", "plans.db", "nightly", "2")
    session = opened("nightly")
    assert (shown["session_id"], shown["version"], session.version) == ("nightly", 7, 7)
    assert (session.select_latest(Plan), session.history(6)[0].actor) == (before, "planning rewind")


def test_a_fork_has_a_history_of_its_own() -> None:
    shown = printed("fork", "plans.db", "nightly", "--as", "mine")
    assert shown == {"session_id": "mine", "version": 6}
    assert opened("mine").select_latest(Plan) == opened("nightly").select_latest(Plan)
    random = printed("fork", "plans.db", "nightly", "--at", "2")
    assert (len(random["session_id"]), random["version"]) == (36, 2)


def test_the_fifty_sessions_that_were_changed_last_are_listed(folder: Path) -> None:
    store = SqliteStore(folder / "many.db")
    for number in range(53):
        Session(session_id=f"s{number:02}", store=store).reset()
    lines = run("sessions", "many.db").split("--- stdout\n")[1].splitlines()
    assert (lines[1].split()[0], lines[50].split()[0]) == ("s52", "s03")
    assert lines[51:] == ["and 3 more; --all lists all"]
    assert len(run("sessions", "many.db", "--all").splitlines()) == 2 + 1 + 53
    assert len(printed("sessions", "many.db", "--all")) == 53


def test_a_store_without_sessions_says_so(folder: Path) -> None:
    SqliteStore(folder / "new.db").close()
    assert run("sessions", "new.db") == "exit code 0\n--- stdout\nNo sessions.\n"
    assert printed("sessions", "new.db") == []


REFUSED = [
    *(f"sessions {each}" for each in ("missing.db", ".", "-", "empty.db", "notes.txt", "bare.db")),
    "sessions mysql://localhost/plans",
    "show plans.db nigthly",
    "history plans.db zebra",
    "show plans.db nightly --at 7",
    "history plans.db nightly --after 7",
    "diff plans.db nightly 1 7",
    "rewind plans.db nightly 7",
    "fork plans.db nightly --at 7",
    "fork plans.db nightly --as run",
]


def test_wrong_input_is_refused_and_creates_nothing(folder: Path, snapshot: SnapshotAssertion) -> None:
    (folder / "empty.db").touch()
    (folder / "notes.txt").write_text("Remember the milk.")
    with closing(sqlite3.connect(folder / "bare.db")) as bare:
        bare.executescript("CREATE TABLE t (x); DROP TABLE t; VACUUM")
    files = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert runs(REFUSED).replace(f"{folder}/", "") == snapshot
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == files


@pytest.mark.parametrize("command", ["sessions", "view", "export -o run.html"])
def test_the_default_store_that_is_not_there_yet_says_what_creates_it(command: str) -> None:
    assert run(*command.split()) == (
        "exit code 2\n--- stderr\nplanning: cannot read '.planning/runs.db': No such file or directory;"
        " 'planning run' creates it, or name another\n"
    )


def test_what_is_not_a_file_is_refused_without_waiting_for_it(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(folder / "pipe")
    for command in ("sessions pipe", "sessions link", "show pipe x", "watch pipe x"):
        name = command.split()[1]
        assert run(*command.split()) == (
            f"exit code 2\n--- stderr\nplanning: '{name}' is not a store of sessions\n"
        )


WRONG = [
    "show run.json --at 3",
    "show plans.db a/b",
    "fork plans.db nightly --as a/b",
    "fork plans.db nightly --as nightly",
    "rewind plans.db nightly -1",
    "diff plans.db nightly one 2",
    "history plans.db",
    *(f"{each} plans.db --session nightly" for each in ("show", "view", "export", "sessions delete")),
    "run plan.json --session=nightly",
    "sessions --session nightly",
]


def test_wrong_use_is_exit_code_two(snapshot: SnapshotAssertion) -> None:
    assert runs(WRONG) == snapshot


def damage(version: int) -> None:
    """Change one letter of a change in the file."""
    with closing(sqlite3.connect("plans.db")) as connection:
        connection.execute(
            "UPDATE changes SET text = replace(text, 'at', 'aT') WHERE version = ?", (version,)
        )
        connection.commit()


def test_of_a_damaged_session_all_before_the_damage_is_shown(snapshot: SnapshotAssertion) -> None:
    damage(3)
    shown = [
        run(*f"{each} --json".split()) for each in ("history plans.db nightly", "verify plans.db nightly")
    ]
    shown += [run(*each.split()) for each in ("history plans.db nightly", "verify plans.db nightly")]
    shown += [run(*each.split()) for each in ("show plans.db nightly", "show plans.db nightly --at 2")]
    assert timeless("\n".join(shown)) == snapshot


def test_a_plan_that_a_program_changed_by_its_own_reducer_is_not_made_up(folder: Path) -> None:
    session = opened("nightly")
    session.register_reducer(str, lambda _plans, text: (Plan(text, "active"),), Plan)
    session.dispatch("Mine")
    reason = (
        "version 7 changed Plan by a reducer that is not registered here: register it, as"
        " PlanningToolsSection does for a plan"
    )
    assert run("show", "plans.db", "nightly") == f"exit code 2\n--- stderr\nplanning: {reason}\n"
    history = printed("history", "plans.db", "nightly")
    assert (len(history), history[-1]["diff"], history[-1]["plan"]) == (7, None, None)


def test_hostile_text_cannot_act_on_a_terminal() -> None:
    session = opened("nightly")
    session.rewind(6, actor="\x1b[2Jann")
    assert "<ESC>[2J" not in in_terminal(80, "history", "plans.db", "nightly", NO_COLOR="1")


def test_a_whole_id_names_its_session_though_another_begins_with_it() -> None:
    before = run("history", "plans.db", "nightly")
    run("fork", "plans.db", "nightly", "--as", "nightly-2")
    assert run("history", "plans.db", "nightly") == before


def test_without_a_session_verify_checks_all() -> None:
    lines = run("verify", "plans.db").splitlines()
    assert lines[0] == "exit code 0"
    assert sorted(lines[2:]) == [
        "nightly is sound: 6 versions.",
        "other is sound: 1 version.",
        "run is sound: 4 versions.",
        "what-if is sound: 2 versions.",
    ]
    found = json.loads(run("verify", "plans.db", "--json").split("--- stdout\n")[1])
    assert {each["session_id"]: each["sound"] for each in found} == dict.fromkeys(
        ("nightly", "other", "run", "what-if"), True
    )


@pytest.mark.parametrize("command", ["show", "history", "audit", "verify"])
def test_the_store_of_planning_run_is_read_by_default(command: str) -> None:
    Path(".planning").mkdir()
    run("store", "copy", "plans.db", ".planning/runs.db", "nightly")
    assert run(command) == run(command, ".planning/runs.db")
    assert run(command).startswith("exit code 0\n")


def test_the_history_has_the_cause_of_a_failure_and_then_what_the_model_reads() -> None:
    a_workflow_run("find", "send")
    shown = run("history", "plans.db", "flow")
    read = "boom cannot reach its data now. Try again later, or continue without it."
    assert f"  boom failed: it is gone ({read})\n" in shown

"""Files of another kind than a command takes: it says what the file is, and which command takes it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_runs import TRIAGE, run
from run_folders import FINE
from store_files import a_store

from session import Session

SAID = {
    "store": ("a SQLite file", "'planning sessions a.store' lists the sessions of a store"),
    "snapshot": ("a snapshot of a session", "'planning show a.snapshot' shows it"),
    "plan": ("a plan", "'planning show a.plan' shows it"),
    "shown": ("what 'planning show --json' prints", "'planning show a.shown' shows it"),
    "result": ("the result of a run", "'planning show a.result' shows it"),
    "workflow": (
        "a workflow",
        "'planning graph a.workflow' draws it, 'planning run a.workflow' runs it",
    ),
    "transcript": ("a transcript", "'planning replay a.transcript' replays it"),
}
TAKEN = {
    "validate": ("a workflow", {"workflow", "result"}),
    "run": ("a workflow", {"workflow", "result"}),
    "graph": ("a workflow", {"workflow", "snapshot", "shown", "result"}),
    "show": ("a snapshot or a plan", {"snapshot", "plan", "shown", "result"}),
    "replay": ("a transcript", {"transcript"}),
    "sessions": ("a store of sessions", {"store"}),
    "run fine.json --resume": ("a snapshot of a run", {"snapshot"}),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder with a file of each kind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fine.json").write_text(FINE)
    (tmp_path / "a.workflow").write_text(FINE)
    (tmp_path / "a.snapshot").write_text(Session().snapshot().to_json())
    a_store(tmp_path / "a.store")
    shutil.copy(TRIAGE, tmp_path / "a.transcript")
    shown = run("show", "a.store", "run", "--json").split("--- stdout\n")[1]
    (tmp_path / "a.shown").write_text(shown)
    (tmp_path / "a.result").write_text(json.dumps(json.loads(shown)["run"]))
    (tmp_path / "a.plan").write_text(json.dumps(json.loads(shown)["plan"]))
    return tmp_path


CASES = [(command, kind) for command in TAKEN for kind in SAID if kind not in TAKEN[command][1]]


@pytest.mark.parametrize(("command", "kind"), CASES)
def test_a_file_of_another_kind_is_named_with_the_command_that_takes_it(command: str, kind: str) -> None:
    what, remedy = SAID[kind]
    reason = f"'a.{kind}' is {what}, not {TAKEN[command][0]}; {remedy}"
    if (command, kind) == ("show", "store"):
        reason = (
            "'a.store' is a SQLite file; if it is a store, name a session in it: 'planning sessions' lists"
            " them"
        )
    assert run(*command.split(), f"a.{kind}") == f"exit code 2\n--- stderr\nplanning: {reason}\n"


@pytest.mark.parametrize("kind", ["shown", "result"])
def test_the_workflow_of_a_run_is_drawn_as_far_as_it_was_run(kind: str) -> None:
    assert run("graph", f"a.{kind}", "--format", "tree") == (
        "exit code 0\n--- stdout\nLook into it\n2 steps: ✓ 2 completed\n\n"
        "  ✓ find · Find it · tool find\n↓ ✓ say · Say it · thinking\n"
    )


@pytest.mark.parametrize("kind", ["shown", "result"])
def test_the_result_of_a_run_is_shown_as_the_run_is(kind: str) -> None:
    shown = run("show", "a.store", "run").replace("run, version 4 of 4\n", "")
    assert run("show", f"a.{kind}") == shown


def test_a_snapshot_without_a_run_cannot_be_drawn() -> None:
    assert run("graph", "a.snapshot") == (
        "exit code 2\n--- stderr\n"
        "planning: 'a.snapshot' holds no workflow run; 'planning show' shows its plan\n"
    )


def test_of_a_pipe_the_command_is_named_with_a_dash(folder: Path) -> None:
    text = (folder / "a.plan").read_text()
    assert run("validate", stdin=text) == (
        "exit code 2\n--- stderr\n"
        "planning: standard input is a plan, not a workflow; 'planning show -' shows it\n"
    )


def test_a_result_that_was_changed_by_hand_is_refused_in_one_line(folder: Path) -> None:
    result = json.loads((folder / "a.result").read_text())
    (folder / "a.result").write_text(json.dumps({**result, "workflow": 3}))
    code, _, line = run("show", "a.result").splitlines()
    assert (code, line.partition(": ")[2].partition(": ")[0]) == (
        "exit code 2",
        "'a.result' is not the result of a run",
    )

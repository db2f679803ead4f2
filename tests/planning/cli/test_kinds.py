"""Files of another kind than a command takes: it says what the file is, and which command takes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli_runs import TRIAGE, run
from run_folders import FINE
from store_files import a_store

from session import Session

SAID = {
    "store": "a SQLite file; 'planning sessions' lists the sessions of a store",
    "snapshot": "a snapshot of a session; 'planning show' shows it",
    "workflow": "a workflow; 'planning graph' draws it, 'planning run' runs it",
    "transcript": "a transcript; 'planning replay' replays it",
}
TAKEN = {
    "validate": ("a workflow", {"workflow"}),
    "run": ("a workflow", {"workflow"}),
    "graph": ("a workflow", {"workflow", "snapshot"}),
    "replay": ("a transcript", {"transcript"}),
    "sessions": ("a store of sessions", {"store"}),
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
    return tmp_path


CASES = [(command, kind) for command in TAKEN for kind in SAID if kind not in TAKEN[command][1]]


@pytest.mark.parametrize(("command", "kind"), CASES)
def test_a_file_of_another_kind_is_named_with_the_command_that_takes_it(command: str, kind: str) -> None:
    reason = f"'a.{kind}' is not {TAKEN[command][0]} but {SAID[kind]}"
    assert run(*command.split(), f"a.{kind}") == f"exit code 2\n--- stderr\nplanning: {reason}\n"


def test_a_snapshot_without_a_run_cannot_be_drawn() -> None:
    assert run("graph", "a.snapshot") == (
        "exit code 2\n--- stderr\n"
        "planning: 'a.snapshot' holds no workflow run; 'planning show' shows its plan\n"
    )

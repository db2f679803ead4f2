"""What a command reads: files and standard input, up to a limit, of a kind that it takes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_runs import TRIAGE, in_terminal, run
from run_folders import FINE
from store_files import a_store
from syrupy.assertion import SnapshotAssertion

from session import Session

PLAN = (
    'Here:\n```\n{"schema_version": 2, "goal": "g", "steps": [{"step_id": "a", "description": "d"}]}\n```\n'
)
SETUP = {"name": "planning_setup_plan", "args": {"objective": "Find out"}, "id": "c1", "type": "tool_call"}
CALL = {"name": SETUP["name"], "arguments": json.dumps(SETUP["args"])}
ITEM = {"type": "function_call", "id": "f1", "call_id": "c1", **CALL}
AI = {"type": "ai", "content": "", "id": "m2", "tool_calls": [SETUP]}
TRANSCRIPTS: dict[str, Any] = {
    "langchain.json": [{"type": "human", "content": "Hi", "id": "m1"}, AI],
    "dicts.json": [{"type": "ai", "data": AI}],
    "items.json": [ITEM],
    "response.json": {"id": "r1", "object": "response", "output": [ITEM]},
}
STEPS: dict[str, dict[str, Any]] = {  # their calls are no messages of tools
    "steps.json": {"step_id": "a", "description": "d", "type": "tool", "name": "f", "inputs": {}},
    "other.json": {"id": "a", "type": "tool", "tool": "f", "args": {}},
}
TAKEN = {
    "validate": {"workflow"},
    "run": {"workflow"},
    "graph": {"workflow", "snapshot"},
    "replay": {"transcript"},
    "sessions": {"store"},
}
KINDS = ("store", "snapshot", "workflow", "transcript")


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    """A file of each kind in the folder."""
    (folder / "fine.json").write_text(FINE)
    (folder / "a.workflow").write_text(FINE)
    (folder / "a.snapshot").write_text(Session().snapshot().to_json())
    a_store(folder / "a.store")
    shutil.copy(TRIAGE, folder / "a.transcript")
    for name, document in TRANSCRIPTS.items():
        (folder / name).write_text(json.dumps(document))
    for name, step in STEPS.items():
        (folder / name).write_text(json.dumps([step]))


def test_what_is_too_large_or_missing_or_of_another_kind_is_refused(snapshot: SnapshotAssertion) -> None:
    missing = ("/dev/zero", ".", "a\x1b[31m.json")
    wrong = [[command, file] for command in TAKEN if command != "sessions" for file in missing]
    wrong += [[name, f"a.{kind}"] for name, taken in TAKEN.items() for kind in KINDS if kind not in taken]
    wrong += [*(["replay", name] for name in STEPS), *(["validate", name] for name in TRANSCRIPTS)]
    wrong += [["graph", "a.snapshot"]]  # it has no run
    shown = "".join(f"-- {' '.join(each)!r}\n{run(*each)}" for each in wrong)
    assert (shown.count("exit code 2\n"), "\x1b" in shown) == (len(wrong), False)
    assert shown == snapshot


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_every_form_of_a_transcript_is_one_for_every_command(name: str) -> None:
    assert "Find out (active, 0 of 0 done)" in run("show", name)
    assert "1 planning call" in run("audit", name)


@pytest.mark.parametrize("command", ["validate", "graph", "replay"])
@pytest.mark.parametrize("dash", [[], ["-"]], ids=["no path", "a dash"])
def test_standard_input_is_read_as_a_file_is(command: str, dash: list[str], folder: Path) -> None:
    text = TRIAGE.read_text(encoding="utf-8") if command == "replay" else PLAN
    (folder / "file.json").write_text(text, encoding="utf-8")
    shown = run(command, *dash, stdin=text)
    assert shown.startswith("exit code 0\n")
    assert shown == run(command, "file.json").replace("file.json", "<stdin>")


NAMES = {"replay": "TRANSCRIPT", "show": "SOURCE"} | dict.fromkeys(("validate", "graph", "run"), "WORKFLOW")


@pytest.mark.parametrize(("command", "name"), NAMES.items())
def test_a_person_who_gives_nothing_is_told_what_to_give(command: str, name: str) -> None:
    last = in_terminal(80, command).splitlines()[-1]
    assert last == f"Error: Invalid value for '{name}': give a file, or pipe one in"

"""Files of another kind than a command takes: it says what the file is, and which command takes it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

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
def files(folder: Path) -> None:
    """A file of each kind in the folder."""
    (folder / "fine.json").write_text(FINE)
    (folder / "a.workflow").write_text(FINE)
    (folder / "a.snapshot").write_text(Session().snapshot().to_json())
    a_store(folder / "a.store")
    shutil.copy(TRIAGE, folder / "a.transcript")


CASES = [(command, kind) for command in TAKEN for kind in SAID if kind not in TAKEN[command][1]]


@pytest.mark.parametrize(("command", "kind"), CASES)
def test_a_file_of_another_kind_is_named_with_the_command_that_takes_it(command: str, kind: str) -> None:
    reason = f"'a.{kind}' is not {TAKEN[command][0]} but {SAID[kind]}"
    assert run(*command.split(), f"a.{kind}") == f"exit code 2\n--- stderr\nplanning: {reason}\n"


STEPS = [
    {"step_id": "a", "description": "d", "type": "tool", "name": "f", "inputs": {}, "depends_on": []},
    {"id": "a", "type": "tool", "tool": "f", "args": {}},
]


@pytest.mark.parametrize("step", STEPS)
def test_steps_that_call_tools_are_not_messages_of_tools(step: dict[str, Any], folder: Path) -> None:
    (folder / "steps.json").write_text(json.dumps([step]))
    reason = f"'steps.json' is not a transcript but {SAID['workflow']}"
    assert run("replay", "steps.json") == f"exit code 2\n--- stderr\nplanning: {reason}\n"


SETUP = {"name": "planning_setup_plan", "args": {"objective": "Find out"}, "id": "c1", "type": "tool_call"}
ITEM = {"type": "function_call", "id": "f1", "call_id": "c1", "name": SETUP["name"]} | {
    "arguments": json.dumps(SETUP["args"])
}
AI = {"type": "ai", "content": "", "id": "m2", "tool_calls": [SETUP]}
TRANSCRIPTS: dict[str, Any] = {
    "LangChain's messages": [{"type": "human", "content": "Hi", "id": "m1"}, AI],
    "LangChain's messages as dicts": [{"type": "ai", "data": AI}],
    "items of Responses": [ITEM],
    "a response": {"id": "r1", "object": "response", "output": [ITEM]},
}


@pytest.mark.parametrize("document", TRANSCRIPTS.values(), ids=TRANSCRIPTS)
def test_every_form_of_a_transcript_is_one_for_every_command(document: Any, folder: Path) -> None:
    (folder / "chat.json").write_text(json.dumps(document))
    assert "Find out (active, 0 of 0 done)" in run("show", "chat.json")
    assert "1 planning call" in run("audit", "chat.json")
    reason = f"'chat.json' is not a workflow but {SAID['transcript']}"
    assert run("validate", "chat.json") == f"exit code 2\n--- stderr\nplanning: {reason}\n"


def test_a_snapshot_without_a_run_cannot_be_drawn() -> None:
    assert run("graph", "a.snapshot") == (
        "exit code 2\n--- stderr\n"
        "planning: 'a.snapshot' holds no workflow run; 'planning show' shows its plan\n"
    )

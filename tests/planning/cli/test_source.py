"""What a command reads: files and standard input, up to a limit, of a kind that it takes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_runs import TRIAGE, in_terminal, refused, run
from run_folders import FINE
from store_files import a_store

from session import Session

LIMITS = {"validate": 32, "graph": 32, "run": 32, "replay": 100}
PLAN = (
    'Here:\n```\n{"schema_version": 2, "goal": "g", "steps": [{"step_id": "a", "description": "d"}]}\n```\n'
)


@pytest.mark.parametrize("command", LIMITS)
def test_a_file_that_never_ends_is_read_to_a_limit_and_refused(command: str) -> None:
    reason = f"'/dev/zero' is larger than {LIMITS[command]} MB; it was not read"
    assert run(command, "/dev/zero") == refused(reason)


@pytest.mark.parametrize("command", LIMITS)
def test_a_file_that_cannot_be_read_is_told_in_one_line(command: str) -> None:
    assert run(command, ".") == refused("cannot read '.': Is a directory")
    missing = refused("cannot read 'a\\x1b[31m.json': No such file or directory")
    assert run(command, "a\x1b[31m.json") == missing


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
    assert run(*command.split(), f"a.{kind}") == refused(reason)


STEPS = [
    {"step_id": "a", "description": "d", "type": "tool", "name": "f", "inputs": {}, "depends_on": []},
    {"id": "a", "type": "tool", "tool": "f", "args": {}},
]


@pytest.mark.parametrize("step", STEPS)
def test_steps_that_call_tools_are_not_messages_of_tools(step: dict[str, Any], folder: Path) -> None:
    (folder / "steps.json").write_text(json.dumps([step]))
    reason = f"'steps.json' is not a transcript but {SAID['workflow']}"
    assert run("replay", "steps.json") == refused(reason)


SETUP = {"name": "planning_setup_plan", "args": {"objective": "Find out"}, "id": "c1", "type": "tool_call"}
CALL = {"name": SETUP["name"], "arguments": json.dumps(SETUP["args"])}
ITEM = {"type": "function_call", "id": "f1", "call_id": "c1", **CALL}
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
    assert run("validate", "chat.json") == refused(reason)


def test_a_snapshot_without_a_run_cannot_be_drawn() -> None:
    reason = "'a.snapshot' holds no workflow run; 'planning show' shows its plan"
    assert run("graph", "a.snapshot") == refused(reason)

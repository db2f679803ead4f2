"""What a command reads: files and standard input, up to a limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import TRIAGE, in_terminal, run

LIMITS = {"validate": 32, "graph": 32, "run": 32, "replay": 100}
PLAN = (
    'Here:\n```\n{"schema_version": 2, "goal": "g", "steps": [{"step_id": "a", "description": "d"}]}\n```\n'
)

every_command = pytest.mark.parametrize("command", LIMITS)


@every_command
def test_a_file_that_never_ends_is_read_to_a_limit_and_refused(command: str) -> None:
    assert run(command, "/dev/zero") == (
        "exit code 2\n--- stderr\n"
        f"planning: '/dev/zero' is larger than {LIMITS[command]} MB; it was not read\n"
    )


@every_command
@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("missing.json", "cannot read 'missing.json': No such file or directory"),
        (".", "cannot read '.': Is a directory"),
        ("a\x1b[31m.json", "cannot read 'a\\x1b[31m.json': No such file or directory"),
    ],
    ids=["missing", "a folder", "hostile"],
)
def test_a_file_that_cannot_be_read_is_told_in_one_line(command: str, path: str, told: str) -> None:
    assert run(command, path) == f"exit code 2\n--- stderr\nplanning: {told}\n"


@pytest.mark.parametrize("command", ["validate", "graph", "replay"])
@pytest.mark.parametrize("dash", [[], ["-"]], ids=["no path", "a dash"])
def test_standard_input_is_read_as_a_file_is(command: str, dash: list[str], folder: Path) -> None:
    text = TRIAGE.read_text(encoding="utf-8") if command == "replay" else PLAN
    (folder / "file.json").write_text(text, encoding="utf-8")
    shown = run(command, *dash, stdin=text)
    assert shown.startswith("exit code 0\n")
    assert shown == run(command, "file.json").replace("file.json", "<stdin>")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("validate", "WORKFLOW"),
        ("graph", "WORKFLOW"),
        ("run", "WORKFLOW"),
        ("replay", "TRANSCRIPT"),
        ("show", "SOURCE"),
    ],
)
def test_a_person_who_gives_nothing_is_told_what_to_give(command: str, name: str) -> None:
    last = in_terminal(80, command).splitlines()[-1]
    assert last == f"Error: Invalid value for '{name}': give a file, or pipe one in"

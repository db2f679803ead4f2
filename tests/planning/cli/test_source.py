"""What a command reads: files and standard input, up to a limit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_runs import run

LIMITS = {"validate": 32, "graph": 32, "run": 32, "replay": 100}

every_command = pytest.mark.parametrize("command", LIMITS)


@every_command
def test_a_file_that_never_ends_is_read_to_a_limit_and_refused(command: str) -> None:
    assert run(command, "/dev/zero") == (
        "exit code 2\n--- stderr\n"
        f"planning: '/dev/zero' is larger than {LIMITS[command]} MB, and is not read\n"
    )


@every_command
def test_standard_input_that_never_ends_is_read_to_the_same_limit_and_refused(command: str) -> None:
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            [sys.executable, "-m", "planning.cli", command, "-"],
            stdin=endless,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert (done.returncode, done.stdout) == (2, "")
    told = f"planning: standard input is larger than {LIMITS[command]} MB, and is not read\n"
    assert done.stderr == told


@every_command
def test_a_folder_is_not_read(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(command, ".") == "exit code 2\n--- stderr\nplanning: '.' cannot be read: Is a directory\n"


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.json").write_bytes(b"[" + b" " * 31_999_998 + b"]")
    assert run("validate", "plan.json", "--format", "prompt") == (
        "exit code 1\n--- stdout\n"
        "The plan was not accepted: 1 error. Send the whole corrected plan as JSON, without any other text.\n"
        "- line 1, column 1: the text has 32000000 characters, at most 8000000 are read;"
        " send a shorter plan\n"
    )
    with (tmp_path / "plan.json").open("ab") as file:
        file.write(b" ")
    assert run("validate", "plan.json") == (
        "exit code 2\n--- stderr\nplanning: 'plan.json' is larger than 32 MB, and is not read\n"
    )

"""The command as a process: signals, pipes, a missing extra, an output that cannot be written."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_runs import TRIAGE, in_process, lines, run, said
from syrupy.assertion import SnapshotAssertion

import planning

SOURCE = Path(planning.__file__).parents[1]


@pytest.mark.parametrize("path", [[str(TRIAGE)], []], ids=["a file", "a pipe"])
def test_the_command_runs_as_a_process_as_it_does_within_one(path: list[str]) -> None:
    with TRIAGE.open("rb") as transcript:
        done = in_process("replay", *path, stdin=transcript)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"exit code 0\n--- stdout\n{done.stdout}" == run("replay", str(TRIAGE))


def python(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A run of Python as a process in the folder."""
    environment = {**os.environ, **environment}
    line = [sys.executable, *words]
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)


def test_a_user_without_a_transcript_is_told_what_to_give() -> None:
    program = "import sys; sys.stdin = None; from planning.cli import main; main()"
    done = python("-c", program, "replay")
    assert (done.returncode, done.stdout) == (2, "")
    reason = "Error: Invalid value for 'TRANSCRIPT': give a file, or pipe one in"
    assert done.stderr.splitlines()[-1] == reason


@pytest.mark.parametrize(("reader", "read"), [("| head -1", "Refused"), (">&-", "")])
def test_a_reader_that_is_gone_ends_it_quietly(reader: str, read: str) -> None:
    command = f"{sys.executable} -m planning replay {TRIAGE} {reader}"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout.partition(" ")[0], done.stderr) == (read, "")


def test_an_output_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    def allow_no_file_to_grow() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    with (tmp_path / "full").open("wb") as full:
        options: Any = {"preexec_fn": allow_no_file_to_grow, "env": {"PYTHONDONTWRITEBYTECODE": "1"}}
        done = in_process("prompt", stdout=full, **options)
    assert (done.returncode, done.stderr) == (1, "planning: cannot write the output: File too large\n")


def test_what_the_encoding_of_the_output_cannot_hold_is_escaped() -> None:
    call = lines(said(("planning_\u2192", "{}")))
    done = in_process("replay", input=call, encoding="latin-1", env={"PYTHONIOENCODING": "latin-1"})
    assert "Refused planning_\\u2192: " in done.stdout


FAILING_IMPORTS = """
import os, sys

class Finder:
    def find_spec(self, name, *_):
        if name == os.environ.get("INTERRUPTED"):
            raise KeyboardInterrupt
        if name == os.environ.get("MISSING"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Finder())
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where Python finds the package, and what makes the import of one module fail."""
    (tmp_path / "sitecustomize.py").write_text(FAILING_IMPORTS)
    return f"{tmp_path}:{SOURCE}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "command"),
    [
        ("typer", ""),
        ("rich", ""),
        ("mcp", "mcp"),
        ("mcp", "run --mcp x flow.json"),
        ("uvicorn", "view flow.json"),
        ("langgraph", "ask --db shop.db --sql-from count.sql"),
        ("psycopg", "sessions postgresql://127.0.0.1/plans"),
        ("psycopg", "store create postgresql://127.0.0.1/plans"),
        ("psycopg", "sessions delete none.db a"),
        ("openai", "ask why --db shop.db --model m --base-url http://127.0.0.1:1"),
    ],
    ids=[
        *("typer", "rich", "mcp", "run with mcp", "uvicorn", "langgraph"),
        *("psycopg", "create", "delete", "openai"),
    ],
)
def test_without_an_extra_it_says_what_to_install(
    missing: str, command: str, path: str, snapshot: SnapshotAssertion
) -> None:
    Path("shop.db").touch()
    Path("count.sql").write_text("SELECT 1")
    Path("flow.json").write_text("[]")
    done = python("-m", "planning", *command.split(), PYTHONPATH=path, MISSING=missing)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == snapshot


EARLY = ["planning.plan.model", "planning.cli"]
LATER = ["typing", "rich", "typer", "planning.cli.app", "planning.observe.health"]


@pytest.mark.parametrize(
    ("way", "module"),
    [
        *((way, module) for way in ("-m planning", "-m planning.cli") for module in EARLY),
        *(("script", module) for module in EARLY + LATER),
    ],
)
def test_ctrl_c_while_it_is_loaded_ends_it_quietly(way: str, module: str, path: str, tmp_path: Path) -> None:
    script = tmp_path / "planning"
    script.write_text("from planning.cli import main; main()")
    words = [str(script)] if way == "script" else way.split()
    done = python(*words, "sessions", PYTHONPATH=path, INTERRUPTED=module)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_ctrl_c_in_a_program_that_loads_the_package_is_its_own(path: str) -> None:
    done = python("-c", "import planning", PYTHONPATH=path, INTERRUPTED="planning.plan.model")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (-2, "KeyboardInterrupt")


def test_a_file_that_hides_the_package_of_sessions_is_named(tmp_path: Path) -> None:
    own = tmp_path / "session.py"
    own.write_text("x = 1\n")
    reason = f"{own} hides the package 'session' of session-planning: rename that file\n"
    programs = ["from planning import Toolbox", "from planning.tools import Toolbox"]
    for program in [["-m", "planning", "sessions"], *(["-c", each] for each in programs)]:
        assert python(*program).stderr.endswith(f"\nImportError: {reason}")

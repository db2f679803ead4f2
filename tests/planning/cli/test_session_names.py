"""The ids of sessions that a shell completes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planning.cli import arguments, opening
from planning.cli.app import app

ALL = ["other", "run", "what-if", "nightly"]


pytestmark = pytest.mark.usefixtures("store_folder")


def completed(line: str) -> list[str]:
    """What bash is offered for the last word of a line."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    result = CliRunner().invoke(
        app, [], env={"_PLANNING_COMPLETE": "complete_bash", **words}, prog_name="planning"
    )
    assert (result.stderr, "Traceback" in result.stdout) == ("", False)
    return result.stdout.split()


COMMANDS = [
    "show",
    "history",
    "watch",
    "audit",
    "view",
    "export",
    "diff",
    "rewind",
    "fork",
    "verify",
    "approve",
]


LINES = [f"{command} plans.db " for command in (*COMMANDS, "sessions delete")]
LINES += ["store copy plans.db other.db ", "mcp --store plans.db --session "]


@pytest.mark.parametrize("line", [f"planning {line}" for line in LINES])
def test_a_session_is_completed_with_the_ids_of_its_store(line: str) -> None:
    assert completed(line) == ALL
    assert completed(f"{line}n") == ["nightly"]
    assert completed(f"{line}x") == []


def test_a_run_is_kept_in_the_default_store_or_that_of_an_option(folder: Path) -> None:
    assert completed("planning run report.json ") == []
    assert completed("planning run report.json --store plans.db w") == ["what-if"]
    (folder / ".planning").mkdir()
    (folder / "plans.db").rename(folder / ".planning" / "runs.db")
    assert completed("planning run report.json w") == ["what-if"]


@pytest.mark.parametrize(
    "place", ["none.db", ".", "-", "notes.txt", "pipe", "mysql://h/x", "postgresql://[", "'"]
)
def test_what_is_not_a_store_completes_nothing(place: str, folder: Path) -> None:
    (folder / "notes.txt").write_text("Remember the milk.")
    os.mkfifo(folder / "pipe")
    files = sorted(folder.iterdir())
    assert completed(f"planning show {place} ") == []
    assert sorted(folder.iterdir()) == files


def test_a_store_that_does_not_answer_does_not_hold_up_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    @contextmanager
    def waiting(place: str) -> Iterator[None]:
        del place
        answered.wait()
        yield

    monkeypatch.setattr(opening, "opened_store", waiting)
    monkeypatch.setattr(arguments, "_PATIENCE", 0.01)
    assert completed("planning show plans.db ") == []
    answered.set()

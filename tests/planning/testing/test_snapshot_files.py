"""The snapshot extensions, in a repository of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TEST = """
import pytest
from planning import Plan, PlanStep, PlanningStrategy, PlanningToolsSection, tool_definitions
from planning.prompt import Prompt
from planning.testing import JsonFiles, MarkdownFiles, TextFiles
from session import Session

PLAN = Plan("Fix it", "active", (PlanStep("S001", "Find it", None, "done", ("Here",)),))

def test_copy(snapshot):
    section = PlanningToolsSection(session=Session())
    assert Prompt(ns="n", key="k", sections=[section]).render().text == snapshot.use_extension(MarkdownFiles)

def test_definitions(snapshot):
    assert tool_definitions("anthropic") == snapshot.use_extension(JsonFiles)

def test_plan(snapshot):
    assert PLAN == snapshot.use_extension(MarkdownFiles)
    assert PLAN == snapshot.use_extension(JsonFiles)

def test_text(snapshot):
    assert "as it is" == snapshot.use_extension(TextFiles)
"""


LAYOUTS = ("tests/unit/test_prompts.py", "checks/test_models.py", "test_root.py")


def run(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "syrupy", *options]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    alone["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    done = subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True, check=False)
    return done.stdout


@pytest.mark.slow
def test_each_snapshot_is_a_readable_file_that_mirrors_its_test(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    for layout in LAYOUTS:
        (tmp_path / layout).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / layout).write_text(TEST)
    assert "15 snapshots generated" in run(tmp_path, "--snapshot-update")
    for layout in LAYOUTS:
        folder = tmp_path / "snapshots" / Path(layout.removeprefix("tests/")).with_suffix("")
        assert sorted(path.name for path in folder.iterdir()) == [
            "test_copy.md",
            "test_definitions.json",
            "test_plan.json",
            "test_plan.md",
            "test_text.txt",
        ]
        assert (folder / "test_copy.md").read_text().startswith("## 1. Planning\n")
        assert (folder / "test_plan.md").read_text() == (
            "Fix it (active, 1 of 1 done)\nS001 done: Find it\n  - Here\n"
        )
        assert (folder / "test_text.txt").read_text() == "as it is"
        assert json.loads((folder / "test_plan.json").read_text())["total"] == 1
    (tmp_path / "snapshots/unit/test_prompts/test_copy.md").write_text("other copy\n")
    assert "1 snapshot failed. 14 snapshots passed" in run(tmp_path)

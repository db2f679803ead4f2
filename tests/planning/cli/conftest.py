"""Folders that commands run in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from run_folders import FAILING, FINE, TOOLS
from store_files import a_store


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run in an empty folder, and forget the modules of it afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in ("my_app", "step_tools"):
        sys.modules.pop(name, None)


@pytest.fixture
def store_folder(folder: Path) -> None:
    """A store in the folder."""
    a_store(folder / "plans.db")


@pytest.fixture
def run_folder(folder: Path) -> None:
    """Workflows and tools in the folder."""
    (folder / "fine.json").write_text(FINE)
    (folder / "failing.json").write_text(FAILING)
    (folder / "step_tools.py").write_text(TOOLS)

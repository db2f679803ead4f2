"""Folders that commands run in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from run_folders import FAILING, FINE, TOOLS
from store_files import a_store


@pytest.fixture
def store_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder with a store."""
    monkeypatch.chdir(tmp_path)
    a_store(tmp_path / "plans.db")
    return tmp_path


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run in a folder with workflows and tools, and forget the tools afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "fine.json").write_text(FINE)
    (tmp_path / "failing.json").write_text(FAILING)
    (tmp_path / "step_tools.py").write_text(TOOLS)
    yield tmp_path
    sys.modules.pop("step_tools", None)

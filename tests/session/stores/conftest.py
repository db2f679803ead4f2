"""The fixtures of tests of stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_places import FolderPlace, MemoryPlace, Place, PostgresPlace, SqlitePlace


@pytest.fixture(
    params=[MemoryPlace, SqlitePlace, FolderPlace, pytest.param(PostgresPlace, marks=pytest.mark.postgres)]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place of each kind, for a test that every store must pass."""
    made: Place = request.param(tmp_path)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a store."""
    return tmp_path / "plans.db"

"""What the tests of repeats share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from session import Session
from session.stores import MemoryStore, SqliteStore


@pytest.fixture(params=["memory", "a memory store", "a file"])
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Session]:
    """Opens the session, as another process does if it has a store."""
    if request.param == "memory":
        session = Session()
        return lambda: session
    store = MemoryStore() if request.param == "a memory store" else SqliteStore(tmp_path / "plans.db")
    return lambda: Session(session_id="run-7", store=store)

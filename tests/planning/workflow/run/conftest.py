"""Store files for the tests of runs in stored sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from session.stores import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "plans.db"


@pytest.fixture
def opened(path: Path) -> Iterator[Callable[..., SqliteStore]]:
    """Opens the store, as each process does for itself; all are closed at the end."""
    stores: list[SqliteStore] = []

    def opened(kind: type[SqliteStore] = SqliteStore, **options: Any) -> SqliteStore:
        stores.append(kind(path, **options))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


@pytest.fixture
def other(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program that uses the file."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    yield connection
    connection.close()

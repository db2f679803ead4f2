"""Fixtures of the tests of databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from readonly_files import make

from planning.agent import SqlDatabase


@pytest.fixture
def shop_path(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return make(folder / "shop.db")


@pytest.fixture
def shop(shop_path: Path) -> Iterator[SqlDatabase]:
    with SqlDatabase(shop_path) as database:
        yield database

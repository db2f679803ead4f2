"""The example of a store of your own passes the tests of every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from examples.folder_store import FolderStore
from hypothesis import settings

from planning.testing import StoreSuite
from session.stores import Store


class TestFolderStore(StoreSuite):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @pytest.fixture(autouse=True)
    def _few_examples(self) -> Iterator[None]:
        before = settings.get_current_profile_name()
        settings.load_profile("few")
        yield
        settings.load_profile(before)

    def open(self) -> Store:
        return FolderStore(self.folder)

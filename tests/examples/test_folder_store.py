"""The example of a store of your own passes the tests of every store."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples.folder_store import FolderStore

from planning.testing import StoreSuite
from session.stores import Store


class TestFolderStore(StoreSuite):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def open(self) -> Store:
        return FolderStore(self.folder)

"""The browser that the tests of the page drive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, Page
from page_stage import Opened, Stage

from planning.view.page import export_page


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Opens an address in a page that is closed after the test."""
    with ExitStack() as pages:

        def open_page(url: str, **window: Any) -> Page:
            page = pages.enter_context(browser.page(**window))
            page.open(url)
            return page

        yield open_page


@pytest.fixture
def shown(opened: Opened, tmp_path: Path) -> Opened:
    """Opens a run as a file; an address may have a part behind ``#``."""

    def show(run: Any, *, part: str = "", **window: Any) -> Page:
        file = tmp_path / "run.html"
        file.write_bytes(export_page(json.dumps(run)))
        page = opened(f"{file.as_uri()}{part}", **window)
        page.wait("timeline !== null")
        page.settle()
        return page

    return show


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A server that says what a test wants."""
    stage = Stage()
    yield stage
    stage.drop()
    stage.shutdown()
    stage.server_close()

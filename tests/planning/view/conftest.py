"""The browser that the tests of the page drive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, Page
from page_stage import Stage

from planning.view.page import export_page


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Opens a run as a file; an address may have a part behind ``#``."""
    file = tmp_path / "run.html"
    with ExitStack() as pages:

        def show(run: str, *, part: str = "", **window: Any) -> Page:
            file.write_bytes(export_page(run))
            page: Page = pages.enter_context(browser.page(**window))
            page.open(f"{file.as_uri()}{part}")
            page.wait("timeline !== null")
            page.settle()
            return page

        yield show


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A server that says what a test wants."""
    stage = Stage()
    yield stage
    stage.drop()
    stage.shutdown()
    stage.server_close()


@pytest.fixture
def pages(browser: Browser) -> Iterator[ExitStack]:
    """Pages that are closed after a test."""
    with ExitStack() as pages:
        yield pages

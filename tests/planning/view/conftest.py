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
    """Opens an address in a page that is closed after the test: nothing went wrong in it until then."""
    pages = list[Page]()
    with ExitStack() as stack:

        def open_page(url: str, **window: Any) -> Page:
            pages.append(stack.enter_context(browser.page(**window)))
            pages[-1].open(url)
            return pages[-1]

        yield open_page
        for page in pages:
            page.settle()
            assert (page.dialogs, page.errors) == ([], [])


@pytest.fixture
def shown(opened: Opened, tmp_path: Path) -> Iterator[Opened]:
    """Opens a run as a file, which asks for nothing else; an address may have a part behind ``#``."""
    pages = list[Page]()

    def show(run: Any, *, part: str = "", **window: Any) -> Page:
        file = tmp_path / "run.html"
        file.write_bytes(export_page(json.dumps(run)))
        pages.append(page := opened(f"{file.as_uri()}{part}", **window))
        page.wait("timeline !== null")
        page.settle()
        return page

    yield show
    asked = [url for page in pages for url in page.requests if not url.startswith(("file:", "data:"))]
    assert asked == []


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A server that says what a test wants."""
    stage = Stage()
    yield stage
    stage.drop()
    stage.shutdown()
    stage.server_close()

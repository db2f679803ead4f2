"""The built site: its search leads to the right page, nothing is cut, and everyone can read it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, Page
from test_page import violations

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parent.parent
SITE = ROOT / "build" / "site"
SOURCES = ("mkdocs.yml", "README.md", "docs/**/*.*", "specs/*.md", "scripts/docs_hooks.py")
TROUBLESHOOTING = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
WORDS = {
    "FastAPI": "howto/serve-with-fastapi.html",
    "only ASCII is allowed": "howto/plan-in-another-language.html",
    "postgres": "howto/ask-a-database.html#postgresql",
    "kill -9": "howto/continue-after-a-crash.html",
    "how do I test my prompt?": "howto/test-prompt-and-plan.html",
    "Claude Code": "frameworks/claude-code.html",
    "--resume": "tutorial.html#4-resume-in-a-new-process",
    "StoreBusy": "troubleshooting.html#storebusy",
    "planning.tools.errors.DataNotFound: read_log found nothing.": "troubleshooting.html#datanotfound",
}
SHOWN = """(() => {
    const [page, section] = document.querySelectorAll(".md-search-result__item:first-child > a");
    return page ? (section ?? page).href : document.querySelector(".md-search-result__meta").innerText;
})()"""


@pytest.fixture(scope="module")
def site() -> Path:
    """The site as `make docs` built it."""
    index = SITE / "index.html"
    built = index.stat().st_mtime if index.exists() else 0
    if any(path.stat().st_mtime > built for pattern in SOURCES for path in ROOT.glob(pattern)):
        if os.environ.get("CI") and (ROOT / "scripts" / "docs_hooks.py").exists():
            pytest.fail("build/site is not there, or older than docs/: make docs")
        pytest.skip("build/site is not there, or older than docs/: make docs")
    return SITE


@pytest.fixture(scope="module")
def search(browser: Browser, site: Path) -> Iterator[Page]:
    """The front page, opened from the folder, with its search open."""
    with browser.page() as page:
        page.open((site / "index.html").as_uri())
        page.evaluate("document.querySelector('#__search').click()")
        yield page
        assert page.errors == []
        assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []


def first_result(page: Page, query: str) -> str:
    """The page and section of the first result for a query, as a person types or pastes it."""
    page.evaluate(
        "document.querySelector('.md-search-result__list').replaceChildren();"
        "document.querySelector('.md-search-result__meta').innerText = '';"
        "document.querySelector('.md-search__input').value = '';"
        "document.querySelector('.md-search__input').focus()"
    )
    page.type(query)
    page.wait(f"/No matching|\\.html/.test({SHOWN})")
    address: str = page.evaluate(SHOWN)
    return re.sub(r"^(file:.*/build/site|http://[^/]*)/|\?h=[^#]*", "", address)


@pytest.mark.parametrize("query", WORDS)
def test_words_lead_to_their_page(search: Page, query: str) -> None:
    assert first_result(search, query) == WORDS[query]


def entries(site: Path) -> dict[str, str]:
    """The text of each section of the page about errors."""
    html = (site / "troubleshooting.html").read_text(encoding="utf-8")
    _, *parts = re.split(r'<h[23] id="([\w-]+)">', html)
    texts = (" ".join(unescape(re.sub(r"<[^>]+>", " ", part)).split()) for part in parts[1::2])
    return dict(zip(parts[::2], texts, strict=True))


def quotes() -> list[str]:
    """The messages of three words and more that the page about errors quotes."""
    text = re.sub(r"`[^`]*`", lambda code: code[0].strip("`").replace('"', ""), TROUBLESHOOTING)
    return [" ".join(quote.split()) for quote in re.findall(r'"([^"]+)"', text) if quote.count(" ") > 1]


def test_a_pasted_message_finds_its_entry_first(search: Page, site: Path) -> None:
    assert len(quotes()) > 40
    missed = {}
    for quote in quotes():
        own = {
            f"troubleshooting.html#{name}"
            for name, text in entries(site).items()
            if quote.strip(". ") in text
        }
        if (place := first_result(search, quote.replace("...", "value"))) not in own:
            missed[quote] = (place, own)
    assert missed == {}


PAGES = [
    "index.html",
    "tutorial.html",
    "concepts.html",
    "howto/ask-a-database.html",
    "specs/TOOLS.html",
    "reference/session.html",
]
WHOLE = os.environ.get("SITE") == "all"


CUT = """[...document.querySelectorAll("pre, pre > code")]
    .filter(block => block.scrollWidth > block.clientWidth).map(block => block.textContent.slice(0, 60))"""
WIDER = """document.documentElement.scrollWidth > innerWidth ? ["wider than the screen"] : []"""
SEEN = {390: WIDER, 1440: f"[...{CUT}, ...{WIDER}]"}


@pytest.mark.parametrize("width", SEEN)
def test_no_code_and_no_drawing_is_cut(browser: Browser, site: Path, width: int) -> None:
    """Of all pages, a fifth and ``PAGES``; with ``SITE=all``, as in ``make soak``, each."""
    found, every = {}, sorted(site.rglob("*.html"))
    named = [site / name for name in PAGES]
    with browser.page(width=width) as page:
        for path in every if WHOLE else sorted({*every[::5], *named}):
            page.open(path.as_uri())
            found[path.relative_to(site).as_posix()] = page.evaluate(SEEN[width])
    assert {name: cut for name, cut in found.items() if cut} == {}


def test_the_reference_has_only_public_names(site: Path) -> None:
    private = re.compile(
        r"__getattr__|title=\"[\w.]*\._[a-z]\w*\"|class=\"doc doc-class-bases\">\s*Bases:\s*</p>", re.I
    )
    pages = sorted((site / "reference").glob("*.html"))
    assert len(pages) > 8
    assert {page.name: private.findall(page.read_text(encoding="utf-8")) for page in pages} == {
        page.name: [] for page in pages
    }


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_people_out(browser: Browser, site: Path, axe: str, width: int, scheme: str) -> None:
    found: dict[str, Any] = {}
    pages = PAGES if WHOLE else PAGES[(width > 390) + 2 * (scheme == "dark") :: 4]
    for name in pages:
        with browser.page(width=width, scheme=scheme) as page:
            page.open((site / name).as_uri())
            page.evaluate(f"{axe}; null")
            found[name] = violations(page)
    assert found == {name: [] for name in pages}

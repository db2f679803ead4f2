"""The documentation site: a reader finds each page, and it opens without a network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
HOW_DO_I = [
    "Add my tool",
    "Continue a conversation after a crash",
    "Rewind",
    "Serve several users",
    "Approve a plan",
    "Require evidence",
    "Test my prompt and plan",
    "Show progress to users",
    "Claude Code",
    "OpenAI",
    "Anthropic",
    "LangChain",
    "Pydantic AI",
    "OpenAI Agents SDK",
    "Google ADK",
    "MCP",
    "Put it on a server",
    "Use several machines",
    "Ask a database",
    "Run a workflow",
    "Write a tool that speaks to the model when it fails",
]


def pages() -> dict[str, str]:
    """The path of each page of the navigation, by its title there."""
    return dict(re.findall(r"^ +- (.+): (\S+\.md)$", CONFIG.partition("\nnav:\n")[2], re.MULTILINE))


def links_of(page: str) -> set[str]:
    """The pages that a page links to."""
    text = (DOCS / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    return {
        (DOCS / page).parent.joinpath(target).resolve().relative_to(DOCS).as_posix()
        for target in targets
        if (DOCS / page).parent.joinpath(target).resolve().is_relative_to(DOCS)
    }


@pytest.mark.parametrize("title", HOW_DO_I)
def test_the_front_page_links_to_each_task_and_its_page_has_its_title(title: str) -> None:
    page = pages()[title]
    assert page in links_of("index.md")
    assert (DOCS / page).read_text(encoding="utf-8").startswith(f"# {title}\n")


def test_every_page_is_in_the_navigation_once() -> None:
    written = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    assert sorted(pages().values()) == written


def test_the_site_fetches_no_font() -> None:
    assert "\n  font: false\n" in CONFIG  # by default the theme asks Google for its fonts

"""The documentation site: a reader finds each page, and it opens without a network."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from planning.tools import ErrorKind, ToolError
from session import SessionError

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
PACKAGES = [
    "session",
    "session.stores",
    "planning",
    "planning.tools",
    "planning.prompt",
    "planning.workflow",
    "planning.agent",
    "planning.testing",
]
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
    assert sorted(pages().values()) == sorted([*written, "reference/cli.md"])  # that one is generated
    assert set(pages().values()) - {"index.md"} <= links_of("index.md")


def errors_below(base: type[Exception]) -> set[str]:
    """The names of a class of errors and of those derived from it in the package."""
    found = {base.__name__} if base.__module__.startswith(("session.", "planning.")) else set()
    return found.union(*map(errors_below, base.__subclasses__()))


def test_troubleshooting_has_every_error_that_a_program_can_catch_and_every_code() -> None:
    for package in PACKAGES:
        for name in importlib.import_module(package).__all__:
            getattr(importlib.import_module(package), name)
    importlib.import_module("planning.workflow.run.memory")
    public = errors_below(SessionError) | errors_below(ToolError) | {"PromptRenderError"}
    text = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^### (\w+)$", text, re.MULTILINE)) == sorted(
        name for name in public if not name.startswith("_")
    )
    assert set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE)) == {kind.value for kind in ErrorKind}


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_has_its_page_of_reference(package: str) -> None:
    assert f"\n::: {package}\n" in (DOCS / pages()[package]).read_text(encoding="utf-8")


def test_the_site_fetches_no_font() -> None:
    assert "\n  font: false\n" in CONFIG  # by default the theme asks Google for its fonts

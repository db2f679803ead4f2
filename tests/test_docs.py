"""The documentation site: a reader finds each page, and it opens without a network."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import runpy
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from postgres_server import PostgresServer

from planning.tools import ErrorKind
from planning.workflow.codes import CODES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
TROUBLESHOOTING = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
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


def test_each_page_of_a_task_or_a_framework_has_its_title_in_the_navigation() -> None:
    titles = {page: title for title, page in pages().items() if page.startswith(("howto/", "frameworks/"))}
    assert titles == {
        page: (DOCS / page).read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for page in titles
    }
    assert len(titles) > 25


def test_every_page_is_in_the_navigation_once() -> None:
    written = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    specs = {f"specs/{path.name}" for path in (ROOT / "specs").glob("*.md")}
    internal = {"specs/ARCHITECTURE.md", "specs/MODULES.md", "specs/VIEW.md"}
    generated = ["reference/cli.md", "reference/codes.md"]
    assert sorted(pages().values()) == sorted([*written, *generated, *(specs - internal)])


def test_the_front_page_links_to_every_page_but_the_guarantees() -> None:
    others = {page for page in pages().values() if not page.startswith("specs/")}
    assert others - {"index.md"} <= links_of("index.md")


INTERNAL = {
    "CheckBroken": "ends the constructor of a record",
    "Ended": "ends a run, which raises its cause",
    "Failure": "becomes the result of a question to a database",
    "Fault": "ends the reading of a step",
    "NoJsonForm": "becomes ResultInvalid",
    "JsonTooLarge": "the engine makes the error of a step of it",
    "NotStrict": "leads to the tolerant reader",
    "Refused": "becomes the message of a command",
    "StatementRefused": "becomes the result of a question to a database",
}
"""Exceptions that their package catches, each with what becomes of it."""


def errors_of(package: str) -> set[str]:
    """The names of the exception classes of a package that do not begin with an underscore."""
    found = set[str]()
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if not module.name.endswith(".__main__"):
            found |= {
                name
                for name, value in vars(importlib.import_module(module.name)).items()
                if isinstance(value, type)
                and issubclass(value, Exception)
                and value.__module__ == module.name
                and not name.startswith("_")
            }
    return found


def test_troubleshooting_has_every_error_that_a_program_can_catch_and_every_code() -> None:
    public = (errors_of("session") | errors_of("planning")) - INTERNAL.keys()
    assert sorted(re.findall(r"^### (\w+)$", TROUBLESHOOTING, re.MULTILINE)) == sorted(public)
    assert set(re.findall(r"^\| `(\w+)`", TROUBLESHOOTING, re.MULTILINE)) == {
        kind.value for kind in ErrorKind
    }


@cache
def messages() -> str:
    """Every text of the sources, a line each, with ``...`` in place of its values."""
    found = []
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "..." for part in node.values]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(re.sub(r"\{\w*\}", "...", node.value))
    return "\n".join(found)


def sections() -> dict[str, str]:
    """What troubleshooting says of each error, on one line."""
    parts = re.split(r"^##+ (.*)$", TROUBLESHOOTING, flags=re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize("name", re.findall(r"^### (\w+)$", TROUBLESHOOTING, re.MULTILINE))
def test_troubleshooting_quotes_a_message_of_each_error_as_the_sources_have_it(name: str) -> None:
    quotes = re.findall(r'(?<!`)"([^"`]+)"(?!`)', re.sub(r"`[^`]*`", "", sections()[name]))
    assert bool(quotes) != (name in {"SessionError", "ToolError"})  # bases without a message of their own
    pieces = [piece.strip(" ;:,.'") for quote in quotes for piece in quote.split("...")]
    assert [piece for piece in pieces if piece not in messages()] == []


def test_the_programs_of_the_pages_run_in_an_empty_folder() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
    found = re.compile(r"^ *(?:from|import) (?:examples|tests|benchmarks)\b", re.MULTILINE)
    assert [name for name, text in texts.items() if found.search(text)] == []


def test_every_example_of_the_pages_runs_as_a_test_but_one_that_is_a_test_itself() -> None:
    apart = {
        path.relative_to(DOCS).as_posix()
        for path in DOCS.rglob("*.md")
        if "```py\n" in path.read_text(encoding="utf-8")
    }
    runs_below = {"howto/several-machines.md", "frameworks/claude-code.md"}
    assert apart == {*runs_below, "howto/test-prompt-and-plan.md"}


@pytest.mark.postgres
def test_the_program_for_several_machines_runs_with_a_real_server(postgres: PostgresServer) -> None:
    page = (DOCS / "howto" / "several-machines.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```py\n(.*?PostgresStore.*?)```", page, re.DOTALL)
    address = "postgresql://agents@db.internal/agents"
    assert address in program
    names: dict[str, Any] = {}
    exec(program.replace(address, postgres.url), names)  # noqa: S102 - a page of this repository
    assert names["session"].version == 0
    names["store"].close()


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_has_its_page_of_reference(package: str) -> None:
    assert f"\n::: {package}\n" in (DOCS / pages()[package]).read_text(encoding="utf-8")


def test_the_site_fetches_no_font() -> None:
    assert "\n  font: false\n" in CONFIG  # by default the theme asks Google for its fonts


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the script that makes pages of the site."""
    for name in ("config.defaults", "exceptions", "structure.files", "structure.pages"):
        monkeypatch.setitem(sys.modules, f"mkdocs.{name}", MagicMock())  # `make docs` alone installs it
    return runpy.run_path(str(ROOT / "scripts" / "docs_hooks.py"))


def test_the_site_has_every_code_of_a_report(hooks: dict[str, Any]) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", hooks["_codes"](), re.MULTILINE)
    assert rows == [(code, kind.severity, kind.meaning) for code, kind in CODES.items()]


def test_llms_txt_has_each_page_of_the_navigation_with_its_first_sentence(
    tmp_path: Path, hooks: dict[str, Any]
) -> None:
    nav = [{"Start": [{title: uri} for title, uri in pages().items()]}]
    config = SimpleNamespace(site_dir=tmp_path, site_name="Name", site_description="What it is.", nav=nav)
    hooks["on_post_build"](config=config)
    begins, *lines = (tmp_path / "llms.txt").read_text(encoding="utf-8").split("\n- ")
    assert begins == "# Name\n\n> What it is.\n\n## Start\n"
    assert [re.sub(r"\): [^\n]+\.\n?", ")", line) for line in lines] == [
        f"[{title}]({uri.removesuffix('.md')}.html)" for title, uri in pages().items()
    ]

"""The documentation: a reader finds each page, it opens without a network, and says what the code has."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import runpy
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from postgres_server import PostgresServer

import planning.integrations
from planning.cli.usage import EXIT_CODES
from planning.plan.model import Plan
from planning.tools import ErrorKind
from planning.workflow import schema_text
from planning.workflow.codes import CODES
from session import Session
from session.snapshot import SNAPSHOT_VERSION
from session.stores import SqliteStore
from session.stores.postgres import FORMAT

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
TROUBLESHOOTING = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
STABILITY = (DOCS / "stability.md").read_text(encoding="utf-8")
FIRST = STABILITY.partition("\n## Public names\n\n")[2].partition("\n\n")[0]
PACKAGES = sorted(set(re.findall(r"`((?:session|planning)[\w.]*)`", FIRST)) - {"planning.integrations"})


def pages() -> dict[str, str]:
    """The path of each page of the navigation, by its title there."""
    return dict(re.findall(r"^ +- (.+): (\S+\.md)$", CONFIG.partition("\nnav:\n")[2], re.MULTILINE))


def test_every_page_is_in_the_navigation_once() -> None:
    written = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    specs = {f"specs/{path.name}" for path in (ROOT / "specs").glob("*.md")}
    internal = {"specs/ARCHITECTURE.md", "specs/MODULES.md", "specs/VIEW.md"}
    generated = ["reference/cli.md", "reference/codes.md"]
    assert sorted(pages().values()) == sorted([*written, *generated, *(specs - internal)])


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


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the script that makes pages of the site."""
    for name in ("config.defaults", "exceptions", "structure.files", "structure.pages"):
        monkeypatch.setitem(sys.modules, f"mkdocs.{name}", MagicMock())  # `make docs` alone installs it
    return runpy.run_path(str(ROOT / "scripts" / "docs_hooks.py"))


def test_the_site_has_every_code_of_a_report(hooks: dict[str, Any]) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", hooks["_codes"](), re.MULTILINE)
    assert rows == [(code, kind.severity, kind.meaning) for code, kind in CODES.items()]


def test_llms_txt_has_each_page_with_its_first_sentence(tmp_path: Path, hooks: dict[str, Any]) -> None:
    nav = [{"Start": [{title: uri} for title, uri in pages().items()]}]
    config = SimpleNamespace(site_dir=tmp_path, site_name="Name", site_description="What it is.", nav=nav)
    hooks["on_post_build"](config=config)
    begins, *lines = (tmp_path / "llms.txt").read_text(encoding="utf-8").split("\n- ")
    assert begins == "# Name\n\n> What it is.\n\n## Start\n"
    assert [re.sub(r"\): [^\n]+\.\n?", ")", line) for line in lines] == [
        f"[{title}]({uri.removesuffix('.md')}.html)" for title, uri in pages().items()
    ]


# What a user may rely on


def table(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, row by row."""
    text = STABILITY.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_the_formats_of_today_are_those_that_are_written(tmp_path: Path) -> None:
    path = tmp_path / "plans.db"
    SqliteStore(path).close()
    Session(session_id="a", store=SqliteStore(path)).claim("x")
    with closing(sqlite3.connect(path)) as connection:
        (of_file,) = connection.execute("PRAGMA user_version").fetchone()
    assert [row[2] for row in table("Stored formats")] == [
        str(of_file),
        str(FORMAT),
        str(getattr(Plan, "RECORD_FORMAT", 1)),
        str(SNAPSHOT_VERSION),
        re.findall(r'"schema_version": \{"const": (\d)', schema_text(2))[0],
        "",
    ]


def test_the_public_packages_have_their_names_in_all() -> None:
    modules = [
        f"planning.integrations.{module.name}"
        for module in pkgutil.iter_modules(planning.integrations.__path__)
        if not module.name.startswith("_")
    ]
    without = [
        name for name in (*PACKAGES, *modules) if not getattr(importlib.import_module(name), "__all__", None)
    ]
    assert (len(PACKAGES), without) == (8, [])


def test_the_exit_codes_are_those_of_the_help() -> None:
    words = " ".join(EXIT_CODES.split()).replace("'", "`")
    for code, meaning in table("Commands"):
        assert f"{code} {meaning}" in words


def test_the_versions_of_python_are_those_that_are_declared() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    declared = [
        each.rpartition(" ")[2]
        for each in classifiers
        if each.startswith("Programming Language :: Python :: 3.")
    ]
    assert table("Which platforms")[1][1] == f"{', '.join(declared[:-1])} and {declared[-1]}"


# specs/SECURITY.md: what it names is there, and both lists are whole

SECURITY = (ROOT / "specs" / "SECURITY.md").read_text()


def test_each_file_that_it_names_is_there() -> None:
    named = re.findall(r"`((?!src/|tests/)[\w/]+(?:/|\.py|\.txt))`", SECURITY)
    assert len(named) > 30
    assert [name for name in named if not any((ROOT / at / name).exists() for at in ("src", "tests"))] == []


def test_the_architecture_names_modules_that_are_there() -> None:
    folders = (ROOT / name for name in ("src", "tests", "benchmarks", "scripts"))
    every = [f"/{path.relative_to(ROOT)}" for folder in folders for path in folder.rglob("*.py")]
    text = (ROOT / "specs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = {name.removeprefix("../") for name in re.findall(r"[\w./]+\.py\b", text)}
    assert {name for name in named if not any(path.endswith(f"/{name}") for path in every)} == set()


# README and the package page

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_screen_has_a_picture_the_install_line_a_refusal_and_three_links() -> None:
    screen = "\n".join(README.splitlines()[:25])
    assert [
        re.findall(r"^!\[.+\]\((.+)\)$", screen, re.MULTILINE),
        len(re.findall(r"^\$ pip install ", screen, re.MULTILINE)),
        len(re.findall(r"^# Refused, nothing changed\.", screen, re.MULTILINE)),
        len(re.findall(r"(?<!!)\[.+?\]\(docs/.+?\)", screen)),
    ] == [["examples/triage.svg"], 1, 1, 3]


@pytest.mark.usefixtures("readme_model")
def test_the_programs_print_what_the_comments_beside_them_say() -> None:
    blocks = re.findall(
        r"^(?:```|<!--- invisible-code-block: )python\n(.*?)^(?:```|-->)$", README, re.DOTALL | re.MULTILINE
    )
    program = "\n".join(blocks)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    said = re.findall(r"^(?:print\(.*\)  )?# (.*)$", program, re.MULTILINE)
    assert [line for line in run.stdout.splitlines() if not line.startswith("Plan(")] == said


def test_the_package_page_has_no_link_to_a_file() -> None:
    """A package page has no files beside it."""
    build, found = runpy.run_path(str(ROOT / "hatch_build.py"))["PackagePage"], list[str]()
    for repository in ("", "https://example.org/r/"):
        metadata: dict[str, Any] = {}
        build(str(ROOT), {"repository": repository}).update(metadata)
        found += re.findall(r"!?\[[^]]*\]\(([^)]+)\)", metadata["readme"]["text"])
    assert {
        f"https://example.org/r/{each}"
        for each in ("raw/HEAD/examples/triage.svg", "blob/HEAD/docs/tutorial.md")
    } <= set(found)
    assert [link for link in found if not link.startswith("https://")] == []


@pytest.mark.parametrize(
    ("page", "most"), [("README.md", 145), ("SECURITY.md", 29), ("specs/SECURITY.md", 149)]
)
def test_a_page_is_short_enough_to_be_read(page: str, most: int) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= most


def test_the_sizes_of_the_rooms_are_near_what_the_page_says() -> None:
    if not (ROOT / "scripts").is_dir():
        pytest.skip("the source distribution has no scripts")
    sizes = runpy.run_path(str(ROOT / "scripts" / "modules"))["sizes"](ROOT)
    page = (ROOT / "specs" / "MODULES.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\S+)/` \| ([\d,]+) \| ([\d,]+) \|", page, re.MULTILINE)
    said = {room: (int(source.replace(",", "")), int(tests.replace(",", ""))) for room, source, tests in rows}
    assert said.keys() == sizes.keys()
    for room, both in sizes.items():
        for lines, expected in zip(both, said[room], strict=True):
            assert lines == pytest.approx(expected, rel=0.1, abs=100), room

"""The page of what a user may rely on says what the code has: formats, names and exit codes."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import planning.integrations
from planning.cli.usage import EXIT_CODES
from planning.plan.model import Plan
from planning.workflow import schema_text
from session import Session
from session.snapshot import SNAPSHOT_VERSION
from session.stores import SqliteStore
from session.stores.postgres import FORMAT

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, row by row."""
    text = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
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
    first = PAGE.partition("\n## Public names\n\n")[2].partition("\n\n")[0]
    packages = set(re.findall(r"`((?:session|planning)[\w.]*)`", first)) - {"planning.integrations"}
    modules = [
        f"planning.integrations.{module.name}"
        for module in pkgutil.iter_modules(planning.integrations.__path__)
        if not module.name.startswith("_")
    ]
    without = [
        name for name in (*packages, *modules) if not getattr(importlib.import_module(name), "__all__", None)
    ]
    assert (len(packages), without) == (8, [])


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

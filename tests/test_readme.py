"""What the README says that its programs print, they print."""

from __future__ import annotations

import importlib.metadata
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short_enough_to_be_read() -> None:
    assert len(README.splitlines()) <= 145


def test_the_first_screen_has_a_picture_the_install_line_a_refusal_and_three_links() -> None:
    screen = "\n".join(README.splitlines()[:25])
    assert [
        re.findall(r"^!\[.+\]\((.+)\)$", screen, re.MULTILINE),
        len(re.findall(r"^\$ pip install ", screen, re.MULTILINE)),
        len(re.findall(r"^# Refused, nothing changed\.", screen, re.MULTILINE)),
        len(re.findall(r"(?<!!)\[.+?\]\(docs/.+?\)", screen)),
    ] == [["examples/triage.svg"], 1, 1, 3]


def test_what_is_new_in_a_version_fits_on_a_screen() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    newest = re.split(r"^## ", changelog, flags=re.MULTILINE)[1]
    assert newest.startswith(f"{version} - ")
    assert len(newest.splitlines()) <= 40


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
    text = importlib.metadata.metadata("session-planning").json["description"]
    links = re.findall(r"\]\(([^)]+)\)", str(text))
    assert [link for link in links if not link.startswith("https://")] == []


@pytest.mark.parametrize(("repository", "expected"), [
    ("", "See A and [B](https://example.org).\n"),
    (
        "https://example.org/r/",
        "![P](https://example.org/r/raw/HEAD/p.svg)\nSee [A](https://example.org/r/blob/HEAD/specs/A.md) and "
        "[B](https://example.org).\n",
    ),
])  # fmt: skip
def test_the_links_of_the_package_page_are_made_from_the_address_of_the_repository(
    tmp_path: Path, repository: str, expected: str
) -> None:
    (tmp_path / "README.md").write_text(
        "![P](p.svg)\nSee [A](specs/A.md) and [B](https://example.org).\n", encoding="utf-8"
    )
    page = runpy.run_path(str(ROOT / "hatch_build.py"))["PackagePage"](
        str(tmp_path), {"repository": repository}
    )
    metadata: dict[str, Any] = {}
    page.update(metadata)
    assert metadata["readme"] == {"content-type": "text/markdown", "text": expected}

"""The pictures and the figures of README and docs are what their scripts write."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="the source distribution has no benchmarks and no scripts"
)


@pytest.fixture
def picture() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "picture.py"))


@pytest.fixture
def figures() -> Any:
    return json.loads((ROOT / "benchmarks" / "proof.json").read_text(encoding="utf-8"))


def test_the_stored_moving_picture_is_what_its_script_draws_of_the_transcript() -> None:
    draw = runpy.run_path(str(ROOT / "scripts" / "draw_replay.py"))["draw"]
    assert (ROOT / "examples" / "triage.svg").read_text(encoding="utf-8") == draw("examples/triage.jsonl")


def test_the_moving_picture_is_small_and_holds_no_script() -> None:
    drawn = (ROOT / "examples" / "triage.svg").read_bytes().replace(b"http://www.w3.org/", b"")
    assert (len(drawn) < 200_000, b"<script" in drawn, b"http" in drawn) == (True, False, False)


def test_the_stored_picture_of_the_proof_is_what_its_script_draws_of_the_stored_figures(
    picture: dict[str, Any], figures: Any
) -> None:
    stored = (ROOT / "benchmarks" / "proof.svg").read_text(encoding="utf-8")
    assert stored == picture["draw_proof"](figures)


@pytest.mark.parametrize("page", ["README.md", "docs/figures.md"])
def test_the_figures_of_the_pages_are_the_stored_ones(
    picture: dict[str, Any], figures: Any, page: str
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert picture["quote_proof"](text, figures) == text


def test_the_page_of_the_figures_has_a_row_for_each_stored_figure(
    picture: dict[str, Any], figures: Any
) -> None:
    figures["characters"] = dict.fromkeys(figures["characters"], 1)
    figures["rewinds"] = dict.fromkeys(figures["rewinds"], (2, 1))
    for by_kind in figures["crashes"].values():
        for each in by_kind.values():
            each |= {"acknowledged": 3, "kept": 3, "failed": 0}
    page = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    before, after = page.splitlines(), picture["quote_proof"](page, figures).splitlines()
    changed = [new.split(" | ")[1] for old, new in zip(before, after, strict=True) if old != new]
    assert changed == ["1", "3 of 3", "3 of 3", "1 of 2"]


def test_figures_that_are_counted_again_are_written_into_the_page(
    picture: dict[str, Any], figures: Any
) -> None:
    figures["measured"]["commit"] = "0123abcde"
    edited = figures["crashes"]["edited"]
    edited["session-planning"] |= {"acknowledged": 400, "kept": 399, "failed": 100}
    edited["pydantic-ai-harness"] |= {"acknowledged": 500, "kept": 1, "failed": 0}
    before = (
        "Counted at commit 45a83cbfe: version 1.\n"
        "| changes kept when two processes edit the same steps | 1 of 1 | no file | 1 of 1 | no file "
        "| no file |\n"
        "| changes by step id | yes |\n"
    )
    assert picture["quote_proof"](before, figures) == (
        "Counted at commit 0123abcde: version 1.\n"
        "| changes kept when two processes edit the same steps | 399 of 500 | no file | 1 of 500 | no file "
        "| no file |\n"
        "| changes by step id | yes |\n"
    )

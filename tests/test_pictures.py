"""The pictures of the README are what their scripts draw."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="the source distribution has no benchmarks and no scripts"
)


def test_the_stored_moving_picture_is_what_its_script_draws_of_the_transcript() -> None:
    draw = runpy.run_path(str(ROOT / "scripts" / "draw_replay.py"))["draw"]
    assert (ROOT / "examples" / "triage.svg").read_text(encoding="utf-8") == draw("examples/triage.jsonl")


def test_the_stored_picture_of_the_proof_is_what_its_script_draws_of_the_stored_figures() -> None:
    draw_proof = runpy.run_path(str(ROOT / "benchmarks" / "proof_picture.py"))["draw_proof"]
    figures = json.loads((ROOT / "benchmarks" / "proof.json").read_text(encoding="utf-8"))
    assert (ROOT / "benchmarks" / "proof.svg").read_text(encoding="utf-8") == draw_proof(figures)


def test_the_moving_picture_is_small_and_holds_no_script() -> None:
    picture = (ROOT / "examples" / "triage.svg").read_bytes()
    assert (
        len(picture) < 200_000,
        b"<script" in picture,
        b"http" in picture.replace(b"http://www.w3.org/", b""),
    ) == (
        True,
        False,
        False,
    )


def test_the_figures_of_the_readme_are_the_stored_ones() -> None:
    quote_proof = runpy.run_path(str(ROOT / "benchmarks" / "proof_picture.py"))["quote_proof"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    figures = json.loads((ROOT / "benchmarks" / "proof.json").read_text(encoding="utf-8"))
    assert quote_proof(readme, figures) == readme


def test_figures_that_are_counted_again_are_written_into_the_readme() -> None:
    quote_proof = runpy.run_path(str(ROOT / "benchmarks" / "proof_picture.py"))["quote_proof"]
    figures = json.loads((ROOT / "benchmarks" / "proof.json").read_text(encoding="utf-8"))
    figures["measured"]["commit"] = "0123abcde"
    figures["crashes"]["edited"]["session-planning"] = {"acknowledged": 400, "kept": 399, "failed": 100}
    figures["crashes"]["edited"]["pydantic-ai-harness"] = {"acknowledged": 500, "kept": 1, "failed": 0}
    before = (
        "Counted of the source at commit 45a83cbfe: version 1.\n"
        "| changes kept, two processes at the same steps | 1 of 1 | no file | 1 of 1 | no file | no file |\n"
        "| changes by step id | yes |\n"
    )
    assert quote_proof(before, figures) == (
        "Counted of the source at commit 0123abcde: version 1.\n"
        "| changes kept, two processes at the same steps | 399 of 500 | no file | 1 of 500 | no file "
        "| no file |\n"
        "| changes by step id | yes |\n"
    )

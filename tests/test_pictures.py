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

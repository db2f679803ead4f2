"""The pictures of the README are what their scripts draw."""

from __future__ import annotations

import json
import re
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
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    figures = json.loads((ROOT / "benchmarks" / "proof.json").read_text(encoding="utf-8"))
    characters, restored = figures["characters"], figures["rewinds"]["restored"]
    killed, edited = figures["crashes"]["killed"], figures["crashes"]["edited"]
    ours, peer, langchain = "session-planning", "pydantic-ai-harness", "langchain, whole list at each step"

    def kept(of: dict[str, dict[str, int]], name: str) -> str:
        return f"{of[name]['kept']:,} of {of[name]['acknowledged'] + of[name]['failed']:,}"

    talks = (f"{ours}, done only", langchain, f"{peer}, done only", "weakincentives, done only")
    totals = [f"{characters[name]:,}" for name in talks]
    plans = [f"{exact:,} of {asked:,}" for asked, exact in restored.values()]
    rows = [
        ["characters of a plan of 20 steps, to its end", *totals[:3], "not counted", totals[3]],
        ["changes kept, two processes at the same steps", kept(edited, ours), "no file", kept(edited, peer)],
        ["acknowledged changes kept after `kill -9`", kept(killed, ours), "not counted", kept(killed, peer)],
        ["earlier plans, exactly restored", *plans[:2], "none kept", "none kept", plans[2]],
    ]
    lines = [f"| {' | '.join([*row, *['no file'] * (6 - len(row))])} |" for row in rows]
    commits = re.findall(r"of the source at commit (\w+):", readme)
    table = readme.splitlines()[readme.splitlines().index("|---|---|---|---|---|---|") + 1 :]
    assert (commits, table[:4]) == ([figures["measured"]["commit"]], lines)

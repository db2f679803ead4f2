"""Results, section by section as measured last; a loss is noticed; README and docs have the figures."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="the source distribution has no benchmarks and no scripts"
)


@pytest.fixture(autouse=True)
def _imports_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def test_every_part_has_its_section_in_the_results() -> None:
    from benchmarks.measure import PARTS, RESULTS

    sources = ((ROOT / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8") for name in PARTS.values())
    titles = [re.findall(r'\bSection\(\s*"([^"]+)"', source)[0] for source in sources]
    assert re.findall("^## (.*)", RESULTS.read_text(encoding="utf-8"), re.MULTILINE) == titles


@pytest.mark.parametrize(
    ("figures", "attempts", "is_held"),
    [
        ([12.0], 1, True),
        ([13.0, 13.0, 13.0], 3, False),
        ([13.0, 12.0], 2, True),
    ],
    ids=["20 % more", "30 % more", "30 % more, but not again"],
)
def test_a_loss_of_a_quarter_is_one_that_is_measured_again(
    figures: list[float], attempts: int, is_held: bool
) -> None:
    from benchmarks.guard import guarded
    from benchmarks.harness import Cost

    left, measured = list(figures), 0

    def measure(part: str) -> list[Cost]:
        nonlocal measured
        measured += part == "marks"
        return [Cost("a mark", 2.0 * left.pop(0), "by hand", 2.0), Cost("a new row", 9.0, "by hand", 1.0)]

    text, found = guarded(["marks"], measure, {"marks": {"a mark": 10.0}, "calls": {"a call": 1.0}})
    assert (measured, found) == (attempts, is_held)
    assert ("LOST" in text) is not is_held


# Pictures and figures of README and docs


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

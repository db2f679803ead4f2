"""A loss of speed is noticed; README and docs have the stored pictures and figures."""

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


@pytest.fixture(autouse=True)
def _imports_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def test_a_loss_of_a_quarter_is_one_that_is_measured_again() -> None:
    from benchmarks.guard import guarded
    from benchmarks.harness import Cost

    def measure(_part: str) -> list[Cost]:
        return [Cost("a mark", 2.0 * left.pop(0), "by hand", 2.0), Cost("a new row", 9.0, "by hand", 1.0)]

    for figures, is_held in (([12.0], True), ([13.0, 13.0, 13.0], False), ([13.0, 12.0], True)):
        left = [*figures]
        text, found = guarded(["marks"], measure, {"marks": {"a mark": 10.0}})
        assert (left, found, "LOST" in text) == ([], is_held, not is_held)


# Pictures and figures of README and docs


def test_the_stored_moving_picture_is_what_its_script_draws_of_the_transcript() -> None:
    draw = runpy.run_path(str(ROOT / "scripts" / "draw_replay.py"))["draw"]
    assert (ROOT / "examples" / "triage.svg").read_text(encoding="utf-8") == draw("examples/triage.jsonl")


def test_the_picture_and_the_figures_of_the_proof_are_made_of_the_stored_figures() -> None:
    picture = runpy.run_path(str(ROOT / "benchmarks" / "picture.py"))
    figures = json.loads((ROOT / "benchmarks" / "proof.json").read_text(encoding="utf-8"))
    stored = (ROOT / "benchmarks" / "proof.svg").read_text(encoding="utf-8")
    assert stored == picture["draw_proof"](figures)
    for page in ("README.md", "docs/figures.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert picture["quote_proof"](text, figures) == text


def test_every_part_has_its_section_in_the_results() -> None:
    from benchmarks.measure import PARTS, RESULTS

    sources = ((ROOT / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8") for name in PARTS.values())
    titles = [re.findall(r'\bSection\(\s*"([^"]+)"', source)[0] for source in sources]
    assert re.findall("^## (.*)", RESULTS.read_text(encoding="utf-8"), re.MULTILINE) == titles

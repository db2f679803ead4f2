"""The results are kept section by section, each as it was measured last."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="the source distribution has no benchmarks"
)
SECTIONS = """
## One

Measured today.

| door |    us | marks |
|------|------:|------:|
| a    | 1,234 | 9,000 |

| target             |    measured |       |
|--------------------|------------:|------:|
| a: at most 5 times | 1,234 times | SHORT |

## Two

Measured today.

| door |    us | marks |
|------|------:|------:|
| a    | 0.250 | 9,000 |

| target             |    measured |     |
|--------------------|------------:|----:|
| a: at most 5 times | 0.250 times | met |
"""


def test_a_part_that_is_measured_again_replaces_its_own_section(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.harness import Section, at_most, table
    from benchmarks.measure import HEAD, replaced

    page = HEAD
    for title, figure in (("One", 1.5), ("Two", 0.25), ("One", 1234.4)):
        rows = table(["door", "us", "marks"], [["a", figure, 9_000]])
        section = Section(title, (), [rows], [at_most("a", figure, 5)])
        page = replaced(page, section.render("Measured today."))
    assert page == HEAD + SECTIONS


def test_every_part_has_its_section_in_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.measure import PARTS, RESULTS

    sources = ((ROOT / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8") for name in PARTS.values())
    titles = [re.findall(r'\bSection\(\s*"([^"]+)"', source)[0] for source in sources]
    assert re.findall("^## (.*)", RESULTS.read_text(encoding="utf-8"), re.MULTILINE) == titles

"""specs/MODULES.md says what each folder costs, and a script prints what each module is for."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "specs" / "MODULES.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(
    not (ROOT / "scripts").is_dir(), reason="the source distribution has no scripts"
)


def test_the_script_prints_every_module_with_what_it_is_for() -> None:
    printed = runpy.run_path(str(ROOT / "scripts" / "modules"))["modules"](ROOT / "src").splitlines()
    assert len(printed) == len([*(ROOT / "src").rglob("*.py")])
    assert [line for line in printed if not re.fullmatch(r"[\w/]+\.py: .+", line)] == []


def test_the_sizes_of_the_rooms_are_near_what_the_page_says() -> None:
    sizes = runpy.run_path(str(ROOT / "scripts" / "modules"))["sizes"](ROOT)
    rows = re.findall(r"^\| `(\S+)/` \| ([\d,]+) \| ([\d,]+) \|", PAGE, re.MULTILINE)
    said = {room: (int(source.replace(",", "")), int(tests.replace(",", ""))) for room, source, tests in rows}
    assert said.keys() == sizes.keys()
    for room, both in sizes.items():
        for lines, expected in zip(both, said[room], strict=True):
            assert lines == pytest.approx(expected, rel=0.1, abs=100), room


def test_the_architecture_names_modules_that_are_there() -> None:
    folders = (ROOT / name for name in ("src", "tests", "benchmarks", "scripts"))
    every = [f"/{path.relative_to(ROOT)}" for folder in folders for path in folder.rglob("*.py")]
    text = (ROOT / "specs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = {name.removeprefix("../") for name in re.findall(r"[\w./]+\.py\b", text)}
    assert {name for name in named if not any(path.endswith(f"/{name}") for path in every)} == set()

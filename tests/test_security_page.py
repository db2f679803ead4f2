"""specs/SECURITY.md: what it names is there, both lists are whole, and it is short."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "specs" / "SECURITY.md").read_text()
NAMES = re.compile(r"`((?!src/|tests/)[\w/]+(?:/|\.py|\.txt))`")


def test_each_file_that_it_names_is_there() -> None:
    named = NAMES.findall(PAGE)
    assert len(named) > 30
    assert [name for name in named if not any((ROOT / at / name).exists() for at in ("src", "tests"))] == []


def test_both_lists_are_whole() -> None:
    for prefix in ("LLM", "ASI"):
        numbers = re.findall(rf"^\| {prefix}(\d\d) ", PAGE, re.MULTILINE)
        assert numbers == [f"{number:02}" for number in range(1, 11)]


def test_it_and_the_policy_are_short() -> None:
    assert len(PAGE.splitlines()) < 150
    assert len((ROOT / "SECURITY.md").read_text().splitlines()) < 30

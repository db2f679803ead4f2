"""Work grows as the text does, whatever the text: counted in calls, and not by a clock."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from planning.workflow import validate_workflow

STEP = '{"step_id":"a","description":"d","type":"tool","name":"search","inputs":{},"depends_on":[]}'

REPEATED: dict[str, tuple[str, str, str]] = {
    "opening brackets": ("", "[", ""),
    "opening brackets and braces": ("", "[{", ""),
    "open objects": ("", '{"a":', ""),
    "open steps": ("", '{"step_id":', ""),
    "open lists of steps": ("", '[{"step_id":', ""),
    "empty lists": ("", "[]", ""),
    "quotes": ('["', '"', ""),
    "single quotes": ("['", "'", ""),
    "backslashes": ('["', "\\d", '"]'),
    "halves of characters": ('["', "\\ud800", '"]'),
    "open comments": ("[", "/*", ""),
    "comments": ("[", "/**/", "]"),
    "fences": ("", "```", ""),
    "fences on lines": ("", "```json\n", ""),
    "fences with brackets": ("", "```\n[x\n", ""),
    "fences with tildes and brackets": ("", "~~~\n[x\n", ""),
    "tildes on one line": ("", "~~~a ", ""),
    "fences within steps": ("[", '{"step_id":```', ""),
    "plans": ("", f"[{STEP}]\n", ""),
    "steps without commas": ("[", f"{STEP}\n", "]"),
    "steps without a list": ("", f"{STEP}\n", ""),
    "objects in prose": ("", "{a: 1} ", ""),
    "broken objects in prose": ("", "{a: b c} ", ""),
    "broken lists in prose": ("so ", "[{x: 1 2 ", ""),
    "broken lists in prose, with a string": ("so ", '[{"x": "', ""),
    "broken lists in prose, each closed": ("so ", "prose [{x: 1 2}] ", ""),
    "names without quotes, broken": ("so ", "[{x: \\ ", ""),
    "closers": ("[", "]}", ""),
    "brackets too many behind": ("[" + STEP, "]", ""),
    "brackets that do not match": ("", "[{]", ""),
    "braces that do not match": ("[", '{"a":[}', ""),
    "an error in each step": ("[", '{"step_id":"a","description":"say "hi" now"},\n', "]"),
    "an error in each object": ("[", '{"k":"a" b},\n', "]"),
    "fields twice": ("[{", '"a":1,', '"a":1}]'),
    "words": ("[", "tea,", "1]\n"),
    "numbers that are none": ("[", "NaN,", "1]"),
    "line breaks in a string": ('["', "\n", '"]'),
    "commas too many": ("[", STEP[:-1] + ",},", "]"),
    "curly quotes": ("", "[{\u201cstep_id", ""),
    "wrappers": ("", '{"plan":', ""),
    "blanks": ("{", " ", "{"),
    "errors and brackets too many": ('[{"a":[', "@x,]", "]"),
}


def work(text: str) -> int:
    """How many calls the check of a text takes, in Python and in C."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        validate_workflow(text)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("what", REPEATED)
def test_four_times_the_text_is_four_times_the_work(what: str) -> None:
    before, repeated, behind = REPEATED[what]
    validate_workflow(before + repeated + behind)  # what is loaded and compiled once
    # Beyond the depth that is read, and where the first lines are counted and not looked up.
    short, long = (work(before + repeated * times + behind) for times in (200, 800))
    assert long < 4.5 * short + 500

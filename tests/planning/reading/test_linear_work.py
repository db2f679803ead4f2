"""Work grows as the text does, whatever the text: counted in calls, and not by a clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from laws import work_of
from planning.reading import places, read, repair, values
from planning.workflow import validate_workflow
from planning.workflow.wire.form import WORKFLOW

STEP = '{"step_id":"a","description":"d","type":"tool","name":"search","inputs":{},"depends_on":[]}'

REPEATED: dict[str, tuple[str, str, str]] = {
    "opening brackets": ("", "[", ""),
    "open lists of steps": ("", '[{"step_id":', ""),
    "empty lists": ("", "[]", ""),
    "quotes": ('["', '"', ""),
    "backslashes": ('["', "\\d", '"]'),
    "halves of characters": ('["', "\\ud800", '"]'),
    "comments": ("[", "/**/", "]"),
    "fences": ("", "```", ""),
    "fences with brackets": ("", "```\n[x\n", ""),
    "fences within steps": ("[", '{"step_id":```', ""),
    "plans": ("", f"[{STEP}]\n", ""),
    "steps without commas": ("[", f"{STEP}\n", "]"),
    "objects in prose": ("", "{a: 1} ", ""),
    "broken lists in prose": ("so ", "[{x: 1 2 ", ""),
    "names without quotes, broken": ("so ", "[{x: \\ ", ""),
    "closers": ("[", "]}", ""),
    "brackets too many behind": ("[" + STEP, "]", ""),
    "brackets that do not match": ("", "[{]", ""),
    "an error in each step": ("[", '{"step_id":"a","description":"say "hi" now"},\n', "]"),
    "fields twice": ("[{", '"a":1,', '"a":1}]'),
    "words": ("[", "tea,", "1]\n"),
    "line breaks in a string": ('["', "\n", '"]'),
    "wrappers": ("", '{"plan":', ""),
    "errors and brackets too many": ('[{"a":[', "@x,]", "]"),
}


def work(text: str) -> int:
    """How many calls the check of a text takes, in Python and in C."""
    return work_of(lambda: validate_workflow(text))


@pytest.mark.parametrize("what", REPEATED)
def test_four_times_the_text_is_four_times_the_work(what: str) -> None:
    before, repeated, behind = REPEATED[what]
    validate_workflow(before + repeated + behind)  # what is loaded and compiled once
    # Beyond the depth that is read, and where the first lines are counted and not looked up.
    short, long = (work(before + repeated * times + behind) for times in (200, 800))
    assert long < 4.5 * short + 500


BOUNDED: dict[str, tuple[str, str, str]] = {
    "lists of objects behind a plan": (f"[{STEP}]", "[{", ""),
    "empty lists": ("", "[]", ""),
    "missing commas in inputs": ('{"steps":[{"step_id":"a","inputs":{"x":[', "[1]", "]}}]}"),
    "fields without quotes in prose": ("so ", "{a: 1} ", ""),
    "lists in fences": ("", "```\n[x\n", ""),
    "line breaks in a string": ('["', "\n", '"]'),
    "comments before everything": ("", "/**/", "x"),
    "closers behind a plan": (f"[{STEP}]", "]", ""),
    "faults in steps": ("[", '{"step_id":"a" b},', "]"),
    "plans": ("", f"[{STEP}]\n", ""),
    "an escaped plan": ('"', '\\"', '"'),
}


@pytest.mark.parametrize("what", BOUNDED)
def test_beyond_a_limit_more_text_is_not_more_work(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (values, read):
        monkeypatch.setattr(module, "MOST_WORK", 400)
    monkeypatch.setattr(repair, "MOST_FAULTS", 100)
    monkeypatch.setattr(read, "_MOST_READINGS", 100)
    monkeypatch.setattr(read, "_MOST_PASSED", 100)
    before, repeated, behind = BOUNDED[what]
    validate_workflow(before + repeated + behind)
    short, long = (work(before + repeated * times + behind) for times in (1_000, 4_000))
    assert long < 1.1 * short + 100


def test_reading_stops_with_an_error_where_too_much_is_not_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MOST_WORK", 10)
    report = validate_workflow("[" + "{a: 1}, " * 20 + "]")
    stops = [(each.message, each.hint, each.column) for each in report.errors if each.code == "too_long"]
    message = "too much of the text is not plain JSON; it was read up to here"
    assert stops == [(message, "send plain JSON, or a shorter workflow", 23)]


def test_reading_stops_with_an_error_where_too_much_stands_around_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(read, "_MOST_READINGS", 2)
    text = f"[{STEP}]" + " so {a: 1}" * 9
    start = text.index("so", len(STEP) + 22) + 3
    message = "the text has too many lists and objects; it was read up to here"
    assert [
        (each.code, each.message, each.hint, each.column, each.length)
        for each in validate_workflow(text).errors
    ] == [("too_long", message, "send only the workflow", start + 1, 1)]


@pytest.mark.parametrize("around", [1, 50])
def test_a_place_in_nested_lists_is_found_without_reading_each_of_them(
    around: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0

    class Counting(json.JSONDecoder):
        def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
            nonlocal read
            value, end = super().raw_decode(s, idx)
            read += end - idx
            return value, end

    monkeypatch.setattr(places, "_DECODER", Counting())
    inner = "[" * around + "[0], " * 20_000 + '"${z.output}"' + "]" * around
    text = f'{{"steps": [{{"step_id": "a", "description": "d", "agent": "b", "inputs": {{"x": {inner}}}}}]}}'
    (error,) = validate_workflow(text).errors
    assert (error.code, error.column) == ("unknown_reference", text.index("${z") + 1)
    assert read < 2 * len(text)


@pytest.mark.parametrize("text", [f"[{STEP}]", STEP, '[{"a": [1, 2.5, "\\u00e9"]}]'])
def test_plain_json_within_other_text_is_not_read_token_by_token(text: str) -> None:
    reading = repair.Reading(f"so {text} yes", 3, WORKFLOW, is_prose=True)
    assert (reading.value, reading.pos, reading.work) == (json.loads(text), 3 + len(text), 0)


CHECKED = """
import sys
from planning.workflow import validate_workflow
before, repeated, behind = sys.argv[1:]
most = 8_000_000 - len(before) - len(behind)
report = validate_workflow(f"{before}{repeated * (most // len(repeated)):{most}}{behind}")
assert "8000000" not in str([error.message for error in report.errors])
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", REPEATED)
def test_eight_million_characters_take_seconds_and_less_than_500_mb(what: str) -> None:
    words = [sys.executable, "-c", CHECKED, *REPEATED[what]]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    peak = subprocess.run(words, capture_output=True, check=True, timeout=30, env=env).stdout
    assert 20_000 < int(peak) < 500_000  # kB

"""A source is read into a value, what was wrong with its text, and the places of everything; at what cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from plan_findings import nested, stored_values, whole, with_outcomes
from syrupy.assertion import SnapshotAssertion

from laws import work_of
from planning.reading import (
    ANYTHING,
    Document,
    Unreadable,
    answers_in,
    places,
    read,
    read_document,
    read_json,
    repair,
    values,
)
from planning.reading.found import Found, Wanted
from planning.reading.found import Path as Place
from planning.workflow import validate_workflow
from planning.workflow.wire.form import WORKFLOW

STEP = {"step_id": "a", "description": "d", "type": "tool", "name": "search", "inputs": {}, "depends_on": []}
TEXT = json.dumps(STEP)


def told(document: Document) -> list[tuple[str, str, str, tuple[int, int] | None]]:
    return [(each.code, each.message, each.hint, document.span(each)) for each in document.found]


def brief(document: Document) -> list[tuple[str, tuple[int, int] | None]]:
    return [(each.code, document.span(each)) for each in document.found]


# --- what a source is


def test_a_value_that_is_parsed_already_has_no_text_and_no_places() -> None:
    document = read_document([STEP], WORKFLOW)
    assert (document.value, document.source, document.found) == ([STEP], None, [])
    assert document.value[0] is not STEP
    assert document.span(Found("c", "m", "h", (0, "step_id"))) is None
    assert (document.path_at(3), document.is_broken((0,))) == ((), False)


def test_bytes_that_are_not_utf8_are_an_error_at_the_first_of_them_and_read_all_the_same() -> None:
    document = read_document(b'[{"step_id": "\xc3\xa9 \xff"}]', WORKFLOW)
    assert document.value == [{"step_id": "\u00e9 \ufffd"}]
    assert told(document) == [("bad_encoding", "the bytes are not UTF-8", "send UTF-8", (16, 17))]


def test_a_byte_order_mark_moves_no_place() -> None:
    assert brief(read_document(b'\xef\xbb\xbf["\xff"]', WORKFLOW)) == [("bad_encoding", (2, 3))]
    assert brief(read_document("\ufeff[1,]", WORKFLOW)) == [("trailing_comma", (2, 3))]


def test_a_text_that_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MOST_CHARACTERS", 10)
    assert read_document('["123456"]', WORKFLOW).value == ["123456"]
    document = read_document('["1234567"]', WORKFLOW)
    assert document.source is not None
    assert told(document) == [
        ("too_long", "the text has 11 characters, at most 10 are read", "send a shorter workflow", (0, 1))
    ]


def test_of_many_halves_of_characters_fifty_are_said() -> None:
    document = read_document('["' + "\ud800" * 60 + '"]', WORKFLOW)
    assert brief(document) == [("lone_surrogate", (at, at + 1)) for at in range(2, 52)]
    assert document.value == ["\ufffd" * 60]


def test_a_doubt_that_would_take_long_to_settle_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ('[{"a": 1, "b": {"c": 1}]', '[[{"a": 1}]}]', '[1, {"a": {"b": 1, "c": 2}}}]')
    codes = ["missing_bracket", "extra_bracket", "extra_bracket"]
    assert [brief(read_document(text, WORKFLOW))[0][0] for text in texts] == codes
    monkeypatch.setattr(repair, "MOST_WEIGHED", 5)
    found = [(1, 2), (11, 12), (27, 28)]
    assert [brief(read_document(text, WORKFLOW)) for text in texts] == [
        [("ambiguous_bracket", at)] for at in found
    ]


# --- what could not be read


def test_a_value_that_cannot_be_read_says_why_and_where() -> None:
    with pytest.raises(Unreadable) as caught:
        read_json('["\\ud800"]')
    message = "half of a surrogate pair at line 1, column 3; send the whole character"
    assert (caught.value.code, str(caught.value)) == ("lone_surrogate", message)


def test_a_step_that_lacks_what_could_not_be_read_is_broken() -> None:
    document = read_document('[{"step_id": "a", "x": @}, {"step_id": "b"}]', WORKFLOW)
    assert document.value == [{"step_id": "a"}, {"step_id": "b"}]
    paths: list[Place] = [(), (0,), (1,), (0, "x"), (1, "step_id")]
    assert [path for path in paths if document.is_broken(path)] == [(0,), (0, "x")]


# --- what is said of a text, word for word

TEXTS: dict[str, list[str]] = {
    kind: [whole(written) for written in texts]
    for kind, texts in json.loads(Path(__file__).with_name("texts.json").read_text()).items()
}
SHORT = json.dumps({"step_id": "b", "description": "d"})
AROUND = (
    f"[{TEXT} and that is all",  # what follows an open plan ends it
    f"```\n{TEXT}\n{TEXT[:-1]}\n```",  # a fence closes the open step of a sequence
    f"```\nThe plan: [{TEXT}]\n```",  # a fence with words before the plan counts as other text
    f"```json\n[1 2]\n```\n~~~\n[{TEXT}]\n~~~\nOr [{{x: 1}}]?",
    # One bracket is missing and one is extra: that is said once.
    '[{"step_id": "a", "inputs": {"q": 1, "depends_on": []}]]',
    f'{{"plan": {TEXT}, "note": 1}}}}',
    f'{{"schema_version": 2, "goal": "g", "steps": [{{"step_id" {{"x": 1}}}}, {SHORT}]]}}',
    json.dumps("No plan today."),
    " \n",
    "12",
    "sorry",
)


def findings(document: Document) -> str:
    """What was read, and every finding with its place."""
    lines = [
        f"- {each.code} at {document.span(each)}, {list(each.path)}: {each.message}; {each.hint}"
        for each in document.found
    ]
    return "\n".join([f"= {document.value!a:.400}", *lines])


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        pytest.param(AROUND, WORKFLOW, id="around"),
        *(pytest.param(TEXTS[kind], WORKFLOW, id=kind) for kind in ("loose", "faulty", "repaired")),
        *(pytest.param(TEXTS[kind], ANYTHING, id=kind) for kind in ("any JSON", "in a fence")),
    ],
)
def test_what_is_found_in_a_text(texts: Sequence[str], wanted: Wanted, snapshot: SnapshotAssertion) -> None:
    blocks = [f"{text!a:.400}\n{findings(read_document(text, wanted))}\n" for text in texts]
    assert "\n".join(blocks) == snapshot


DAMAGED = {
    "a workflow": ('[{"step_id":"a","inputs":{"q":[1,-2.5]}},\n{"step_id":"b","goal":null}]', WORKFLOW),
    "a fence": ('So:\n```json\n{"step_id": "a"}\n{"step_id": "b"}\n```\nOr [1]?', WORKFLOW),
    "loose JSON": ("{a: 'x', /* c */ \"b\": [+1, None, 'y\\n'],\n c: \"d\"} // end", ANYTHING),
}


@pytest.mark.parametrize(("text", "wanted"), DAMAGED.values(), ids=DAMAGED)
def test_one_character_too_few_or_too_many(text: str, wanted: Wanted, snapshot: SnapshotAssertion) -> None:
    lines = []
    for place in range(len(text) + 1):
        for extra in ("", *',"]{'):
            damaged = text[:place] + extra + text[place + (not extra) :]
            document = read_document(damaged, wanted)
            found = " ".join(f"{each.code}{document.span(each)}" for each in document.found)
            lines.append(f"{place}{extra}: {document.value!a} {found}".replace(", ", ","))
    assert "\n".join(lines) + "\n" == snapshot


def test_in_prose_too_a_model_that_ended_its_text_may_have_forgotten_a_bracket() -> None:
    text = 'Here it is: [{"step_id": "a"}'
    assert brief(read_document(text, WORKFLOW))[0][0] == "truncated"
    assert [code for code, _ in brief(read_document(text, WORKFLOW, is_finished=True))] == [
        "missing_bracket",
        "surrounding_text",
    ]


def test_a_fence_that_never_ends_holds_the_answer_too() -> None:
    wanted = Wanted("answer", names=("a",), is_fenced_first=True)
    assert read_document('Here it is:\n```json\n{"a": 2}', wanted).value == {"a": 2}


LOOP: list[Any] = []
LOOP.append({"again": LOOP})


NOT_JSON: dict[str, Any] = {
    "a number of 5,000 digits": [10**5000],
    "infinity": [float("-inf")],
    "half a character": ["\ud800"],
    "two names that become the same": {"a\ud800": 1, "a?": 2},
    "a name that is a number": {"a": {1: 2}},
    "an object": [object()],
    "a list that contains itself": LOOP,
    "sixty-five levels": nested(64),
}


def test_a_value_that_json_does_not_have_is_said_with_its_path(snapshot: SnapshotAssertion) -> None:
    blocks = [f"{name}\n{findings(read_document(NOT_JSON[name], WORKFLOW))}\n" for name in NOT_JSON]
    assert "\n".join(blocks) == snapshot


@pytest.mark.parametrize("path", [(0, "x"), (0, "x", "y"), (0, 0)])
def test_a_path_that_leads_into_a_number_ends_there(path: Place) -> None:
    assert read_document("[12]", WORKFLOW).span(Found("c", "m", "h", path)) == (1, 3)


def test_the_answers_are_what_fences_hold_or_the_text_itself(snapshot: SnapshotAssertion) -> None:
    assert with_outcomes(stored_values(snapshot), lambda text: answers_in(text, {"sql"})) == snapshot


# --- the work grows as the text does: counted in calls, and not by a clock

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
    "plans": ("", f"[{TEXT}]\n", ""),
    "steps without commas": ("[", f"{TEXT}\n", "]"),
    "objects in prose": ("", "{a: 1} ", ""),
    "broken lists in prose": ("so ", "[{x: 1 2 ", ""),
    "names without quotes, broken": ("so ", "[{x: \\ ", ""),
    "closers": ("[", "]}", ""),
    "brackets too many behind": ("[" + TEXT, "]", ""),
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


BOTH = ("empty lists", "objects in prose", "fences with brackets", "line breaks in a string", "plans")
BOUNDED: dict[str, tuple[str, str, str]] = {
    "lists of objects behind a plan": (f"[{TEXT}]", "[{", ""),
    "missing commas in inputs": ('{"steps":[{"step_id":"a","inputs":{"x":[', "[1]", "]}}]}"),
    "comments before everything": ("", "/**/", "x"),
    "closers behind a plan": (f"[{TEXT}]", "]", ""),
    "faults in steps": ("[", '{"step_id":"a" b},', "]"),
    "an escaped plan": ('"', '\\"', '"'),
} | {what: REPEATED[what] for what in BOTH}


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


def test_reading_stops_with_an_error_where_too_much_is_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_MOST_READINGS", 2)
    text = f"[{TEXT}]" + " so {a: 1}" * 9
    start = text.index("so", len(TEXT) + 22) + 3
    message = "the text has too many lists and objects; it was read up to here"
    (error,) = validate_workflow(text).errors
    assert (error.code, error.message, error.hint) == ("too_long", message, "send only the workflow")
    assert (error.column, error.length) == (start + 1, 1)


@pytest.mark.parametrize("around", [1, 50])
def test_a_place_in_nested_lists_is_found_in_one_pass(around: int, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize("text", [f"[{TEXT}]", TEXT, '[{"a": [1, 2.5, "\\u00e9"]}]'])
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

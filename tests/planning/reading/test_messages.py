"""What is said of a text, word for word, and with its place."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from planning.reading import ANYTHING, Document, answers_in, read_document
from planning.reading.found import Found, Path, Wanted
from planning.workflow.wire.form import WORKFLOW

FAULTY = (
    '["a "b" c"]',
    '[{"a": "x" y}]',
    '{"a"b": 1}',
    "[1 2]",
    "[1 X]",
    "[,]",
    "[@]",
    "{, a: 1}",
    "{1: 2}",
    '{"a" 1}',
    "[NaN]",
    "[nul]",
    "[01]",
    '["\\q"]',
    '["\\\n"]',
    '["\ud800"]',
    "[1, 2",
    '["a"',
    "[1]]",
    'X [{"step_id": "a"}]',
    '"[\\"\\uD83D\\uDE00\\"]"',
    '["a": 1]',
    '<think>So [{"step_id": "a"}]',
    '"steps": [{"step_id": "a"}]',
    '[{"step_id": "a"}], "x": 1',
    '[{"step_id": "a", "inputs": {"q": 1, "depends_on": []}]',
    '{"plan": {"step_id": "a"}, "note": 1}}',
    '[{"a": [1}]]',
    "[1],x",
    "[nan, -inf]",
)
REPAIRED = (
    "```json\n[1]\n```",
    "[1] // a",
    "[1, // a\n2, # b\n3]",
    "[1,]",
    "[[1,],]",
    "[1], ",
    "[[1]\n[2]]",
    "['a']",
    "['a', 'b']",
    "{a: 1}",
    "{a: 1, b: 2}",
    "[None]",
    "[None, True]",
    "[.5]",
    "[.5, +1]",
    '["\\x41"]',
    '["\\x41", "\\x42"]',
    "[1,\xa02]",
    "[1,\xa02,\xa03]",
    '["a\tb"]',
    '["a\tb\tc"]',
    '[{"a": [1}]',
    "[1]]",
    "[1]]]",
    "[1]: 2",
)
ANY_JSON = ("[1]", "<think>[2]</think>[1]", "[1] [2]", '[1] {"a": 1}', "[@ [2]")
NO_JSON = "use text, numbers, booleans, None, lists and mappings with text as names"


def findings(document: Document) -> str:
    """What was read, and every finding with its place."""
    lines = [
        f"- {each.code} at {document.span(each)}: {each.message}; {each.hint}" for each in document.found
    ]
    return "\n".join([f"= {document.value!a}", *lines])


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [(FAULTY, WORKFLOW), (REPAIRED, WORKFLOW), (ANY_JSON, ANYTHING)],
    ids=["faulty", "repaired", "any JSON"],
)
def test_a_text_is_read_with_these_findings(
    texts: tuple[str, ...], wanted: Wanted, snapshot: SnapshotAssertion
) -> None:
    blocks = [f"{text!a}\n{findings(read_document(text, wanted))}\n" for text in texts]
    assert "\n".join(blocks) == snapshot


DAMAGED = {
    "a workflow": ('[{"step_id":"a","inputs":{"q":[1,-2.5]}},\n{"step_id":"b","goal":null}]', WORKFLOW),
    "a fence": ('So:\n```json\n{"step_id": "a"}\n{"step_id": "b"}\n```\nOr [1]?', WORKFLOW),
    "loose JSON": ("{a: 'x', /* c */ \"b\": [+1, None, 'y\\n'],\n c: \"d\"} // end", ANYTHING),
}


@pytest.mark.parametrize(("text", "wanted"), DAMAGED.values(), ids=DAMAGED)
def test_one_character_too_few_or_too_many_gives(
    text: str, wanted: Wanted, snapshot: SnapshotAssertion
) -> None:
    lines = []
    for place in range(len(text) + 1):
        for extra in ("", *',"]{'):
            damaged = text[:place] + extra + text[place + (not extra) :]
            document = read_document(damaged, wanted)
            found = " ".join(f"{each.code}{document.span(each)}" for each in document.found)
            lines.append(f"{place}{extra}: {document.value!a} {found}".replace(", ", ","))
    assert "\n".join(lines) + "\n" == snapshot


def test_two_names_that_become_the_same_are_said() -> None:
    found = read_document({"a\ud800": 1, "a?": 2}, WORKFLOW).found
    assert [(each.code, each.message, each.hint, each.path) for each in found] == [
        ("lone_surrogate", "half of a surrogate pair", "send the whole character", ()),
        ("duplicate_key", "two fields have the same name", "send each field once", ("a?",)),
    ]


def test_a_fence_that_never_ends_holds_the_answer_too() -> None:
    wanted = Wanted("answer", names=("a",), is_fenced_first=True)
    assert read_document('Here it is:\n```json\n{"a": 2}', wanted).value == {"a": 2}


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


LOOP: list[Any] = []
LOOP.append({"again": LOOP})


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([10**5000], ("bad_number", "a number that is too large to be kept", "send it as text", (0,))),
        ([float("-inf")], ("not_a_number", "-inf is not a JSON value", "send a number or null", (0,))),
        (["\ud800"], ("lone_surrogate", "half of a surrogate pair", "send the whole character", (0,))),
        ({"a": {1: 2}}, ("not_json", "a field name is a value of type int, not a string", NO_JSON, ("a",))),
        ([object()], ("not_json", "a value of type object is not a JSON value", NO_JSON, (0,))),
        (LOOP, ("too_deep", "it contains itself", "send flatter values", (0, "again"))),
        (deep(65), ("too_deep", "nested deeper than 64 levels", "send flatter values", (0,) * 64)),
    ],
)
def test_a_value_that_json_does_not_have_is_said_with_its_path(
    given: Any, found: tuple[str, str, str, Path]
) -> None:
    document = read_document(given, WORKFLOW)
    assert [(each.code, each.message, each.hint, each.path) for each in document.found] == [found]


@pytest.mark.parametrize("path", [(0, "x"), (0, "x", "y"), (0, 0)])
def test_a_path_that_leads_into_a_number_ends_there(path: Path) -> None:
    assert read_document("[12]", WORKFLOW).span(Found("c", "m", "h", path)) == (1, 3)


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("`SELECT 1`", ["SELECT 1"]),
        ("```SELECT 1```", ["SELECT 1"]),
        ("```\nSELECT 1\n```", ["SELECT 1"]),
        ("```sql\nSELECT 1\n```", ["SELECT 1"]),
        ("```SELECT a\nFROM b\n```", ["SELECT a\nFROM b"]),
        ("```python\nSELECT 1\n```\n```\nSELECT 2\n```", ["SELECT 1", "SELECT 2"]),
        ("```python\nSELECT 1\n```\n```sql\nSELECT 2\n```", ["SELECT 2"]),
        ('```json {"a": 1}```', ['{"a": 1}']),
        ("```json [1]```", ["[1]"]),
    ],
)
def test_the_answers_in_a_text_are_what_its_fences_hold_or_the_text_itself(
    text: str, answers: list[str]
) -> None:
    assert answers_in(text, {"sql"}) == answers

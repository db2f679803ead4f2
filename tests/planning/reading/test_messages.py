"""What is said of a text, word for word, and with its place."""

from __future__ import annotations

from typing import Any

import pytest

from planning.reading import ANYTHING, Document, answers_in, read_document
from planning.reading.wanted import Wanted
from planning.workflow.findings import Found, Path
from planning.workflow.wire.form import PLAN

Told = tuple[str, str, str, tuple[int, int] | None]
QUOTE = (
    "unescaped_quote",
    "the string ends early: escape the quote inside it, or add the closing one",
    'write a quote in a string as \\"',
)
CUT = ("truncated", "the text breaks off here", "send the whole plan")
BACKSLASH = "write a backslash as \\\\"
NUMBER = "write a plain number, or text in quotes"
NO_JSON = "use text, numbers, booleans, None, lists and mappings with text as names"


def told(document: Document) -> list[Told]:
    return [(each.code, each.message, each.hint, document.span(each)) for each in document.found]


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ('["a "b" c"]', ["a "], (*QUOTE, (5, 6))),
        ('[{"a": "x" y}]', [{"a": "x"}], (*QUOTE, (11, 12))),
        ('{"a"b": 1}', {}, (*QUOTE, (4, 5))),
        (
            "[1 2]",
            [1],
            ("syntax_error", "expected a comma or a closing bracket, got '2'", "send plain JSON", (3, 4)),
        ),
        (
            "[1 X]",
            [1],
            ("syntax_error", "expected a comma or a closing bracket, got 'X'", "send plain JSON", (3, 4)),
        ),
        ("[,]", [], ("syntax_error", "a value is missing before ','", "send a value", (1, 2))),
        (
            "[@]",
            [],
            (
                "syntax_error",
                "expected a value, got '@'",
                "send plain JSON, with strings in double quotes",
                (1, 2),
            ),
        ),
        (
            "{, a: 1}",
            {},
            ("syntax_error", "expected a field, got a comma", "write one comma between fields", (1, 2)),
        ),
        (
            "{1: 2}",
            {},
            ("syntax_error", "expected a field name, got '1'", "write field names in double quotes", (1, 2)),
        ),
        (
            '{"a" 1}',
            {},
            (
                "syntax_error",
                "expected a colon after a field name, got '1'",
                'write fields as "name": value',
                (5, 6),
            ),
        ),
        ("[NaN]", [None], ("not_a_number", "NaN is not a JSON value", "send a number or null", (1, 4))),
        (
            "[nul]",
            ["nul"],
            ("unquoted_text", "'nul' has no quotes", "write strings in double quotes", (1, 4)),
        ),
        ("[01]", [0], ("bad_number", "'01' is not a readable number", NUMBER, (1, 3))),
        (
            '["\\q"]',
            ["\\q"],
            ("bad_escape", "a backslash before 'q' is not a JSON escape", BACKSLASH, (2, 4)),
        ),
        (
            '["\\\n"]',
            ["\\\n"],
            ("bad_escape", "a backslash before a line break or another control character", BACKSLASH, (2, 4)),
        ),
        (
            '["\ud800"]',
            ["\ufffd"],
            ("lone_surrogate", "half of a surrogate pair", "send the whole character", (2, 3)),
        ),
        ("[1, 2", [1, 2], (*CUT, (5, 5))),
        ('["a"', ["a"], (*CUT, (4, 4))),
        (
            "[1]]",
            [1],
            ("extra_bracket", "an extra closing bracket was ignored", "close every bracket once", (3, 4)),
        ),
        (
            'X [{"step_id": "a"}]',
            [{"step_id": "a"}],
            ("surrounding_text", "there is extra text around the plan", "send the plan alone", (0, 1)),
        ),
        (
            '"[\\"\\uD83D\\uDE00\\"]"',
            ["\U0001f600"],
            (
                "encoded_plan",
                "the plan was a JSON string, which was read once more",
                "send the plan itself, not a string",
                (0, 1),
            ),
        ),
    ],
)
def test_a_fault_of_a_text_is_said_with_its_remedy(text: str, value: Any, found: Told) -> None:
    document = read_document(text, PLAN)
    assert document.value == value
    assert told(document) == [found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```json\n[1]\n```", ("fenced", "the plan was in a code fence", "send the plan without a fence")),
        ("[1] // a", ("comment", "a comment was ignored", "send plain JSON")),
        ("[1, // a\n2, # b\n3]", ("comment", "2 comments were ignored", "send plain JSON")),
        (
            "[1,]",
            (
                "trailing_comma",
                "a comma before a closing bracket was ignored",
                "remove the comma after the last item",
            ),
        ),
        (
            "[[1,],]",
            (
                "trailing_comma",
                "2 commas before a closing bracket were ignored",
                "remove the comma after the last item",
            ),
        ),
        (
            "[1], ",
            (
                "trailing_comma",
                "a comma before a closing bracket was ignored",
                "remove the comma after the last item",
            ),
        ),
        ("[[1]\n[2]]", ("missing_comma", "a missing comma was added", "separate items by commas")),
        ("['a']", ("single_quotes", "a string in single quotes was read", "write strings in double quotes")),
        (
            "['a', 'b']",
            ("single_quotes", "2 strings in single quotes were read", "write strings in double quotes"),
        ),
        (
            "{a: 1}",
            ("bare_key", "a field name without quotes was read", "write field names in double quotes"),
        ),
        (
            "{a: 1, b: 2}",
            ("bare_key", "2 field names without quotes were read", "write field names in double quotes"),
        ),
        ("[None]", ("python_literal", "a Python literal was read", "write true, false and null")),
        ("[None, True]", ("python_literal", "2 Python literals were read", "write true, false and null")),
        (
            "[.5]",
            (
                "number_form",
                "a number in a form that JSON does not have was read",
                "write numbers such as 1, 0.5 or 5.0",
            ),
        ),
        (
            "[.5, +1]",
            (
                "number_form",
                "2 numbers in a form that JSON does not have were read",
                "write numbers such as 1, 0.5 or 5.0",
            ),
        ),
        (
            '["\\x41"]',
            (
                "escape_form",
                "an escape that JSON does not have was read",
                "write \\u0041 for \\x41, and ' as it is",
            ),
        ),
        (
            '["\\x41", "\\x42"]',
            (
                "escape_form",
                "2 escapes that JSON does not have were read",
                "write \\u0041 for \\x41, and ' as it is",
            ),
        ),
        (
            "[1,\xa02]",
            ("odd_space", "spaces that JSON does not have were read as spaces", "write plain spaces"),
        ),
        (
            "[1,\xa02,\xa03]",
            (
                "odd_space",
                "spaces that JSON does not have were read as spaces in 2 places",
                "write plain spaces",
            ),
        ),
        (
            '["a\tb"]',
            (
                "raw_control",
                "a control character in a string was kept",
                "write a line break as \\n and a tab as \\t",
            ),
        ),
        (
            '["a\tb\tc"]',
            (
                "raw_control",
                "2 control characters in strings were kept",
                "write a line break as \\n and a tab as \\t",
            ),
        ),
        (
            '[{"a": [1}]',
            (
                "missing_bracket",
                "a missing bracket was added",
                "check that nothing is missing, and close every bracket",
            ),
        ),
        ("[1]]", ("extra_bracket", "an extra closing bracket was ignored", "close every bracket once")),
        ("[1]]]", ("extra_bracket", "2 extra closing brackets were ignored", "close every bracket once")),
        (
            "[1]: 2",
            (
                "syntax_error",
                "there is more text after the plan's last bracket",
                "send one plan, as plain JSON",
            ),
        ),
    ],
)
def test_each_repair_is_said_once_with_how_often_it_was_made(text: str, found: tuple[str, str, str]) -> None:
    assert [(each.code, each.message, each.hint) for each in read_document(text, PLAN).found] == [found]


def test_two_names_that_become_the_same_are_said() -> None:
    found = [(each.code, each.path) for each in read_document({"a\ud800": 1, "a?": 2}, PLAN).found]
    assert found == [("lone_surrogate", ()), ("duplicate_key", ("a?",))]


def test_a_fence_that_never_ends_holds_the_answer_too() -> None:
    wanted = Wanted("answer", names=("a",), is_fenced_first=True)
    assert read_document('Here it is:\n```json\n{"a": 2}', wanted).value == {"a": 2}


def test_a_text_that_is_nested_too_deep_is_read_down_to_the_last_level() -> None:
    assert told(read_document("[" * 64 + "]" * 64, PLAN)) == []
    assert told(read_document("[" * 65 + "]" * 65, PLAN)) == [
        ("too_deep", "nested deeper than 64 levels", "send flatter values", (64, 65))
    ]


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
        (
            {"a": {1: 2}},
            ("not_json", "a field name is a value of type int, not a string", NO_JSON, ("a",)),
        ),
        ([object()], ("not_json", "a value of type object is not a JSON value", NO_JSON, (0,))),
        (LOOP, ("too_deep", "it contains itself", "send flatter values", (0, "again"))),
        (deep(65), ("too_deep", "nested deeper than 64 levels", "send flatter values", (0,) * 64)),
    ],
)
def test_a_value_that_json_does_not_have_is_said_with_its_path(
    given: Any, found: tuple[str, str, str, Path]
) -> None:
    document = read_document(given, PLAN)
    assert [(each.code, each.message, each.hint, each.path) for each in document.found] == [found]


@pytest.mark.parametrize("path", [(0, "x"), (0, "x", "y"), (0, 0)])
def test_a_path_that_leads_into_a_number_ends_there(path: Path) -> None:
    assert read_document("[12]", PLAN).span(Found("c", "m", "h", path)) == (1, 3)


AROUND = ("syntax_error", "there is extra text around the JSON value", "send the JSON value alone")


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("[1]", [1], []),
        ("<think>[2]</think>[1]", [1], []),
        ("[1] [2]", [1], [(*AROUND, (4, 5))]),
        (
            '[1] {"a": 1}',
            [1],
            [("several_documents", "the text holds 2 different JSON values", "send one", (4, 5))],
        ),
        (
            "[@ [2]",
            [],
            [
                (
                    "syntax_error",
                    "expected a value, got '@'",
                    "send plain JSON, with strings in double quotes",
                    (1, 2),
                )
            ],
        ),
    ],
)
def test_of_any_json_there_is_one_value_alone(text: str, value: Any, found: list[Told]) -> None:
    document = read_document(text, ANYTHING)
    assert document.value == value
    assert told(document) == found


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

"""Finding the plan in what a planner wrote, and falling back where there is none to find."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planner_samples import (
    EMPTY,
    INTENT,
    PARSED,
    PLAN,
    TEXT,
    json_values,
    plans,
    problems,
    prose,
    prose_behind,
    refusal,
)
from syrupy.assertion import SnapshotAssertion

from planning.tools.planner import (
    MOST_CHARACTERS,
    parse_planner_output,
)

# Wrappings


@pytest.mark.parametrize(
    "wrapped",
    [
        TEXT,
        f"\n\n {TEXT}\n",
        f"\ufeff{TEXT}",
        TEXT.encode(),
        bytearray(b"\xef\xbb\xbf" + TEXT.encode()),
        json.dumps(TEXT),
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```",
        f"~~~\n{TEXT}\n~~~",
        f"```json {json.dumps(PLAN)} ```",
        f"```json\n{TEXT}",
        f"Here is the plan:\n\n  ```json\n{TEXT}\n  ```\n\nIt looks up the {{identifier}}.",
        f"```python\nplan = {TEXT}\n```",
        f"I think: {TEXT} That is all.",
        f"Fill {{name}}, {{}} and {{{{ x, y }}}}. {TEXT}",
        f"{TEXT}\nAgain:\n{TEXT}",
        f'Not {{"tool": ...}}, ``` and {{"intent": "b"}}.\n```json\n{TEXT}\n```',
        f'First {{"intent": "b"}}, then\n```json\n{TEXT}\n```\n and {{"queries": ["c"]}}',
        f'{{"temperature": 1}} {TEXT} That is all.',
        f"<think>First {json.dumps({'intent': 'b'})}, or</think>\n{TEXT}",
        f"Or {json.dumps({'intent': 'b'})}?\n</think>\n\n```json\n{TEXT}\n```",
        PLAN,
        MappingProxyType(PLAN),
    ],
)
def test_a_plan_is_found_in_any_wrapping(wrapped: object) -> None:
    assert parse_planner_output(wrapped) == PARSED


@given(
    plans,
    prose,
    prose_behind,
    st.sampled_from(["\n", "\n```\n", "\n```json\n", "\n~~~\n"]),
    st.sampled_from([None, 2]),
)
def test_any_plan_within_any_prose_is_read_as_it_was_written(
    plan: dict[str, Any], before: str, behind: str, fence: str, indent: int | None
) -> None:
    text = f"{before}{fence}{json.dumps(plan, indent=indent)}{fence.replace('json', '')}{behind}"
    output = parse_planner_output(text)
    assert (dict(output), output.problems) == (plan, ())
    assert parse_planner_output(dict(output)) == output


# Falling back


@pytest.mark.parametrize(
    "text",
    [
        '{"intent": "a", "meta": {"queries": ["no"]}, "tool_calls": [',
        '{"intent": "a", "meta": {"queries": ["no"]}',
        '{\u201cintent\u201d: "a", "meta": {"queries": ["no"]}}',
        '{{"intent": "a", "meta": {"queries": ["no"]}}}',
        '{"intent": "a" "meta": {"queries": ["no"]}}',
        '{"intent": "say "hi"", "meta": {"queries": ["no"]}}',
        '{"intent": NaN, "meta": {"queries": ["no"]}}',
        '```json\n{"intent": "a",, "meta": {"queries": ["no"]}}\n```\n```json\n{"intent": "b"}\n```',
        '{"tool_calls": [{"tool": "a", "args": {"queries": ["no"]}]}]}',
        '<think>{"queries": ["no"]}',
        '<think>{"queries": ["no"]}</think>',
    ],
)
def test_a_part_of_a_broken_object_is_never_taken_for_the_plan(text: str) -> None:
    output = parse_planner_output(text)
    assert (dict(output), output.ok) == (dict(EMPTY), False)


def test_a_text_without_its_last_bracket_was_cut_unless_the_model_ended_it() -> None:
    text = '{"intent": "a"'
    assert refusal(text) == "the text breaks off here at line 1, column 15; send the whole plan, shorter"
    assert parse_planner_output(text, finished=True) == INTENT


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"intent": "a"} or {"intent": "b"}', "line 1, column 20"),
        ('{"needs_user_input": true} {"needs_user_input": 1}', "line 1, column 28"),
        ('```\n{"intent": "a"}\n```\n```\n{"intent": "b"}\n```', "line 5, column 1"),
    ],
)
def test_two_different_plans_are_not_chosen_from(text: str, place: str) -> None:
    assert refusal(text) == f"the text contains 2 different plans at {place}; send one"


MALFORMED: list[object] = [
    None,
    "",
    " \n",
    "I cannot help with that.",
    "42",
    42,
    "[]",
    "{}",
    '{"answer": {"intent": "a"}}',
    '{"tool": "lookup", "args": {}}',
    '{"intent": "a", "tool": "lookup"}',
    '{"tool_calls": [1, ]}',
    '{"intent": "a", "tool_calls": [{"tool": "loo',
    '{"intent": "a", "tool_calls": [',
    '{"intent": "a", "intent": "b"}',
    '{"queries": [NaN]}',
    '{"queries": [1e999]}',
    '{"intent": "\\ud83d"}',
    '{"intent": "a"} {"intent": "b"}',
    b'{"intent": "\xff"}',
    '{"needs_user_input": "perhaps", "input_request": 1, "queries": {}, "intent": [], "tool_calls": "none"}',
    '{"tool_calls": ["lookup", {"tool": 1, "args": [], "reason": 2}, {"args": "{"}, {"tool": " "}]}',
    '{"tool_calls": [{"tool": null, "args": "{} x"}, {"tool": "a", "args": "{\\"x\\": 1, \\"x\\": 2}"}]}',
    '{"tool_calls": [{"tool": "lookup", "arguments": {"identifier": "a@example.com"}}]}',
]


def test_each_malformed_output_says_what_to_write_instead(snapshot: SnapshotAssertion) -> None:
    lines = [
        "\n".join([repr(text), *(f"    {problem}" for problem in problems(text) or ["nothing wrong"])])
        for text in MALFORMED
    ]
    said = [str(each) for text in MALFORMED for each in problems(text)]
    assert all(each.isascii() and each.isprintable() and len(each) < 140 for each in said)
    assert not any(parse_planner_output(text).ok for text in MALFORMED)
    assert "\n\n".join(lines) == snapshot


def test_a_text_that_is_too_long_is_refused() -> None:
    text = '{"intent": "a"}'
    assert parse_planner_output(text + " " * (MOST_CHARACTERS - len(text))) == INTENT
    assert (
        refusal(text + " " * (MOST_CHARACTERS - len(text) + 1))
        == "1000001 characters, at most 1000000; send less"
    )
    assert refusal("x" * 10_000_000) == "10000000 characters, at most 1000000; send less"


@given(st.binary() | json_values | st.dictionaries(st.sampled_from([*EMPTY, "tool"]), json_values))
def test_any_value_is_read_without_raising(value: object) -> None:
    output = parse_planner_output(value)
    assert json.loads(json.dumps(dict(output))) == dict(output)
    assert [type(call["tool"]) for call in output.tool_calls] == [str] * len(output.tool_calls)


@pytest.mark.parametrize(
    "unit",
    [
        "{", '{"', "[{", '[{"', "`", "~", "``` ", "```\n{x}", '{"a":', '{"a":1} ', '{"intent":"x"}', "{a ",
        "{}", '[{"a":1}]', '[{"a":1},', "{ ", "[ ", "{{x}", "\n", "} {", '"', "\\", "{'", "{x:", "```{",
    ],
)  # fmt: skip
def test_time_grows_with_the_length_of_the_text_alone(unit: str) -> None:
    parse_planner_output("x" + unit * ((MOST_CHARACTERS - 1) // len(unit)))

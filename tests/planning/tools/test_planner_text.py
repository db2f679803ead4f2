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
    LOOKUP,
    PARSED,
    PLAN,
    SEND,
    TEXT,
    fragments,
    json_values,
    plans,
    problems,
    prose,
    refusal,
)
from syrupy.assertion import SnapshotAssertion

from planning.tools.planner import (
    MOST_CHARACTERS,
    PlannerOutput,
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
        f"```JSON\n{TEXT}\n```\n",
        f"```\n{TEXT}\n```",
        f"~~~\n{TEXT}\n~~~",
        f"~~~Json\n{TEXT}\n~~~",
        f"````json\n{TEXT}\n````",
        f"```json {json.dumps(PLAN)} ```",
        f"```json\n{TEXT}",
        f"Here is the plan:\n\n  ```json\n{TEXT}\n  ```\n\nIt looks up the {{identifier}}.",
        f"```python\nprint({{}})\n```\n\n```json\n{TEXT}\n```",
        f"```python\nplan = {TEXT}\n```",
        f"I think: {TEXT} That is all.",
        f"Fill {{name}}, {{}} and {{{{ x, y }}}}. {TEXT}",
        f"[{TEXT}]",
        f"The plan: [{TEXT}]",
        f"{TEXT}\nAgain:\n{TEXT}",
        f"Not {{this: one}}.\n```json\n{TEXT}\n```",
        f'Not {{"tool": ...}}, ``` and {{"intent": "b"}}.\n```json\n{TEXT}\n```',
        f'First {{"intent": "b"}}, then\n```json\n{TEXT}\n```\n and {{"queries": ["c"]}}',
        f'{{"temperature": 1}} {TEXT} [{{"a": [{{"b": 1}}]}}]',
        PLAN,
        MappingProxyType(PLAN),
        PARSED,
    ],
)
def test_a_plan_is_found_in_any_wrapping(wrapped: object) -> None:
    assert parse_planner_output(wrapped) == PARSED


@pytest.mark.parametrize(
    "wrapped",
    [
        [LOOKUP],
        (LOOKUP,),
        json.dumps([LOOKUP]),
        f"```json\n{json.dumps([LOOKUP])}\n```",
        f"Calls: {json.dumps([LOOKUP])} [1]",
    ],
)
def test_an_array_of_calls_is_understood_as_the_calls(wrapped: object) -> None:
    assert parse_planner_output(wrapped) == PlannerOutput(tool_calls=(LOOKUP,))


@pytest.mark.parametrize(
    "request_",
    ["Use {braces}: } { [ {{x}}", "```json\n{}\n```", '{"intent": "b"}', "~~~\n[{", 'Say "hi" \\ "', "`"],
)
@pytest.mark.parametrize("wrapping", ["{}", "So: {} now", "```json\n{}\n```", "~~~\n{}\n~~~ {{x}}"])
def test_braces_and_fences_within_strings_do_not_confuse(request_: str, wrapping: str) -> None:
    text = wrapping.replace("{}", json.dumps({"input_request": request_}))
    assert parse_planner_output(text) == PlannerOutput(input_request=request_)


@given(
    plans,
    prose,
    prose,
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
        '{intent: "a", "meta": {"queries": ["no"]}}',
        "{'intent': 'a', 'meta': " + '{"queries": ["no"]}}',
        '{ // note\n "intent": "a", "meta": {"queries": ["no"]}}',
        '{\u201cintent\u201d: "a", "meta": {"queries": ["no"]}}',
        '{{"intent": "a", "meta": {"queries": ["no"]}}}',
        '{"intent": "a" "meta": {"queries": ["no"]}}',
        '{"intent": "say "hi"", "meta": {"queries": ["no"]}}',
        '{"intent": NaN, "meta": {"queries": ["no"]}}',
        '{"a": 1, "a": 2, "meta": {"queries": ["no"]}}',
        '[{"tool": "a", "args": {"queries": ["no"]}},]',
        '```json\n{"intent": "a",, "meta": {"queries": ["no"]}}\n```\n```json\n{"intent": "b"}\n```',
        '{"intent": "a", ``` {"queries": ["no"]}',
        '"intent": "a", "meta": {"queries": ["no"]}}',
        '{"intent": "a\n``` b", "meta": {"queries": ["no"]}}',
    ],
)
def test_a_part_of_a_broken_object_is_never_taken_for_the_plan(text: str) -> None:
    output = parse_planner_output(text)
    assert (dict(output), len(output.problems)) == (dict(EMPTY), 1)


@pytest.mark.parametrize(
    "text",
    [
        '{"intent": "a"} or {"intent": "b"}',
        '```\n{"intent": "a"}\n```\n```\n{"intent": "b"}\n```',
        '```\n{"intent": "a"}\n{"intent": "b"}\n```',
        '[{"intent": "a"}, {"intent": "b"}]',
        '{"needs_user_input": true} {"needs_user_input": 1}',
    ],
)
def test_two_different_plans_are_not_chosen_from(text: str) -> None:
    assert refusal(text) == "2 different JSON objects; send one"


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
    '{"intent": "a",}',
    '{"tool_calls": [1, ]}',
    '```json\n{\n  "intent": "a"\n  "queries": []\n}\n```',
    '{"intent": "a", "tool_calls": [{"tool": "loo',
    '{"intent": "a", "tool_calls": [',
    '{"input_request": "first\nsecond"}',
    "{'intent': 'a'}",
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
    assert "\n\n".join(lines) == snapshot


@pytest.mark.parametrize("text", MALFORMED)
def test_every_message_is_short_and_ascii(text: object) -> None:
    assert [
        line for line in problems(text) if not line.isascii() or not line.isprintable() or len(line) > 130
    ] == []
    assert not parse_planner_output(text).ok


def test_a_text_that_is_too_long_is_refused() -> None:
    text = '{"intent": "a"}'
    assert parse_planner_output(text + " " * (MOST_CHARACTERS - len(text))) == INTENT
    assert (
        refusal(text + " " * (MOST_CHARACTERS - len(text) + 1))
        == "1000001 characters, at most 1000000; send less"
    )
    assert refusal("x" * 10_000_000) == "10000000 characters, at most 1000000; send less"


def test_a_plan_may_be_nested_a_hundred_levels_deep() -> None:
    deep = '{"queries": [' + "[" * 100 + "]" * 100 + "]}"
    deeper = '{"queries": [' + "[" * 101 + "]" * 101 + '], "intent": "a"}'
    assert parse_planner_output(deep).problems == ()
    assert problems(deeper) == ["queries: nested too deep; send a flat JSON object"]
    assert parse_planner_output(deeper)["intent"] == "a"


@pytest.mark.parametrize("levels", [10_000, 150_000])
def test_a_text_that_is_nested_without_end_is_refused(levels: int) -> None:
    text = '{"queries": ' * levels + "1" + "}" * levels
    assert refusal(text[:MOST_CHARACTERS] if levels < 20_000 else '{"a":' * levels) == (
        "nested too deep; send a flat JSON object"
    )


def test_a_cycle_is_refused() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    assert refusal({"queries": cycle}) == "queries: nested too deep; send a flat JSON object"


def test_a_number_of_too_many_digits_is_refused() -> None:
    assert refusal('{"queries": [' + "9" * 5_000 + "]}") == (
        "a number has too many digits; send it as a string"
    )


def test_the_stack_running_out_is_a_problem_too() -> None:
    class Endless(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            return self.get(key, default)

    assert refusal(Endless(intent="a")) == "nested too deep; send a flat JSON object"


class Hostile:
    def __getattribute__(self, name: str) -> Any:
        raise ZeroDivisionError

    __str__ = __repr__ = __eq__ = __hash__ = __getattribute__  # type: ignore[assignment]  # the point of it


class HostileText(str):
    def __str__(self) -> str:
        raise ZeroDivisionError

    def strip(self, *_: Any) -> str:
        raise ZeroDivisionError

    def __len__(self) -> int:
        raise ZeroDivisionError


def test_an_object_that_fails_when_it_is_looked_at_is_refused() -> None:
    unread = f"cannot be read; {SEND} as UTF-8 text"
    assert refusal(Hostile()) == unread
    assert refusal({"intent": "a", "tool_calls": [Hostile()]}) == unread


def test_text_of_a_subclass_is_read_as_the_text_that_it_is() -> None:
    assert parse_planner_output(HostileText('{"intent": "a"}')) == INTENT


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            object(),
            "queries: must hold JSON values only: text, finite numbers, booleans, null, arrays, objects",
        ),
        (
            {1: 2},
            "queries: must hold JSON values only: text, finite numbers, booleans, null, arrays, objects",
        ),
        ({"\udfff": 1}, "queries: holds half a character (a lone surrogate); send the whole character"),
    ],
)
def test_values_from_python_that_are_no_json_are_refused(value: object, problem: str) -> None:
    assert refusal({"queries": [value]}) == problem


def test_a_type_that_json_does_not_have_is_named_in_ascii() -> None:
    kind = type("Caf\u00e9", (), {})
    assert refusal({"intent": kind()}) == "intent: expected a string, got a value of type Caf\\xe9"


@given(st.lists(fragments | st.text(max_size=5)).map("".join))
def test_any_text_is_read_without_raising(text: str) -> None:
    output = parse_planner_output(text)
    assert all(str(problem).isascii() for problem in output.problems)
    assert json.loads(json.dumps(dict(output))) == dict(output)


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

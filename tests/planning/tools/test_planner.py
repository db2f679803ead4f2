"""What a planner wrote is found, read, and carried out; where there is nothing to find, it falls back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion
from tool_entries import Look, piped

from planning.errors import Problem, cut
from planning.tools import Tool, ToolRegistry, execute_tools
from planning.tools.ledger import tool_calls
from planning.tools.planner import MOST_CHARACTERS, PlannerOutput, parse_planner_output, should_execute_tools
from planning.tools.rate_limit import RateLimiter
from session import Session

LOOKUP = {"tool": "lookup_registration", "args": {"identifier": "a@example.com"}, "reason": "To find it"}
PLAN: dict[str, Any] = {
    "intent": "registration_data_request",
    "needs_tools": True,
    "tool_calls": [LOOKUP],
    "queries": [],
}
PARSED = PlannerOutput(tool_calls=(LOOKUP,), intent="registration_data_request")
TEXT = json.dumps(PLAN, indent=2)
INTENT = PlannerOutput(intent="a")
EMPTY = PlannerOutput()
FULL = {
    "tool_calls": [LOOKUP],
    "needs_user_input": True,
    "input_request": "Who?",
    "queries": ["q"],
    "intent": "a",
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
filled = st.text(min_size=1).filter(str.strip)
calls = st.fixed_dictionaries(
    {
        "tool": filled,
        "args": st.dictionaries(st.text(), json_values, max_size=3),
        "reason": st.none() | filled,
    }
)
plans = st.fixed_dictionaries(
    {
        "tool_calls": st.lists(calls, max_size=3),
        "needs_user_input": st.booleans(),
        "input_request": st.none() | filled,
        "queries": st.lists(json_values, max_size=3),
        "intent": st.none() | filled,
    }
)
prose = st.text(st.characters(exclude_characters="{}[]`~", exclude_categories=["Cs"]))
# Behind a plan these would continue its JSON: the reader refuses them.
prose_behind = prose.filter(lambda text: not text.lstrip().startswith((",", ":", '"')))


# Finding the plan in what a planner wrote, and falling back where there is none to find


@pytest.mark.parametrize(
    "wrapped",
    [
        f"\ufeff{TEXT}",
        bytearray(b"\xef\xbb\xbf" + TEXT.encode()),
        json.dumps(TEXT),
        f"Here is the plan:\n\n  ```json\n{TEXT}\n  ```\n\nIt looks up the {{identifier}}.",
        f"I think: {TEXT} That is all.",
        f'Not {{"tool": ...}}, ``` and {{"intent": "b"}}.\n```json\n{TEXT}\n```',
        f'{{"temperature": 1}} {TEXT} That is all.',
        f"<think>First {json.dumps({'intent': 'b'})}, or</think>\n{TEXT}",
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


CUT = '{"intent": "a"'


def test_the_longest_text_is_read_and_one_without_its_last_bracket_if_the_model_ended_it() -> None:
    assert parse_planner_output('{"intent": "a"}'.ljust(MOST_CHARACTERS)) == INTENT
    assert parse_planner_output(CUT, finished=True) == INTENT


MALFORMED: list[object] = [
    None,
    " \n",
    "I cannot help with that.",
    42,
    "[]",
    '{"answer": {"intent": "a"}}',
    '{"tool": "lookup", "args": {}}',
    '{"intent": "a", "tool": "lookup"}',
    '{"intent": "a", "tool_calls": [{"tool": "loo',
    '{"intent": "a", "intent": "b"}',
    '{"queries": [NaN]}',
    '{"intent": "\\ud83d"}',
    '{"intent": "a"} {"intent": "b"}',
    '{"intent": nul}',
    b'{"intent": "\xff"}',
    '{"needs_user_input": "perhaps", "input_request": 1, "queries": {}, "intent": [], "tool_calls": "none"}',
    '{"tool_calls": ["lookup", {"tool": 1, "args": [], "reason": 2}, {"args": "{"}, {"tool": " "}]}',
    '{"tool_calls": [{"tool": null, "args": "{} x"}, {"tool": "a", "args": "{\\"x\\": 1, \\"x\\": 2}"}]}',
    '{"tool_calls": [{"tool": "lookup", "arguments": {"identifier": "a@example.com"}}]}',
    '{"intent": "a"} or {"intent": "b"}',
    '{"needs_user_input": true} {"needs_user_input": 1}',
    '```\n{"intent": "a"}\n```\n```\n{"intent": "b"}\n```',
    CUT,
    '{"intent": "a"}'.ljust(MOST_CHARACTERS + 1),
    "x" * 10_000_000,
    # A part of a broken object is never taken for the plan.
    '{"intent": "a", "meta": {"queries": ["no"]}, "tool_calls": [',
    '{\u201cintent\u201d: "a", "meta": {"queries": ["no"]}}',
    '{"intent": "say "hi"", "meta": {"queries": ["no"]}}',
    '```json\n{"intent": "a",, "meta": {"queries": ["no"]}}\n```\n```json\n{"intent": "b"}\n```',
    '{"tool_calls": [{"tool": "a", "args": {"queries": ["no"]}]}]}',
    '<think>{"queries": ["no"]}</think>',
    # A field of another type has its default, and a malformed call is left out; the others stand.
    *({**FULL, "tool_calls": value} for value in (LOOKUP, "[1", "[1] x")),
    {**FULL, "needs_user_input": 1, "input_request": ["Who?"], "queries": True},
    *({**FULL, "intent": 1.5}, {"queries": [float("nan")]}),
    {"tool_calls": [LOOKUP, {"tool": 5, "args": []}, None, {"tool": "b"}]},
]


def test_each_malformed_output_says_what_to_write_instead_and_what_is_read_of_it(
    snapshot: SnapshotAssertion,
) -> None:
    lines = []
    for text in MALFORMED:
        output = parse_planner_output(text)
        said = [str(problem) for problem in output.problems]
        assert all(each.isascii() and each.isprintable() and len(each) < 140 for each in said)
        assert not output.ok
        read = [f"    {name} = {value}" for name, value in output.items() if value != EMPTY[name]]
        lines.append("\n".join([cut(repr(text), 110), *(f"    {each}" for each in said), *read]))
    assert "\n\n".join(lines) == snapshot


@given(st.binary() | json_values | st.dictionaries(st.sampled_from([*EMPTY, "tool"]), json_values))
def test_any_value_is_read_without_raising(value: object) -> None:
    output = parse_planner_output(value)
    assert json.loads(json.dumps(dict(output))) == dict(output)
    assert [type(call["tool"]) for call in output.tool_calls] == [str] * len(output.tool_calls)


# What a planner's output is, where a pipeline goes with it, and what its fields are taken for


def test_an_output_is_the_update_of_a_pipelines_state() -> None:
    assert {"trace_id": "t", "queries": None, **parse_planner_output(FULL)} == {"trace_id": "t", **FULL}


@pytest.mark.parametrize(
    ("state", "node"),
    [
        ({}, "execute_queries"),
        ({"needs_user_input": True}, "generate_response"),
        ({"tool_calls": [LOOKUP]}, "execute_tools"),
        ({"tool_calls": [LOOKUP], "needs_user_input": True}, "execute_tools"),
        (PARSED, "execute_tools"),
    ],
)
def test_tool_calls_go_before_questions_and_those_before_queries(state: Mapping[str, Any], node: str) -> None:
    assert should_execute_tools(state) == node


A = {"tool": "a", "args": {"x": 1}, "reason": "r"}


@pytest.mark.parametrize(
    ("field", "value", "read"),
    [
        ("tool_calls", None, []),
        ("tool_calls", json.dumps([LOOKUP]), [LOOKUP]),
        ("tool_calls", [{"tool": "a"}], [{"tool": "a", "args": {}, "reason": None}]),
        ("tool_calls", [{**A, "args": ' {"x": [1.5]}'}], [{**A, "args": {"x": [1.5]}}]),
        ("tool_calls", [{**A, "input": 2}], [A]),
        ("input_request", " \n", None),
        ("queries", None, []),
    ],
)
def test_a_field_is_taken_for_what_it_means(field: str, value: object, read: object) -> None:
    for form in ({field: value}, json.dumps({field: value, "confidence": 0.5})):
        output = parse_planner_output(form)
        assert (dict(output), output.problems) == ({**EMPTY, field: read}, ())


def test_what_is_nested_too_deep_for_the_reader_or_for_the_stack_is_refused() -> None:
    def deepest() -> PlannerOutput:
        try:
            return deepest()
        except RecursionError:
            return parse_planner_output('{"intent": "a"}')

    flat = '{"queries": ' + "[" * 101 + "]" * 101 + "}"
    (deep,) = parse_planner_output(flat.replace("[]", "[[]]")).problems
    assert parse_planner_output(flat).ok
    assert deep.message == "nested deeper than 102 levels at line 1, column 114; send flatter values"
    assert deepest().problems == (Problem("nested too deep; send a flat JSON object"),)


def test_a_flood_of_problems_is_cut() -> None:
    told = parse_planner_output({"tool_calls": [1] * 50}).problems
    cut = parse_planner_output({"tool_calls": [1] * 51, "intent": 1}).problems
    assert [problem.path for problem in told] == [f"tool_calls[{index}]" for index in range(50)]
    assert cut == (*told, Problem("there may be more errors; fix these first"))


# execute_tools: what a planner asked for, in order, each with an envelope


def fail() -> None:
    raise RuntimeError("4711")


def add(left: int) -> int:
    return left + 1


TOOLS: list[Any] = [Look(), fail, add]
LONG = "nope" * 26 + "\ud800"
NOT_PARTS: list[Any] = [None, {}, [], "x", 5]


@pytest.mark.parametrize(
    "state", [{}, {"tool_calls": None}, {"tool_calls": []}, {"tool_calls": ()}, None, [], "state"]
)
def test_no_calls_have_no_results(state: Any) -> None:
    assert asyncio.run(execute_tools(state, registry=ToolRegistry(TOOLS))) == {"tool_results": {}}


@pytest.mark.parametrize(
    ("state", "ids"),
    [
        (("t", {"conversation_id": "c"}, {"conference_id": "f"}), ("t", "c", "f")),
        *(((None, part, part), (None, None, None)) for part in NOT_PARTS),
    ],
)
def test_the_context_carries_the_ids_there_are(state: tuple[Any, ...], ids: tuple[str | None, ...]) -> None:
    given = dict(zip(("trace_id", "conversation_context", "user_context"), state, strict=True))
    expected = dict(zip(("trace_id", "conversation_id", "conference_id"), ids, strict=True))
    assert piped(TOOLS, [{"tool": "look"}], **given)["look"]["data"][1] == expected


def test_every_call_is_answered_in_order_whatever_the_others_do(
    session: Session, snapshot: SnapshotAssertion
) -> None:
    adding = [{"tool": "add", "args": args} for args in ({"left": "x"}, '{"left": 1}', {"left": 2})]
    failing = [{"tool": "fail"}, {"tool": LONG, "args": {}}, {"args": {}}, "call", None]
    results = piped(TOOLS, [*failing, *adding[:2], {"tool": ["add"]}, adding[2]], session)
    assert [told["success"] for told in results.values()] == [
        told["data"] is not None for told in results.values()
    ]
    assert "\n".join(f"{name}: {told}" for name, told in results.items()) == snapshot
    assert [call.tool for call in reversed(tool_calls(session))] == ["fail", LONG[:100], "add", "add", "add"]


def test_the_calls_are_counted_by_the_limiter_of_the_registry() -> None:
    counted = Tool("add", "Add.", add, rate_limit_key="sums")
    registry = ToolRegistry([counted], limiter=RateLimiter({"sums": "1/minute"}))
    state = {"tool_calls": [{"tool": "add", "args": {"left": 1}}] * 2}
    told = asyncio.run(execute_tools(state, registry=registry))["tool_results"]
    assert [each.get("code") for each in told.values()] == [None, "rate_limit"]


@pytest.mark.parametrize("calls", ["add", 5, True])
def test_calls_that_are_none_have_an_entry_that_says_so(calls: Any) -> None:
    (told,) = piped(TOOLS, calls).values()
    assert (told["success"], told["code"]) == (False, "parameter")

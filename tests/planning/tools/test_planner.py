"""What a planner's output is, where a pipeline goes with it, and what its fields are taken for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from planner_samples import EMPTY, LOOKUP, PARSED

from planning.errors import Problem
from planning.tools.planner import (
    PlannerOutput,
    parse_planner_output,
    should_execute_tools,
)

# What the output is


def test_an_output_is_the_update_of_a_pipelines_state() -> None:
    output = PlannerOutput(tool_calls=(LOOKUP,), needs_user_input=True, input_request="Who?", queries=("q",))
    assert {"trace_id": "t", "queries": None, **output} == {
        "trace_id": "t",
        "tool_calls": [LOOKUP],
        "needs_user_input": True,
        "input_request": "Who?",
        "queries": ["q"],
        "intent": None,
    }


# Where a pipeline goes


@pytest.mark.parametrize(
    ("state", "node"),
    [
        ({}, "execute_queries"),
        ({"tool_calls": [], "needs_user_input": False}, "execute_queries"),
        ({"needs_user_input": True}, "generate_response"),
        ({"tool_calls": [LOOKUP]}, "execute_tools"),
        ({"tool_calls": [LOOKUP], "needs_user_input": True}, "execute_tools"),
        (EMPTY, "execute_queries"),
        (PARSED, "execute_tools"),
    ],
)
def test_tool_calls_go_before_a_question_and_a_question_before_queries(
    state: Mapping[str, Any], node: str
) -> None:
    assert should_execute_tools(state) == node


# Fields


@pytest.mark.parametrize(
    ("field", "value", "read"),
    [
        ("tool_calls", None, []),
        ("tool_calls", json.dumps([LOOKUP]), [LOOKUP]),
        ("tool_calls", [{"tool": "a"}], [{"tool": "a", "args": {}, "reason": None}]),
        (
            "tool_calls",
            [{"tool": "a", "args": ' {"x": [1.5]}', "reason": "r"}],
            [{"tool": "a", "args": {"x": [1.5]}, "reason": "r"}],
        ),
        (
            "tool_calls",
            [{"tool": "a", "args": {"x": 1}, "input": 2}],
            [{"tool": "a", "args": {"x": 1}, "reason": None}],
        ),
        ("needs_user_input", True, True),
        ("input_request", " \n", None),
        ("input_request", " Who? ", " Who? "),
        ("queries", None, []),
        ("queries", ["q", {"text": "q", "top": 3}], ["q", {"text": "q", "top": 3}]),
        ("intent", "search", "search"),
    ],
)
def test_a_field_is_taken_for_what_it_means(field: str, value: object, read: object) -> None:
    for form in ({field: value}, json.dumps({field: value, "confidence": 0.5})):
        output = parse_planner_output(form)
        assert (dict(output), output.problems) == ({**EMPTY, field: read}, ())


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("tool_calls", LOOKUP, "expected an array, got an object"),
        (
            "tool_calls",
            "[1",
            "the text breaks off here at line 1, column 3; send the whole JSON value, shorter",
        ),
        (
            "tool_calls",
            "[1] x",
            "there is extra text around the JSON value at line 1, column 5; send the JSON value alone",
        ),
        ("needs_user_input", 1, "expected a boolean, got a number"),
        ("input_request", ["Who?"], "expected a string, got an array"),
        ("queries", True, "expected an array, got a boolean"),
        ("intent", 1.5, "expected a string, got a number"),
    ],
)
def test_a_field_of_the_wrong_type_has_its_default_and_the_others_stand(
    field: str, value: object, message: str
) -> None:
    good = {
        "tool_calls": [LOOKUP],
        "needs_user_input": True,
        "input_request": "Who?",
        "queries": ["q"],
        "intent": "a",
    }
    output = parse_planner_output(json.dumps({**good, field: value}))
    assert dict(output) == {**good, field: EMPTY[field]}
    assert output.problems == (Problem(message, field),)


def test_a_malformed_call_is_left_out_with_all_its_problems_and_the_others_stay() -> None:
    output = parse_planner_output({"tool_calls": [LOOKUP, {"tool": 5, "args": []}, None, {"tool": "b"}]})
    assert output["tool_calls"] == [LOOKUP, {"tool": "b", "args": {}, "reason": None}]
    assert output.problems == (
        Problem("expected a string, got a number", "tool_calls[1].tool"),
        Problem("expected an object, got an array", "tool_calls[1].args"),
        Problem("expected an object with tool, args, reason, got null", "tool_calls[2]"),
    )


def test_a_flood_of_problems_is_cut() -> None:
    told = parse_planner_output({"tool_calls": [1] * 50}).problems
    cut = parse_planner_output({"tool_calls": [1] * 51, "intent": 1}).problems
    assert [problem.path for problem in told] == [f"tool_calls[{index}]" for index in range(50)]
    assert cut == (*told, Problem("there may be more errors; fix these first"))

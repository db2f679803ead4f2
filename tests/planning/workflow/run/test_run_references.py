"""References at run time: what they stand for, what is copied, and what is said where they lead nowhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_cases import called, capable, flow, json_values, plain_tool, thought, told

from planning.tools import ToolResult
from planning.workflow import run_workflow
from planning.workflow.references import StepIds
from planning.workflow.run.memory import MissingValue
from planning.workflow.run.resolve import Values, text_of


class Colour(Enum):
    RED = "red"


def resolve(inputs: Mapping[str, Any], prompt: str = "", **outputs: Any) -> dict[str, Any]:
    return Values(outputs, prompt, StepIds([*outputs, "later"])).resolve(inputs)


def one(text: str, prompt: str = "", **outputs: Any) -> Any:
    return resolve({"x": text}, prompt, **outputs)["x"]


@given(json_values)
def test_a_reference_as_a_whole_is_the_value_and_keeps_its_type(value: Any) -> None:
    found = one("${a.output}", a=value)
    assert (found, type(found)) == (value, type(value))
    assert one("${a.output.in[1]}", a={"in": [0, value]}) == value


@pytest.mark.parametrize("value", ["text", 10**30, 2.5, True, None, b"\x00", object(), (1, 2)])
def test_a_value_without_parts_of_its_own_is_the_very_same(value: Any) -> None:
    assert one("${a.output}", a=value) is value


@given(st.text(), st.text())
def test_the_prompt_is_put_in_as_it_is_and_not_looked_at_again(prompt: str, output: str) -> None:
    assert one("${user_prompt}", prompt) == prompt
    assert one("<${user_prompt}|${a.output}>", prompt, a=output) == f"<{prompt}|{output}>"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("$${HOME}", "${HOME}"),
        ("$${a.output}", "${a.output}"),
        ("$$${a.output}", "$${a.output}"),
        ("cd $${HOME}/${a.output} && echo $$ $${", "cd ${HOME}/7 && echo $$ ${"),
        ("${a.output}$${b}", "7${b}"),
    ],
)
def test_a_dollar_before_a_reference_writes_it_out_as_it_is(text: str, written: str) -> None:
    assert one(text, a=7) == written


def test_what_was_put_in_is_written_out_with_its_dollars() -> None:
    assert one("${a.output} and $${x}", a="$${y}") == "$${y} and ${x}"


def test_what_was_put_in_is_never_expanded_again() -> None:
    inserted = "${user_prompt} ${a.output} ${nowhere.output} ${"
    assert one("${a.output}", "the prompt", a=inserted) == inserted
    assert one("-${a.output}-", "the prompt", a=inserted) == f"-{inserted}-"
    assert one("${a.output}", "the prompt", a={"deep": ["${user_prompt}"]}) == {"deep": ["${user_prompt}"]}
    assert one("${user_prompt}${user_prompt}", "${a.output}", a=1) == "${a.output}${a.output}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is \"'\n", "as it is \"'\n"),
        (1, "1"),
        (1.0, "1.0"),
        (True, "true"),
        (None, "null"),
        ([], "[]"),
        ({"b": [1, None, "ü"], "a": {}}, '{"b": [1, null, "ü"], "a": {}}'),
        ((1, "two"), '[1, "two"]'),
        ({1: 2}, '{"1": 2}'),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (date(2024, 1, 2), "2024-01-02"),
        (Decimal("1.50"), "1.50"),
        (PurePosixPath("/a/b"), "/a/b"),
        (Colour.RED, "red"),
        (float("inf"), "inf"),
        ([date(2024, 1, 2)], '["2024-01-02"]'),
    ],
)
def test_inside_a_text_a_value_becomes_text(value: Any, text: str) -> None:
    assert one("<${a.output}>", a=value) == f"<{text}>"
    assert text_of(value) == text


@given(json_values)
def test_the_text_of_a_value_is_json_and_reads_back_equal(value: Any) -> None:
    text = text_of(value)
    assert (text if isinstance(value, str) else json.loads(text)) == value


@attrs.frozen
class Company:
    name: str
    facts: Mapping[str, float]


def test_a_record_becomes_an_object_inside_a_text_and_its_fields_can_be_reached() -> None:
    company = Company("Acme", {"revenue": 2.5})
    assert one("${a.output}", a=company) == company
    assert one("${a.output.facts.revenue}", a=company) == 2.5
    assert one("it: ${a.output}", a=company) == 'it: {"name": "Acme", "facts": {"revenue": 2.5}}'


def test_inputs_are_resolved_at_every_depth_and_the_names_of_fields_never() -> None:
    inputs = {"${a.output}": {"list": ["${a.output}", {"in": "n=${a.output}"}, ("${a.output}",)]}, "n": 1}
    assert resolve(inputs, a=3) == {"${a.output}": {"list": [3, {"in": "n=3"}, [3]]}, "n": 1}


def test_nothing_that_was_given_is_changed() -> None:
    inputs = {"x": {"y": ["${a.output}", "plain"]}, "z": MappingProxyType({"w": "${a.output}"})}
    assert resolve(inputs, a=[1]) == {"x": {"y": [[1], "plain"]}, "z": {"w": [1]}}
    assert inputs == {"x": {"y": ["${a.output}", "plain"]}, "z": MappingProxyType({"w": "${a.output}"})}


def test_inputs_a_thousand_levels_deep_are_resolved_without_recursion() -> None:
    deep: Any = "${a.output}"
    for level in range(10_000):
        deep = [deep] if level % 2 else {"in": deep}
    found = resolve({"x": deep}, a="here")["x"]
    while not isinstance(found, str):
        found = found[0] if isinstance(found, list) else found["in"]
    assert found == "here"


def endless() -> list[Any]:
    """A list that holds itself."""
    value: list[Any] = [1]
    value.append(value)
    return value


def nested() -> list[Any]:
    """A list of 100,000 levels."""
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize("value", [endless(), nested()], ids=["endless", "deep"])
def test_an_output_that_no_snapshot_could_hold_whole_is_an_error_of_its_step(value: list[Any]) -> None:
    produce = plain_tool("produce", lambda: ToolResult(True, "Done.", value))
    result = run_workflow(flow(called("a", tool="produce"), thought("b")), capable(produce))
    message = (
        "produce returned a value that holds itself or is nested more than 100 levels deep; use text, "
        "numbers, lists and objects"
    )
    assert (dict(result.errors), dict(result.outputs)) == ({"a": told(message, "bad_result")}, {"b": "Do b"})


@pytest.mark.parametrize("output", [[[1]], {"x": [1]}, ([1],), {"x": ([1],)}, [{"x": [1]}]])
def test_whoever_changes_what_it_was_given_changes_nobodys_output(output: Any) -> None:
    before = repr(output)

    def change(value: Any) -> str:
        while not isinstance(value, list) or not isinstance(value[0], int):
            value = value["x"] if isinstance(value, dict) else value[0]
        value.append("changed")
        return "done"

    produce = plain_tool("produce", lambda: ToolResult(True, "Done.", output))
    workflow = flow(
        called("a", tool="produce"),
        called("b", "a", tool="change", inputs={"value": "${a.output}"}),
        called("c", "a", tool="change", inputs={"value": "${a.output}"}),
    )
    result = run_workflow(workflow, capable(produce, change=change))
    assert (result.status, repr(result.outputs["a"])) == ("completed", before)


def test_a_tool_that_changes_its_own_inputs_changes_neither_the_workflow_nor_the_next_attempt() -> None:
    def change(value: list[int]) -> int:
        value.append(4)
        return len(value)

    steps = [called(step_id, tool="change", inputs={"value": [1, 2]}) for step_id in "ab"]
    result = run_workflow(flow(*steps), capable(change=change))
    assert dict(result.outputs) == {"a": 3, "b": 3}
    assert [step.inputs for step in result.workflow.steps] == [{"value": [1, 2]}] * 2


NOWHERE: list[tuple[str, Any, str]] = [
    ("${a.output.x}", {}, "a.output.x is missing: a.output is empty"),
    ("${a.output.x}", None, "a.output.x is missing: a.output is null"),
    ("${a.output.x.y}", {"x": {"z": 1}}, "a.output.x.y is missing: a.output.x has z"),
    ("${a.output.x.y}", {"x": 1}, "a.output.x.y is missing: a.output.x is a number"),
    ("${a.output.x}", True, "a.output.x is missing: a.output is true"),
    ("${a.output[2]}", [1, 2], "a.output[2] is missing: a.output has 2 items"),
    ("${a.output[1]}", [1], "a.output[1] is missing: a.output has 1 item"),
    ("${a.output.first}", [1], "a.output.first is missing: a.output has 1 item"),
    ("${a.output[0]}", "text", "a.output[0] is missing: a.output is 'text'"),
    ("${a.output.x}", b"", "a.output.x is missing: a.output is bytes"),
    ("${a.output.__class__}", {}, "a.output.__class__ is missing: a.output is empty"),
    ("${a.output.x}", dict.fromkeys("abcdefghij"), "a.output.x is missing: a.output has "
     "a, b, c, d, e, f, g, h and 2 more"),
    ("see ${a.output.x[0]}", {"x": []}, "a.output.x[0] is missing: a.output.x has 0 items"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "output", "message"), NOWHERE)
def test_a_path_that_leads_nowhere_says_what_there_is(text: str, output: Any, message: str) -> None:
    with pytest.raises(MissingValue) as refused:
        one(text, a=output)
    assert refused.value.error == told(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${nobody.output}", "'${nobody.output}' names no step of the workflow"),
        (
            "${later.output.x}",
            "'${later.output.x}' has no value: step later gave no output; let this step depend on it, or "
            "leave the reference out",
        ),
        ("${a.outputs}", "'${a.outputs}' is no reference; write ${STEP.output} or ${user_prompt}"),
        ("${a.output", "'${a.output' is no reference; write ${STEP.output} or ${user_prompt}"),
        ("a ${ b", "'${' is no reference; write ${STEP.output} or ${user_prompt}"),
    ],
)
def test_what_is_no_reference_or_has_no_value_is_refused(text: str, message: str) -> None:
    with pytest.raises(MissingValue) as refused:
        one(text, a=1)
    assert refused.value.error == told(message)


def test_a_dollar_or_a_brace_alone_is_text() -> None:
    assert one("$5 {a} $a} ${user_prompt} $", "and") == "$5 {a} $a} and $"


def test_a_present_none_is_a_value() -> None:
    assert one("${a.output.x}", a={"x": None}) is None
    assert one("x=${a.output.x}", a={"x": None}) == "x=null"


def test_of_several_ids_that_a_reference_can_mean_the_longest_is_meant() -> None:
    outputs = {"a": {"output": "short"}, "a.output": "long"}
    assert Values(outputs, "", StepIds(outputs)).resolve({"x": "${a.output.output}"}) == {"x": "long"}


def test_a_missing_path_fails_its_step_alone_and_calls_no_tool() -> None:
    calls: list[Any] = []

    def note(value: Any) -> None:
        calls.append(value)

    workflow = flow(
        thought("a"),
        called("b", "a", tool="note", inputs={"value": "${a.output.x}"}),
        called("c", tool="note", inputs={"value": "${user_prompt}"}),
    )
    result = run_workflow(workflow, capable(note=note), user_prompt="Hello")
    assert (calls, dict(result.outputs)) == (["Hello"], {"a": "Do a", "c": None})
    assert dict(result.errors) == {"b": told("a.output.x is missing: a.output is 'Do a'")}


def test_a_reference_to_a_step_that_is_not_done_before_has_no_value() -> None:
    workflow = flow(called("a", tool="note", inputs={"value": "${b.output}"}), thought("b"))
    result = run_workflow(workflow, capable(note=lambda value: value), max_parallel=1)
    message = (
        "'${b.output}' has no value: step b gave no output; let this step depend on it, or leave the "
        "reference out"
    )
    assert dict(result.errors) == {"a": told(message)}


@pytest.mark.parametrize("output", [10**5000, {"n": 10**5000}], ids=["alone", "in an object"])
def test_a_number_too_long_to_be_written_is_an_error_of_the_step_that_writes_it(output: Any) -> None:
    workflow = flow(
        called("a", tool="produce"),
        called("b", "a", tool="note", inputs={"value": "n=${a.output}"}),
        thought("c"),
    )
    produce = plain_tool("produce", lambda: ToolResult(True, "Done.", output))
    result = run_workflow(workflow, capable(produce, note=lambda value: value))
    assert ("b" in result.errors, result.outputs.get("c")) == (True, "Do c")


def test_a_long_number_beside_itself_is_found() -> None:
    value: list[object] = [10**5000]
    value.append(value)
    value.append((1, {"x": 2}))
    with pytest.raises(MissingValue) as refused:
        text_of(value)
    assert str(refused.value) == (
        "a number of more than 3,000 digits cannot be part of a text; pass it on as a whole"
    )
    mixed = [value.pop(), float("inf")]
    mixed.append(mixed)
    assert text_of(mixed) == '[[1, {"x": 2}], "inf", "..."]'

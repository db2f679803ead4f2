"""References and the memory of a run: their values, and the errors where there are none."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from json_runs import Colour, Page, Pair, Row
from plan_findings import stored_values, with_outcomes
from run_cases import called, capable, flow, heard, json_values, plan_notes, refusal, states, thought, told
from syrupy.assertion import SnapshotAssertion

from planning.tools import ToolResult
from planning.workflow import Capabilities, WorkflowResult, extract_value, run_workflow
from planning.workflow.conditions import ConditionInvalid, is_done
from planning.workflow.run.memory import MemoryItem
from session import Session


def run(inputs: Mapping[str, Any], prompt: str = "", **outputs: Any) -> tuple[list[dict[str, Any]], Any]:
    """What a handler is given, behind steps with these outputs; and the error of its step."""
    seen: list[dict[str, Any]] = []

    def take(inputs: Mapping[str, Any]) -> None:
        seen.append(dict(inputs))

    steps = [called(step_id, tool=f"give_{step_id}") for step_id in outputs]
    steps.append(thought("take", *outputs, type="handler", name="take", inputs=inputs))
    given = outputs.items()
    tools = {f"give_{name}": lambda it=it: ToolResult(True, "Done.", it) for name, it in given}
    capabilities = Capabilities(tools=tools, handlers={"take": take})
    result = run_workflow(flow(*steps, thought("later", "take")), capabilities, user_prompt=prompt)
    return seen, result.errors.get("take")


def resolve(inputs: Mapping[str, Any], prompt: str = "", **outputs: Any) -> dict[str, Any]:
    (seen,), error = run(inputs, prompt, **outputs)
    assert error is None
    return seen


def one(text: str, prompt: str = "", **outputs: Any) -> Any:
    return resolve({"x": text}, prompt, **outputs)["x"]


@given(json_values)
def test_a_reference_as_a_whole_is_the_value_and_keeps_its_type(value: Any) -> None:
    found = one("${a.output}", a=value)
    assert (found, type(found)) == (value, type(value))
    assert one("${a.output.in[1]}", a={"in": [0, value]}) == value
    assert one("""${a.output["v 2.0"][0]['a[b]']}""", a={"v 2.0": [{"a[b]": value}]}) == value


@pytest.mark.parametrize(
    ("text", "output", "written"),
    [
        ("$${HOME}", 7, "${HOME}"),
        ("$$${a.output}", 7, "$${a.output}"),
        ("cd $${HOME}/${a.output} && echo $$ $${", 7, "cd ${HOME}/7 && echo $$ ${"),
        ("${a.output} and $${x}", "$${y}", "$${y} and ${x}"),
        ("$5 {a} $a} ${a.output} $", "and", "$5 {a} $a} and $"),
    ],
)
def test_a_dollar_before_a_reference_writes_it_out(text: str, output: Any, written: str) -> None:
    assert one(text, a=output) == written


def test_what_was_put_in_is_never_expanded_again() -> None:
    inserted = "${user_prompt} ${a.output} ${nowhere.output} ${"
    assert one("${a.output}", "the prompt", a=inserted) == inserted
    assert one("-${a.output}-", "the prompt", a=inserted) == f"-{inserted}-"
    assert one("${a.output}", "the prompt", a={"deep": ["${user_prompt}"]}) == {"deep": ["${user_prompt}"]}
    assert one("${user_prompt}${user_prompt}", "${a.output}", a=1) == "${a.output}${a.output}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, None, "\u00fc"], "a": {}}, '{"b": [1, null, "\u00fc"], "a": {}}'),
        ((1, "two"), '[1, "two"]'),
        (datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), "2024-01-02 03:04:05+00:00"),
        (Row("a", [1]), '{"name": "a", "tags": [1]}'),
        (Colour.RED, "red"),
        (float("inf"), "inf"),
        ([date(2024, 1, 2), float("inf")], '["2024-01-02", "inf"]'),
    ],
)
def test_inside_a_text_a_value_becomes_text(value: Any, text: str) -> None:
    assert one("<${a.output}>", a=value) == f"<{text}>"


@given(json_values)
def test_the_text_of_a_value_is_json_and_reads_back_equal(value: Any) -> None:
    text = one(" ${a.output}", a=value)[1:]
    assert (text if isinstance(value, str) else json.loads(text)) == value


def test_inputs_are_resolved_at_every_depth_and_the_names_of_fields_never_and_stay_as_they_were() -> None:
    listed = ["${a.output}", {"in": "n=${a.output}"}, ("${a.output}",)]
    inputs = {"${a.output}": {"list": listed, "z": MappingProxyType({"w": "${a.output}"})}, "n": 1}
    before = repr(inputs)
    assert resolve(inputs, a=3) == {"${a.output}": {"list": [3, {"in": "n=3"}, [3]], "z": {"w": 3}}, "n": 1}
    assert repr(inputs) == before


def test_a_reference_without_a_value_is_an_error_of_its_step(snapshot: SnapshotAssertion) -> None:
    def outcome(given: tuple[str, Any]) -> str:
        seen, error = run({"x": given[0]}, a=given[1])
        assert (seen, error) == ([], told(error.message))
        return str(error.message)

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot


class Listing(Enum):
    ROWS = {"rows": [7]}  # noqa: RUF012 - an enum makes it a member


PAGE = Page(title="a", lines=[1])
FOUND: list[Any] = [
    *((value, ["tags"], 3) for value in (Row("a", 3), {"tags": 3})),
    (PAGE, ["title"], "a"),
    ([{"in": Row("a", 3)}], ["0", "in", "tags"], 3),
    *((value, [part], 2) for value in ([1, 2, 3], (1, 2, 3), Pair(1, 2)) for part in (1, "1", "01")),
    *((value, [part], "x") for value in ({1: "x"}, {"1": "x"}) for part in (1, "1")),
    *((value, ["2.5"], "y") for value in ({2.5: "y"}, {"2.5": "y"})),
    ({date(2024, 1, 2): "x"}, ["2024-01-02"], "x"),
    (frozenset({7}), [0], 7),
    (Listing.ROWS, ["rows", "0"], 7),
    ({"a": None}, ["a"], None),
    (7, [], 7),
]


@pytest.mark.parametrize(("value", "path", "found"), FOUND)
def test_a_path_leads_through_the_json_form_of_a_value(value: Any, path: list[Any], found: Any) -> None:
    assert extract_value(value, path) == found


@dataclass
class Unfinished:
    total: int = field(init=False)


MISSING: list[tuple[Any, list[Any]]] = [
    (Row("a"), ["__class__"]),
    (PAGE, ["model_fields"]),
    (ValueError("x"), ["args"]),
    (Pair(1, 2), ["first"]),
    ([1], ["9" * 5000]),
    (Unfinished(), ["total"]),
]


def test_where_there_is_nothing_it_says_what_there_is(snapshot: SnapshotAssertion) -> None:
    def outcome(given: tuple[Any, list[Any]]) -> str:
        return refusal(LookupError, extract_value, *given)

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot
    assert "".join(f"{outcome(each)}\n" for each in MISSING) == snapshot(name="objects")


def test_a_missing_name_of_a_mapping_that_makes_its_values_is_missing_and_is_not_made() -> None:
    value: defaultdict[str, list[int]] = defaultdict(list, a=[1])
    with pytest.raises(LookupError):
        extract_value(value, ["b"])
    assert value == {"a": [1]}


def test_a_path_as_one_text_is_refused_with_its_right_form() -> None:
    message = refusal(TypeError, extract_value, {"a": 1}, "a")
    assert message == "a path is a list of names, got a string; write ['a']"


DATA = {"Revenue": {"2023": 5, "2024": None}, "rows": [{"id": 7}, {"id": 8}]}


def noting(*steps: Any, **options: Any) -> tuple[WorkflowResult, list[Any]]:
    calls: list[Any] = []

    def note(value: Any = "fetch") -> Any:
        calls.append(value)
        return DATA if value == "fetch" else value

    return run_workflow(flow(*steps), capable(fetch=note, note=note), **options), calls


def items(result: WorkflowResult) -> list[tuple[Any, ...]]:
    found = result.session.select_all(MemoryItem)
    assert all(item.created_at.endswith("+00:00") for item in found)
    return [(item.type, item.key, item.value, item.step_id) for item in found]


@pytest.mark.parametrize("key", ["key", None])
def test_a_path_that_leads_nowhere_is_an_error_and_nothing_is_stored(key: str | None) -> None:
    result, calls = noting(
        called("a", tool="fetch", expected_key=key, output_path=("Revenue", "2025")), thought("b", "a")
    )
    message = "the output.Revenue.2025 is missing: the output.Revenue has 2023, 2024"
    assert (dict(result.errors), calls) == ({"a": told(message)}, ["fetch"])
    assert (dict(result.memory), dict(result.outputs), items(result)) == ({}, {}, [])
    assert states(result.workflow) == {"a": "failed", "b": "pending"}


# Skipping


@pytest.mark.parametrize("check", ["True", "memory['key'] == 5", "key > 4 and len(memory) == 1"])
def test_a_true_condition_skips_the_step_and_keeps_the_stored_value(check: str) -> None:
    session = Session()
    records, step = heard(session), called("a", tool="fetch", expected_key="key", done_check=check)
    result, calls = noting(step, inputs={"key": 5}, session=session)
    assert (calls, states(result.workflow), result.warnings) == ([], {"a": "completed, skipped"}, ())
    assert items(result) == [("input", "key", 5, None), ("step_skipped", "key", None, "a")]
    assert (dict(result.memory), dict(result.outputs)) == ({"key": 5}, {"a": 5})
    assert [(each.step_id, each.status) for each in records] == [("a", "completed")]
    assert (records[0].skipped, records[0].attempt, records[0].called) == (True, 0, False)
    assert result.workflow.steps[0].completed_at == records[0].at
    assert plan_notes(session) == [("done", ("Skipped: its done_check is true",))]


def ignored(check: str) -> tuple[str, ...]:
    """The warning for a condition that says neither yes nor no."""
    return (f"step a: done_check ignored: {refusal(ConditionInvalid, is_done, check, {'key': 5}, 'key')}",)


@pytest.mark.parametrize(
    ("check", "warnings"),
    [
        *((check, ()) for check in ("False", "memory['other'] == 5", "key > 'text'")),
        *((check, ignored(check)) for check in ("(", "__import__('os')", "key")),
    ],
)
def test_any_other_condition_runs_the_step(check: str, warnings: tuple[str, ...]) -> None:
    result, calls = noting(called("a", tool="fetch", expected_key="key", done_check=check), inputs={"key": 5})
    assert (calls, states(result.workflow), result.status) == (["fetch"], {"a": "completed"}, "completed")
    assert ([item[0] for item in items(result)], result.warnings) == (["input", "step_result"], warnings)


def test_a_step_is_skipped_whatever_other_code_has_stored_under_its_key() -> None:
    session = Session()

    def keep() -> None:
        session.dispatch(MemoryItem(type="input", key="key", value=[session]))

    steps = called("a", tool="keep"), called("b", "a", expected_key="key", done_check="True")
    result = run_workflow(flow(*steps), capable(keep=keep), session=session)
    assert (result.status, result.errors) == ("completed", {})
    assert states(result.workflow) == {"a": "completed", "b": "completed, skipped"}
    assert result.outputs["b"] == [repr(session)]


HITS = called("find", tool="fetch", expected_key="hit", output_path=("hits", "2"), done_check="True")


UNKEPT = "'{}' has no value: only find.output.hits.2 was kept; refer to that"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("${find.output.hits[0]}", UNKEPT.format("${find.output.hits[0]}")),
        ("${find.output}", UNKEPT.format("${find.output}")),
        ("${find.output.hits[2].title}", "find.output.hits.2.title is missing: find.output.hits.2 has url"),
    ],
)
def test_what_a_skipped_step_did_not_keep_is_missing_and_never_made_up(reference: str, message: str) -> None:
    texts = {"b": f"It is {reference}.", "c": "${find.output.hits[2].url}"}
    steps = [called(each, "find", tool="note", inputs={"value": text}) for each, text in texts.items()]
    result, calls = noting(HITS, *steps, inputs={"hit": {"url": "x"}})
    assert (calls, dict(result.outputs), dict(result.errors)) == (["x"], {"c": "x"}, {"b": told(message)})


def test_a_resumed_run_knows_of_a_skipped_step_what_was_there_when_it_was_skipped() -> None:
    steps = [
        HITS,
        called("other", "find", tool="fetch", expected_key="hit"),
        called("fail", "other", tool="nobody"),
        called("b", "fail", tool="note", inputs={"value": "${find.output.hits[2]}"}),
    ]
    first, _ = noting(*steps, inputs={"hit": "third"})
    assert dict(first.memory) == {"hit": DATA}
    mended = [*steps[:2], thought("fail", "other"), steps[3]]
    result, calls = noting(*mended, inputs={"hit": "third"}, session=first.session)
    assert (result.status, calls) == ("completed", ["third"])

"""The one door: every finding once, in order, with its place in text, document and plan."""

from __future__ import annotations

import json
from typing import Any

import pytest
from plan_findings import plan, thought
from syrupy.assertion import SnapshotAssertion

from planning.workflow import (
    Capabilities,
    Finding,
    Report,
    Workflow,
    WorkflowStep,
    validate,
    validate_workflow,
)
from planning.workflow.codes import Category, Severity

STEP = {"step_id": "a", "description": "d", "type": "tool", "name": "search", "inputs": {}, "depends_on": []}


def codes(findings: tuple[Finding, ...]) -> list[str]:
    return [each.code for each in findings]


def test_a_valid_plan_is_a_workflow_and_nothing_else() -> None:
    step = WorkflowStep(step_id="a", description="d", type="tool", name="search")
    assert validate_workflow(json.dumps([STEP])) == Report(
        errors=(), warnings=(), workflow=Workflow(steps=(step,)), parsed_plan=[STEP]
    )


def test_a_finding_has_its_place_in_the_text_in_the_document_and_in_the_plan() -> None:
    text = (
        '{"plan": [\n  {"step_id": "a", "description": "d", "type": "tool",\r\n'
        '   "name": 7, "inputs": {}, "depends_on": []}]}'
    )
    (error,) = validate_workflow(text).errors
    assert error == Finding(
        code="wrong_type",
        message="expected a string, got a number",
        hint="send a string",
        step_index=0,
        step_id="a",
        pointer="/plan/0/name",
        line=3,
        column=12,
        length=1,
    )
    assert (error.category, error.severity) == (Category.SCHEMA, Severity.ERROR)


def test_a_finding_of_the_text_has_the_step_that_it_stands_in() -> None:
    text = json.dumps([STEP, {**STEP, "step_id": "b"}]).replace('"b"', "'b'")
    (warning,) = validate_workflow(text).warnings
    assert (warning.code, warning.step_index, warning.step_id) == ("single_quotes", 1, "b")
    assert warning.pointer == "/1/step_id"


def test_what_is_missing_only_because_it_could_not_be_read_is_not_said() -> None:
    text = '[{"step_id": "a", "description": @, "type": "tool"}, {"step_id": "b", "oops": 1}]'
    report = validate_workflow(text)
    assert codes(report.errors)[0] == "syntax_error"
    assert {each.step_index for each in report.errors[1:]} == {1}


def test_an_id_that_may_have_been_lost_is_not_said_to_be_unknown() -> None:
    lost = '[{"step_id" "a", "description": "d"}, ' + json.dumps({**STEP, "depends_on": ["x"]}) + "]"
    assert codes(validate_workflow(lost).errors) == ["syntax_error"]
    kept = lost.replace('"step_id" "a", "description": "d"', '"step_id": "c", "description" "d"')
    assert codes(validate_workflow(kept).errors) == ["syntax_error", "unknown_dependency"]


NO_INPUTS = '"inputs": {}, "depends_on": []}'
FIELDS = '"description": "d", "type": "tool", "name": "search"'
TWICE = {
    "an id": f'[{{"step_id": "a", "step_id": "b", {FIELDS}, {NO_INPUTS},'
    f'{{"step_id": "c", {FIELDS}, "inputs": {{"q": "${{a.output}}"}}, "depends_on": ["a"]}}]',
    "dependencies": f'[{{"step_id": "a", {FIELDS}, {NO_INPUTS},'
    f'{{"depends_on": ["a"], "step_id": "c", {FIELDS}, "inputs": {{"q": "${{a.output}}"}},'
    '"depends_on": []}]',
    "the steps": '{"schema_version": 2, "goal": "", "steps": [{"step_id": "a", "description": "d"}], '
    '"steps": [{"step_id": "b", "description": "d", "depends_on": ["a"]}]}',
}


@pytest.mark.parametrize("text", TWICE.values(), ids=TWICE)
def test_what_follows_from_a_field_that_occurs_twice_is_not_said(text: str) -> None:
    assert [error.code for error in validate_workflow(text).errors] == ["duplicate_key"]


def test_of_very_many_errors_the_first_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "MOST_ERRORS", 3)
    source = [{**STEP, "step_id": str(number), "depends_on": ["x"]} for number in range(5)]
    report = validate_workflow(source)
    assert codes(report.errors) == ["unknown_dependency"] * 3 + ["too_many_errors"]
    assert report.errors[-1].message == "there are 2 more errors than are listed"
    assert codes(validate_workflow(source[:3]).errors) == ["unknown_dependency"] * 3


def test_however_many_warnings_there_are_they_fail_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "MOST_ERRORS", 3)
    source: list[Any] = [STEP, {**STEP, "step_id": "b", "depends_on": ["a"] * 10}]
    report = validate_workflow(source)
    assert report.ok
    assert codes(report.warnings) == ["repeated_dependency"] * 9


def test_more_steps_than_are_read_are_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "MOST_STEPS", 2)
    report = validate_workflow([{"anything": 1}] * 3)
    assert [(each.code, each.message, each.pointer) for each in report.errors] == [
        ("too_long", "the workflow has 3 steps, the limit is 2", "")
    ]


def test_a_plan_without_steps_is_a_warning_once_its_list_is_a_list() -> None:
    assert codes(validate_workflow([]).warnings) == ["empty_plan"]
    assert codes(validate_workflow({"schema_version": 2, "goal": "g", "steps": None}).warnings) == []
    assert codes(validate_workflow("[@]").warnings) == []


def calculate_tip(bill: float, percent: int = 10, note: str = "") -> str:
    return f"{bill}{percent}{note}"


def calculate_discount(price: float) -> str:
    return f"{price}"


KNOWN = Capabilities(
    tools=[calculate_tip, calculate_discount],
    handlers=["notify"],
    agents=["researcher"],
)


def tip(step_id: object, *depends_on: str, **inputs: Any) -> dict[str, Any]:
    return thought(step_id, *depends_on, type="tool", name="calculate_tip", inputs=inputs)


def asked(step_id: object, *depends_on: str, **inputs: Any) -> dict[str, Any]:
    return thought(step_id, *depends_on, agent="researcher", inputs=inputs)


WRONG: dict[str, object] = {
    "a step with inputs that calls nothing": plan(thought("a", inputs={"table": "t"})),
    "a step of the older form with parameters that calls nothing": plan(
        {"step_id": 1, "description": "d", "parameters": {"table": "t"}}
    ),
    "a tool named as the older form names it": plan(thought("a", tool="calculate_tip", inputs={"bill": 1})),
    "a tool like no other": plan(thought("a", type="tool", name="send_mail", inputs={"bill": 1})),
    "an id in another field": plan({"id": "a", "description": "d"}, thought("b", "a")),
    "a missing input behind a name": plan(tip("a", note="x")),
    "an id that two steps have and one that none has": plan(
        asked("fetch"),
        asked("fetch", "fetch", x="${fetch.output}"),
        asked("tell", "parse", x="${parse.output.title}", y="${parse.output}"),
    ),
    "a variable of a shell": plan(asked("a", x="cd ${HOME} && ls")),
    "a name without its value in a text": '[{"step_id": "a", "description": "d", "type": "tool",'
    ' "name": "calculate_tip", "inputs": {"bill": }, "depends_on": []}]',
    "an input that is missing in a text": '[{"step_id": "a", "description": "d", "type": "tool",\n'
    ' "name": "calculate_tip", "inputs": {"note": "x"}, "depends_on": []}]',
    "an empty done_check": plan(thought("a", done_check="")),
    "an id of 5,000 digits": f'[{{"step_id": {"1" * 5000}, "description": "d", "type": "tool",'
    ' "name": "calculate_tip", "inputs": {"bill": 1}, "depends_on": []}]',
    "a text that was cut in a step": json.dumps(
        [tip("a", bill=1), tip("b", "a", bill="${a.output}")],
    ).partition('"depends_on": ["a"]')[0]
    + '"inputs": {"bill": "${a.output}"}',
    "a text that was cut behind a whole step": json.dumps(plan(thought("a"), thought("b")))[:-2],
    "an apology with an empty list": "I'm sorry, but none of the available tools ([]) can do this.",
}
"""By name, what must be refused."""

TAKEN: dict[str, object] = {
    "references in foreign notations": plan(
        asked("s"), asked("E1"), asked("b", x="{{s.output}}, $s.output, <s.output.items.0>, #E1")
    ),
    "numbers in quotes": plan(tip("a", bill="12.5", percent="5000", note="7")),
    "fields that are null": plan(
        {**tip("a", bill=1), "agent": None, "outputs": None, "expected_key": None, "retries": None}
    ),
    "steps beside a reasoning": {"reasoning": "First think.", "steps": [thought("a")]},
    "a plan in a JSON string": json.dumps(json.dumps(plan(tip("a", bill="3")))),
    "a literal reference": plan(asked("a"), asked("b", x="$${a.output} costs $$${5}")),
}
"""By name, what must be taken, perhaps with warnings."""


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_plan_is_refused_with_its_cause_and_the_remedy(
    what: str, snapshot: SnapshotAssertion
) -> None:
    report = validate_workflow(WRONG[what], KNOWN)
    assert not report.ok
    assert report.to_prompt() == snapshot


@pytest.mark.parametrize("what", TAKEN)
def test_a_plan_that_can_be_meant_in_one_way_is_taken(what: str, snapshot: SnapshotAssertion) -> None:
    report = validate_workflow(TAKEN[what], KNOWN)
    assert report.ok
    assert report.to_prompt() == snapshot

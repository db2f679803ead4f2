"""Recovery and schemas beside a second opinion: nothing is silently wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from importlib.resources import files
from typing import Any

import pytest
from corpus_cases import corpus, exact
from corpus_faults import BASES, FAULTS, LAYOUTS
from corpus_large import large_cases
from hypothesis import assume, example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from workflow_strategies import plain_values, written

from planning.reading import read_document
from planning.workflow import Report, validate_workflow
from planning.workflow.codes import CODES, Category, Severity
from planning.workflow.wire.form import PLAN

REPAIRS = {
    code
    for code, kind in CODES.items()
    if (kind.category, kind.severity) == (Category.JSON, Severity.WARNING)
}
VALUES = {case.name: case.value for case in [*corpus(), *large_cases()] if case.has_value}

every_base = pytest.mark.parametrize("base", BASES)
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


# --- recovery


def is_json(text: str) -> bool:
    """Whether a text is strict JSON, so that what it means is beyond doubt."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def meant(value: Any) -> Any:
    """A document, or the plan of one step that a single step is read as."""
    return [value] if isinstance(value, dict) and "step_id" in value else value


def silently_wrong(texts: Iterator[str], value: Any) -> list[str]:
    """The texts that are taken for another value than was meant."""
    return [
        text
        for text in texts
        if not is_json(text)
        and validate_workflow(text).ok
        and exact(meant(read_document(text, PLAN).value)) != exact(value)
    ]


@every_base
@every_layout
def test_a_plan_that_is_not_broken_is_read_without_a_finding(base: str, layout: str) -> None:
    report = validate_workflow(LAYOUTS[layout](BASES[base]))
    assert (report.errors, report.warnings) == ((), ())


@pytest.mark.parametrize("fault", FAULTS)
@every_base
def test_a_plan_that_is_broken_in_one_place_is_never_taken_for_another(fault: str, base: str) -> None:
    value = BASES[base]
    for layout in LAYOUTS.values():
        assert silently_wrong(FAULTS[fault](layout(value)), value) == []


@pytest.mark.parametrize(
    "fault",
    [
        "a comma is missing and a line ends",
        "a comma trails",
        "single quotes",
        "words of Python",
        "a line break within a string",
        "something around it",
    ],
)
@every_base
def test_a_fault_that_leaves_no_doubt_is_always_mended(fault: str, base: str) -> None:
    for layout in LAYOUTS.values():
        for text in FAULTS[fault](layout(BASES[base])):
            report = validate_workflow(text)
            assert (report.errors, text) == ((), text)
            assert {each.code for each in report.warnings} <= REPAIRS
            assert exact(meant(read_document(text, PLAN).value)) == exact(BASES[base])


@every_base
@every_layout
def test_a_plan_that_breaks_off_is_an_error_wherever_it_does(base: str, layout: str) -> None:
    text = LAYOUTS[layout](BASES[base])
    assert [text[:end] for end in range(len(text)) if validate_workflow(text[:end]).ok] == []


@every_base
@every_layout
def test_a_plan_that_lacks_its_end_by_itself_has_its_first_steps_whole(base: str, layout: str) -> None:
    text, steps = LAYOUTS[layout](BASES[base]), steps_of(BASES[base])
    wrong = []
    for end in range(len(text)):
        if validate_workflow(text[:end], finished=True).ok:
            kept = steps_of(read_document(text[:end], PLAN, is_finished=True).value)
            if exact(kept[:-1]) != exact(steps[: len(kept) - 1]):
                wrong.append(text[:end])
    assert wrong == []


def steps_of(value: Any) -> Any:
    """The steps of a document."""
    return value["steps"] if isinstance(value, dict) and "steps" in value else meant(value)


@given(st.data())
def test_careless_writing_changes_no_value(data: st.DataObject) -> None:
    value = {
        "schema_version": 2,
        "goal": data.draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
        "steps": [
            {"step_id": f"s{n}", "description": "d", "type": "tool", "name": "search", "inputs": {"x": each}}
            for n, each in enumerate(data.draw(st.lists(plain_values(), min_size=1, max_size=3)))
        ],
    }
    text = data.draw(written(value)).text
    document = read_document(text, PLAN)
    assert exact(document.value) == exact(value)
    assert {each.code for each in document.found} <= REPAIRS
    assert is_json(text) or document.found


@given(st.data())
def test_a_text_is_checked_as_its_value_is(data: st.DataObject) -> None:
    value = data.draw(mutants())
    assume(isinstance(value, dict) or (value and isinstance(value[0], dict)))  # a list of others may be prose
    text = data.draw(written(value)).text
    assert schema_findings(validate_workflow(text)) == schema_findings(validate_workflow(value))


# --- schemas


def read_schema(version: int) -> Draft202012Validator:
    """A schema as it lies in the package."""
    text = (files("planning.workflow.wire") / f"v{version}.schema.json").read_text("utf-8")
    Draft202012Validator.check_schema(json.loads(text))
    return Draft202012Validator(json.loads(text))


SCHEMAS = {version: read_schema(version) for version in (1, 2)}


PLAN_FIELDS = {
    "schema_version",
    "goal",
    "steps",
    "status",
    "created_at",
    "completed_at",
    "owner",
    "can_modify",
}


def schema_findings(report: Report) -> list[tuple[str, str]]:
    """What the schema refuses, as code and pointer; that ids repeat is beyond a schema."""
    return sorted(
        (each.code, each.pointer)
        for each in report.errors
        if each.category is Category.SCHEMA and each.code != "duplicate_step_id"
    )


def second_opinion(value: Any) -> bool:
    """Whether jsonschema takes a document, once it has the shape that it is read as."""
    if isinstance(value, dict):
        value = said(value)
        for name in ("plan", "workflow"):
            if name in value and "steps" not in value and isinstance(value[name], (list, dict)):
                return second_opinion(value[name])
        if "step_id" in value and "steps" not in value:
            return is_valid_step(value)
        return SCHEMAS[2].is_valid(versioned(value))
    value = [said(step) for step in value]
    if any(map(is_numbered, value)):
        return SCHEMAS[2].is_valid({"schema_version": 2, "goal": "", "steps": value})
    return SCHEMAS[1].is_valid(value)


def said(value: Any) -> Any:
    """An object without its fields that are null."""
    is_object = isinstance(value, dict)
    return {name: each for name, each in value.items() if each is not None} if is_object else value


def is_valid_step(step: dict[str, Any]) -> bool:
    """Whether a step that stands alone is one of either version."""
    in_second = {"schema_version": 2, "goal": "", "steps": [step]}
    return SCHEMAS[1].is_valid([step]) or SCHEMAS[2].is_valid(in_second)


def versioned(value: dict[str, Any]) -> dict[str, Any]:
    """A document with the version that is assumed where it has none, and without what is ignored then."""
    if isinstance(value.get("steps"), list):
        value = {**value, "steps": [said(step) for step in value["steps"]]}
    if "schema_version" in value:
        return value
    if "steps" in value:
        kept = PLAN_FIELDS
        value = {"goal": "", **{name: each for name, each in value.items() if name in kept}}
    return {"schema_version": 2, **value}


def is_numbered(step: Any) -> bool:
    """Whether a step is in the older form."""
    if not isinstance(step, dict):
        return False
    step_id = step.get("step_id")
    is_integer = (
        isinstance(step_id, (int, float)) and not isinstance(step_id, bool) and step_id == int(step_id)
    )
    is_named = bool({"type", "name", "inputs", "outputs", "depends_on"} & step.keys())
    return is_integer and not (is_named and not {"tool", "parameters", "dependencies"} & step.keys())


@pytest.mark.parametrize("name", VALUES)
def test_the_schemas_say_of_the_corpus_what_jsonschema_says(name: str) -> None:
    assert (schema_findings(validate_workflow(VALUES[name])) == []) is second_opinion(VALUES[name])


@st.composite
def mutants(draw: st.DrawFn) -> Any:
    """A valid document with up to three places changed, left out, doubled or put in."""
    value = deepcopy(BASES[draw(st.sampled_from(sorted(BASES)))])
    for _ in range(draw(st.integers(0, 3))):
        _mutate(draw, value)
    return value


FIELDS = [
    "step_id", "description", "type", "name", "agent", "inputs", "outputs", "depends_on", "tool",
    "parameters",
    "dependencies", "expected_key", "output_path", "done_check", "status", "completed_at", "skipped", "goal",
    "owner", "can_modify", "created_at", "extra",
]  # fmt: skip
SMALL = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        2,
        1.0,
        1.5,
        "",
        " ",
        "a",
        "tool",
        "pending",
        "None",
        [],
        ["a"],
        [1],
        [None],
        {},
        {"a": 1},
    ]
)


def _mutate(draw: st.DrawFn, value: Any) -> None:
    """Change one place below a value."""
    place = value
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw(st.sampled_from(keys)) if keys else None
        deeper = key is not None and isinstance(place[key], (dict, list))
        if not deeper or draw(st.integers(0, 3)) == 0:
            break
        place = place[key]
    what = draw(st.sampled_from(["change", "leave out", "put in"]))
    if what == "put in" or key is None:
        if isinstance(place, dict):
            place[draw(st.sampled_from(FIELDS))] = deepcopy(draw(SMALL))
        else:
            place.append(deepcopy(draw(SMALL)))
    elif what == "leave out":
        del place[key]
    else:
        place[key] = deepcopy(draw(SMALL))


@given(mutants())
@example({"schema_version": 2.0, "goal": "g", "steps": []})
@example({"schema_version": 2, "goal": "g", "steps": [{"step_id": 1.0, "description": "d", "tool": "x"}]})
@example([{"step_id": 1.0, "description": "d", "tool": "x", "dependencies": [1.0]}])
def test_the_schemas_say_of_any_document_what_jsonschema_says(value: Any) -> None:
    assert (schema_findings(validate_workflow(value)) == []) is second_opinion(value)

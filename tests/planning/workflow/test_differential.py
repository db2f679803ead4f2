"""Recovery of plans that are broken in one place: nothing is silently wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from corpus_cases import exact
from corpus_faults import BASES, FAULTS, LAYOUTS

from planning.reading import read_document
from planning.workflow import validate_workflow
from planning.workflow.codes import CODES, Category, Severity
from planning.workflow.wire.form import WORKFLOW

REPAIRS = {
    code
    for code, kind in CODES.items()
    if (kind.category, kind.severity) == (Category.JSON, Severity.WARNING)
}

every_base = pytest.mark.parametrize("base", BASES)
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


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
        and exact(meant(read_document(text, WORKFLOW).value)) != exact(value)
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
            assert exact(meant(read_document(text, WORKFLOW).value)) == exact(BASES[base])


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
            kept = steps_of(read_document(text[:end], WORKFLOW, is_finished=True).value)
            if exact(kept[:-1]) != exact(steps[: len(kept) - 1]):
                wrong.append(text[:end])
    assert wrong == []


def steps_of(value: Any) -> Any:
    return value["steps"] if isinstance(value, dict) and "steps" in value else meant(value)

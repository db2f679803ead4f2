"""The corpus: every plan gives the findings that it must, at their places, and the value that was meant."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from corpus_cases import NOTHING, Case, Expected, corpus, exact
from plan_findings import check_words

from planning.reading import read_document
from planning.tools import Tool
from planning.workflow import Capabilities, Report, Workflow, validate_workflow
from planning.workflow.codes import CODES, Category
from planning.workflow.wire.form import WORKFLOW

_STEP = {"description": "d", "type": "tool", "name": "search", "inputs": {}, "depends_on": []}
_INPUTS = json.dumps([{"step_id": "a", **_STEP, "inputs": {"x": 0}}]).partition("0")[0]
_REST = '}, "depends_on": []}]'


def large_cases() -> list[Case]:
    allowed = _INPUTS + "[" * 61 + "]" * 61 + _REST
    one_more = _INPUTS + "[" * 62 + "]" * 62 + _REST
    lists, objects = "[" * 10_000, '{"a":' * 10_000
    steps = [{"step_id": f"s{number}", **_STEP} for number in range(2_000)]
    circle = [{**step, "depends_on": [f"s{(at + 1) % 2_000}"]} for at, step in enumerate(steps)]
    lines = ",\n".join(map(json.dumps, circle))
    second = Expected(2, lines.index('"s1"') + 1, "dependency_cycle")

    def too_deep(text: str, column: int) -> Case:
        return Case(f"{text[:5]} is too deep.", text, (Expected(1, column, "too_deep"),))

    return [
        Case("Sixty-four levels are read.", allowed, (), json.loads(allowed)),
        too_deep(one_more, len(_INPUTS) + 62),
        too_deep(lists, 65),
        too_deep(objects, 64 * 5 + 1),
        Case("A string of a million characters is read.", f'{_INPUTS}"{"x" * 1_000_000}"{_REST}', ()),
        Case("A circle through two thousand steps is one error.", f"[\n{lines}\n]", (second,), circle),
    ]


CASES = [*corpus(), *large_cases()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_plan_gives_the_findings_and_the_value_that_its_case_says(case: Case) -> None:
    known = Capabilities(**case.known)
    report = validate_workflow(case.text, known, finished=case.finished)
    assert report.source is not None
    check_findings(case, report)
    check_words(report)
    assert all(each.line and each.column and each.length for each in report.errors + report.warnings)
    if case.parsed is not NOTHING:
        assert report.parsed_plan == case.parsed
    if case.value is not NOTHING:
        assert exact(read_document(case.text, WORKFLOW, is_finished=case.finished).value) == exact(case.value)
        parsed = validate_workflow(case.value, known)
        assert of_the_plan(parsed) == of_the_plan(report), "a plan that comes parsed has the same findings"
    if not any("\ud800" <= character <= "\udfff" for character in case.text):  # else no bytes are this text
        assert {validate_workflow(case.text.encode(), known, finished=case.finished)} == {report}


def check_findings(case: Case, report: Report) -> None:
    """The findings are those of the case, at their places, with their pointers, and in order."""
    found = report.errors + report.warnings
    places = sorted((each.line, each.column, each.code) for each in found)
    assert places == sorted((each.line, each.column, each.code) for each in case.findings)
    assert report.ok is all(CODES[each.code].severity == "warning" for each in case.findings)
    pointed = [(each.line, each.column, each.code, each.pointer) for each in found]
    said = [each for each in case.findings if each.pointer is not None]
    assert [each for each in said if (each.line, each.column, each.code, each.pointer) not in pointed] == []
    for findings in (report.errors, report.warnings):
        order = [(each.line or 0, each.column or 0) for each in findings]
        assert order == sorted(order)


def of_the_plan(report: Report) -> list[tuple[str, str, str, str, int]]:
    """The findings but those of the text, without their places."""
    found = [each for each in (*report.errors, *report.warnings) if each.category is not Category.JSON]
    steps = (-1 if each.step_index is None else each.step_index for each in found)
    return sorted((it.code, it.pointer, it.message, it.hint, at) for it, at in zip(found, steps, strict=True))


# The catalogue of codes


EXAMPLES: dict[str, dict[str, dict[str, Any]]] = json.loads(
    Path(__file__).with_name("catalogue.json").read_text(encoding="utf-8")
)
FLOOD = {"missing_field", "wrong_type"}


def fetch(url: str, pages: int = 1, fresh: bool = False) -> str:
    return url * (pages + fresh)


CAPABILITIES = Capabilities(
    tools=["search", Tool("fetch", "Fetch pages.", fetch)], handlers=["notify"], agents=["researcher"]
)


def source(example: dict[str, Any]) -> object:
    """What is validated: a text, repeated where it says so, or a Python value."""
    if "literal" in example:
        return ast.literal_eval(example["literal"])
    text = example["text"]
    return text if "times" not in example else (text + "\n" * ("{" in text)) * example["times"]


def test_each_code_has_an_example() -> None:
    assert list(EXAMPLES) == list(CODES)


@pytest.mark.parametrize("code", CODES)
def test_the_wrong_example_gives_its_code_and_no_other_of_its_severity(code: str) -> None:
    report = validate_workflow(source(EXAMPLES[code]["wrong"]), CAPABILITIES)
    findings = (*report.errors, *report.warnings)
    alike = [each.code for each in findings if each.severity == CODES[code].severity]
    assert set(alike) == {code} | (FLOOD if code == "too_many_errors" else set())
    assert report.ok == (CODES[code].severity == "warning")


@pytest.mark.parametrize("code", CODES)
def test_the_right_example_gives_nothing(code: str) -> None:
    report = validate_workflow(source(EXAMPLES[code]["right"]), CAPABILITIES)
    assert (report.errors, report.warnings) == ((), ())
    assert isinstance(report.workflow, Workflow)

"""The corpus: every plan gives the findings that it must, at their places, and the value that was meant."""

from __future__ import annotations

import json

import pytest
from corpus_by_hand import workflow_by_hand
from corpus_cases import NOTHING, Case, corpus, exact
from corpus_large import large_cases

from planning.reading import read_document
from planning.workflow import Capabilities, Finding, validate_workflow
from planning.workflow.codes import CODES, Category
from planning.workflow.wire.form import PLAN

CASES = [*corpus(), *large_cases()]
WITH_VALUE = [case for case in CASES if case.has_value]

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_value = pytest.mark.parametrize("case", WITH_VALUE, ids=lambda case: case.name)


def capabilities(case: Case) -> Capabilities:
    """What exists in a case."""
    return Capabilities(**case.known)


def placed(findings: tuple[Finding, ...]) -> list[tuple[int | None, int | None, str]]:
    """Findings as place and code, those at one place in the order of their codes."""
    return sorted((each.line, each.column, each.code) for each in findings)


def test_the_corpus_is_as_large_as_it_must_be_and_each_case_has_a_name_of_its_own() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert len(names) > 300


def test_the_corpus_has_a_case_for_every_code_that_a_text_can_give() -> None:
    # These come from no text of this size, or from a tool's own parameters.
    others = {"not_text", "not_json", "bad_encoding", "too_long", "too_many_errors", "bad_input"} | {
        "number_as_text"
    }
    given = {each.code for case in CASES for each in case.findings}
    assert set(CODES) - given - others == set()


@every_case
def test_a_plan_gives_its_findings_at_their_places(case: Case) -> None:
    report = validate_workflow(case.text, capabilities(case), finished=case.finished)
    found = placed(report.errors + report.warnings)
    assert found == sorted((each.line, each.column, each.code) for each in case.findings)
    assert report.ok is case.is_ok


@every_case
def test_findings_stand_in_the_order_of_their_places(case: Case) -> None:
    report = validate_workflow(case.text, capabilities(case), finished=case.finished)
    for findings in (report.errors, report.warnings):
        places = [(each.line or 0, each.column or 0) for each in findings]
        assert places == sorted(places)


@every_case
def test_a_finding_has_the_pointer_that_its_case_says(case: Case) -> None:
    report = validate_workflow(case.text, capabilities(case), finished=case.finished)
    found = [(each.line, each.column, each.code, each.pointer) for each in report.errors + report.warnings]
    said = [each for each in case.findings if each.pointer is not None]
    assert [each for each in said if (each.line, each.column, each.code, each.pointer) not in found] == []


@every_value
def test_the_value_is_the_one_that_was_meant(case: Case) -> None:
    assert exact(read_document(case.text, PLAN, is_finished=case.finished).value) == exact(case.value)


@pytest.mark.parametrize("case", [case for case in WITH_VALUE if case.is_ok], ids=lambda case: case.name)
def test_a_valid_plan_is_the_workflow_that_was_meant(case: Case) -> None:
    report = validate_workflow(case.text, capabilities(case), finished=case.finished)
    assert report.workflow == workflow_by_hand(case.value)


@pytest.mark.parametrize("case", [c for c in CASES if c.parsed is not NOTHING], ids=lambda case: case.name)
def test_what_could_be_read_of_a_broken_plan_is_kept(case: Case) -> None:
    assert validate_workflow(case.text, capabilities(case), finished=case.finished).parsed_plan == case.parsed


@every_value
def test_a_plan_that_comes_parsed_gives_the_same_findings_without_those_of_the_text(case: Case) -> None:
    from_text = validate_workflow(case.text, capabilities(case), finished=case.finished)
    parsed = validate_workflow(case.value, capabilities(case))
    of_text = [each for each in from_text.errors + from_text.warnings if each.category is not Category.JSON]
    assert sorted(map(_told, parsed.errors + parsed.warnings)) == sorted(map(_told, of_text))


def _told(finding: Finding) -> tuple[str, str, str, str, int]:
    index = -1 if finding.step_index is None else finding.step_index
    return finding.code, finding.pointer, finding.message, finding.hint, index


@every_case
def test_a_plan_as_bytes_gives_what_it_gives_as_text(case: Case) -> None:
    if any("\ud800" <= character <= "\udfff" for character in case.text):
        return  # no bytes are this text
    as_bytes, as_text = (
        validate_workflow(given, capabilities(case), finished=case.finished)
        for given in (case.text.encode(), case.text)
    )
    assert as_bytes == as_text


@every_case
def test_every_message_is_plain_and_every_answer_can_be_written(case: Case) -> None:
    report = validate_workflow(case.text, capabilities(case), finished=case.finished)
    for each in report.errors + report.warnings:
        assert (each.message + each.hint).isascii()
        assert "\n" not in each.message + each.hint
        assert each.line is not None
        assert each.column is not None
        assert each.length >= 1
    answer = report.to_dict()
    assert json.loads(json.dumps(answer))["success"] is report.ok
    assert report.to_prompt().isascii()
    assert report.render().count("\n") < 1_000

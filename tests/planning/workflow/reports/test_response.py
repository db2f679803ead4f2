"""``Report.to_dict``: the response of the validation handler, its keys, counts and friendly text."""

from __future__ import annotations

import pytest
from report_samples import COMMENT, FIELD, NAN, ONE_OF_EACH, REFERENCE, TOOL, report
from syrupy.assertion import SnapshotAssertion

from planning.workflow.codes import CODES, Category, Finding, Severity
from planning.workflow.report import SUGGESTIONS

SAID = {each: report(each).to_prompt().partition("\n- ")[2] for each in (*ONE_OF_EACH, COMMENT)}
"""What a model reads of each, without the line above it."""

FLAGS = {
    Category.JSON: "has_json_error",
    Category.SCHEMA: "has_schema_error",
    Category.CAPABILITY: "has_tool_handler_error",
    Category.DEPENDENCY: "has_dependency_error",
    Category.REFERENCE: "has_input_reference_error",
}


def test_a_failing_report_is_the_whole_response() -> None:
    steps: list[object] = [{"step_id": "fetch"}, {"step_id": "sum"}]
    made = report(*ONE_OF_EACH, COMMENT, parsed_plan=steps).to_dict()
    friendly = made.pop("user_friendly_error")
    assert friendly.startswith("The workflow cannot be used yet: it has 5 errors.\n")
    assert made == {
        "success": False,
        "error": "Plan validation failed.",
        "validation_errors": [SAID[each] for each in ONE_OF_EACH],
        "validation_warnings": [SAID[COMMENT]],
        "error_summary": {
            **dict.fromkeys(FLAGS.values(), True),
            "error_count": 5,
            "most_critical_error": SAID[NAN],
            "example_errors": [SAID[NAN], SAID[FIELD], SAID[TOOL]],
        },
        "parsed_plan": steps,
    }


def test_a_succeeding_report_has_the_same_keys() -> None:
    assert report(COMMENT, parsed_plan=[{}]).to_dict() == {
        "success": True,
        "error": None,
        "validation_errors": [],
        "validation_warnings": [SAID[COMMENT]],
        "error_summary": {
            **dict.fromkeys(FLAGS.values(), False),
            "error_count": 0,
            "most_critical_error": None,
            "example_errors": [],
        },
        "user_friendly_error": None,
        "parsed_plan": [{}],
    }


@pytest.mark.parametrize("finding", ONE_OF_EACH, ids=lambda each: each.code)
def test_the_summary_says_which_kind_of_error_there_is(finding: Finding) -> None:
    made = report(finding).to_dict()
    assert list(made) == list(report().to_dict())
    assert made["error_summary"] == {
        **dict.fromkeys(FLAGS.values(), False),
        FLAGS[finding.category]: True,
        "error_count": 1,
        "most_critical_error": SAID[finding],
        "example_errors": [SAID[finding]],
    }


TRUNCATED = Finding("truncated", "the plan breaks off", "send the rest too", line=9, column=1)
FRIENDLY: dict[str, tuple[Finding, ...]] = {
    **{each.category.value: (each,) for each in ONE_OF_EACH},
    **{f"{count} errors": ONE_OF_EACH[:count] for count in (2, 4, 5)},
    "several of a category": (TOOL, FIELD, FIELD, TRUNCATED, REFERENCE, REFERENCE, REFERENCE),
}


@pytest.mark.parametrize("what", FRIENDLY)
def test_the_friendly_text_has_the_errors_of_each_category(what: str, snapshot: SnapshotAssertion) -> None:
    assert report(*FRIENDLY[what]).to_dict()["user_friendly_error"] == snapshot


def test_suggestions_are_for_errors_that_there_are() -> None:
    assert set(SUGGESTIONS) <= {code for code, kind in CODES.items() if kind.severity is Severity.ERROR}

"""The report as a value: what makes it pass, what it is compared by, what it shows of itself."""

from __future__ import annotations

from report_samples import COMMENT, TOOL, report

from planning.reading.places import Source
from planning.workflow.model import Workflow
from planning.workflow.report import Report


def test_a_report_without_errors_is_ok() -> None:
    assert Report().ok
    assert report(COMMENT).ok
    assert not report(COMMENT, TOOL).ok


def test_reports_are_compared_by_what_was_found_and_not_by_the_text() -> None:
    assert report(TOOL, text="one") == report(TOOL, text="two")
    assert report(TOOL) != report(COMMENT)
    assert report(TOOL, parsed_plan=[1]) != report(TOOL, parsed_plan=[2])


def test_the_text_is_not_in_the_reports_repr() -> None:
    assert repr(Report((), (), Workflow(goal="g"), [], Source("the text"))) == (
        "Report(errors=(), warnings=(), workflow=Workflow(goal='g', steps=(), status='pending',"
        " created_at=None, completed_at=None, owner='agent', can_modify=True), parsed_plan=[])"
    )

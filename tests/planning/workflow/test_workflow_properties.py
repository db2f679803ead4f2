"""Laws of workflow documents: what is valid stays what it is, and what is broken is found where it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workflow_strategies import Written, documents, workflows, written

from planning.reading import Document, read_document
from planning.reading.found import Found
from planning.workflow import Workflow, dump_workflow, validate_workflow
from planning.workflow.wire.form import WORKFLOW

each_form = pytest.mark.parametrize("form", [2, 1, 0], ids=["version 2", "version 1", "the older form"])
some = settings(max_examples=settings().max_examples // 3)  # each draws much


@some
@given(workflows())
def test_a_workflow_that_is_written_reads_back_equal_and_is_checked_as_its_text_is(
    workflow: Workflow,
) -> None:
    text = dump_workflow(workflow)
    report = validate_workflow(text)
    assert (report.errors, report.warnings, report.workflow) == ((), (), workflow)
    assert dump_workflow(report.workflow) == text
    assert text.isascii()
    assert validate_workflow(workflow) == report


@each_form
@some
@given(data=st.data())
def test_a_document_of_each_form_means_the_workflow_that_it_says_and_has_its_places(
    form: int, data: st.DataObject
) -> None:
    workflow = data.draw(workflows(form))
    value = documents(workflow, form)
    for source in (value, json.dumps(value), data.draw(written(value, is_strict=True)).text):
        report = validate_workflow(source)
        assert (report.errors, report.warnings, report.workflow) == ((), (), workflow)
    careless = data.draw(written(value))
    report = validate_workflow(careless.text)
    assert (report.errors, report.workflow) == ((), workflow)
    document = read_document(careless.text, WORKFLOW)
    assert repr(document.value) == repr(value)
    check_places(document, careless)


def check_places(document: Document, made: Written) -> None:
    """Every value, key and character is found where it was written."""
    for path, span in made.values.items():
        assert document.span(Found("c", "m", "h", path)) == span
        assert document.path_at(span[0]) == document.path_at(span[1] - 1) == path
    for path, span in made.keys.items():
        assert document.span(Found("c", "m", "h", path, at_key=True)) == span
        assert document.path_at(span[0]) == path
    for path, offsets in made.characters.items():
        last = len(offsets) - 1
        for part in {(0, last), (0, min(1, last)), (max(last - 1, 0), last), (last // 2, last // 2)}:
            found = Found("c", "m", "h", path, within=part)
            assert document.span(found) == (offsets[part[0]], offsets[part[1]])


AS_ANSWERS: dict[str, Callable[[Any], str]] = {
    "compact": lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
    "on one line": json.dumps,
    "indented": lambda value: json.dumps(value, indent=2),
    "in a fence": lambda value: f"```json\n{json.dumps(value)}\n```",
    "in a fence, indented": lambda value: f"```\n{json.dumps(value, indent=2)}\n```\n",
    "in prose": lambda value: f"Here [it] is:\n{json.dumps(value)}",
    "behind thoughts": lambda value: f"<think>[] or {{a}}?</think>\n{json.dumps(value)}",
    "as a string": lambda value: json.dumps(json.dumps(value)),
    "as Python prints it": repr,
}


@each_form
@some
@given(st.sampled_from(sorted(AS_ANSWERS)), st.data())
def test_no_part_of_an_answer_is_a_plan_before_its_last_bracket(
    form: int, answer: str, data: st.DataObject
) -> None:
    text = AS_ANSWERS[answer](documents(data.draw(workflows(form)), form))
    whole = len(text.rstrip("`\n")) if answer != "as a string" else len(text)
    brackets = [found.end() for found in re.finditer(r"[]}]", text[:whole])][-25:]
    ends = [*data.draw(st.lists(st.integers(0, whole - 1), max_size=15)), *brackets]
    assert [text[:end] for end in ends if end < whole and validate_workflow(text[:end]).ok] == []

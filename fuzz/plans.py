"""Random plans, against the validator."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from promises import BrokenPromise, demand, demand_readable

from planning.reading import read_document
from planning.workflow import Capabilities, Report, Workflow, dump_workflow, validate_workflow
from planning.workflow.wire.form import WORKFLOW

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "planning" / "workflow"
WORDS = r"""
``` ~~~ // /* */ ": " ", }] ${ null true None False NaN -Infinity 1e999 007 +1 .5 \u \ud83d\ude00
\ud800 \x41 \' \d step_id description type tool name inputs depends_on outputs schema_version goal
steps plan parameters agent ${user_prompt} ${a.output} .output[0] {"step_id":"a"
[{"step_id":"a","description":"d"}] Plan: ```json
"""
TOKENS = (*"[]{},:\"'\\`/#*\n\r\t .-0$\u00a0\ufeff\u2028\u00e9\U0001f600", "\r\n", "},\n{", *WORDS.split())


def check(text: str) -> None:
    """Check one text.

    Raises:
        BrokenPromise: A promise is not kept.
    """
    known = Capabilities(tools=["search", "fetch"], handlers=["notify"], agents=["researcher"])
    report = validate_workflow(text, known)
    demand(type(report) is Report, "the answer is a report")
    prompt, answer = report.to_prompt(), report.to_dict()
    demand(prompt.isascii(), "what a model reads is ASCII")
    demand_readable(prompt)
    demand(json.loads(json.dumps(answer))["success"] is report.ok, "the response can be written as JSON")
    demand(bool(report.render(width=60)), "the report can be printed")

    document = read_document(text, WORKFLOW)
    if document.value is not None:
        again = read_document(json.dumps(document.value), WORKFLOW)
        demand(repr(again.value) == repr(document.value), "what was recovered reads back equal")
        demand(again.found == [], "what was recovered is plain JSON")
    source = document.source
    for found in document.found:
        span = document.span(found)
        demand(span is not None and 0 <= span[0] <= span[1] <= len(text) + 1, "a place is within the text")
    for each in report.errors + report.warnings:
        words = each.message + each.hint
        demand(words.isascii() and "\n" not in words, "a message is one plain line")
        if each.line is None or each.column is None or source is None:
            raise BrokenPromise("a finding in a text has a place")
        column = len(source.line(each.line)) + 2  # the end of a line is one of its places
        demand(1 <= each.column <= column and each.length >= 1, "a place is within its line")
    if report.ok:
        demand(type(report.workflow) is Workflow, "a plan without errors is a workflow")
        dumped = validate_workflow(dump_workflow(report.workflow), known)
        demand(
            dumped.ok and dumped.workflow == report.workflow, "a workflow that is written reads back equal"
        )
    if not any("\ud800" <= each <= "\udfff" for each in text):
        demand(validate_workflow(text.encode(), known) == report, "bytes are checked as their text is")


def corpus() -> Iterator[str]:
    """The texts of the tests' corpus."""
    sys.path.insert(0, str(CORPUS))
    from corpus_cases import corpus as cases  # noqa: PLC0415 - only here are the tests needed

    return (case.text for case in cases())

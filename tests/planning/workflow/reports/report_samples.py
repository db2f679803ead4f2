"""A plan with an error of each category, and the findings in it, as reports are made from."""

from __future__ import annotations

import attrs

from planning.reading.places import Source
from planning.workflow import Capabilities, validate_workflow
from planning.workflow.codes import CODES, Finding, Severity
from planning.workflow.report import Report

TEXT = """\
{
  "schema_version": 2,
  "goal": "Summarise the news", // for Monday
  "steps": [
    {"step_id": "fetch", "type": "tool", "name": "serch", "inputs": {"limit": NaN}},
    {"step_id": "sum", "type": "tool", "name": "summarise", "inputs": {"text": "${nope.output}"},
     "priority": 1, "depends_on": ["sum"]}
  ]
}
"""


def report(*findings: Finding, text: str | None = TEXT, parsed_plan: list[object] | None = None) -> Report:
    """A report of findings, each where its severity belongs."""
    errors = tuple(each for each in findings if CODES[each.code].severity is Severity.ERROR)
    warnings = tuple(each for each in findings if CODES[each.code].severity is Severity.WARNING)
    source = None if text is None else Source(text)
    return Report(errors, warnings, None, parsed_plan or [], source)


def numbered(code: str, count: int) -> list[Finding]:
    """So many findings of one code, each at its own place."""
    return [Finding(code, f"problem {number}", "", pointer=f"/{number}") for number in range(count)]


_FOUND = validate_workflow(TEXT, Capabilities(tools=["search", "summarise"]))
_BY_CODE = {each.code: each for each in (*_FOUND.errors, *_FOUND.warnings)}
COMMENT, TOOL, NAN = (_BY_CODE[code] for code in ("comment", "unknown_tool", "not_a_number"))
REFERENCE, ITSELF = (_BY_CODE[code] for code in ("unknown_reference", "self_dependency"))
FIELD = attrs.evolve(_BY_CODE["unknown_field"], hint="remove it")

ONE_OF_EACH = (TOOL, NAN, REFERENCE, FIELD, ITSELF)
"""One error of each category, in the order of the document."""

"""A plan with an error of each category, and the findings in it, as reports are made from."""

from __future__ import annotations

from planning.reading.places import Source
from planning.workflow.codes import CODES, Severity
from planning.workflow.findings import Finding
from planning.workflow.reports.report import Report

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


def at(
    code: str,
    part: str,
    message: str,
    hint: str = "",
    *,
    text: str = TEXT,
    step: int | None = None,
    step_id: str | None = None,
    pointer: str = "",
) -> Finding:
    """A finding whose place is where a part of the text first stands."""
    line, column = Source(text).place(text.index(part))
    return Finding(code, message, hint, step, step_id, pointer, line, column, len(part))


def report(*findings: Finding, text: str | None = TEXT, parsed_plan: list[object] | None = None) -> Report:
    """A report of findings, each where its severity belongs."""
    errors = tuple(each for each in findings if CODES[each.code].severity is Severity.ERROR)
    warnings = tuple(each for each in findings if CODES[each.code].severity is Severity.WARNING)
    source = None if text is None else Source(text)
    return Report(errors, warnings, None, parsed_plan or [], source)


def numbered(code: str, count: int) -> list[Finding]:
    """So many findings of one code, each at its own place."""
    return [Finding(code, f"problem {number}", "", pointer=f"/{number}") for number in range(count)]


COMMENT = at("comment", "// for Monday", "a comment was ignored", "send the plan without comments")
TOOL = at(
    "unknown_tool",
    '"serch"',
    "no tool is named 'serch'",
    "did you mean search?",
    step=0,
    step_id="fetch",
    pointer="/steps/0/name",
)
NAN = at(
    "not_a_number",
    "NaN",
    "NaN is no JSON",
    "write a number or null",
    step=0,
    step_id="fetch",
    pointer="/steps/0/inputs/limit",
)
REFERENCE = at(
    "unknown_reference",
    "${nope.output}",
    "no step has the id 'nope'",
    "refer to one of fetch, sum",
    step=1,
    step_id="sum",
    pointer="/steps/1/inputs/text",
)
FIELD = at(
    "unknown_field",
    '"priority"',
    "a step has no field 'priority'",
    "remove it",
    step=1,
    step_id="sum",
    pointer="/steps/1/priority",
)
ITSELF = at(
    "self_dependency",
    '"sum"]',
    "the step depends on itself",
    "remove 'sum' from its depends_on",
    step=1,
    step_id="sum",
    pointer="/steps/1/depends_on/0",
)

ONE_OF_EACH = (TOOL, NAN, REFERENCE, FIELD, ITSELF)
"""One error of each category, in the order of the document."""

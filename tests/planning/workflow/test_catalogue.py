"""The catalogue of codes in the specs: complete, and each example gives what it says."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from planning.tools import Tool
from planning.workflow import Capabilities, Workflow, validate_workflow
from planning.workflow.codes import CODES

SPEC = (Path(__file__).parents[3] / "specs" / "WORKFLOWS.md").read_text(encoding="utf-8")
ENTRY = re.compile(
    r"^#### `(?P<code>\w+)` \((?P<severity>\w+)\)\n\n(?P<meaning>[^\n]+)\n\n"
    r"(?P<fence>`{3,})(?P<kind>\w+)(?: times=(?P<times>\d+))? wrong\n(?P<wrong>.*?)\n(?P=fence)\n\n"
    r"```(?P<right_kind>\w+) right\n(?P<right>.*?)\n```$",
    re.DOTALL | re.MULTILINE,
)


class Example(NamedTuple):
    wrong: object
    right: object


def fetch(url: str, pages: int = 1) -> str:
    return url * pages


CAPABILITIES = Capabilities(
    tools=["search", Tool("fetch", "Fetch pages.", fetch)], handlers=["notify"], agents=["researcher"]
)


def source(kind: str, text: str, times: str | None = None) -> object:
    if kind == "literal":
        return ast.literal_eval(text)
    return text if times is None else (text + "\n" * ("{" in text)) * int(times)


FLOOD = {"missing_field", "wrong_type"}

ENTRIES = list(ENTRY.finditer(SPEC))
EXAMPLES = {
    entry["code"]: Example(
        source(entry["kind"], entry["wrong"], entry["times"]), source(entry["right_kind"], entry["right"])
    )
    for entry in ENTRIES
}


def test_the_catalogue_is_the_table_of_the_code() -> None:
    said = [(entry["code"], entry["severity"], entry["meaning"]) for entry in ENTRIES]
    assert said == [(code, kind.severity, kind.meaning) for code, kind in CODES.items()]


@pytest.mark.parametrize("code", CODES)
def test_the_wrong_example_gives_its_code_and_no_other_of_its_severity(code: str) -> None:
    report = validate_workflow(EXAMPLES[code].wrong, CAPABILITIES)
    findings = (*report.errors, *report.warnings)
    alike = [each.code for each in findings if each.severity == CODES[code].severity]
    assert set(alike) == {code} | (FLOOD if code == "too_many_errors" else set())
    assert report.ok == (CODES[code].severity == "warning")


@pytest.mark.parametrize("code", CODES)
def test_the_right_example_gives_nothing(code: str) -> None:
    report = validate_workflow(EXAMPLES[code].right, CAPABILITIES)
    assert (report.errors, report.warnings) == ((), ())
    assert isinstance(report.workflow, Workflow)

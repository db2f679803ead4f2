"""The catalogue of codes: complete in the specs, and each code has an example."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from planning.tools import Tool
from planning.workflow import Capabilities, Workflow, validate_workflow
from planning.workflow.codes import CODES, Category

SPEC = (Path(__file__).parents[3] / "specs" / "WORKFLOWS.md").read_text(encoding="utf-8")
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


def table(category: Category) -> str:
    lines = [f"### {category.upper() if category == Category.JSON else category.capitalize()}", ""]
    lines += ["| code | severity | meaning |", "|---|---|---|"]
    lines += [
        f"| `{code}` | {kind.severity} | {kind.meaning} |"
        for code, kind in CODES.items()
        if kind.category == category
    ]
    return "\n".join([*lines, ""])


def test_the_catalogue_in_the_specs_is_the_table_of_the_code() -> None:
    written = SPEC.partition("## Catalogue")[2].partition("### ")[2]
    assert f"### {written}" == "\n".join(map(table, Category))


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

"""The pages say what the table of the entry points has: lines, characters, and what cannot be done."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from frameworks import PROMISES, TABLE, EntryPoint

from session import Session

SPECS = Path(__file__).parents[3] / "specs"
FRAMEWORKS = (SPECS / "FRAMEWORKS.md").read_text()
of_each = pytest.mark.parametrize("entry", TABLE, ids=[each.name for each in TABLE])


@of_each
def test_what_an_entry_point_cannot_do_is_on_its_page(entry: EntryPoint) -> None:
    page = " ".join((SPECS / entry.page).read_text().split())
    assert {*entry.cannot} <= {*PROMISES}
    assert [reason for reason in entry.cannot.values() if reason not in page] == []


@of_each
def test_the_page_of_frameworks_has_the_row_of_an_entry_point(entry: EntryPoint) -> None:
    (request,) = entry.play(Session(), []).requests
    about = [
        {"name": name, "description": text, "parameters": schema}
        for name, (text, schema) in request.tools.items()
    ]
    added = json.dumps({"system": request.system, "tools": about}, separators=(",", ":"))
    lines = len(example_of(entry.page))
    cannot = f"{', '.join(entry.cannot)} |".lstrip()
    link = f"[{entry.page.removesuffix('.md')}]({entry.page})"
    assert f"| `{entry.name}` | {link} | {lines} | {len(added):,} | {cannot}" in FRAMEWORKS.splitlines()


def test_the_page_of_frameworks_has_the_promises() -> None:
    rows = "".join(f"| {name} | {sentence} |\n" for name, sentence in PROMISES.items())
    assert rows in FRAMEWORKS


def test_the_readme_has_the_lines_of_the_page_of_frameworks() -> None:
    readme = (SPECS.parent / "README.md").read_text()
    rows = re.findall(r"^\| \[.*\]\(specs/(\w+\.md)\) \| (.*) \| (\d+)\b.* \|.*\|$", readme, re.MULTILINE)
    rows = [row for row in rows if row[0] != "CLAUDE_CODE.md"]  # a line for a shell
    assert {page for page, _, _ in rows} == {entry.page for entry in TABLE} - {"OPENAI.md"}  # with anthropic
    for page, written, lines in rows:
        example = example_of(page)
        assert int(lines) == len(example)
        calls = re.findall(r"^`(\w+\(.*?\))`", written)
        assert [call for call in calls if not any(line.endswith(call) for line in example)] == []


def example_of(page: str) -> list[str]:
    """The lines of the example of a framework's page."""
    section = FRAMEWORKS.partition(f"]({page})\n\n")[2]
    code = section.partition("```python\n")[2].partition("```\n")[0]
    return [line for line in code.splitlines() if line]

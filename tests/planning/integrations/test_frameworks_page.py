"""What is said of the frameworks: on the pages, and by an integration whose framework is missing."""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from frameworks import COMPARED, OWN, PROMISES, TABLE, EntryPoint

from session import Session

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "frameworks"
of_each = pytest.mark.parametrize("entry", TABLE, ids=[each.name for each in TABLE])


@of_each
def test_what_an_entry_point_cannot_do_is_on_its_page(entry: EntryPoint) -> None:
    page = " ".join((PAGES / entry.page).read_text().split())
    assert {*entry.cannot} <= {*PROMISES}
    assert [reason for reason in entry.cannot.values() if reason not in page] == []


@of_each
def test_the_comparison_has_an_entry_point_with_its_characters_and_its_limits(entry: EntryPoint) -> None:
    (request,) = entry.play(Session(), []).requests
    about = [
        {"name": name, "description": text, "parameters": schema}
        for name, (text, schema) in request.tools.items()
    ]
    added = json.dumps(
        {"system": request.system.removeprefix(f"{OWN}\n\n"), "tools": about}, separators=(",", ":")
    )
    rows = re.findall(r"^\| \[.+\]\((.+)\) \| (.*`.*) \| ([\d,]+) \| (.*?) ?\|$", COMPARED, re.MULTILINE)
    (row,) = [row for row in rows if f"`{entry.name}`" in row[1].split(", ")]
    assert row == (entry.page, row[1], f"{len(added):,}", ", ".join(entry.cannot))


@pytest.mark.parametrize(
    ("module", "blocked", "what", "package", "extra"),
    [
        ("langchain", "langchain", "planning in LangChain's agents", "langchain", "langchain"),
        ("pydantic_ai", "pydantic_ai", "planning in Pydantic AI's agents", "pydantic-ai", "pydantic-ai"),
        ("openai_agents", "agents", "planning in the OpenAI Agents SDK", "openai-agents", "openai-agents"),
        ("google_adk", "google.adk", "planning in Google ADK's agents", "google-adk", "google-adk"),
        ("opentelemetry", "opentelemetry", "telemetry", "opentelemetry-api", "opentelemetry"),
    ],
)
def test_a_missing_framework_is_named_with_what_installs_it(
    module: str, blocked: str, what: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (blocked, *(each for each in sys.modules if each.startswith(f"{blocked}."))):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"planning.integrations.{module}", raising=False)
    with pytest.raises(ImportError) as caught:
        import_module(f"planning.integrations.{module}")
    assert str(caught.value) == f"{what} needs {package}: pip install 'session-planning[{extra}]'"

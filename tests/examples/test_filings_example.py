"""The example with company facts: its file, its tool, its plan, and what the program prints."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_runs import run
from examples.filings.facts import create_database
from examples.filings.tools import agents, filings_tools, handlers
from syrupy.assertion import SnapshotAssertion

from planning.tools import Toolbox, ToolResult
from planning.tools.ledger import tool_calls
from planning.workflow import Capabilities, Workflow, run_workflow, validate_workflow
from session import Session

ROOT = Path(__file__).parents[2]
FILINGS = ROOT / "examples" / "filings"
PLAN = FILINGS / "workflow.json"
YEAR_2022 = {"start_date": "2022-01-01", "end_date": "2022-12-31"}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "filings.db"
    create_database(path)
    return path


@pytest.fixture
def capabilities(database: Path) -> Capabilities:
    return Capabilities(filings_tools(database), handlers, agents)


def ask(database: Path, query_type: str, **parameters: Any) -> ToolResult:
    arguments = {"query_type": query_type, "parameters": parameters}
    return Toolbox(filings_tools(database)).call("sec_financial_data", arguments)


def run_program(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the program in a folder, which is also where temporary files go."""
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *(arguments or [str(FILINGS / "answer.py")])]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_facts_come_in_the_envelope_of_a_query_by_metric_and_year(database: Path) -> None:
    result = ask(database, "financial_facts", ticker="aapl", metrics=["Revenue"], **YEAR_2022)
    assert result.value == {
        "query_type": "financial_facts",
        "parameters": {"ticker": "aapl", "metrics": ["Revenue"], **YEAR_2022, "filing_type": None},
        "results": [
            {
                "metric": "Revenue",
                "fiscal_year": 2022,
                "period_end": "2022-09-24",
                "usd_millions": 394_328,
                "form": "10-K",
            }
        ],
        "output_key": "sec_financial_data",
        "success": True,
        "data": {"Revenue": {"2022": 394_328}},
    }


@pytest.mark.parametrize(
    ("query_type", "parameters", "code", "message"),
    [
        (
            "company_info",
            {"ticker": "IBM"},
            "data_not_found",
            "no company has the ticker IBM; known are AAPL, AMZN, GOOGL, META, MSFT",
        ),
        (
            "financial_facts",
            {"ticker": "AMZN", "metrics": ["Revenue", "ResearchAndDevelopment"], **YEAR_2022},
            "data_not_found",
            "Amazon.com, Inc. reported no ResearchAndDevelopment from 2022-01-01 to 2022-12-31",
        ),
        (
            "financial_facts",
            {"ticker": "AAPL", "metrics": ["Profit"], "start_date": "2022-1-1", "end_date": "2022-12-31"},
            "parameter",
            "Refused, nothing changed. 2 problems:\n"
            "- parameters.metrics[0]: 'Profit' is unknown; "
            "send one of Revenue, NetIncome, ResearchAndDevelopment\n"
            "- parameters.start_date: '2022-1-1' is not a date; write YYYY-MM-DD, such as 2022-12-31",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused_with_what_can(
    database: Path, query_type: str, parameters: Mapping[str, Any], code: str, message: str
) -> None:
    result = ask(database, query_type, **parameters)
    assert (result.success, result.code, result.message) == (False, code, message)


@pytest.fixture
def workflow(capabilities: Capabilities) -> Workflow:
    workflow = validate_workflow(PLAN.read_bytes(), capabilities).workflow
    assert workflow is not None
    return workflow


def test_the_second_run_fetches_only_what_the_memory_lacks(
    workflow: Workflow, capabilities: Capabilities, session: Session
) -> None:
    first = run_workflow(workflow, capabilities, session=session, user_prompt="How much?")
    called = len(tool_calls(session, tool="sec_financial_data"))
    second = run_workflow(workflow, capabilities, session=session, user_prompt="How much?")
    again = len(tool_calls(session, tool="sec_financial_data")) - called
    assert (first.status, called, second.status, again) == ("completed", 7, "completed", 1)
    assert first.outputs["answer"] == second.outputs["answer"]
    assert first.outputs["answer"]["question"] == "How much?"
    assert (first.warnings, second.warnings) == ((), ())


def test_the_program_answers_and_leaves_nothing_behind(snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    beside = sorted(FILINGS.iterdir())
    done = run_program(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == snapshot
    assert (list(tmp_path.iterdir()), sorted(FILINGS.iterdir())) == ([], beside)


def test_the_command_in_the_readme_runs_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = (FILINGS / "README.md").read_text().partition("    planning ")[2]
    monkeypatch.chdir(ROOT)
    words = shlex.split(block.replace("\\\n", " "))
    shown = run(*words, "--json", "--store", str(tmp_path / "runs.db"))
    assert shown.startswith("exit code 0\n--- stdout\n")
    told = json.loads(shown.partition("--- stdout\n")[2])
    assert (told["status"], list(told["errors"])) == ("completed", ["amazon"])
    assert told["outputs"]["answer"]["question"] == "How much did Apple spend on research?"

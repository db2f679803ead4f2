"""``planning new``: the workflow that it writes is valid at once, and it says what to fill in."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from cli_runs import refused, run
from syrupy.assertion import SnapshotAssertion

APP = '''\
from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from planning.tools import tool


@tool
def search(query: str, limit: int = 5) -> dict:
    """Search the web.

    It takes a while.
    """
    return {"url": f"https://example.org/{query}"}


@tool
def odd(
    ids: list[int],
    side: Literal["left", "right"],
    day: Annotated[date, Field(examples=["2026-01-31"])],
    word: Annotated[str, Field(pattern="^x+$")],
    is_sure: bool,
) -> str:
    return "odd"


@tool
def now() -> str:
    """Say the time."""
    return "noon"


def shout(text: str) -> str:
    return text.upper()


def write(task: str) -> str:
    return f"did: {task}"


tools = [search, odd, now]
simple = [now]
handlers = {"shout": shout, "a/b c": lambda: 3, "a b/c": lambda: 4}
agents = {"writer": write}
'''
ALL = "--tools my_app:tools --handlers my_app:handlers --agents my_app:agents"


@pytest.fixture(autouse=True)
def app(folder: Path) -> None:
    """A module of tools in the folder."""
    (folder / "my_app.py").write_text(APP)


def ran(line: str) -> str:
    """What a command shows."""
    return run(*shlex.split(line))


def test_a_workflow_is_valid_and_says_what_to_fill_in(folder: Path, snapshot: SnapshotAssertion) -> None:
    shown = ran(f"new report.json {ALL}")
    assert f"{shown}\n{(folder / 'report.json').read_text()}" == snapshot
    assert ran(f"validate report.json {ALL}") == "exit code 0\n--- stdout\nreport.json: valid, 7 steps\n"


@pytest.mark.parametrize(
    "options",
    ["", "--tools search,fetch --agents writer", "--tools my_app:tools", "--handlers my_app:handlers"],
)
def test_what_it_prints_is_what_it_writes(options: str, folder: Path) -> None:
    ran(f"new report.json {options}")
    text = (folder / "report.json").read_text()
    assert ran(f"new {options}").endswith(f"--- stdout\n{text}")
    assert ran(f"new - {options}").endswith(f"--- stdout\n{text}")
    assert ran(f"validate report.json {options}").startswith("exit code 0\n")


def test_without_arguments_to_guess_it_runs(folder: Path) -> None:
    shown = ran("new time.json --tools my_app:simple --goal 'Tell the time'")
    assert shown == (
        "exit code 0\n"
        "--- stderr\nplanning: run it: planning run time.json --tools my_app:simple\n"
        "--- stdout\nWrote time.json: 1 step.\n"
    )
    assert "== Answer ==\nnoon\n" in ran("run time.json --tools my_app:simple")


def test_what_it_says_to_run_runs() -> None:
    line = ran(f"new report.json {ALL}").partition("planning: run it: planning ")[2].partition("\n")[0]
    shown = ran(line.replace("TEXT", "x"))
    assert "did: Call writer" not in shown  # the made-up inputs of one tool are to be filled in first
    assert "odd failed" in shown
    line = "--tools my_app:simple --handlers my_app:handlers --agents my_app:agents"
    ran(f"new simple.json {line}")
    assert "== Answer ==\ndid: Call writer\n" in ran(f"run simple.json {line} --prompt hello")


def test_tools_whose_parameters_are_not_known_are_named() -> None:
    assert ran("new --tools search,fetch --handlers shout").partition("--- stdout")[0] == (
        "exit code 0\n--- stderr\n"
        "planning: the inputs of search, fetch are not known: add them, or name an object that holds each"
        " tool: --tools my_app:tools\n"
        "planning: the inputs of shout are not known: add them, or name an object that holds each handler:"
        " --handlers my_app:handlers\n"
    )


def test_an_example_of_a_tool_is_its_inputs() -> None:
    text = ran("new --tools examples.filings.tools:tools").partition("--- stdout\n")[2]
    steps = {step["step_id"]: step for step in json.loads(text)["steps"]}
    assert steps["sec_financial_data"]["inputs"]["query_type"] == "financial_facts"


def test_no_file_is_replaced(folder: Path) -> None:
    (folder / "report.json").write_text("mine")
    for name in ("report.json", "."):
        assert ran(f"new {name}") == refused(f"'{name}' exists already; name another file")
    assert (folder / "report.json").read_text() == "mine"
    reason = "cannot write 'none/report.json': No such file or directory"
    assert ran("new none/report.json") == refused(reason)


@pytest.mark.parametrize("command", ["validate", "graph", "run"])
@pytest.mark.parametrize("text", ["", "{}", "not a workflow", '{"steps": [{"id": 1}]}'])
def test_where_a_document_is_refused_the_schema_is_named(command: str, text: str, folder: Path) -> None:
    (folder / "bad.json").write_text(text)
    shown = ran(f"{command} bad.json")
    assert shown.startswith("exit code 1\n")
    assert shown.endswith("\n'planning schema' prints the form of a workflow, 'planning new' writes one.\n")

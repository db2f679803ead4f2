"""``planning validate``, ``new`` and ``graph``: what they print, write and draw of workflows, and refuse."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from cli_runs import in_terminal, printed, refused, run, runs
from hypothesis import given
from hypothesis import strategies as st
from run_folders import step, thought
from syrupy.assertion import SnapshotAssertion

from planning.cli.graph import graph_text
from planning.workflow import Capabilities, Workflow, WorkflowStep

PLAN = """\
```json
{
  "schema_version": 2,
  "goal": "Summarise the news",
  "steps": [
    {"step_id": "fetch", "type": "tool", "name": "serch", "description": "Get it",
     "inputs": {"query": "${user_prompt}"}, "outputs": ["text"], "depends_on": []},
    {"step_id": "sum", "type": "handler", "name": "summarise", "description": "Sum it up",
     "inputs": {"text": "${fetch.output.txt}"}, "depends_on": ["fetch", "fetsh"]}
  ]
}
```
"""
FETCH = step("search", step_id="fetch", description="Get it", inputs={"query": "${user_prompt}"})
VALID = json.dumps([FETCH], indent=2) + "\n"
APP = '''\
from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from planning.tools import Toolbox, ToolRegistry, tool


@tool
def search(query: str, limit: int = 5) -> dict:
    """Search the web.

    It takes a while.
    """
    return {"url": f"https://example.org/{query}"}


Day = Annotated[date, Field(examples=["2026-01-31"])]
Word = Annotated[str, Field(pattern="^x+$")]


@tool
def odd(ids: list[int], side: Literal["left", "right"], day: Day, word: Word, is_sure: bool) -> str:
    return "odd"


@tool
def now() -> str:
    """Say the time."""
    return "noon"


def shout(text: str) -> str:
    return text.upper()


def write(task: str) -> str:
    return f"did: {task}"


def make(limit: int = 3) -> ToolRegistry:
    """Make a registry."""
    print("made")
    return registry


def broken() -> None:
    raise RuntimeError("no\\nconnection \\x1b[31m")


class Holder:
    tools = [search]


registry = ToolRegistry([search])
toolbox = Toolbox([search])
functions = (search, "fetch")
nothing = None
number = 3
tools = [search, odd, now]
simple = [now]
handlers = {"shout": shout, "a/b c": lambda: 3, "a b/c": lambda: 4}
agents = {"writer": write}
'''
ALL = "--tools my_app:tools --handlers my_app:handlers --agents my_app:agents"
FORMATS = ["text", "json", "prompt", "github"]


@pytest.fixture(autouse=True)
def app_folder(folder: Path) -> None:
    """Plans and a module of tools in the folder."""
    (folder / "plan.json").write_text(PLAN)
    (folder / "valid.json").write_text(VALID)
    (folder / "my_app.py").write_text(APP)
    for name, plan in {"drawn": DRAWN, "begun": BEGUN}.items():
        (folder / f"{name}.json").write_text(json.dumps(plan))


@pytest.mark.parametrize("form", FORMATS)
def test_a_plan_with_errors_and_warnings_in_each_form(form: str, snapshot: SnapshotAssertion) -> None:
    known = ("--tools", "search, fetch", "--handlers", "summarise")
    shown = run("validate", "plan.json", *known, "--format", form)
    assert shown.startswith("exit code 1\n--- stdout\n")
    assert shown == snapshot


def test_a_valid_plan_is_told_in_few_words(snapshot: SnapshotAssertion) -> None:
    assert runs([f"validate valid.json --format {form}" for form in FORMATS]) == snapshot


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_module_without_a_colon_is_told_to_have_one(command: str, tmp_path: Path) -> None:
    (tmp_path / "two.json").write_text(PLAN.replace('"serch"', '"search"'))
    told = ("my_app.tools", "my_app", "./my_app.py")  # my_app.py is here
    for names in (*told, "files.list,files.read"):
        shown = run(command, "two.json", "--tools", names)
        hint = f"planning: --tools {names} is read as the name of a tool; for an object in a module, write"
        hint += f" --tools {names.replace('./', '').removesuffix('.py')}:NAME"
        hints = [line for line in shown.splitlines() if "is read as" in line]
        assert hints == ([hint] if names in told else [])
    none_unknown = run(command, "two.json", "--tools", "search,fetch", "--tools", "my_app.tools")
    assert "is read as" not in none_unknown


@pytest.mark.parametrize("form", FORMATS)
def test_no_text_acts_on_a_terminal(form: str, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "plan.json").write_text(
        VALID.replace("search", "\\u001b[2J\\n::error::x").replace("Get it", "\x1b]0;owned\x07\u202e")
    )
    shown = run("validate", "plan.json", "--tools", "search", "--format", form)
    assert shown.replace("\n", "").isprintable()
    assert shown == snapshot


def test_names_in_a_file_for_github_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "100%,a:b.json").write_text("[")
    shown = run("validate", "100%,a:b.json", "--format", "github")
    assert shown.startswith("exit code 1\n--- stdout\n::error file=100%25%2Ca%3Ab.json,line=1,col=")


SAME_TOOLS = ["search", "fetch,search,"]
SAME_TOOLS += [f"my_app:{name}" for name in ("registry", "toolbox", "functions", "make", "Holder.tools")]


@pytest.mark.parametrize("given", SAME_TOOLS)
def test_tools_are_given_as_names_or_as_an_object_in_a_module(given: str) -> None:
    options = ("--tools", given, "--format", "github")
    said = "--- stderr\nmade\n" if given == "my_app:make" else ""  # what a module prints is no report
    assert run("validate", "valid.json", *options) == f"exit code 0\n{said}"
    other = run("validate", *options, stdin=VALID.replace('"search"', '"serch"'))
    assert other.split("--- stdout\n")[1] == (
        "::error title=unknown_tool::line 6, column 13, step 1 'fetch', /0/name:"
        " no tool is named 'serch'; did you mean search?\n"
    )


def test_no_names_are_checked_of_a_kind_that_is_not_given() -> None:
    assert run("validate", "valid.json").startswith("exit code 0\n")
    assert run("validate", "valid.json", "--handlers", "a", "--agents", "b").startswith("exit code 0\n")
    assert run("validate", "valid.json", "--tools", "").startswith("exit code 1\n")


REFUSED = ["--tools my_ap:registry"]
REFUSED += [f"--tools my_app:{name}" for name in ("registri", "nothing", "number", "broken", "")]
REFUSED += ["--tools a\x1b[31m:b", "--handlers leaves:handlers", "--handlers cut:handlers"]


def test_an_object_that_cannot_be_used_is_refused(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "cut.py").write_text("def\n")
    shown = runs(REFUSED, "validate valid.json ").replace("a\x1b[31m:b", "a<ESC>[31m:b", 1)
    assert (shown.count("exit code 2\n"), "\x1b" in shown) == (len(REFUSED), False)
    assert shown == snapshot


UNCLOSED = VALID.rstrip()[:-1]


def test_a_plan_without_its_last_bracket_was_cut_unless_finished(snapshot: SnapshotAssertion) -> None:
    shown = [run("validate", "--format", "prompt", *more, stdin=UNCLOSED) for more in ([], ["--finished"])]
    assert "".join(shown) == snapshot


@pytest.mark.parametrize("line", ["validate plan.json --tools search", "graph begun.json"])
def test_a_terminal_gets_colours_and_lines_of_its_width(line: str, snapshot: SnapshotAssertion) -> None:
    assert in_terminal(80, *line.split()) == snapshot


def test_the_schema_of_given_names_allows_no_others() -> None:
    shown = run("schema", "--tools", "search,fetch", "--version", "1")
    known = Capabilities(tools=["search", "fetch"])
    assert shown == f"exit code 0\n--- stdout\n{json.dumps(known.schema(version=1), indent=2)}\n"
    assert printed("schema", "--agents", "writer") == Capabilities(agents=["writer"]).schema()
    assert run("schema", "--tools", "my_app:nothing").startswith("exit code 2\n")
    assert run("schema", "--version", "1", "--agents", "writer").startswith("exit code 2\n")


# planning new


def ran(line: str) -> str:
    """What a command shows."""
    return run(*shlex.split(line))


def test_a_workflow_is_valid_and_says_what_to_fill_in(folder: Path, snapshot: SnapshotAssertion) -> None:
    shown = ran(f"new report.json {ALL}")
    assert f"{shown}\n{(folder / 'report.json').read_text()}" == snapshot
    assert ran("new --tools search,fetch --handlers shout").partition("--- stdout")[0] == snapshot(
        name="names"
    )
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


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (ALL, "odd failed"),  # the made-up inputs of one tool are to be filled in first
        ("--tools my_app:simple --handlers my_app:handlers --agents my_app:agents", "did: Call writer\n"),
    ],
)
def test_what_it_says_to_run_runs(options: str, shown: str) -> None:
    line = ran(f"new report.json {options}").partition("planning: run it: planning ")[2].partition("\n")[0]
    assert shown in ran(line.replace("TEXT", "x"))


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
def test_where_a_document_is_refused_the_schema_is_named(command: str, folder: Path) -> None:
    (folder / "bad.json").write_text("not a workflow")
    shown = ran(f"{command} bad.json")
    assert shown.startswith("exit code 1\n")
    assert shown.endswith("\n'planning schema' prints the form of a workflow, 'planning new' writes one.\n")


# planning graph

DRAWN_STEPS = [
    step("search", step_id="find", description="Find a source"),
    {**thought("left", "find"), "description": "Read [bold]it[/] \x1b[31m", "agent": "reader"},
    step("check", "find", step_id="right", description="Check it", type="handler"),
    {**thought("tell", "left", "right", "find"), "description": "日本語 " * 12},
]
DRAWN = {"schema_version": 2, "goal": "Read [red]two[/] sources\nand say what they say", "steps": DRAWN_STEPS}
STATES = ["completed", "in_progress", "failed", "pending"]
BEGUN = {
    **DRAWN,
    "steps": [{**each, "status": state} for each, state in zip(DRAWN_STEPS, STATES, strict=True)],
}
CIRCLE = [step("a", "a")]


@pytest.mark.parametrize("form", ["tree", "mermaid"])
@pytest.mark.parametrize("name", ["drawn", "begun"])
def test_a_plan_is_drawn_in_each_form(name: str, form: str, snapshot: SnapshotAssertion) -> None:
    shown = run("graph", f"{name}.json", "--format", form)
    assert shown.startswith("exit code 0\n--- stdout\n")
    assert shown == snapshot


def test_a_pipe_gets_mermaid_when_the_form_is_left_out() -> None:
    assert run("graph", "drawn.json") == run("graph", "--format", "MERMAID", "drawn.json")


def test_a_plan_with_errors_is_not_drawn() -> None:
    told = run("validate", stdin=json.dumps(CIRCLE))
    assert told.startswith("exit code 1\n--- stdout\nerror[self_dependency]")
    assert run("graph", stdin=json.dumps(CIRCLE)) == told.replace("--- stdout", "--- stderr")


texts = st.text(max_size=30) | st.text("[/]\n\t\x1b日e\u0301\u200d\U0001f468 x", max_size=200)


@given(goal=texts, ids=st.lists(texts.filter(bool), unique=True, max_size=4), said=texts)
def test_no_text_acts_on_the_terminal_or_leaves_its_line(goal: str, ids: list[str], said: str) -> None:
    steps = [
        WorkflowStep(step_id=each, description=said, agent=said or "a", depends_on=tuple(ids[:at]))
        for at, each in enumerate(ids)
    ]
    workflow = Workflow(goal=goal, steps=tuple(steps))
    text = graph_text(workflow)
    assert text.replace("\n", "").isprintable()
    assert len(text.splitlines()) == bool(goal.strip()) + 1 + len(ids)
    colored = graph_text(workflow, color=True)
    for sgr in ("1", "2", "32", "33", "36"):
        colored = colored.replace(f"\x1b[{sgr}m", "")
    assert colored.replace("\x1b[0m", "") == text


def test_an_output_that_is_not_unicode_is_drawn_in_ascii(snapshot: SnapshotAssertion) -> None:
    shown = in_terminal(40, "graph", "drawn.json", PYTHONIOENCODING="ascii", NO_COLOR="1")
    assert shown == snapshot

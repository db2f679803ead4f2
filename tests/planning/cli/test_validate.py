"""``planning validate``: its four forms whole, its exit codes, and what it is told that exists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import in_terminal, printed, run, runs
from syrupy.assertion import SnapshotAssertion

from planning.workflow import Capabilities

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
VALID = """\
[
  {
    "step_id": "fetch",
    "description": "Get it",
    "type": "tool",
    "name": "search",
    "inputs": {"query": "${user_prompt}"},
    "depends_on": []
  }
]
"""
TOOLS = '''\
"""Tools of an app."""

from planning.tools import Tool, Toolbox, ToolRegistry


def search(query: str) -> str:
    """Search."""
    return query


def fetch(url: str) -> str:
    """Fetch."""
    return url


registry = ToolRegistry([search])
toolbox = Toolbox([search])
functions = (search, "fetch")


def make(limit: int = 3) -> ToolRegistry:
    """Make a registry."""
    print("made")
    return registry


class Holder:
    tools = registry


nothing = None
number = 3


def broken() -> None:
    raise RuntimeError("no\\nconnection \\x1b[31m")
'''
FORMATS = ["text", "json", "prompt", "github"]


@pytest.fixture(autouse=True)
def app_folder(folder: Path) -> None:
    """Plans and a module of tools in the folder."""
    (folder / "plan.json").write_text(PLAN)
    (folder / "valid.json").write_text(VALID)
    (folder / "my_tools.py").write_text(TOOLS)


@pytest.mark.parametrize("form", FORMATS)
def test_a_plan_with_errors_and_warnings_in_each_form(form: str, snapshot: SnapshotAssertion) -> None:
    known = ("--tools", "search, fetch", "--handlers", "summarise")
    shown = run("validate", "plan.json", *known, "--format", form)
    assert shown.startswith("exit code 1\n--- stdout\n")
    assert shown == snapshot


@pytest.mark.parametrize(
    ("form", "stdout"),
    [
        ("text", "--- stdout\nvalid.json: valid, 1 step\n"),
        ("prompt", "--- stdout\nThe workflow was accepted.\n"),
        ("github", ""),
    ],
)
def test_a_valid_plan_is_told_in_few_words(form: str, stdout: str) -> None:
    assert run("validate", "valid.json", "--format", form) == f"exit code 0\n{stdout}"


@pytest.mark.parametrize("command", ["validate", "run"])
@pytest.mark.parametrize(
    ("given", "mentioned"),
    [
        (["--tools", "my_app.tools"], ["--tools my_app.tools is read as the name of a tool"]),
        (["--tools", "my_tools"], ["--tools my_tools is read as the name of a tool"]),  # my_tools.py is here
        (["--tools", "./my_tools.py"], ["--tools ./my_tools.py is read as the name of a tool"]),
        (["--tools", "files.list,files.read"], []),
        (["--tools", "search,fetch", "--tools", "my_app.tools"], []),  # no tool is unknown
    ],
    ids=lambda value: " ".join(value) if value and value[0].startswith("--") else "",
)
def test_a_module_without_a_colon_is_told_to_have_one(
    command: str, given: list[str], mentioned: list[str], tmp_path: Path
) -> None:
    (tmp_path / "two.json").write_text(PLAN.replace('"serch"', '"search"'))
    shown = run(command, "two.json", *given)
    hints = [line for line in shown.splitlines() if "is read as" in line]
    assert hints == [
        f"planning: {each}; for an object in a module, write "
        f"{each.partition(' is ')[0].replace('./', '').removesuffix('.py')}:NAME"
        for each in mentioned
    ]


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
SAME_TOOLS += [f"my_tools:{name}" for name in ("registry", "toolbox", "functions", "make", "Holder.tools")]


@pytest.mark.parametrize("given", SAME_TOOLS)
def test_tools_are_given_as_names_or_as_an_object_in_a_module(given: str) -> None:
    options = ("--tools", given, "--format", "github")
    shown = run("validate", "valid.json", *options)
    assert (shown.startswith("exit code 0\n"), "--- stdout" in shown) == (True, False)
    other = run("validate", *options, stdin=VALID.replace('"search"', '"serch"'))
    assert other.split("--- stdout\n")[1] == (
        "::error title=unknown_tool::line 6, column 13, step 1 'fetch', /0/name:"
        " no tool is named 'serch'; did you mean search?\n"
    )


def test_no_names_are_checked_of_a_kind_that_is_not_given() -> None:
    assert run("validate", "valid.json").startswith("exit code 0\n")
    assert run("validate", "valid.json", "--handlers", "a", "--agents", "b").startswith("exit code 0\n")
    assert run("validate", "valid.json", "--tools", "").startswith("exit code 1\n")


def test_what_a_module_prints_is_no_part_of_the_report() -> None:
    assert run("validate", "valid.json", "--tools", "my_tools:make") == (
        "exit code 0\n--- stderr\nmade\n--- stdout\nvalid.json: valid, 1 step\n"
    )


REFUSED = [
    "--tools my_tool:registry",
    "--tools my_tools:registri",
    "--tools my_tools:nothing",
    "--tools my_tools:number",
    "--tools my_tools:broken",
    "--tools my_tools:",
    "--tools a\x1b[31m:b",
    "--handlers leaves:handlers",
    "--handlers cut:handlers",
]


def test_an_object_that_cannot_be_used_is_refused(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "cut.py").write_text("def\n")
    shown = runs(REFUSED, "validate valid.json ").replace("a\x1b[31m:b", "a<ESC>[31m:b", 1)
    assert (shown.count("exit code 2\n"), "\x1b" in shown) == (len(REFUSED), False)
    assert shown == snapshot


UNCLOSED = VALID.rstrip()[:-1]


def test_a_plan_without_its_last_bracket_was_cut_unless_the_model_ended_it() -> None:
    shown = run("validate", "--format", "prompt", stdin=UNCLOSED)
    assert shown == (
        "exit code 1\n--- stdout\n"
        "The workflow was not accepted: 1 error."
        " Send the whole corrected workflow as JSON, without any other text.\n"
        "- line 9, column 4: the text ends too early; send the whole workflow, shorter\n"
    )
    shown = run("validate", "--format", "prompt", "--finished", stdin=UNCLOSED)
    assert shown == (
        "exit code 0\n--- stdout\n"
        "The workflow was accepted, with 1 warning:\n"
        "- line 9, column 4: a missing bracket was added; check that nothing is missing, and close every"
        " bracket\n"
    )


def test_a_terminal_gets_colours_and_lines_of_its_width(snapshot: SnapshotAssertion) -> None:
    assert in_terminal(80, "validate", "plan.json", "--tools", "search") == snapshot


def test_the_schema_of_given_names_allows_no_others() -> None:
    shown = run("schema", "--tools", "search,fetch", "--version", "1")
    known = Capabilities(tools=["search", "fetch"])
    assert shown == f"exit code 0\n--- stdout\n{json.dumps(known.schema(version=1), indent=2)}\n"
    assert printed("schema", "--agents", "writer") == Capabilities(agents=["writer"]).schema()
    assert run("schema", "--tools", "my_tools:nothing").startswith("exit code 2\n")
    assert run("schema", "--version", "1", "--agents", "writer").startswith("exit code 2\n")

"""``planning graph``: what it draws for whom, and what it says of plans that it cannot draw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runs import in_terminal, run
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from planning.cli.graph import tree_text
from planning.workflow import Workflow, WorkflowStep

STEPS: list[dict[str, Any]] = [
    {"step_id": "find", "description": "Find a source", "type": "tool", "name": "search", "inputs": {}},
    {
        "step_id": "left",
        "description": "Read [bold]it[/] \x1b[31m",
        "agent": "reader",
        "depends_on": ["find"],
    },
    {
        "step_id": "right",
        "description": "Check it",
        "type": "handler",
        "name": "check",
        "depends_on": ["find"],
    },
    {"step_id": "tell", "description": "日本語 " * 12, "depends_on": ["left", "right", "find"]},
]
PLAN = {"schema_version": 2, "goal": "Read [red]two[/] sources\nand say what they say", "steps": STEPS}
STATES = ["completed", "in_progress", "failed", "pending"]
BEGUN = {**PLAN, "steps": [{**each, "status": state} for each, state in zip(STEPS, STATES, strict=True)]}
CIRCLE = [
    {"step_id": "a", "description": "d", "type": "tool", "name": "t", "inputs": {}, "depends_on": ["a"]}
]
WORKFLOW = Workflow(
    goal="Compare the revenue of two companies over five years and say which one grew faster, and why",
    steps=(
        WorkflowStep(
            step_id="find_companies",
            description="Find the two companies that the question is about",
            type="tool",
            name="search_companies",
            status="completed",
        ),
        *(
            WorkflowStep(
                step_id=f"facts_{name}",
                description=f"Collect the yearly facts of company {name}",
                type="tool",
                name="fetch_company_facts",
                depends_on=("find_companies",),
                status="completed",
                skipped=name == "b",
            )
            for name in "abcdef"
        ),
        WorkflowStep(
            step_id="compare",
            description="日本語" * 30,
            agent="analyst",
            depends_on=tuple(f"facts_{name}" for name in "abcdef"),
            status="failed",
        ),
        WorkflowStep(step_id="say", description="Say it\tin\none line", depends_on=("compare",)),
        WorkflowStep(step_id="more" * 30, description="", depends_on=("compare", "find_companies")),
    ),
)


@pytest.fixture(autouse=True)
def plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder with plans."""
    monkeypatch.chdir(tmp_path)
    for name, plan in {"plan": PLAN, "begun": BEGUN, "circle": CIRCLE}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(plan))


@pytest.mark.parametrize("form", ["tree", "mermaid"])
@pytest.mark.parametrize("name", ["plan", "begun"])
def test_a_plan_is_drawn_in_each_form(name: str, form: str, snapshot: SnapshotAssertion) -> None:
    shown = run("graph", f"{name}.json", "--format", form)
    assert shown.startswith("exit code 0\n--- stdout\n")
    assert shown == snapshot


def test_a_pipe_gets_mermaid_when_the_form_is_left_out() -> None:
    assert run("graph", "plan.json") == run("graph", "--format", "MERMAID", "plan.json")


@pytest.mark.parametrize("path", [["circle.json"], []], ids=["a file", "standard input"])
def test_a_plan_with_errors_is_not_drawn(path: list[str]) -> None:
    stdin = None if path else json.dumps(CIRCLE)
    told = run("validate", *path, stdin=stdin)
    assert told.startswith("exit code 1\n--- stdout\nerror[self_dependency]")
    assert run("graph", *path, stdin=stdin) == told.replace("--- stdout", "--- stderr")


def test_a_chart_that_mermaid_would_refuse_is_told_beside_it() -> None:
    steps = [{"step_id": f"s{n}", "description": "d", "depends_on": ["s0"] if n else []} for n in range(502)]
    told = run("graph", stdin=json.dumps({**PLAN, "steps": steps}))
    assert told.startswith(
        "exit code 0\n--- stderr\n"
        "planning: the chart has 501 edges and 26,777 characters; by default Mermaid draws 500 and 50,000,"
        " so raise its maxEdges and maxTextSize\n"
        "--- stdout\nflowchart TD\n"
    )
    fewer = json.dumps({**PLAN, "steps": steps[:501]})
    assert "--- stderr" not in run("graph", stdin=fewer)
    assert "--- stderr" not in run("graph", "--format", "tree", stdin=json.dumps({**PLAN, "steps": steps}))


@pytest.mark.parametrize("width", [None, 80, 40, 24])
def test_a_tree_is_cut_to_the_terminal(width: int | None, snapshot: SnapshotAssertion) -> None:
    text = tree_text(WORKFLOW, width=width)
    assert max(map(cell_len, text.split("\n"))) <= (width or 1000)
    assert text == snapshot


def test_a_tree_in_ascii(snapshot: SnapshotAssertion) -> None:
    text = tree_text(WORKFLOW, ascii_only=True)
    assert text.replace("日本語", "").isascii()
    assert text == snapshot


@pytest.mark.parametrize("count", [0, 1])
def test_a_plan_of_few_steps_is_counted(count: int) -> None:
    workflow = Workflow(steps=(WorkflowStep(step_id="a", description=""),)[:count])
    assert tree_text(workflow) == ["0 steps\n", "1 step\n\n  ○ a · thinking\n"][count]


texts = st.text(max_size=30) | st.text("[/]\n\t\x1b日e\u0301\u200d\U0001f468 x", max_size=200)


@settings(max_examples=50)
@given(
    goal=texts,
    ids=st.lists(texts.filter(bool), unique=True, max_size=4),
    said=texts,
    width=st.integers(1, 60),
)
def test_nothing_in_a_plan_acts_on_the_terminal_or_leaves_its_line(
    goal: str, ids: list[str], said: str, width: int
) -> None:
    steps = [
        WorkflowStep(step_id=each, description=said, agent=said or "a", depends_on=tuple(ids[:at]))
        for at, each in enumerate(ids)
    ]
    workflow = Workflow(goal=goal, steps=tuple(steps))
    for text in (tree_text(workflow, width=width), tree_text(workflow)):
        assert text.replace("\n", "").isprintable()
    head = text.split("\n\n")[0] if ids else text
    assert len(text.splitlines()) == len(head.splitlines()) + (1 + len(ids) if ids else 0)
    lines = tree_text(workflow, width=width).split("\n")
    assert max(map(cell_len, lines)) <= max(width, 20)
    colored = tree_text(workflow, width=width, color=True)
    for sgr in ("1", "2", "32", "33", "36"):
        colored = colored.replace(f"\x1b[{sgr}m", "")
    assert colored.replace("\x1b[0m", "") == "\n".join(lines)


@pytest.mark.parametrize("width", [20, 40, 80])
def test_every_dependency_and_every_name_is_shown_whole_however_narrow_the_terminal(width: int) -> None:
    ids = [f"step_with_a_long_id_{number:02d}" for number in range(30)]
    first = [WorkflowStep(step_id=each, description="d") for each in ids]
    name = "a_tool_whose_name_is_as_long_as_any_may_be_" + "x" * 20
    last = WorkflowStep(step_id="last", description="d" * 500, type="tool", name=name, depends_on=tuple(ids))
    text = tree_text(Workflow(steps=(*first, last)), width=width)
    end = "".join(line.strip() for line in text.split("last")[1].split("\n"))
    assert name in end
    assert all(each in end.replace(" ", "") for each in ids[:-1])


@pytest.mark.parametrize("columns", [80, 40])
def test_a_terminal_gets_a_tree_in_colours_and_of_its_width(
    columns: int, snapshot: SnapshotAssertion
) -> None:
    assert in_terminal(columns, "graph", "begun.json") == snapshot


@pytest.mark.parametrize(
    "environment",
    [{"NO_COLOR": "1", "FORCE_COLOR": "1"}, {"TERM": "dumb"}],
    ids=["NO_COLOR", "a dumb terminal"],
)
def test_a_terminal_that_wants_no_colours_gets_a_plain_tree(environment: dict[str, str]) -> None:
    assert in_terminal(200, "graph", "plan.json", **environment) == (
        run("graph", "plan.json", "--format", "tree").removeprefix("exit code 0\n--- stdout\n")
    )


def test_an_output_that_is_not_unicode_is_drawn_in_ascii(snapshot: SnapshotAssertion) -> None:
    shown = in_terminal(40, "graph", "plan.json", PYTHONIOENCODING="ascii", NO_COLOR="1")
    assert shown == snapshot


def test_a_terminal_gets_errors_in_colours_and_mermaid_when_asked() -> None:
    assert in_terminal(80, "graph", "circle.json").startswith("<ESC>[1;31merror[self_dependency]<ESC>[0m")
    shown = in_terminal(40, "graph", "plan.json", "--format", "mermaid")
    assert f"exit code 0\n--- stdout\n{shown}" == run("graph", "plan.json")

"""``planning graph``: what it draws for whom, and what it says of plans that it cannot draw."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import in_terminal, run
from hypothesis import given
from hypothesis import strategies as st
from run_folders import step, thought
from syrupy.assertion import SnapshotAssertion

from planning.cli.graph import graph_text
from planning.workflow import Workflow, WorkflowStep

STEPS = [
    step("search", step_id="find", description="Find a source"),
    {**thought("left", "find"), "description": "Read [bold]it[/] \x1b[31m", "agent": "reader"},
    step("check", "find", step_id="right", description="Check it", type="handler"),
    {**thought("tell", "left", "right", "find"), "description": "日本語 " * 12},
]
PLAN = {"schema_version": 2, "goal": "Read [red]two[/] sources\nand say what they say", "steps": STEPS}
STATES = ["completed", "in_progress", "failed", "pending"]
BEGUN = {**PLAN, "steps": [{**each, "status": state} for each, state in zip(STEPS, STATES, strict=True)]}
CIRCLE = [step("a", "a")]


@pytest.fixture(autouse=True)
def plans(folder: Path) -> None:
    """Plans in the folder."""
    for name, plan in {"plan": PLAN, "begun": BEGUN, "circle": CIRCLE}.items():
        (folder / f"{name}.json").write_text(json.dumps(plan))


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


def test_a_chain_of_ten_thousand_steps_is_drawn() -> None:
    steps = [
        WorkflowStep(step_id=str(n), description="", depends_on=(str(n - 1),) if n else ())
        for n in range(10_000)
    ]
    lines = graph_text(Workflow(steps=tuple(steps))).splitlines()
    assert (len(lines), max(map(len, lines))) == (10_001, 70)


def test_a_terminal_gets_a_tree_in_colours(snapshot: SnapshotAssertion) -> None:
    assert in_terminal(80, "graph", "begun.json") == snapshot


def test_an_output_that_is_not_unicode_is_drawn_in_ascii(snapshot: SnapshotAssertion) -> None:
    shown = in_terminal(40, "graph", "plan.json", PYTHONIOENCODING="ascii", NO_COLOR="1")
    assert shown == snapshot


def test_a_terminal_gets_errors_in_colours_and_mermaid_when_asked() -> None:
    assert in_terminal(80, "graph", "circle.json").startswith("<ESC>[1;31merror[self_dependency]<ESC>[0m")
    shown = in_terminal(40, "graph", "plan.json", "--format", "mermaid")
    assert f"exit code 0\n--- stdout\n{shown}" == run("graph", "plan.json")

"""What tests of others build on: the strategies, the laws, and the snapshot files of ``planning.testing``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning import Plan, PlanningToolsSection, PlanStep, Toolbox
from planning.plan.commands import AddStep, Command, MarkStep, SetupPlan
from planning.suite.tools import planning_tools
from planning.testing import check_plan_laws
from planning.testing.strategies import any_plans, commands, histories, plans
from session import Session, select_latest

TOOLS = {tool.parameters: tool.name for tool in planning_tools(Session())}


@settings(max_examples=30)
@given(histories(), plans())
def test_the_commands_of_a_history_make_its_plans_in_a_session_and_plans_keep_the_laws(
    history: tuple[tuple[Command, Plan], ...], plan_of_another: Plan
) -> None:
    check_plan_laws(plan_of_another)
    session = Session()
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    for command, plan in history:
        assert toolbox.invoke(TOOLS[type(command)], command).success
        assert select_latest(session, Plan) == plan
    assert session.version == len(history)
    check_plan_laws(session)


@settings(max_examples=30)
@given(st.data())
def test_a_session_keeps_the_laws_whatever_it_is_asked(data: st.DataObject) -> None:
    session = Session(history=5)
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    for _ in range(data.draw(st.integers(0, 8))):
        command = data.draw(commands(select_latest(session, Plan)))
        toolbox.call(TOOLS[type(command)], asdict(command))
    if session.version > 2:
        session.rewind(session.version - 2)
    check_plan_laws(session)
    check_plan_laws(session.snapshot())
    check_plan_laws(session.at(session.version))


@settings(max_examples=10)
@given(any_plans().filter(lambda plan: plan.steps))
def test_any_plan_may_be_one_that_no_command_leads_to(plan: Plan) -> None:
    with pytest.raises(AssertionError, match="an abandoned plan has steps"):
        check_plan_laws(replace(plan, status="abandoned"))


ONE = PlanStep("S001", "Reproduce it", None, "done")
OPEN = replace(ONE, status="open")  # type: ignore[arg-type]  # what a law is about
FINE = Plan("Fix it", "completed", (ONE,))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (replace(FINE, status="active"), "every step is done, and the plan is not completed"),
        (replace(FINE, status="abandoned"), "an abandoned plan has steps"),
        (replace(FINE, status="over"), "unknown status 'over'"),  # type: ignore[arg-type]  # what the law is about
        (replace(FINE, steps=(OPEN,)), "unknown status of a step among ['open']"),
        (replace(FINE, steps=(ONE, ONE)), "steps[1].step_id: S001 appears twice"),
        (replace(FINE, objective=" "), "objective: blank; send 1 to 240 characters"),
    ],
)
def test_the_message_names_the_law_and_the_plan(plan: Plan, message: str) -> None:
    check_plan_laws(FINE)
    check_plan_laws(None)
    with pytest.raises(AssertionError) as caught:
        check_plan_laws(plan)
    assert str(caught.value) == f"{message}: {plan!r}"


def test_a_session_whose_reducer_breaks_a_law_is_found() -> None:
    session = Session()
    PlanningToolsSection(session=session)

    def abandon(plans: tuple[Plan, ...], _command: object) -> tuple[Plan, ...]:
        return (replace(plans[-1], status="abandoned"),)

    session.register_reducer(MarkStep, abandon, Plan)
    session.dispatch(SetupPlan("Fix it", ()))
    session.dispatch(AddStep(()))
    check_plan_laws(session)
    session.rollback(attrs.evolve(session.snapshot(), slices={Plan: (FINE,)}))
    session.dispatch(MarkStep("S001", "done"))
    with pytest.raises(AssertionError) as caught:
        check_plan_laws(session)
    broken = replace(FINE, status="abandoned")
    assert str(caught.value) == f"an abandoned plan has steps: {broken!r}"


@pytest.mark.parametrize(
    ("module", "library", "message"),
    [
        ("strategies", "hypothesis", "the strategies need hypothesis"),
        ("snapshots", "syrupy.extensions.single_file", "snapshots need syrupy"),
    ],
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    module: str, library: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"planning.testing.{module}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError) as caught:
        import_module(f"planning.testing.{module}")
    assert str(caught.value) == f"{message}: pip install 'session-planning[testing]'"


# The snapshot extensions, in a repository of their own

TEST = """
import pytest
from planning import Plan, PlanStep, PlanningStrategy, PlanningToolsSection, tool_definitions
from planning.prompt import Prompt
from planning.testing import JsonFiles, MarkdownFiles, TextFiles
from session import Session

PLAN = Plan("Fix it", "active", (PlanStep("S001", "Find it", None, "done", ("Here",)),))

def test_copy(snapshot):
    section = PlanningToolsSection(session=Session())
    assert Prompt(ns="n", key="k", sections=[section]).render().text == snapshot.use_extension(MarkdownFiles)

def test_definitions(snapshot):
    assert tool_definitions("anthropic") == snapshot.use_extension(JsonFiles)

def test_plan(snapshot):
    assert PLAN == snapshot.use_extension(MarkdownFiles)
    assert PLAN == snapshot.use_extension(JsonFiles)

def test_text(snapshot):
    assert "as it is" == snapshot.use_extension(TextFiles)
"""


LAYOUTS = ("tests/unit/test_prompts.py", "checks/test_models.py", "test_root.py")


def run_tests(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "syrupy", *options]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    alone["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    done = subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True, check=False)
    return done.stdout


@pytest.mark.slow
def test_each_snapshot_is_a_readable_file_that_mirrors_its_test(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    for layout in LAYOUTS:
        (tmp_path / layout).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / layout).write_text(TEST)
    assert "15 snapshots generated" in run_tests(tmp_path, "--snapshot-update")
    for layout in LAYOUTS:
        folder = tmp_path / "snapshots" / Path(layout.removeprefix("tests/")).with_suffix("")
        names = "test_copy.md test_definitions.json test_plan.json test_plan.md test_text.txt"
        assert sorted(path.name for path in folder.iterdir()) == names.split()
        assert (folder / "test_copy.md").read_text().startswith("## 1. Planning\n")
        assert (folder / "test_plan.md").read_text() == (
            "Fix it (active, 1 of 1 done)\nS001 done: Find it\n  - Here\n"
        )
        assert (folder / "test_text.txt").read_text() == "as it is"
        assert json.loads((folder / "test_plan.json").read_text())["total"] == 1
    (tmp_path / "snapshots/unit/test_prompts/test_copy.md").write_text("other copy\n")
    assert "1 snapshot failed. 14 snapshots passed" in run_tests(tmp_path)

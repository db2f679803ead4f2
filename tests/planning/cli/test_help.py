"""``planning prompt``, ``tools`` and ``schema``; the help of all commands, wrong usage, the version."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from typing import Any, get_args

import pytest
from cli_runs import run
from syrupy.assertion import SnapshotAssertion

from planning import PlanningStrategy, PlanningToolsSection
from planning.definitions import DefinitionFormat, tool_definitions
from planning.prompt import Prompt
from session import Session

STRATEGIES = {
    "react": PlanningStrategy.REACT,
    "par": PlanningStrategy.PLAN_ACT_REFLECT,
    "gdrs": PlanningStrategy.GOAL_DECOMPOSE_ROUTE_SYNTHESISE,
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_prompt_is_printed_as_a_prompt_renders_it(name: str) -> None:
    section = PlanningToolsSection(session=Session(), strategy=STRATEGIES[name])
    text = Prompt(ns="n", key="k", sections=[section]).render().text
    assert run("prompt", "--strategy", name) == f"exit code 0\n--- stdout\n{text}\n"


@pytest.mark.parametrize("name", get_args(DefinitionFormat))
@pytest.mark.parametrize("strict", [(), ("--strict",)])
def test_the_tools_are_printed_as_the_function_defines_them(name: Any, strict: tuple[str, ...]) -> None:
    defined = json.dumps(tool_definitions(name, strict=bool(strict)), indent=2)
    assert run("tools", "--format", name, *strict) == f"exit code 0\n--- stdout\n{defined}\n"


def test_the_version_is_the_distributions() -> None:
    assert run("--version") == f"exit code 0\n--- stdout\nplanning {version('session-planning')}\n"


STORES = ["sessions", "history", "watch", "diff", "rewind", "fork", "verify"]
NAMES = [
    "validate", "graph", "run", "show", *STORES, "ask", "replay", "mcp", "schema", "prompt", "tools", "help",
]  # fmt: skip


@pytest.mark.parametrize("command", ["--help", *(f"{name} --help" for name in NAMES)])
def test_help_says_how_each_command_is_used(command: str, snapshot: SnapshotAssertion) -> None:
    shown = run(*command.split())
    assert max(map(len, shown.splitlines())) <= 80
    assert shown == snapshot


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_can_be_asked_for_in_three_ways(name: str) -> None:
    assert run(name, "--help") == run(name, "-h") == run("help", name)


def test_the_help_of_all_commands_can_be_asked_for_in_four_ways() -> None:
    shown = run("--help")
    assert (run("-h"), run("help")) == (shown, shown)
    no_arguments = shown.replace("exit code 0\n--- stdout", "exit code 2\n--- stderr")
    assert run() == no_arguments


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_commands(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_PLANNING_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", "planning re")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "planning re")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    shown = run()
    assert ("replay" in shown, "validate" in shown) == (True, False)


@pytest.mark.parametrize("module", ["planning", "planning.cli"])
def test_the_package_is_the_command(module: str) -> None:
    command = [sys.executable, "-m", module, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"planning {version('session-planning')}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        "plan",
        "--loud",
        "tools a",
        "prompt --strategy tot",
        "tools --format yaml",
        "schema --version 3",
        "validate --format xml plan.json",
        "graph --format svg plan.json",
        "replay --delay -1",
        "replay --delay soon",
        "replay --delay 61",
        "replay --jsn",
        "replai",
        "help replai",
        "run --max-parallel 1.5",
    ],
)
def test_wrong_usage_is_exit_code_two(arguments: str, snapshot: SnapshotAssertion) -> None:
    assert run(*arguments.split()) == snapshot


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_schema_is_printed_as_it_is_in_the_package(version: str) -> None:
    text = (files("planning.workflow.wire") / f"v{version}.schema.json").read_text(encoding="utf-8")
    assert run("schema", "--version", version) == f"exit code 0\n--- stdout\n{text}"

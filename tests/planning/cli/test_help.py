"""``planning prompt``, ``tools`` and ``schema``; the help of all commands, wrong usage, the version."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from typing import Any, get_args

import pytest
from cli_runs import commands_in, run, runs
from syrupy.assertion import SnapshotAssertion

from planning import PlanningStrategy, PlanningToolsSection
from planning.prompt import Prompt
from planning.prompt.definitions import DefinitionFormat, tool_definitions
from session import Session

STRATEGIES = {
    "react": PlanningStrategy.REACT,
    "plan-act-reflect": PlanningStrategy.PLAN_ACT_REFLECT,
    "Goal-Decompose-Route-Synthesise": PlanningStrategy.GOAL_DECOMPOSE_ROUTE_SYNTHESISE,
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


STORES = ["sessions", "history", "watch", "diff", "rewind", "fork", "verify"]
NAMES = [
    "validate", "new", "graph", "run", "show", "audit", "view", "export", *STORES, "ask", "replay", "mcp",
    "schema", "prompt", "tools",
    "approve", "sessions delete", "store", "store create", "store copy", "store compact",
]  # fmt: skip


def test_help_says_how_each_command_is_used(snapshot: SnapshotAssertion) -> None:
    shown = ""
    for command in ("", *NAMES):
        text = run(*command.split(), "--help")
        assert max(map(len, text.splitlines())) <= 80
        assert text == run(*command.split(), "-h")
        shown += f"-- planning {command}\n{text}"
    assert shown == snapshot
    assert run() == run("--help").replace("exit code 0\n--- stdout", "exit code 2\n--- stderr")


@pytest.mark.parametrize("module", ["planning", "planning.cli"])
def test_the_package_is_the_command(module: str) -> None:
    command = [sys.executable, "-m", module, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"planning {version('session-planning')}\n"


def test_wrong_usage_is_exit_code_two(snapshot: SnapshotAssertion) -> None:
    assert runs(commands_in(snapshot)) == snapshot


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_schema_is_printed_as_it_is_in_the_package(version: str) -> None:
    text = (files("planning.workflow.wire") / f"v{version}.schema.json").read_text(encoding="utf-8")
    assert run("schema", "--version", version) == f"exit code 0\n--- stdout\n{text}"

"""``planning prompt``, ``planning tools``, the help and the version."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest
from cli_runs import run
from syrupy.assertion import SnapshotAssertion

from planning import PlanningStrategy, PlanningToolsSection
from planning.cli.definitions import FORMATS, anthropic_tools, json_schemas, mcp_tools, openai_tools
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


def test_the_prompts_strategy_is_react_when_left_out() -> None:
    assert run("prompt") == run("prompt", "--strategy", "react")


@pytest.mark.parametrize("name", FORMATS)
def test_the_tools_are_printed_in_each_format(name: str, snapshot: SnapshotAssertion) -> None:
    assert run("tools", "--format", name) == snapshot


def test_the_tools_format_is_openai_when_left_out() -> None:
    assert run("tools") == run("tools", "--format", "openai")


def test_every_format_holds_the_same_definitions(section: PlanningToolsSection) -> None:
    tools = section.tools()
    wanted = [(tool.name, tool.description, tool.parameters_schema()) for tool in tools]
    functions = [each["function"] for each in openai_tools(tools)]
    assert [(f["name"], f["description"], f["parameters"]) for f in functions] == wanted
    assert [(t["name"], t["description"], t["input_schema"]) for t in anthropic_tools(tools)] == wanted
    listed = mcp_tools(tools)["tools"]
    assert [(t["name"], t["description"], t["inputSchema"]) for t in listed] == wanted
    assert json_schemas(tools) == {name: {"description": said, **schema} for name, said, schema in wanted}


@pytest.mark.parametrize("name", FORMATS)
def test_the_definitions_are_plain_json(name: str, section: PlanningToolsSection) -> None:
    definitions = next(shape for form, shape in FORMATS.items() if form == name)(section.tools())
    assert json.loads(json.dumps(definitions)) == definitions


def test_the_version_is_the_distributions() -> None:
    assert run("--version") == f"exit code 0\n--- stdout\nplanning {version('session-planning')}\n"


@pytest.mark.parametrize(
    "command",
    [["--help"], ["replay", "--help"], ["prompt", "--help"], ["tools", "--help"], ["run", "--help"]],
    ids=" ".join,
)
def test_help_says_how_each_command_is_used(command: list[str], snapshot: SnapshotAssertion) -> None:
    assert run(*command) == snapshot


@pytest.mark.parametrize(
    "arguments",
    [["plan"], ["--loud"], ["prompt", "--strategy", "tot"], ["tools", "--format", "yaml"], ["tools", "a"]],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_two(arguments: list[str], snapshot: SnapshotAssertion) -> None:
    assert run(*arguments) == snapshot

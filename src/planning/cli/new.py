"""``planning new``: a first workflow, with a step for each tool that is given."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from planning.cli.arguments import Agents, Handlers, McpServers, Tools
from planning.cli.capabilities import capabilities_of, tools_of_servers
from planning.cli.source import name_of, writing
from planning.cli.terminal import count, say
from planning.cli.usage import TOOLS_HELP, Refused
from planning.errors import listed, printable
from planning.tools.tool import Tool
from planning.workflow.capabilities import Capabilities, called_by_steps
from planning.workflow.model import Workflow, WorkflowStep
from planning.workflow.validate import validate_workflow
from planning.workflow.wire.build import dump_workflow

# \b keeps a paragraph as it is written.
NEW_HELP: Final = f"""\b
Examples:
  planning new report.json --tools my_app:tools
  planning new report.json --tools search,fetch --goal "Answer a question"
  planning new report.json --mcp "npx some-mcp-server"
  planning new > report.json

{TOOLS_HELP}"""
_PROMPT: Final = "${user_prompt}"
_GOAL: Final = "Say here what the steps are for"


def new(
    file: Annotated[
        str | None, typer.Argument(metavar="WORKFLOW", help="The file to write; standard output if omitted.")
    ] = None,
    *,
    tools: Tools = None,
    handlers: Handlers = None,
    agents: Agents = None,
    mcp: McpServers = None,
    goal: Annotated[str, typer.Option(metavar="TEXT", help="What the steps are for.")] = _GOAL,
) -> None:
    """Write a first workflow: a valid one, with a step for each tool, to be changed by hand.

    Inputs are taken from the examples of a tool, or are ${user_prompt}, the value of --prompt in 'planning
    run'; the command lists the ones to fill in. A file that exists is not replaced.
    """
    with tools_of_servers(mcp or ()) as served:
        given = capabilities_of(served, tools=tools, handlers=handlers, agents=agents)
        workflow = _written(given or Capabilities(), goal)
    text = dump_workflow(workflow)
    if file in {None, "-"}:
        typer.echo(text, nl=False)
    else:
        _write(text, str(file))
        typer.echo(f"Wrote {printable(str(file))}: {count(len(workflow.steps), 'step')}.")
    for line in _advice(workflow, given):
        say(line)
    if file not in {None, "-"}:
        kinds = {"--tools": tools, "--handlers": handlers, "--agents": agents, "--mcp": mcp}
        options = [word for name, values in kinds.items() for value in values or () for word in (name, value)]
        prompt = ["--prompt", "TEXT"] if _PROMPT in text else []
        say(f"run it: {printable(shlex.join(['planning', 'run', str(file), *options, *prompt]))}")


def _written(given: Capabilities, goal: str) -> Workflow:
    """A workflow with a step for all that is given, one after the other."""
    steps = list(_steps(given))
    for index in range(1, len(steps)):
        steps[index] = replace(steps[index], depends_on=(steps[index - 1].step_id,))
    workflow = Workflow(goal=goal, steps=tuple(steps))
    report = validate_workflow(dump_workflow(workflow), given)
    if not report.ok:
        first = report.errors[0]
        raise Refused(f"a step {printable(str(first.step_id))} cannot be written: {printable(first.message)}")
    return workflow


def _steps(given: Capabilities) -> Iterator[WorkflowStep]:
    known = {"tool": given.tools, "handler": given.handlers, "agent": given.agents}
    ids = set[str]()
    for kind, by_name in known.items():
        for name, function in (by_name or {}).items():
            step_id = base = re.sub(r"[^\w-]+", "_", name)
            while step_id in ids:
                step_id = f"{base}_{len(ids)}"
            ids.add(step_id)
            purpose, inputs = _call_of(name, function, is_agent=kind == "agent")
            call: dict[str, Any] = {"agent": name} if kind == "agent" else {"type": kind, "name": name}
            yield WorkflowStep(step_id=step_id, description=purpose, inputs=inputs, **call)
    if not ids:
        yield WorkflowStep(step_id="look", description="Look into it")
        yield WorkflowStep(step_id="answer", description="Say what was found")


def _call_of(name: str, function: Callable[..., Any] | None, *, is_agent: bool) -> tuple[str, dict[str, Any]]:
    """The description of a call, and inputs for it."""
    tool = function if isinstance(function, Tool) or function is None else called_by_steps(name, function)
    purpose = "" if tool is None else tool.description.strip().partition("\n")[0]
    if tool is None:
        return f"Call {name}", {}
    if tool.examples:
        return purpose or f"Call {name}", dict(tool.examples[0].arguments)
    schema = tool.parameters_schema()
    fields = schema.get("properties", {})
    inputs = {name: _example(fields.get(name, {})) for name in schema.get("required", ())}
    if is_agent and len(inputs) == 1:
        inputs = {}  # its one parameter is the step's description
    return purpose or f"Call {name}", inputs


def _example(node: Mapping[str, Any]) -> Any:
    """A value that a schema names; else the prompt, which is checked when the step runs."""
    named = [node[key] for key in ("default", "const") if key in node]
    return next(iter([*named, *node.get("examples", ()), *node.get("enum", ())]), _PROMPT)


def _advice(workflow: Workflow, given: Capabilities | None) -> Iterator[str]:
    """The steps that are left to the user."""
    if given is None:
        yield "its steps call nothing yet; name what they may call: --tools my_app:tools"
        return
    known = {"tool": given.tools, "handler": given.handlers}
    filled = [f"{step.step_id} ({listed(step.inputs)})" for step in workflow.steps if step.inputs]
    if filled:
        yield f"check and fill in the inputs of {printable('; '.join(filled))}"
    for kind, by_name in known.items():
        bare = [name for name, function in (by_name or {}).items() if function is None]
        if bare:
            yield (
                f"the inputs of {printable(listed(bare))} are not known: add them, or name an object that"
                f" holds each {kind}: --{kind}s my_app:{kind}s"
            )


def _write(text: str, file: str) -> None:
    """Write a file that does not exist yet."""
    if os.path.lexists(file):
        raise Refused(f"{name_of(file)} exists already; name another file")
    with writing(file), Path(file).open("x", encoding="utf-8") as target:
        target.write(text)

"""``planning validate`` and ``planning schema``: check a workflow, and print the schema of workflows."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, Final, Literal

import attrs
import typer

from planning.cli.arguments import Agents, Finished, Handlers, Tools, WorkflowFile
from planning.cli.capabilities import capabilities_of, mention_colon
from planning.cli.source import read_bytes, refuse_other
from planning.cli.terminal import columns, wants_color
from planning.cli.usage import TOOLS_HELP, Refused, examples
from planning.errors import printable
from planning.workflow.capabilities import Capabilities
from planning.workflow.codes import Finding
from planning.workflow.report import Report, sentence
from planning.workflow.validate import validate_workflow
from planning.workflow.wire.form import schema_text

# \b keeps a paragraph as it is written.
VALIDATE_HELP: Final = f"""\b
Examples:
  planning validate report.json
  planning validate report.json --tools search,fetch --handlers summarise
  planning validate report.json --tools my_app.tools:registry
  planning validate workflows/report.json --format github

{TOOLS_HELP}"""
SCHEMA_HELP: Final = examples("schema > workflow.schema.json", "schema --tools my_app:tools")
_Format = Literal["text", "json", "prompt", "github"]


def validate(
    file: WorkflowFile = None,
    *,
    tools: Tools = None,
    handlers: Handlers = None,
    agents: Agents = None,
    form: Annotated[
        _Format,
        typer.Option(
            "--format",
            case_sensitive=False,
            help="text: for a person; json: every finding with its fields; prompt: for a model that"
            " should repair its workflow; github: annotations of a pull request.",
        ),
    ] = "text",
    finished: Finished = False,
) -> None:
    """Check a workflow: every problem at once, each with its place.

    A workflow is a JSON document in one of the forms that 'planning schema' prints. It may be just as a model
    wrote it: in a code fence, with text around it, or slightly broken.
    """
    source = read_bytes(file, "WORKFLOW")

    capabilities = capabilities_of(tools=tools, handlers=handlers, agents=agents)
    report = validate_workflow(source, capabilities, finished=finished)
    if not report.ok:
        refuse_other(source, file, "a workflow", "workflow")
    _print(report, form, file)
    mention_colon(report, tools=tools, handlers=handlers, agents=agents)
    if not report.ok:
        raise typer.Exit(1)


def schema(
    version: Annotated[Literal["1", "2"], typer.Option(help="The version of the format.")] = "2",
    tools: Tools = None,
    handlers: Handlers = None,
    agents: Agents = None,
) -> None:
    """Print the JSON Schema of a workflow.

    With --tools, --handlers or --agents it is the schema of workflows that name only these, for a server
    that constrains what a model writes.
    """
    if not (tools or handlers or agents):
        typer.echo(schema_text(int(version)), nl=False)
        return
    none = [""]
    known = (
        capabilities_of(tools=tools or none, handlers=handlers or none, agents=agents or none)
        or Capabilities()
    )
    try:
        made = known.schema(version=int(version))
    except ValueError as error:
        raise Refused(str(error)) from None
    typer.echo(json.dumps(made, indent=2))


def print_report(report: Report, file: str | None, *, err: bool = False) -> None:
    """Print a report for a person."""
    stream = sys.stderr if err else sys.stdout
    color = wants_color(stream)
    name = "<stdin>" if file in (None, "-") else f"{file}"
    typer.echo(report.render(color=color, name=name, width=columns(stream)), err=err, color=color)
    if report.errors:
        typer.echo("'planning schema' prints the form of a workflow, 'planning new' writes one.", err=err)


def _print(report: Report, form: _Format, file: str | None) -> None:
    match form:
        case "text":
            print_report(report, file)
        case "json":
            findings = [_fields(finding) for finding in (*report.errors, *report.warnings)]
            typer.echo(json.dumps({**report.to_dict(), "findings": findings}, indent=2))
        case "prompt":
            typer.echo(report.to_prompt())
        case "github":
            text = github_text(report, None if file == "-" else file)
            typer.echo(text, nl=bool(text))


def _fields(finding: Finding) -> dict[str, Any]:
    kind = {"severity": finding.severity, "category": finding.category}
    return {**kind, **attrs.asdict(finding)}


def github_text(report: Report, file: str | None) -> str:
    """A workflow command for each finding, one a line: GitHub shows them beside the lines of a file."""
    return "\n".join(_command(finding, file) for finding in (*report.errors, *report.warnings))


def _command(finding: Finding, file: str | None) -> str:
    place: dict[str, object] = {}
    message = sentence(finding)
    if file is not None:
        place["file"] = file
        if finding.line is not None:
            place |= {"line": finding.line, "col": finding.column}
            message = sentence(attrs.evolve(finding, line=None))  # the annotation is at that line
    return annotation(finding.severity, message, **place, title=finding.code)


def annotation(severity: str, message: str, **properties: object) -> str:
    """A workflow command that GitHub shows as an annotation, on one line."""
    shown = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{severity} {shown}::{_data(message)}"


def _data(text: str) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return printable(text)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

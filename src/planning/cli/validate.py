"""The commands that are about workflow documents: check one, and print their schemas."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import attrs
import typer

from planning.cli.reports import print_report
from planning.cli.source import Finished, PlanFile, read_capabilities, read_plan

if TYPE_CHECKING:
    from planning.workflow.reports.report import Report

__all__ = ["SCHEMA_HELP", "VALIDATE_HELP", "print_schema", "validate"]

# \b keeps a paragraph as it is written.
VALIDATE_HELP: Final = """\b
Examples:
  planning validate plan.json
  planning validate plan.json --tools search,fetch --handlers summarise
  planning validate plan.json --tools my_app.tools:registry
  my-agent --plan-only | planning validate --format prompt
  planning validate plans/nightly.json --format github

\b
Exit codes:
  0    the plan is valid; it may have warnings
  1    the plan has errors, or the output cannot be written
  2    nothing was checked: wrong usage, or the file or an object
       that was named cannot be read
  130  interrupted
"""
SCHEMA_HELP: Final = """\b
Examples:
  planning schema > plan.schema.json
  planning schema --version 1
"""
_NAMES: Final = "NAMES|MODULE:OBJECT"


class ReportFormat(StrEnum):
    """Who is going to read the report."""

    TEXT = "text"
    JSON = "json"
    PROMPT = "prompt"
    GITHUB = "github"


class SchemaVersion(StrEnum):
    """The formats of a plan."""

    LIST_OF_STEPS = "1"
    OBJECT_OF_STEPS = "2"


def validate(
    plan: PlanFile = None,
    *,
    tools: Annotated[
        list[str] | None,
        typer.Option(
            metavar=_NAMES,
            help="The tools that exist: names with commas between them, or an object in a Python module:"
            " a registry, a toolbox, a mapping or a list, or a function that makes one. May be given"
            " more than once. Left out, the names of tools are not checked.",
            show_default=False,
        ),
    ] = None,
    handlers: Annotated[
        list[str] | None,
        typer.Option(metavar=_NAMES, help="The handlers that exist, in the same way.", show_default=False),
    ] = None,
    agents: Annotated[
        list[str] | None,
        typer.Option(metavar=_NAMES, help="The agents that exist, in the same way.", show_default=False),
    ] = None,
    form: Annotated[
        ReportFormat,
        typer.Option(
            "--format",
            case_sensitive=False,
            help="text: for a person; json: every finding with its fields; prompt: for a model that is"
            " to repair its plan; github: annotations of a pull request.",
        ),
    ] = ReportFormat.TEXT,
    finished: Finished = False,
) -> None:
    """Check a plan: every problem at once, each at its place.

    A plan is a JSON document in one of the forms that 'planning schema' prints. It may be just as a
    model wrote it: in a code fence, with text around it, or slightly broken.
    """
    source = read_plan(plan)
    capabilities = read_capabilities(tools=tools, handlers=handlers, agents=agents)
    from planning.workflow.validate import validate_workflow

    report = validate_workflow(source, capabilities, finished=finished)
    _print(report, form, None if plan in (None, "-") else plan)
    if not report.ok:
        raise typer.Exit(1)


def print_schema(
    version: Annotated[
        SchemaVersion, typer.Option(help="The version of the format.")
    ] = SchemaVersion.OBJECT_OF_STEPS,
) -> None:
    """Print the JSON Schema of a plan."""
    from planning.workflow.wire.schemas import schema_text

    typer.echo(schema_text(int(version)), nl=False)


def _print(report: Report, form: ReportFormat, file: str | None) -> None:
    match form:
        case ReportFormat.TEXT:
            print_report(report, file)
        case ReportFormat.JSON:
            findings = [_fields(finding) for finding in (*report.errors, *report.warnings)]
            typer.echo(json.dumps({**report.to_dict(), "findings": findings}, indent=2))
        case ReportFormat.PROMPT:
            typer.echo(report.to_prompt())
        case ReportFormat.GITHUB:
            from planning.cli.github import github_text

            text = github_text(report, file)
            typer.echo(text, nl=bool(text))


def _fields(finding: Any) -> dict[str, Any]:
    kind = {"severity": finding.severity, "category": finding.category}
    return {**kind, **attrs.asdict(finding)}

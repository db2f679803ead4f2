"""The ``planning`` command: its commands in one place."""

from __future__ import annotations

import json
from typing import Annotated, Final, Literal

import typer

from planning.cli.ask import ASK_HELP, ask
from planning.cli.audit import AUDIT_HELP, audit
from planning.cli.copying import CREATE_HELP, compact, copy, create, delete
from planning.cli.graph import GRAPH_HELP, graph
from planning.cli.history import history, watch
from planning.cli.mcp_server import MCP_HELP, mcp
from planning.cli.new import NEW_HELP, new
from planning.cli.replay import replay
from planning.cli.run import RUN_HELP, run
from planning.cli.sessions import approve, diff, fork, rewind, sessions, verify
from planning.cli.show import SHOW_HELP, show
from planning.cli.usage import EXIT_CODES, HELP_OPTIONS, TOOLS_HELP, Command, Commands, bad_option, examples
from planning.cli.validate import print_schema, validate
from planning.cli.view import EXPORT_HELP, VIEW_HELP, export, view
from planning.errors import unknown_option

_Form = Literal["openai", "openai-responses", "anthropic", "gemini", "mcp", "json-schema"]

# \b keeps a paragraph as it is written.
_HELP: Final = f"""\b
Examples:
  planning new report.json --tools my_app:tools
  planning validate report.json --tools my_app:tools
  planning graph report.json
  planning run report.json --tools my_app:tools
  planning run report.json nightly --tools app:tools --store plans.db
  planning show plans.db nightly
  planning watch plans.db nightly
  planning audit plans.db nightly
  planning view plans.db nightly
  planning approve plans.db nightly
  planning ask --db shop.db --sql-from query.sql
  planning replay examples/triage.jsonl
  planning mcp --store plans.db --session nightly
  planning prompt --strategy plan-act-reflect
  planning tools --format anthropic

{EXIT_CODES}"""
app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    context_settings=HELP_OPTIONS,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: no markup in it, none read into what a user typed
    help="Plans of agents, and workflows. A plan is what an agent tracks in a session. A workflow is a"
    " document of steps that call tools: it is checked, drawn and run.",
    epilog=_HELP,
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it
    if asked:
        from importlib.metadata import version

        typer.echo(f"planning {version('session-planning')}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass


def _prompt(
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="react, plan-act-reflect or goal-decompose-route-synthesise; react if omitted.",
        ),
    ] = "react",
) -> None:
    """Print the planning section of a prompt as a model reads it."""
    from planning.prompt import PlanningStrategy, PlanningToolsSection, Prompt
    from session import Session

    try:
        chosen = PlanningStrategy(strategy)
    except ValueError:
        names = [each.name.lower().replace("_", "-") for each in PlanningStrategy]
        raise bad_option("--strategy", unknown_option(strategy, names)) from None
    section = PlanningToolsSection(session=Session(), strategy=chosen)
    typer.echo(Prompt(ns="planning/cli", key="section", sections=[section]).render().text)


def _tools(
    form: Annotated[_Form, typer.Option("--format", case_sensitive=False, help="Who reads them.")] = "openai",
    *,
    is_strict: Annotated[bool, typer.Option("--strict", help="For a provider's strict mode.")] = False,
) -> None:
    """Print the definitions of the six planning tools as JSON."""
    from planning.prompt.definitions import tool_definitions

    typer.echo(json.dumps(tool_definitions(form, strict=is_strict), indent=2))


# The short lines fit beside the names in 80 columns. Where the help of a command needs more than examples, it
# is beside the command.
for name, function, short, more in (
    (
        "validate",
        validate,
        "Check a workflow: every problem at once.",
        f"""{
            examples(
                "validate report.json",
                "validate report.json --tools search,fetch --handlers summarise",
                "validate report.json --tools my_app.tools:registry",
                "validate workflows/report.json --format github",
            )
        }
{TOOLS_HELP}""",
    ),
    ("new", new, "Write a first workflow, with your tools.", NEW_HELP),
    ("graph", graph, "Draw a workflow: its steps, and what waits for what.", GRAPH_HELP),
    ("run", run, "Run a workflow: call its tools, print the answer.", RUN_HELP),
    ("show", show, "Show a session: its plan, or its run.", SHOW_HELP),
    ("sessions", sessions, "List the sessions of a store.", examples("sessions", "sessions plans.db --json")),
    (
        "sessions delete",
        delete,
        "Delete sessions of a store.",
        examples("sessions delete plans.db what-if", "sessions delete plans.db nightly what-if --yes"),
    ),
    (
        "history",
        history,
        "List the changes of a session.",
        examples("history", "history plans.db nightly --after 40"),
    ),
    (
        "watch",
        watch,
        "Show a session's plan while it changes.",
        examples("watch plans.db nightly", "watch plans.db nightly --json | my-dashboard"),
    ),
    ("audit", audit, "Audit a plan: what it claims, and what was done.", AUDIT_HELP),
    ("view", view, "See a run in the browser, live.", VIEW_HELP),
    ("export", export, "Write a run as one HTML file.", EXPORT_HELP),
    (
        "diff",
        diff,
        "Compare the plans of two versions of a session.",
        examples("diff plans.db nightly", "diff plans.db nightly 3", "diff plans.db nightly 3 7 --json"),
    ),
    ("rewind", rewind, "Restore a version of a session.", examples("rewind plans.db nightly 3")),
    (
        "fork",
        fork,
        "Copy a session up to a version.",
        examples("fork plans.db nightly", "fork plans.db nightly --at 3 --as what-if"),
    ),
    ("verify", verify, "Check sessions for damage.", examples("verify plans.db", "verify plans.db nightly")),
    ("store create", create, "Make the tables of a store in PostgreSQL.", CREATE_HELP),
    (
        "store copy",
        copy,
        "Copy sessions to another store.",
        examples(
            "store copy plans.db postgresql://me@db.example.org/plans",
            "store copy postgresql://me@db.example.org/plans copy.db nightly what-if",
        ),
    ),
    (
        "store compact",
        compact,
        "Give back the room of deleted sessions.",
        examples("store compact plans.db"),
    ),
    (
        "approve",
        approve,
        "Approve a plan that waits, or reject it.",
        examples("approve plans.db nightly", 'approve plans.db nightly --reject "Test it first"'),
    ),
    ("ask", ask, "Ask a database a question: see the SQL and the rows.", ASK_HELP),
    (
        "replay",
        replay,
        "Replay a transcript: show the plan as it changes.",
        examples("replay examples/triage.jsonl", "replay --json - < transcript.jsonl"),
    ),
    ("mcp", mcp, "Serve the planning tools to MCP clients.", MCP_HELP),
    (
        "schema",
        print_schema,
        "Print the JSON Schema of a workflow.",
        examples("schema > workflow.schema.json", "schema --version 1"),
    ),
    (
        "prompt",
        _prompt,
        "Print the planning section of a prompt.",
        examples("prompt", "prompt --strategy goal-decompose-route-synthesise"),
    ),
    (
        "tools",
        _tools,
        "Print the definitions of the planning tools.",
        examples("tools --format openai > tools.json", "tools --format anthropic --strict"),
    ),
):
    epilog = more if "Exit codes" in more else f"{more}\n{EXIT_CODES}"
    app.command(name, cls=Command, short_help=short, epilog=epilog, context_settings=HELP_OPTIONS)(function)

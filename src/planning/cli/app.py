"""The command line: what each command reads, what it prints, and its exit codes."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from enum import StrEnum
from importlib.metadata import version
from typing import Annotated, Final

import typer

from planning.cli.ask.command import ASK_HELP, ask
from planning.cli.definitions import FORMATS, Format
from planning.cli.graph import GRAPH_HELP, graph
from planning.cli.replay import replay
from planning.cli.run.command import RUN_HELP, run
from planning.cli.source import NoSourceError, SourceError, UnreadableError, read_calls
from planning.cli.validate import SCHEMA_HELP, VALIDATE_HELP, print_schema, validate
from planning.cli.view_plain import show_plain
from planning.model import Plan
from planning.prompt import PlanningStrategy, PlanningToolsSection, Prompt
from session import Session, select_latest

__all__ = ["app"]

_TERMINAL_DELAY: Final = 0.15
_LONGEST_DELAY: Final = 60.0


class Strategy(StrEnum):
    """The strategies by the short names that the command line takes."""

    REACT = "react"
    PAR = "par"
    GDRS = "gdrs"


_STRATEGIES: Final = {
    Strategy.REACT: PlanningStrategy.REACT,
    Strategy.PAR: PlanningStrategy.PLAN_ACT_REFLECT,
    Strategy.GDRS: PlanningStrategy.GOAL_DECOMPOSE_ROUTE_SYNTHESISE,
}

# \b keeps a paragraph as it is written.
_EXIT_CODES: Final = """\b
Exit codes:
  0    done; refused calls are part of a replay
  1    the transcript holds something else than messages, or the
       output cannot be written
  2    wrong usage, or the transcript cannot be read
  130  interrupted
"""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: no markup in it, none read into what a user typed
    help="Planning for agents: check and draw plans, replay transcripts, print prompts and tools.",
    epilog="""\b
Examples:
  planning validate plan.json --tools search,fetch
  planning graph plan.json
  planning run plan.json --tools my_app:tools
  planning ask --db shop.db --sql-from query.sql
  planning replay examples/triage.jsonl
  planning prompt --strategy par
  planning tools --format anthropic

\b
Exit codes:
  0    done
  1    the plan has errors, the transcript cannot be replayed, or the
       output cannot be written
  2    wrong usage, or a file that cannot be read
  130  interrupted
""",
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it
    if asked:
        typer.echo(f"planning {version('session-planning')}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and leave."),
    ] = False,
) -> None:
    pass


app.command("validate", epilog=VALIDATE_HELP)(validate)
app.command("graph", epilog=GRAPH_HELP)(graph)
app.command("run", epilog=RUN_HELP)(run)
app.command("ask", epilog=ASK_HELP)(ask)
app.command("schema", epilog=SCHEMA_HELP)(print_schema)


@app.command(
    "replay",
    epilog=f"""\b
Examples:
  planning replay examples/triage.jsonl
  planning replay --delay 0.5 examples/triage-anthropic.jsonl
  planning replay --json - < transcript.jsonl
  my-agent --log-messages | planning replay

{_EXIT_CODES}""",
)
def _replay(
    transcript: Annotated[
        str | None,
        typer.Argument(metavar="TRANSCRIPT", help="A file, or - for standard input.", show_default=False),
    ] = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the final plan as JSON, nothing else.")
    ] = False,
    delay: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=_LONGEST_DELAY,
            metavar="SECONDS",
            help=f"Wait after each change; {_TERMINAL_DELAY} in a terminal, 0 elsewhere when left out.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Replay a transcript: show the plan as it changes.

    A transcript holds model messages in JSON, in the chat-completions form or in Anthropic's: one
    a line, or all in one array, or in an object under "messages". Calls to other tools are passed
    over and counted.
    """
    try:
        calls = read_calls(transcript)
    except SourceError as error:
        typer.echo(f"planning: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, UnreadableError) else 1) from None
    except NoSourceError:
        raise typer.BadParameter("give a file, or pipe one in", param_hint="'TRANSCRIPT'") from None
    section = PlanningToolsSection(session=Session())
    records = replay(calls, section)
    if as_json:
        for _ in records:
            pass
        plan = select_latest(section.session, Plan)
        typer.echo(json.dumps(None if plan is None else asdict(plan), indent=2))
    elif sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        from rich.console import Console

        from planning.cli.view_live import show_live

        seconds = _TERMINAL_DELAY if delay is None else delay
        show_live(Console(), _rendered(section), records, pause=lambda: time.sleep(seconds))
    else:
        show_plain(typer.echo, _rendered(section), records, pause=lambda: time.sleep(delay or 0.0))


@app.command(
    "prompt",
    epilog="""\b
Examples:
  planning prompt
  planning prompt --strategy gdrs
""",
)
def _prompt(
    strategy: Annotated[
        Strategy,
        typer.Option(
            case_sensitive=False,
            help="react: reason, act, observe; par: plan, act, reflect;"
            " gdrs: goal, decompose, route, synthesise.",
        ),
    ] = Strategy.REACT,
) -> None:
    """Print the planning section of a prompt as a model reads it."""
    typer.echo(_rendered(PlanningToolsSection(session=Session(), strategy=_STRATEGIES[strategy])))


@app.command(
    "tools",
    epilog="""\b
Examples:
  planning tools --format openai > tools.json
  planning tools --format json-schema
""",
)
def _tools(
    form: Annotated[
        Format, typer.Option("--format", case_sensitive=False, help="Who is going to read them.")
    ] = Format.OPENAI,
) -> None:
    """Print the definitions of the six planning tools as JSON."""
    tools = PlanningToolsSection(session=Session()).tools()
    typer.echo(json.dumps(FORMATS[form](tools), indent=2))


def _rendered(section: PlanningToolsSection) -> str:
    return Prompt(ns="planning/cli", key="section", sections=[section]).render().text

"""The ``planning`` command: its commands in one place, which are loaded when they are called."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from planning.cli.usage import EXIT_CODES, HELP_OPTIONS, Command

# The module, the function and the short line of each command, which fits beside the names in 80 columns. The
# module has the rest of its help: SHOW_HELP for the function ``show``.
_COMMANDS: Final = {
    "validate": ("validate:validate", "Check a workflow: every problem at once."),
    "new": ("new:new", "Write a first workflow, with your tools."),
    "graph": ("graph:graph", "Draw a workflow: its steps, and what waits for what."),
    "run": ("run:run", "Run a workflow: call its tools, print the answer."),
    "show": ("show:show", "Show a session: its plan, or its run."),
    "sessions": ("sessions:sessions", "List the sessions of a store."),
    "sessions delete": ("copying:delete", "Delete sessions of a store."),
    "history": ("history:history", "List the changes of a session."),
    "watch": ("history:watch", "Show a session's plan while it changes."),
    "audit": ("audit:audit", "Audit a plan: what it claims, and what was done."),
    "view": ("view:view", "See a run in the browser, live."),
    "export": ("view:export", "Write a run as one HTML file."),
    "diff": ("sessions:diff", "Compare the plans of two versions of a session."),
    "rewind": ("sessions:rewind", "Restore a version of a session."),
    "fork": ("sessions:fork", "Copy a session up to a version."),
    "verify": ("sessions:verify", "Check sessions for damage."),
    "store create": ("copying:create", "Make the tables of a store in PostgreSQL."),
    "store copy": ("copying:copy", "Copy sessions to another store."),
    "store compact": ("copying:compact", "Give back the space of deleted sessions."),
    "approve": ("sessions:approve", "Approve a plan that waits, or reject it."),
    "ask": ("ask:ask", "Ask a database a question: see the SQL and the rows."),
    "replay": ("replay:replay", "Replay a transcript: show the plan as it changes."),
    "mcp": ("mcp_server:mcp", "Serve the planning tools to MCP clients."),
    "schema": ("validate:schema", "Print the JSON Schema of a workflow."),
    "prompt": ("definitions:prompt", "Print the planning section of a prompt."),
    "tools": ("definitions:tools", "Print the definitions of the planning tools."),
}

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


class Commands(TyperGroup):
    """Commands whose names may be two words: ``sessions delete`` beside ``sessions``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command that arguments begin with, the longest name first, and load it."""
        name, rest = " ".join(args[:2]), args[2:]
        if name in self.commands:
            return name, _loaded(name), rest
        if args[0] not in self.commands and (inside := _inside(args[0])):
            return args[0], inside, args[1:]
        found, _, rest = super().resolve_command(ctx, args)
        return found, None if found is None else _loaded(found), rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; the error of one quotes no password."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            from session.address import hide_secrets  # --help needs no sessions

            if isinstance(getattr(error, "message", None), str):
                error.message = hide_secrets(error.message)  # type: ignore[attr-defined]  # of a click error
            raise


def _inside(word: str) -> TyperGroup | None:
    """The commands whose names begin with a word, as a group; None if there are none."""
    names = {name.removeprefix(f"{word} "): name for name in _COMMANDS if name.startswith(f"{word} ")}
    commands = {short: _loaded(name) for short, name in names.items()}
    for short, name in names.items():
        commands[short].short_help = _COMMANDS[name][1]
    help_ = f"The commands that begin with {word}; 'planning {word} COMMAND --help' shows one."
    options: Any = {"no_args_is_help": True, "context_settings": HELP_OPTIONS, "rich_markup_mode": None}
    return TyperGroup(name=word, commands=commands, help=help_, **options) if names else None


def _loaded(name: str) -> Any:
    """A command with its options."""
    module, _, function = _COMMANDS[name][0].partition(":")
    found = vars(import_module(f"planning.cli.{module}"))
    epilog = f"{found[f'{function.upper()}_HELP']}\n{EXIT_CODES}"
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=Command, epilog=epilog, context_settings=HELP_OPTIONS)(found[function])
    return typer.main.get_command(alone)


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


for _name, (_, _short) in _COMMANDS.items():
    app.command(_name, short_help=_short)(lambda: None)

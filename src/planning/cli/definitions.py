"""``planning prompt`` and ``planning tools``: what a model is given."""

from __future__ import annotations

import json
from typing import Annotated, Final, Literal

import typer

from planning.cli.usage import bad_option, examples
from planning.prompt import PlanningToolsSection, Prompt
from planning.prompt.definitions import tool_definitions
from session import Session

_Form = Literal["openai", "openai-responses", "anthropic", "gemini", "mcp", "json-schema"]
_STRATEGIES: Final = "react, plan-act-reflect or goal-decompose-route-synthesise; react if omitted."
PROMPT_HELP: Final = examples("prompt", "prompt --strategy goal-decompose-route-synthesise")
TOOLS_HELP: Final = examples("tools --format openai > tools.json", "tools --format anthropic --strict")


def prompt(strategy: Annotated[str, typer.Option(metavar="NAME", help=_STRATEGIES)] = "react") -> None:
    """Print the planning section of a prompt as a model reads it."""
    try:
        section = PlanningToolsSection(session=Session(), strategy=strategy)
    except ValueError as error:
        raise bad_option("--strategy", str(error).removeprefix("strategy: ")) from None
    typer.echo(Prompt(ns="planning/cli", key="section", sections=[section]).render().text)


def tools(
    form: Annotated[_Form, typer.Option("--format", case_sensitive=False, help="Who reads them.")] = "openai",
    *,
    is_strict: Annotated[bool, typer.Option("--strict", help="For a provider's strict mode.")] = False,
) -> None:
    """Print the definitions of the six planning tools as JSON."""
    typer.echo(json.dumps(tool_definitions(form, strict=is_strict), indent=2))

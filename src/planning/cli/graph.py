"""The command that draws a workflow: as Mermaid for a page, as a tree for a person in a terminal."""

from __future__ import annotations

import shutil
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

from planning.cli.reports import is_terminal, print_report, wants_color
from planning.cli.source import PlanFile, read_plan

if TYPE_CHECKING:
    from planning.workflow.model import Workflow

__all__ = ["GRAPH_HELP", "graph"]

# \b keeps a paragraph as it is written.
GRAPH_HELP: Final = """\b
Examples:
  planning graph plan.json
  planning graph plan.json --format mermaid > plan.mmd
  my-agent --plan-only | planning graph - | mmdc -i - -o plan.svg

\b
The tree:
  Each step stands behind everything that it depends on: beside an
  arrow it follows the step above it, on a branch the step that the
  branch grows from. "after" names what else it depends on.

\b
Exit codes:
  0    the plan is valid and was drawn
  1    the plan has errors, which are told on standard error as
       'planning validate' tells them, or the output cannot be written
  2    nothing was drawn: wrong usage, or the file cannot be read
  130  interrupted
"""


class GraphFormat(StrEnum):
    """What a workflow is drawn as."""

    TREE = "tree"
    MERMAID = "mermaid"


def graph(
    plan: PlanFile = None,
    *,
    form: Annotated[
        GraphFormat | None,
        typer.Option(
            "--format",
            case_sensitive=False,
            help="tree: for a person; mermaid: the text of a flowchart, for a page or a picture."
            " Left out, it is a tree in a terminal and Mermaid elsewhere.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Draw a plan: its steps, what they call, and which waits for which.

    The plan is checked first, as 'planning validate' does it without options; one with errors is not drawn.
    """
    source = read_plan(plan)
    from planning.workflow.validate import validate_workflow

    report = validate_workflow(source)
    if not report.ok:
        print_report(report, None if plan in (None, "-") else plan, err=True)
        raise typer.Exit(1)
    in_terminal = is_terminal(sys.stdout)
    if form is GraphFormat.TREE or (form is None and in_terminal):
        from planning.cli.view_tree import tree_text

        color = in_terminal and wants_color()
        width = shutil.get_terminal_size().columns if in_terminal else None
        text = tree_text(report.workflow, width=width, color=color, is_ascii=_is_ascii(sys.stdout))
        typer.echo(text, nl=False, color=color)
    else:
        _print_mermaid(report.workflow)


def _print_mermaid(workflow: Workflow) -> None:
    from planning.workflow.drawing import MOST_CHARACTERS, MOST_EDGES, mermaid

    text = mermaid(workflow)
    typer.echo(text, nl=False)
    edges = sum(len(set(step.depends_on)) for step in workflow.steps)
    if edges > MOST_EDGES or len(text) > MOST_CHARACTERS:
        typer.echo(
            f"planning: the chart has {edges:,} edges and {len(text):,} characters, and Mermaid draws"
            f" {MOST_EDGES:,} and {MOST_CHARACTERS:,} unless told; raise its maxEdges and maxTextSize",
            err=True,
        )


def _is_ascii(stream: TextIO | None) -> bool:
    """Whether an output may be unable to show more than ASCII."""
    encoding = getattr(stream, "encoding", None) or "ascii"
    return not encoding.lower().startswith("utf")
